"""k-means: k-means++, Lloyd's algorithm, the exchange method, the number of clusters."""
