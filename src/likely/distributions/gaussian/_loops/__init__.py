"""Compiled functions of Gaussians."""
