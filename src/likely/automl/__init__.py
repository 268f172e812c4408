"""Candidates compared by cross-validation; models of tables and sequences that know their columns."""
