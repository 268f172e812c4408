"""Units are ours to choose, for estimators too: each, and the maps under which it *is* equivariant.

| estimators | maps |
|---|---|
| Student's t (full), elliptical distributions, Mahalanobis neighbors, Fisher's axes | invertible affine maps |
| distributions of columns, windows, histograms, scaled distances, diagonal t, whitened centers | scales and shifts |
| exponential and gamma distributions | a scale of each column |
| l2 distances, spherical t | rotations, one scale, shifts |
| all distances, trees and expansions of binary rows, counts | permutations of columns |
| trees and expansions of binary rows | renaming of levels |

Log-likelihoods change by n log |det A|, posteriors not at all.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import likely as lk

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")
N, D = 90, 3
SCALES, OFFSETS = [2.0**-332, 2.0**332], [0.0, 1e8]  # 1e-100 and 1e100, of which no digit is rounded

AFFINE = {
    "t": lk.StudentTDensity(dof=4.0, prior=None, tol=1e-13),
    "t of unknown dof": lk.StudentTDensity(prior=None, tol=1e-11),
    "elliptical": lk.distributions.EllipticalDensity(),
    "classes of t": lk.BayesClassifier(lk.StudentTDensity(dof=4.0, prior=None, tol=1e-13)),
    "whitened neighbors": lk.KNeighborsClassifier(3, "mahalanobis"),
    "Fisher": lk.FisherDiscriminant(),
}
SLACK = {"classes of t": 1e-7}  # EM ends where the objective has 13 digits: posteriors have half of them
COLUMNS = {
    "uniform": lk.UniformDensity(),
    "plateau": lk.UniformDensity(predictive=True),
    "triangular": lk.distributions.TriangularDensity(),
    "laplace": lk.LaplaceDensity(),
    "cauchy": lk.distributions.CauchyDensity(),
    "t diagonal": lk.StudentTDensity("diagonal", dof=4.0),
    "t independent": lk.StudentTDensity("independent", dof=4.0),
    "windows": lk.KernelDensity(),
    "windows, maximum": lk.KernelDensity(kernel="gaussian", bandwidth="maximum"),
    "t windows": lk.KernelDensity(kernel="t", relative_bandwidth=0.55),
    "elliptical windows": lk.KernelDensity(kernel="elliptical", bandwidth="maximum"),
    "whitened centers": lk.NearestCentroidClassifier("mahalanobis"),
    "histogram": lk.HistogramDensity(6),
    "classes of windows": lk.BayesClassifier(lk.KernelDensity()),
    "classes of laplace": lk.BayesClassifier(lk.LaplaceDensity()),
    "scaled centers": lk.NearestCentroidClassifier("scaled"),
    "scaled neighbors": lk.KNeighborsClassifier(3, "scaled"),
}
RAYS = {
    "exponential": lk.ExponentialDensity(),
    "gamma": lk.GammaDensity(),
    "rays": lk.ExponentialDensity(predictive=True),
}
TURNS = {
    "t spherical": lk.StudentTDensity("spherical", dof=4.0, prior=None, tol=1e-13),
    "neighbors": lk.KNeighborsClassifier(3),
    "centers": lk.NearestCentroidClassifier(),
}
SWAPS = {
    **{f"{metric} neighbors": lk.KNeighborsClassifier(3, metric) for metric in ("l1", "linf", "lp")},
    "l1 medians": lk.NearestCentroidClassifier("l1", "median"),
    "balls": lk.KNNDensity(3),
}
BINARY = {
    "Walsh": lk.distributions.WalshDensity(2),
    "log Walsh": lk.distributions.WalshDensity(2, log=True),
    "Bahadur": lk.distributions.BahadurDensity(),
    "Chow": lk.ChowLiuTreeDensity(),
    "classes of Chow": lk.BayesClassifier(lk.ChowLiuTreeDensity()),
}
COUNTS = {
    "binomial": lk.BinomialDensity(trials=9),
    "beta-binomial": lk.distributions.BetaBinomialDensity(trials=9),
    "negative binomial": lk.NegativeBinomialDensity(),
    "Dirichlet-multinomial": lk.distributions.DirichletMultinomialDensity(),
}


def rows(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 3
    mix = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, -0.3, 0.7]])
    return rng, rng.standard_t(5, (N, D)) @ mix + np.array([[0, 0, 0], [1, 1, 0], [0, 2, 1]])[y], y


def rotation(rng):
    return np.linalg.qr(rng.standard_normal((D, D)))[0]


def linear(kind, rng):
    """Of determinant up to 1e6, mixing what may be mixed."""
    if kind == "affine":
        return rotation(rng) * 10.0 ** rng.uniform(-1, 1, D) @ rotation(rng)
    return np.diag(rng.choice([-1.0, 1.0], D) * 10.0 ** rng.uniform(-2, 2, D)) if kind == "columns" else rotation(rng)


def same(estimator, x, z, y, shift, tolerance=1e-9):
    """The fit of z says of z what the fit of x says of x, and log-likelihoods differ by the shift of a row."""
    a, b = clone(estimator).fit(x, y), clone(estimator).fit(z, y)
    if hasattr(a, "predict_proba"):
        assert np.abs(a.predict_proba(x) - b.predict_proba(z)).max() <= tolerance * 10
        return
    before, after = a.score_samples(x), b.score_samples(z) + shift
    assert np.array_equal(np.isfinite(before), np.isfinite(after))
    at = np.isfinite(before)
    assert abs(after[at].sum() - before[at].sum()) <= tolerance * max(np.abs(before[at]).sum(), at.sum())


CASES = [
    (kind, name, estimator)
    for kind, table in (("affine", AFFINE), ("columns", COLUMNS), ("turns", TURNS))
    for name, estimator in table.items()
]
IDS = [f"{kind}-{name}" for kind, name, _ in CASES]


@pytest.mark.some_cases(14)
@pytest.mark.parametrize(("kind", "name", "estimator"), CASES, ids=IDS)
def test_maps_of_its_kind(kind, name, estimator):
    rng, x, y = rows(len(name))
    a = linear(kind, rng)
    b = rng.standard_normal(D) * np.abs(a).sum(axis=1)
    same(estimator, x, x @ a.T + b, y, np.linalg.slogdet(a)[1], SLACK.get(name, 1e-9))


@pytest.mark.some_cases(24)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(("kind", "name", "estimator"), CASES, ids=IDS)
def test_scales_and_offsets(kind, name, estimator, scale, offset):
    _, x, y = rows(len(name))
    z = (x + offset) * scale
    x = z / scale - offset  # what rounding has left of the rows
    same(estimator, x, z, y, D * np.log(scale), max(SLACK.get(name, 1e-9), 2**-52 * offset))  # as centers are rounded


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", RAYS)
def test_units_of_positive_columns(name, scale):
    rng, x, y = rows(1)
    unit = scale * 10.0 ** rng.uniform(-3, 3, D)
    same(RAYS[name], np.abs(x) + 0.01, (np.abs(x) + 0.01) * unit, y, float(np.log(unit).sum()))


@pytest.mark.some_cases(16)
@pytest.mark.parametrize("name", [*AFFINE, *COLUMNS, *TURNS, *SWAPS])
def test_columns_may_be_dealt_anew(name):
    _, x, y = rows(2)
    same({**AFFINE, **COLUMNS, **TURNS, **SWAPS}[name], x, x[:, [2, 0, 1]], y, 0.0)


@pytest.mark.parametrize("name", BINARY)
def test_binary_columns_may_be_dealt_anew_and_turned_over(name):
    rng = np.random.default_rng(3)
    y = np.arange(N) % 2
    x = (rng.random((N, 4)) < 0.35 + 0.3 * y[:, None]).astype(float)
    x[:, 3] = np.where(rng.random(N) < 0.2, 1 - x[:, 0], x[:, 0])
    same(BINARY[name], x, x[:, [3, 1, 0, 2]], y, 0.0)
    same(BINARY[name], x, np.where([True, False, True, False], 1 - x, x), y, 0.0)


@pytest.mark.parametrize("name", COUNTS)
def test_counted_columns_may_be_dealt_anew(name):
    x = np.minimum(np.random.default_rng(4).poisson([1.0, 3.0, 5.0], (N, 3)), 9)
    same(COUNTS[name], x, x[:, [2, 0, 1]], None, 0.0)


NAMED = {
    **{name: e for name, e in {**AFFINE, **COLUMNS, **TURNS, **SWAPS}.items() if hasattr(e, "predict_proba")},
    **{f"classes of {name}": lk.BayesClassifier(COLUMNS[name]) for name in ("uniform", "triangular", "cauchy")},
}


@pytest.mark.some_cases(9)
@pytest.mark.parametrize("name", NAMED)
def test_names_of_classes_may_be_dealt_anew(name):
    _, x, y = rows(5)
    a, b = clone(NAMED[name]).fit(x, y), clone(NAMED[name]).fit(x, np.array([2, 0, 1])[y])
    assert np.abs(a.predict_proba(x) - b.predict_proba(x)[:, [2, 0, 1]]).max() <= 1e-9


def test_ranks_do_not_know_how_gray_was_measured():
    """Equalized images and entropies of levels stay under every rising map."""
    g = np.random.default_rng(6).integers(0, 256, (20, 20))
    assert np.array_equal(lk.density.equalize_histogram(g, None), lk.density.equalize_histogram(np.exp(g / 50.0), None))
