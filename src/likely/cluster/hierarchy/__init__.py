"""Agglomerative clustering: linkage, dendrograms and where to cut them."""
