"""Histograms against NumPy's, and against integrals."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.density.histogram_edges import edges_for
from likely.distributions.downdating import without

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2)) * [1.0, 3.0]
EDGES = [np.linspace(-4, 4, 9), np.array([-15.0, -4.0, -1.0, 0.0, 2.0, 15.0])]


def grid(joint=True, **how):
    blank = lk.Histogram.blank(X, edges=EDGES, joint=joint, **how)
    return blank.refit(blank.collect(X))


def test_a_grid_is_numpys_density():
    want, *_ = np.histogramdd(X, EDGES, density=True)
    h = grid()
    centers = np.stack(np.meshgrid(*((e[1:] + e[:-1]) / 2 for e in EDGES), indexing="ij"), axis=-1).reshape(-1, 2)
    assert np.allclose(np.exp(h.log_prob(centers)), want.ravel())
    assert np.isneginf(h.log_prob([[5.0, 0.0]])[0])


def test_independent_columns_multiply():
    h, each = grid(joint=False), [np.histogram(X[:, j], EDGES[j], density=True)[0] for j in (0, 1)]
    cells = [np.digitize(X[:, j], EDGES[j]) - 1 for j in (0, 1)]
    assert np.allclose(np.exp(h.log_prob(X)), each[0][cells[0]] * each[1][cells[1]])
    gaps = X.copy()
    gaps[:, 1] = np.nan
    assert np.allclose(np.exp(h.log_prob(gaps)), each[0][cells[0]])


def test_missing_values_of_a_grid_are_summed_out():
    h, gaps = grid(), X[:50].copy()
    gaps[:, 0] = np.nan
    assert np.allclose(h.log_prob(gaps), h.marginal([1]).log_prob(X[:50, 1]))
    assert np.array_equal(h.log_prob(np.full((2, 2), np.nan)), np.zeros(2))
    assert np.allclose(h.marginal([1, 0]).log_prob(X[:, ::-1]), h.log_prob(X))
    with pytest.raises(lk.DataError, match="NaN at row 0, column 0"):
        h.collect(gaps)


@pytest.mark.parametrize("joint", [True, False])
def test_draws_and_moments(joint):
    h = grid(joint)
    draws = h.sample(40_000, np.random.default_rng(1))
    assert np.abs((draws.mean(axis=0) - h.mean) / np.sqrt(h.variance)).max() < 0.03
    assert np.abs(draws.var(axis=0) / h.variance - 1).max() < 0.04
    assert h.entropy() == pytest.approx(-h.log_prob(draws).mean(), abs=0.03)


def test_distribution_function_and_quantiles():
    h = grid().marginal([1])
    p = np.linspace(0.01, 0.99, 50)
    assert np.allclose(h.cdf(h.quantile(p)), p)
    assert h.cdf([-15.0, 15.0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("joint", [True, False])
def test_counts_add_and_weights_are_copies(joint):
    h = lk.Histogram.blank(X, edges=EDGES, joint=joint, members=2)
    labels, times = np.arange(400) % 2, RNG.integers(0, 3, 400)
    whole = h.collect(X, times, labels=labels)
    copies = h.collect(np.repeat(X, times, axis=0), labels=np.repeat(labels, times))
    chunks = h.collect(X[:130], times[:130], labels=labels[:130]) + h.collect(X[130:], times[130:], labels=labels[130:])
    for other in (copies, chunks, h.collect(X, times[:, None] * (labels[:, None] == np.arange(2)))):
        assert np.allclose(whole.counts, other.counts) and np.allclose(whole.rows, other.rows)
    rest = without(whole, h.collect(X[:9], times[:9], labels=labels[:9]))
    assert np.allclose(rest.counts, h.collect(X[9:], times[9:], labels=labels[9:]).counts)
    fitted = h.refit(whole)
    want = sum(times[i] * fitted.log_prob(X)[i, labels[i]] for i in range(400) if times[i])
    assert fitted.objective(whole) == pytest.approx(want)


def test_a_count_spreads_over_the_range():
    h = lk.Histogram.blank([[0.0], [1.0]], edges=[[0.0, 1.0, 4.0]], pseudo_count=1.0)
    fitted = h.refit(h.collect([[0.5], [0.6], [2.0]]))
    assert np.allclose(fitted.masses, [(2 + 0.5) / 5, (1 + 1.5) / 5])


def test_rows_outside_are_reported():
    h = lk.Histogram.blank([[0.0]], edges=[[0.0, 1.0]])
    with pytest.warns(lk.FitWarning, match="1 of 2 rows lie outside"):
        fitted = h.refit(h.collect([[0.5], [3.0]]))
    assert fitted.objective(h.collect([[3.0]])) == -np.inf


def test_rules_for_the_number_of_cells():
    x = np.random.default_rng(2).normal(size=(1000, 1))
    assert len(edges_for(x, "sturges")[0]) == 12
    assert len(edges_for(x, "doane")[0]) - 1 == len(np.histogram_bin_edges(x, "doane")) - 1
    for rule in ("knuth", "leave-one-out"):
        assert 8 <= len(edges_for(x, rule)[0]) - 1 <= 60
    two = np.concatenate([x, x + 20])  # a rule for Gaussian data sees nothing of two peaks, these do
    assert len(edges_for(two, "leave-one-out")[0]) > 2 * len(edges_for(two, "sturges")[0])
    assert [len(e) for e in edges_for(np.tile(x, 2), [3, 5])] == [4, 6]
    assert edges_for(np.ones((4, 1)), "doane")[0].shape == (2,)
    for bad, says in ((0, "at least one bin"), ("fd", "bins must be")):
        with pytest.raises(lk.DomainError, match=says):
            edges_for(x, bad)


def test_the_best_number_of_cells_is_that_of_enumeration():
    x = np.random.default_rng(3).exponential(size=200)

    def left_out(m):
        edges = np.linspace(x.min(), x.max(), m + 1)
        n, width = np.histogram(x, edges)[0], (x.max() - x.min()) / m
        at = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, m - 1)
        return sum(np.log((n[c] - 1 + 0.5) / (199 + 0.5 * m) / width) for c in at)

    best = max(range(1, 201), key=left_out)
    assert len(edges_for(x[:, None], "leave-one-out")[0]) - 1 == best


def test_bad_histograms_are_refused():
    for make, says in (
        (lambda: lk.Histogram([[0.0, 0.0]], [1.0]), "increase"),
        (lambda: lk.Histogram(3, [0.5, 0.5]), r"one list per column, got 3: as \[\[0.0"),
        (lambda: lk.Histogram(np.array(3.0), [0.5, 0.5]), "one list per column"),
        (lambda: lk.Histogram(None, [1.0]), "one list per column"),
        (lambda: lk.Histogram("abc", [1.0]), "numbers"),
        (lambda: lk.Histogram([], [1.0]), "at least one column"),
        (lambda: lk.Histogram([[0.0, np.inf]], [1.0]), "finite"),
        (lambda: lk.Histogram([[0.0, 1.0]], [0.7]), "sum to 1"),
        (lambda: lk.Histogram([[0.0, 1.0]], [0.5, 0.5]), "masses must have 1 bins"),
        (lambda: lk.Histogram([[0.0, 1.0]], [1.0], "cube"), "kind"),
        (lambda: lk.HistogramDensity(100, joint=True).fit(np.random.default_rng(0).normal(size=(9, 6))), "at most"),
    ):
        with pytest.raises(lk.LikelyError, match=says):
            make()


@pytest.mark.parametrize("rule", ["knuth", "leave-one-out"])
def test_rounded_values_and_counts_are_cut_at_their_grain(rule):
    rng = np.random.default_rng(0)
    rounded, counts = np.round(rng.standard_normal((20_000, 1)), 1), rng.poisson(7, (5000, 1)).astype(float)
    edges = edges_for(rounded, rule)[0]
    assert len(edges) > 20 and np.diff(edges).min() > 0.0999
    middle = np.abs((edges / 0.1) % 1 - 0.5)
    assert (middle < 1e-6).all()  # no value lies on an edge
    edges = edges_for(counts, rule)[0]
    assert np.allclose(edges, np.arange(len(edges)) - 0.5) and len(edges) == counts.max() + 2


@pytest.mark.parametrize("rule", ["doane", "knuth", "leave-one-out"])
def test_edges_of_weighted_rows_are_those_of_copies(rule):
    rng = np.random.default_rng(1)
    x, y = rng.poisson(5, (400, 1)).astype(float), rng.integers(0, 2, 400)
    w = rng.integers(0, 4, 400)
    copies = np.repeat(np.arange(400), w)
    for fit in (
        lambda a, w: lk.HistogramDensity(rule).fit(a, sample_weight=w).model_,
        lambda a, w: lk.Histogram.fit(a, w, bins=rule),
    ):
        assert np.allclose(fit(x, w).edges, fit(x[copies], None).edges)
    clf = lk.BayesClassifier(lk.HistogramDensity(rule))
    weighted, copied = clf.fit(x, y, sample_weight=w).model_, clf.fit(x[copies], y[copies]).model_
    assert np.allclose(weighted.components.edges, copied.components.edges)


def test_leaving_one_out_leaves_copies_out_together():
    """Of 500 rows, 15 cells; with every weight 2, and with every row twice, there were 195."""
    x = np.random.default_rng(0).normal(size=(500, 1))
    once = edges_for(x, "leave-one-out")[0]
    assert len(once) < 40
    np.testing.assert_array_equal(edges_for(x, "leave-one-out", weight=np.full(500, 2.0))[0], once)
    np.testing.assert_array_equal(edges_for(np.tile(x, (2, 1)), "leave-one-out")[0], once)
    w = np.random.default_rng(1).integers(1, 4, 500)
    weighted = edges_for(x, "leave-one-out", weight=w)[0]
    np.testing.assert_array_equal(edges_for(np.repeat(x, w, axis=0), "leave-one-out")[0], weighted)
    assert len(weighted) < 40


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_smoothing_is_part_of_what_em_climbs(joint, seed):
    """The rows that `count` adds are a prior: steps with it stopped as "worse" where the objective left it out."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(-1, 1, (60, 2)), rng.normal(2, 1.5, (40, 2))])
    density = lk.MixtureDensity(lk.HistogramDensity(4, joint=joint), 2, random_state=0, max_iter=500).fit(x)
    report = density.report_
    assert report.converged and (np.diff(report.trace) > -1e-9 * abs(report.trace[-1])).all()
    parts = density.model_.components
    assert report.objective == pytest.approx(density.model_.log_prob(x).sum() + parts.log_smoothing, abs=1e-6)
    hmm = lk.HMMDensity(lk.HistogramDensity(4, joint=joint), 2, random_state=0, max_iter=500).fit([x[:50], x[50:]])
    assert hmm.report_.converged and (np.diff(hmm.report_.trace) > -1e-9 * abs(hmm.report_.trace[-1])).all()


def _inside(rule):
    """Densities that have a histogram somewhere inside."""
    h, g = lk.HistogramDensity(rule), lk.GaussianDensity()
    mixture = lk.MixtureDensity(h, 2, random_state=0)
    return {
        "product": lk.ProductDensity([("a", h, [0]), ("b", h, [1])]),
        "mixture": mixture,
        "mixture by splitting": lk.MixtureDensity(h, 2, init="split", random_state=0),
        "mixture of mixtures": lk.MixtureDensity(mixture, 2, random_state=0),
        "mixture of products": lk.MixtureDensity(lk.ProductDensity([("a", h, [0]), ("b", g, [1])]), 2, random_state=0),
        "product of mixtures": lk.ProductDensity([("a", mixture, [0]), ("b", g, [1])]),
    }


def _all_edges(model):
    """The edges of every histogram inside a model, one after the other."""
    if isinstance(model, lk.Histogram):
        return [model.edges]
    if isinstance(model, lk.Product):
        return [e for _, part in model.components for e in _all_edges(part)]
    return _all_edges(model.components) if isinstance(model, lk.Mixture) else []


@pytest.mark.slow
@pytest.mark.some_cases(2)
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("rule", ["doane", "knuth"])
@pytest.mark.parametrize("where", list(_inside("doane")))
def test_weights_reach_edges_inside_other_densities(where, rule):
    rng = np.random.default_rng(2)
    x, y, w = rng.normal(size=(80, 2)), np.arange(80) % 2, rng.integers(0, 5, 80)
    w[[3, 4]], x[3], x[4] = 0, 50.0, -40.0  # far out, and not there
    at = np.repeat(np.arange(80), w)
    one, copied = (_inside(rule)[where] for _ in range(2))
    edges = _all_edges(one.fit(x, sample_weight=w).model_)
    assert edges and max(map(np.max, edges)) < 10
    for mine, theirs in zip(edges, _all_edges(copied.fit(x[at]).model_), strict=True):
        assert np.allclose(mine, theirs)
    a = lk.BayesClassifier(_inside(rule)[where]).fit(x, y, sample_weight=w).model_.components
    b = lk.BayesClassifier(_inside(rule)[where]).fit(x[at], y[at]).model_.components
    for mine, theirs in zip(_all_edges(a), _all_edges(b), strict=True):
        assert np.allclose(mine, theirs)


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("rule", ["doane", "knuth"])
def test_weights_of_sequences_reach_the_edges_of_what_is_emitted(rule):
    rng = np.random.default_rng(3)
    sequences = [rng.normal(size=(12, 1)) for _ in range(10)] + [np.full((5, 1), 50.0)]
    w = np.array([1, 2, 5, 1, 0, 3, 1, 1, 2, 1, 0])
    chain = lk.HMMDensity(lk.HistogramDensity(rule), 2, random_state=0, max_iter=3)
    weighted = chain.fit(sequences, sample_weight=w).model_.emission.edges
    copies = [s for s, k in zip(sequences, w, strict=True) for _ in range(k)]
    assert weighted.max() < 10 and np.allclose(weighted, chain.fit(copies).model_.emission.edges)
