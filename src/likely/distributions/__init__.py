"""Probability distributions with their sufficient statistics and priors."""
