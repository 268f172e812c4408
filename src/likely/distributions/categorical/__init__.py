"""Categorical, multinomial and Dirichlet distributions, probability tables, Chow-Liu trees."""
