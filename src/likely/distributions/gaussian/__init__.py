"""The Gaussian distribution: algebra, moments, shrinkage, missing values, factor models."""
