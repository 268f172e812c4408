"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.basis.fourier import Fourier as Fourier
from likely.basis.function_basis import FunctionBasis as FunctionBasis
from likely.basis.interactions import Interactions as Interactions
from likely.basis.localized_functions import GaussianBasis as GaussianBasis
from likely.basis.localized_functions import SigmoidBasis as SigmoidBasis
from likely.basis.one_hot import OneHot as OneHot
from likely.basis.per_column import PerColumn as PerColumn
from likely.basis.polynomials import Identity as Identity
from likely.basis.polynomials import OrthogonalPolynomial as OrthogonalPolynomial
from likely.basis.polynomials import Polynomial as Polynomial
from likely.basis.splines import BSpline as BSpline
from likely.basis.splines import PiecewiseLinear as PiecewiseLinear
