"""Approximate inference: Laplace approximation, sequential Monte Carlo, stochastic approximation."""
