"""Word networks, bigrams and connected-word recognition."""
