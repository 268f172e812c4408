"""Bijectors (invertible changes of variables) and transformed distributions."""
