"""Elliptical distributions with any radial profile."""
