"""Linear subspaces: principal components, factors, discriminant directions."""
