"""Distributions of covariance matrices: Wishart and inverse Wishart."""
