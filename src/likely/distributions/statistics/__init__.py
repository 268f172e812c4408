"""Sufficient statistics that several distributions share."""
