"""Readers of tables, sequences and sounds."""
