"""Entropy, Kullback-Leibler divergence and mutual information."""
