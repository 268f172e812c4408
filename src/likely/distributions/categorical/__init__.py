"""Categorical, multinomial, Dirichlet and Dirichlet-multinomial distributions, probability tables, Chow–Liu trees."""
