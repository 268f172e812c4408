"""Student's t distribution and its EM algorithm."""
