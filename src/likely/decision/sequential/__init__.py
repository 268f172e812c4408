"""Sequential tests: Wald's probability ratio test, CUSUM, races of models."""
