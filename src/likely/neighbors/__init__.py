"""Nearest-neighbor search, distances, voting, editing and condensing."""
