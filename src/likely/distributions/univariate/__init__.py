"""Univariate distributions, one per column: beta, binomial, Cauchy, gamma, Poisson, uniform, von Mises and others."""
