"""Special functions, linear algebra, quadrature, random numbers, and the decorator of compiled functions."""
