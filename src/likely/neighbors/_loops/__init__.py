"""Compiled functions of the nearest-neighbor search."""
