"""Student-t distribution and its EM algorithm."""
