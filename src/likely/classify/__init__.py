"""Classifiers: Bayes, naive Bayes, nearest neighbors, nearest centroid, Fisher; explanations."""
