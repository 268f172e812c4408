"""Nonparametric density estimation: kernels, histograms, nearest neighbors."""
