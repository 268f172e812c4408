"""Binary data: Bernoulli, log-linear (Ising) models, Rademacher–Walsh and Bahadur expansions."""
