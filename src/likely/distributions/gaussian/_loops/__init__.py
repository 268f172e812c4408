"""Compiled loops of the Gaussian package."""
