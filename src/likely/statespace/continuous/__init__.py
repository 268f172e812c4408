"""Linear models in continuous time (stochastic differential equations)."""
