"""Hidden Markov models whose transitions depend on covariates."""
