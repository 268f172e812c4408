"""What a law looks like from outside."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.families.line import Atoms, Line, integral, is_discrete, look


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        (lk.Poisson(3.0), Atoms), (lk.Poisson([3.0, 1.0]), Atoms), (lk.Bernoulli([0.2, 0.3, 0.9]), Atoms),
        (lk.Categorical([0.2, 0.8], levels=["a", "b"]), Atoms), (lk.NegativeBinomial(2.0, 0.1), Atoms),
        (lk.Gaussian([0.0], 1.0), Line), (lk.Gamma(2.0, 3.0), Line), (lk.Beta(0.5, 0.5), Line),
        (lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0], [9.0]], 1.0)), Line),
        (lk.Gaussian([0.0, 0.0], 1.0), type(None)),
        (lk.Product({"a": lk.Gaussian([0.0], 1.0), "b": lk.Poisson(1.0)}), type(None)),
    ],
)  # fmt: skip
def test_kinds_of_laws(law, kind):
    assert type(look(law)) is kind
    assert is_discrete(law) == (kind is Atoms)


def test_lists_hold_all_probability():
    for law in (lk.Poisson(300.0), lk.NegativeBinomial(0.5, 0.01), lk.Bernoulli([0.1] * 8)):
        assert np.exp(look(law).log_probs).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("dof", [1.0, 3.0, 50.0])
def test_moments_of_t_laws_at_any_scale(scale, dof):
    law = lk.StudentT([5 * scale], [[scale**2]], dof)
    value, error = integral(look(law), law, lambda x, logs: ((x - 5 * scale) / scale) ** 2)
    if dof <= 2:
        assert value == np.inf
    else:
        assert value == pytest.approx(dof / (dof - 2), rel=1e-7)
        assert error < 1e-6


def test_what_is_no_density_is_noticed():
    class Half:
        def log_prob(self, x):
            return lk.Gaussian([0.0], 1.0).log_prob(x) - np.log(2.0)

        def sample(self, n, rng):
            return rng.normal(size=(n, 1))

    assert integral(look(Half()), Half(), lambda x, logs: logs) is None
