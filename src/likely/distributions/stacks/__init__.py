"""Stacks of distributions, and parameter tying between their members."""
