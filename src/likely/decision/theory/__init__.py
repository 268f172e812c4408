"""The Bayes error and its bounds."""
