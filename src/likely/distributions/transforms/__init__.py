"""Bijectors and transformed distributions."""
