"""Readers of tables, sequences and recordings."""
