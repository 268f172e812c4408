"""k-means and hierarchical clustering."""
