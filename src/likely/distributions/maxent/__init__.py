"""Distributions of maximum entropy under constraints."""
