"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.basis.polynomials import Identity as Identity
from likely.basis.polynomials import Polynomial as Polynomial
