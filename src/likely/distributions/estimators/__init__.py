"""Estimators of univariate, categorical and binary distributions, and of products of independent components."""
