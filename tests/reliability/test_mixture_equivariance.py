"""Units, offsets and names are ours to choose: EM from the mapped start takes the mapped steps.

| mixture of | maps |
|---|---|
| full, tied and shared full Gaussians | every invertible affine map |
| diagonal Gaussians | a scale and a shift of each column |
| spherical Gaussians | rotations, one scale, shifts |
| all | permutations of rows, columns, components |

The log-likelihood changes by n log |det A|, to 1e-9; partitions are the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import likely as lk
from likely import Gaussian, Mixture, StoppingRule, fit
from likely.core import Blocks
from likely.distributions import Tied
from tests.reliability.em_problems import gaussians
from tests.reliability.test_equivariance import OFFSETS, SCALES, maps

KINDS = ["full", "tied", "shared", "diagonal", "spherical"]
SHAPE = {"tied": "full", "shared": "full"}
PASSES = StoppingRule(8, 0.0)


def rows(d=3, n=90, seed=1):
    rng = np.random.default_rng(seed)
    centers = 3.0 * rng.standard_normal((3, d))
    return centers[rng.integers(0, 3, n)] + rng.standard_normal((n, d)) @ rng.standard_normal((d, d))


def stack(kind, x, seed=2):
    rng = np.random.default_rng(seed)
    distribution = gaussians(rng, 3, x.shape[1], SHAPE.get(kind, kind), tied=kind == "tied")
    mean = x[rng.choice(len(x), 3, replace=False)]
    if kind == "shared":
        return Tied(Gaussian(mean, distribution.covariance[[0, 1, 0]]), [0, 1, 0], "covariance")
    return Gaussian(mean, distribution.covariance, kind=distribution.kind)


def mapped(distribution, a, b):
    """The stack of the mapped rows x Aᵀ + b."""
    if isinstance(distribution, Tied):
        return Tied(mapped(distribution.components, a, b), distribution.index, distribution.what)
    mean = distribution.mean @ a.T + b
    if distribution.kind == "full":
        return Gaussian(mean, a @ distribution.covariance @ a.T)
    by = np.diagonal(a) ** 2 if distribution.kind == "diagonal" else (a @ a.T)[0, 0]
    return Gaussian(mean, distribution.covariance * by, kind=distribution.kind)


def in_columns(distribution, order):
    """The same stack for rows whose columns come in another order."""
    if isinstance(distribution, Tied):
        return Tied(in_columns(distribution.components, order), distribution.index, distribution.what)
    turned = {"full": distribution.covariance[..., order, :][..., order] if distribution.kind == "full" else None,
              "diagonal": distribution.covariance[..., order] if distribution.kind == "diagonal" else None,
              "spherical": distribution.covariance}[distribution.kind]  # fmt: skip
    return Gaussian(distribution.mean[:, order], turned, kind=distribution.kind)


def start(kind, x):
    return Mixture([0.3, 0.3, 0.4], stack(kind, x))


@pytest.mark.some_cases(30)
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("prior", [None, "weak"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("scale", SCALES)
def test_em_follows_scales_and_offsets(kind, scale, offset, prior):
    """x → scale · x + offset, up to what the offset rounds away of the rows themselves."""
    x = rows()
    y = x * scale + offset * scale
    x = (y - offset * scale) / scale
    one = start(kind, x)
    other = Mixture(one.weights, mapped(one.components, np.eye(3) * scale, np.full(3, offset * scale)))
    a, b = fit(one, x, prior=prior, stop=PASSES), fit(other, y, prior=prior, stop=PASSES)
    n, d = x.shape
    likelihood_a, likelihood_b = float(a.model.log_prob(x).sum()), float(b.model.log_prob(y).sum())
    slack = 1e-9 if offset <= 1e4 else 3e-7  # means are kept to 1e-16 of 1e8: 1e-8 of a spread
    assert likelihood_b + n * d * np.log(scale) == pytest.approx(likelihood_a, rel=slack)
    assert (a.model.log_joint(x).argmax(axis=1) == b.model.log_joint(y).argmax(axis=1)).all()
    np.testing.assert_allclose(b.model.weights, a.model.weights, atol=1e-7)


@pytest.mark.some_cases(10)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_em_follows_the_maps_of_its_kind(kind, seed):
    """Without prior: the weak one shrinks correlations, which knows columns."""
    x, rng = rows(n=400, seed=seed), np.random.default_rng(seed)
    a, b = maps(SHAPE.get(kind, kind), rng, 3, 1.0, 1.0)
    one = start(kind, x)
    other = Mixture(one.weights, mapped(one.components, a, b))
    p, q = fit(one, x, stop=PASSES), fit(other, x @ a.T + b, stop=PASSES)
    shift = len(x) * np.linalg.slogdet(a)[1]
    for before, after in zip(p.trace, q.trace, strict=False):
        assert after + shift == pytest.approx(before, rel=1e-9)
    assert (p.model.log_joint(x).argmax(axis=1) == q.model.log_joint(x @ a.T + b).argmax(axis=1)).all()


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_em_with_missing_values_follows_units_of_columns(kind, scale, offset):
    x = rows()
    rng = np.random.default_rng(3)
    x[rng.random(x.shape) < 0.25] = np.nan
    unit = scale * 10.0 ** rng.uniform(-3, 3, 3)
    y = x * unit + offset * unit
    x = (y - offset * unit) / unit
    one = start(kind, rows())
    other = Mixture(one.weights, mapped(one.components, np.diag(unit), offset * unit))
    p, q = fit(one, x, prior="weak", stop=PASSES), fit(other, y, prior="weak", stop=PASSES)
    seen = np.isfinite(x).sum(axis=0)
    slack = 1e-9 if offset == 0 else 3e-7
    a, b = float(p.model.log_prob(x).sum()), float(q.model.log_prob(y).sum())
    assert b + float(seen @ np.log(unit)) == pytest.approx(a, rel=slack)


@pytest.mark.some_cases(5)
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_columns_and_components_may_be_dealt_anew(kind, gaps):
    x, rng = rows(), np.random.default_rng(4)
    x[rng.random(x.shape) < gaps] = np.nan
    w = rng.random(len(x))
    one = start(kind, rows())
    plain = fit(one, Blocks.of(x, w), prior="weak", stop=PASSES)
    order = rng.permutation(len(x))
    by_rows = fit(one, Blocks.of(x[order], w[order]), prior="weak", stop=PASSES)
    np.testing.assert_allclose(by_rows.trace, plain.trace, rtol=1e-10)
    columns = rng.permutation(3)
    turned = Mixture(one.weights, in_columns(one.components, columns))
    by_columns = fit(turned, Blocks.of(x[:, columns], w), prior="weak", stop=PASSES)
    np.testing.assert_allclose(by_columns.trace, plain.trace, rtol=1e-9)
    members = rng.permutation(3)
    renamed = Mixture(one.weights[members], one.components.take(members))
    by_members = fit(renamed, Blocks.of(x, w), prior="weak", stop=PASSES)
    np.testing.assert_allclose(by_members.trace, plain.trace, rtol=1e-10)
    np.testing.assert_allclose(by_members.model.weights, plain.model.weights[members], rtol=1e-8, atol=1e-12)


@pytest.mark.some_cases(5)
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("kind", KINDS)
def test_other_chunkings_agree(kind, offset):
    x = rows(n=700) + offset
    one = start(kind, x)
    runs = [
        fit(one, Blocks.of(x, rows=r, blocks=b), prior="weak", stop=StoppingRule(15, 0.0))
        for r, b in ((4096, 16), (100, 1), (33, 4))
    ]
    for other in runs[1:]:
        passes = min(len(other.trace), len(runs[0].trace))
        np.testing.assert_allclose(other.trace[:passes], runs[0].trace[:passes], rtol=1e-9)
        np.testing.assert_allclose(other.model.weights, runs[0].model.weights, rtol=1e-7)


@pytest.mark.some_cases(6)
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("kind", ["full", "diagonal", "pooled"])
@pytest.mark.parametrize("scale", [1e-100, 1e-4, 1e4, 1e100])
def test_the_estimator_finds_the_same_clusters_in_any_units(kind, scale):
    """Seeds follow the rows, and rows in other units have other fingerprints: several starts, the same summit."""
    rng = np.random.default_rng(7)
    own = rng.integers(0, 3, 150)
    x = np.array([[-9.0, 0.0], [0.0, 8.0], [9.0, -2.0]])[own] + rng.standard_normal((150, 2))
    find = lk.MixtureClusterer(lk.GaussianDensity(kind), 3, n_init=4, random_state=0, max_iter=200, tol=1e-6)
    a, b = find.fit(x), clone(find).fit(x * scale)
    n, d = x.shape
    same = b.score_samples(x * scale).sum() + n * d * np.log(scale)
    assert same == pytest.approx(a.score_samples(x).sum(), rel=2e-3)
    assert adjusted_rand_score(own, a.labels_) == adjusted_rand_score(own, b.labels_) == 1.0


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical", "pooled"])
def test_the_estimator_from_a_given_start_in_any_units(kind):
    x = rows(d=2, n=150, seed=7)
    shares = np.random.default_rng(8).dirichlet(np.ones(3), 150)
    fits = {}
    for scale in (1e-100, 1.0, 1e100):
        m = lk.MixtureDensity(lk.GaussianDensity(kind), 3, init=shares, max_iter=20, tol=0.0)
        fits[scale] = m.fit(x * scale).score_samples(x * scale) + 2 * np.log(scale)
    for scale in (1e-100, 1e100):
        np.testing.assert_allclose(fits[scale], fits[1.0], rtol=1e-7, atol=1e-7)
