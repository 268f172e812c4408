"""What the command `fit` does, from a table or from sequences."""
