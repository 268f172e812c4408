"""Conjugate priors and other priors of parameters."""
