from __future__ import annotations

import warnings

import numpy as np
import pytest

import likely as lk
from likely.core.blocks import Blocks
from likely.core.errors import DataError, FitWarning
from likely.distributions.unobserved_columns import unseen_columns
from tests.public_names import public

DISTRIBUTIONS = {
    "Gaussian": {}, "StudentT": {}, "FactorGaussian": {"factors": 1}, "Poisson": {}, "Bernoulli": {}, "Gamma": {},
    "Beta": {}, "Laplace": {}, "Cauchy": {}, "Uniform": {}, "Triangular": {}, "Exponential": {}, "ChiSquare": {},
    "NegativeBinomial": {}, "VonMises": {}, "Multinomial": {}, "Binomial": {"trials": 9},
    "BetaBinomial": {"trials": 9}, "LogLinear": {}, "ChowLiuTree": {},
}  # fmt: skip
WHOLE = {"Elliptical": {}, "DirichletMultinomial": {}}  # distributions that refuse any gap
RESTS = {"Dirichlet": {}}  # distributions of rows whose gap is what the rest leaves
NOISE = "ignore:.*(not overdispersed|singular|constant|rank|not converged)"


def fitted(name: str, x: np.ndarray, **more: object):
    return public()[name].fit(x, **(DISTRIBUTIONS | WHOLE | RESTS)[name], **more)


def table(name: str) -> np.ndarray:
    seen = {"Beta": [0.2, 0.4, 0.9, 0.5], "Bernoulli": [0.0, 1.0, 1.0, 0.0], "LogLinear": [0.0, 1.0, 1.0, 0.0]}
    return np.column_stack([seen.get(name, [1.0, 2.0, 7.0, 3.0]), np.full(4, np.nan)])


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.filterwarnings(NOISE)
def test_a_column_that_was_never_observed_is_reported_once(name):
    with pytest.warns(FitWarning) as said:
        fitted(name, table(name))
    told = [str(note.message) for note in said if "never observed" in str(note.message)]
    assert told == [f"{name}: column 1 is never observed: its distribution is that of the initial model; leave it out"]


@pytest.mark.parametrize("name", DISTRIBUTIONS | WHOLE | RESTS)
@pytest.mark.parametrize("prior", [None, "weak"])
def test_rows_in_which_nothing_was_observed_are_refused(name, prior):
    with pytest.raises(DataError, match=f"{name}: at least one entry must have been observed"):
        fitted(name, np.full((4, 2), np.nan), prior=prior)


@pytest.mark.parametrize("name", WHOLE)
def test_distributions_of_whole_rows_refuse_a_column_of_missing_values(name):
    with pytest.raises(DataError, match="column 1"):
        fitted(name, np.column_stack([np.ones(4), np.full(4, np.nan)]))


def test_a_share_that_is_never_observed_is_what_the_others_leave(rng):
    x = rng.dirichlet([2.0, 3.0, 4.0], 200)
    whole, gap = lk.Dirichlet.fit(x), np.where([False, True, False], np.nan, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.allclose(lk.Dirichlet.fit(gap).alpha, whole.alpha)
    with pytest.raises(DataError, match="at most one missing proportion"):
        lk.Dirichlet.fit(np.where([False, True, True], np.nan, x))


@pytest.mark.parametrize(
    "name", sorted(set(DISTRIBUTIONS) - {"ChowLiuTree"})
)  # its levels are those of the rows that count
@pytest.mark.filterwarnings(NOISE)
def test_a_row_without_weight_is_no_observation(name):
    x = table(name)
    x[0, 1] = x[0, 0]
    with pytest.warns(FitWarning, match="column 1 is never observed"):
        fitted(name, x, weight=[0.0, 1.0, 1.0, 2.0])


def test_levels_that_nobody_saw_are_refused():
    with pytest.raises(DataError, match="Categorical: at least one entry must have been observed"):
        lk.Categorical.fit([np.nan, np.nan], levels=3)
    assert lk.Categorical.fit([np.nan], levels=2, prior=lk.Dirichlet([3.0, 2.0])).probs.tolist() == pytest.approx(
        [2 / 3, 1 / 3]
    )


def test_a_prior_of_ones_own_has_a_distribution_even_so():
    with pytest.warns(FitWarning, match="column 0 is never observed: its distribution is that of the prior"):
        found = lk.Exponential.fit([np.nan, np.nan], prior=lk.Gamma(3.0, 1.0, likelihood="exponential"))
    assert found.rate == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("kind", "seen"),
    [(lk.PoissonDensity, [1.0, 2.0]), (lk.BernoulliDensity, [0.0, 1.0]), (lk.StudentTDensity, [1.0, 2.0])],
)
@pytest.mark.filterwarnings(NOISE)
def test_estimators_of_distributions_that_kept_silent_tell_too(kind, seen):
    with pytest.warns(FitWarning, match="column 1 is never observed"):
        kind().fit(np.column_stack([seen, [np.nan, np.nan]]))


def test_blocks_are_read_no_further_than_needed():
    read = []

    def reader(k, x):
        def blocks():
            read.append(k)
            return iter(Blocks.of(x))

        return blocks

    gap, full = np.array([[1.0, np.nan]]), np.array([[1.0, 2.0]])
    data = Blocks.read([reader(0, gap), reader(1, full), reader(2, full)])
    assert unseen_columns(data)[0].size == 0
    assert read == [0, 1]
    assert unseen_columns(Blocks.of(np.array([["a"], ["b"]])))[1] == 0
