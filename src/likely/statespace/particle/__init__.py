"""Particle filters and smoothers."""
