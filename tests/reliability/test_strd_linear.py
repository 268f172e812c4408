"""NIST's linear regressions: digits of coefficients, standard errors and residual deviations against exact arithmetic.

`exact.json` holds the exact solution for the data as written, in decimals. Digits are −log₁₀ of the relative error,
capped at 15. Filip is a polynomial of degree 10 whose powers are rounded to float64: no method that sees the rounded
powers reaches more than 7.9 digits of the coefficients and 8.6 of the standard errors, which are those of exact
arithmetic on the rounded powers.
"""

from __future__ import annotations

import json

import mpmath
import numpy as np
import pytest

from likely import LinearRegression
from likely.basis import Identity, Polynomial

SETS = {
    "norris": Polynomial(1), "pontius": Polynomial(2), "noint1": Identity(constant=False),
    "noint2": Identity(constant=False), "filip": Polynomial(10), "longley": Identity(),
    **{f"wampler{k}": Polynomial(5) for k in range(1, 6)},
}  # fmt: skip


def read(data_dir, name):
    table = np.genfromtxt(data_dir / "strd" / f"{name}.csv", delimiter=",", names=True)
    X = np.stack([table[c] for c in table.dtype.names if c != "y"], axis=1)
    return X, table["y"], json.loads((data_dir / "strd" / "exact.json").read_text())[name]


def digits(found, exact):
    """The fewest digits of any number; exact zeros must be zeros, relative to nothing."""
    out = []
    for a, b in zip(np.ravel(found), exact, strict=True):
        wanted = mpmath.mpf(b)
        if wanted == 0:
            out.append(15.0 if a == 0 else 0.0)
        else:
            error = abs(mpmath.mpf(float(a)) - wanted) / abs(wanted)
            out.append(15.0 if error == 0 else min(15.0, float(-mpmath.log10(error))))
    return min(out)


@pytest.mark.parametrize("chunks", [1, 4])
@pytest.mark.parametrize("name", SETS)
def test_linear_regression(data_dir, name, chunks):
    X, y, exact = read(data_dir, name)
    m = LinearRegression(SETS[name])
    if chunks == 1:
        m.fit(X, y)
    else:
        for part in np.array_split(np.arange(len(y)), min(chunks, len(y))):
            m.partial_fit(X[part], y[part])
    found = digits(m.coefficients_, exact["coefficients"])
    errors = digits(m.standard_errors_, exact["standard_errors"])
    residual = np.sqrt(m.residual_scatter_[0, 0] / (len(y) - len(m.coefficients_)))
    deviation = digits([residual], [exact["residual_sd"]])
    print(f"{name}: coefficients {found:.1f} digits, standard errors {errors:.1f}, residual deviation {deviation:.1f}")
    assert found >= (7 if name == "filip" else 12)
    assert errors >= (7 if name == "filip" else 10)
    assert deviation >= (8 if name == "filip" else 12)
    assert m.method_ == "Gram matrix in double-double"


def test_plain_normal_equations_would_fail(data_dir):
    """The measure has teeth: a float64 Gram matrix keeps no digit of Filip."""
    X, y, exact = read(data_dir, "filip")
    phi = SETS["filip"].design(X)
    assert digits(np.linalg.solve(phi.T @ phi, phi.T @ y), exact["coefficients"]) < 2


@pytest.mark.slow
def test_the_digits_of_filip_are_those_of_its_rounded_powers(data_dir):
    """Rational arithmetic on float64 powers: what is left of the certified digits, and how near to it we are."""
    X, y, exact = read(data_dir, "filip")
    with mpmath.workdps(60):
        phi, t = mpmath.matrix(SETS["filip"].design(X).tolist()), mpmath.matrix(y.tolist())
        inverse = (phi.T * phi) ** -1
        w = inverse * (phi.T * t)
        rest = t - phi * w
        variance = (rest.T * rest)[0] / (len(y) - 11)
        errors = [mpmath.sqrt(variance * inverse[j, j]) for j in range(11)]
    limits = (
        digits([float(v) for v in w], exact["coefficients"]),
        digits(list(map(float, errors)), exact["standard_errors"]),
    )
    m = LinearRegression(SETS["filip"]).fit(X, y)
    own = digits(m.coefficients_, w), digits(m.standard_errors_, errors)
    print(
        f"rounded powers allow {limits[0]:.1f} and {limits[1]:.1f} digits; ours of them {own[0]:.1f} and {own[1]:.1f}"
    )
    assert max(limits) < 9 and min(own) >= 12
