"""The Chow–Liu tree against all trees and all cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import mutual_info_score

import likely as lk
from likely.distributions.categorical.chow_liu import _log_likelihood, pairwise_information, spanning_tree
from likely.distributions.categorical.pair_counts import codes_of, offsets_of


def dependent(n=150, d=4, levels=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, (n, d)) - 1.0
    for j in range(1, d):
        x[:, j] = np.where(rng.random(n) < 0.5, x[:, rng.integers(0, j)], x[:, j])
    return x


def all_rows(distribution):
    return np.array(list(itertools.product(*distribution.levels)))


def every_tree(d):
    """Parents of every tree over d columns with column 0 the root, from Prüfer's sequences."""
    for code in itertools.product(range(d), repeat=d - 2):
        degree, edges, left = np.bincount(code, minlength=d) + 1, [], list(code)
        for node in left:
            leaf = int(np.flatnonzero(degree == 1)[0])
            edges.append((leaf, node))
            degree[leaf] -= 1
            degree[node] -= 1
        edges.append(tuple(int(i) for i in np.flatnonzero(degree == 1)))
        yield rooted(edges, d)


def rooted(edges, d):
    parent, waiting = np.full(d, -2), [0]
    parent[0] = -1
    while waiting:
        i = waiting.pop()
        for a, b in edges:
            for p, q in ((a, b), (b, a)):
                if p == i and parent[q] == -2:
                    parent[q] = i
                    waiting.append(q)
    return parent


def tables_for(parent, pairs, distribution):
    start, tables = offsets_of(distribution.levels), np.zeros_like(distribution.tables)
    for j, p in enumerate(parent):
        own = slice(start[j], start[j + 1])
        n = np.diagonal(pairs)[own][None] if p < 0 else pairs[start[p] : start[p + 1], own]
        tables[j, : len(n)] = n / np.maximum(n.sum(axis=1, keepdims=True), 1e-300)
    return tables


@pytest.mark.parametrize("d", [3, 4, 5])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_tree_is_better(d, seed):
    x = dependent(60, d, 2 + seed % 2, seed)
    distribution = lk.distributions.ChowLiuTree.fit(x)
    stats = distribution.collect(x)
    trees = list(every_tree(d))
    assert len(trees) == d ** (d - 2)  # Cayley
    best = max(
        _log_likelihood(stats.pairs, p, tables_for(p, stats.pairs, distribution), distribution.levels) for p in trees
    )
    assert distribution.objective(stats) == pytest.approx(best, abs=1e-9)
    assert distribution.log_prob(x).sum() == pytest.approx(best, abs=1e-9)


def test_mutual_information_is_that_of_the_columns():
    x = dependent(300, 5, 4)
    distribution = lk.distributions.ChowLiuTree.blank(x)
    found = pairwise_information(distribution.collect(x).pairs, distribution.levels)
    want = [[0.0 if i == j else mutual_info_score(x[:, i], x[:, j]) for j in range(5)] for i in range(5)]
    assert np.allclose(found, want, atol=1e-12)


def test_likelihood_is_information_less_entropy():
    """Chow and Liu: 1/n log L = Σ I(edge) − Σ H[xⱼ]."""
    x = dependent()
    distribution = lk.distributions.ChowLiuTree.fit(x)
    info = pairwise_information(distribution.collect(x).pairs, distribution.levels)
    own = sum(-(p * np.log(p)).sum() for p in (np.unique(c, return_counts=True)[1] / len(x) for c in x.T))
    assert distribution.log_prob(x).mean() == pytest.approx(sum(info[e] for e in distribution.edges) - own, abs=1e-12)


def test_all_cells_missing_values_marginals_and_the_mode():
    distribution = lk.distributions.ChowLiuTree.fit(dependent(), prior="weak")
    rows = all_rows(distribution)
    p = np.exp(distribution.log_prob(rows))
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.array_equal(distribution.mode, rows[p.argmax()])
    assert np.allclose(distribution.mean, p @ rows, atol=1e-12)
    for row in ([np.nan, 1, np.nan, -1], [np.nan] * 4, [0, np.nan, 1, 1]):
        row = np.array(row, dtype=float)
        seen = ~np.isnan(row)
        inside = p * (rows[:, seen] == row[seen]).all(axis=1)
        assert np.exp(distribution.log_prob(row[None])[0]) == pytest.approx(inside.sum(), abs=1e-13)
        codes = codes_of(rows, distribution.levels, "test")
        want = np.array([[inside[codes[:, j] == a].sum() for a in range(3)] for j in range(4)]) / inside.sum()
        assert np.allclose(distribution.marginals(row[None])[0], want, atol=1e-12)


@pytest.mark.slow
def test_long_chains_do_not_underflow():
    x = np.repeat(np.arange(2.0)[:, None], 1000, axis=1)
    distribution = lk.distributions.ChowLiuTree.fit(np.repeat(x, 5, axis=0), prior="weak")
    row = x[:1].copy()
    row[0, ::2] = np.nan
    found = distribution.log_prob(np.concatenate([row, x[:1]]))
    assert np.isfinite(found).all() and found[0] > found[1] > -1000


@pytest.mark.slow
def test_draws_follow_the_distribution():
    rng, distribution = np.random.default_rng(1), lk.distributions.ChowLiuTree.fit(dependent(d=3))
    rows = all_rows(distribution)
    p, x = np.exp(distribution.log_prob(rows)), distribution.sample(60_000, rng)
    found = np.array([(x == row).all(axis=1).mean() for row in rows])
    assert np.abs(found - p).max() <= 5 * np.sqrt(p.max() / 60_000)
    assert distribution.entropy() == pytest.approx(-(p[p > 0] * np.log(p[p > 0])).sum(), abs=1e-12)


def test_weights_are_copies_streams_are_batches_and_sparse_is_dense():
    rng = np.random.default_rng(2)
    x = (rng.random((400, 12)) < 0.1).astype(float)
    w = rng.integers(0, 3, 400).astype(float)
    distribution = lk.distributions.ChowLiuTree.blank(x)
    stats = distribution.collect(x, w)
    for other in (
        distribution.collect(np.repeat(x, w.astype(int), axis=0)),
        distribution.collect(x[:99], w[:99]) + distribution.collect(x[99:], w[99:]),
        distribution.collect(scipy.sparse.csr_array(x), w),
    ):
        assert np.abs(other.pairs - stats.pairs).max() <= 1e-10
    assert same_tree(
        lk.distributions.ChowLiuTree.blank(scipy.sparse.csr_array(x)).refit(stats), distribution.refit(stats)
    )


def same_tree(a, b):
    return np.array_equal(a.parent, b.parent) and np.allclose(a.tables, b.tables, atol=1e-14)


def with_gaps(x, share, seed=0):
    x = x.copy()
    x[np.random.default_rng(seed).random(x.shape) < share] = np.nan
    return x


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_pairs_hidden_in_gaps_are_those_of_all_cells(share):
    distribution = lk.distributions.ChowLiuTree.fit(dependent(), prior="weak")
    distribution = distribution.replace(
        parent=np.where(np.arange(4) == distribution.parent.argmax(), -1, distribution.parent),
        tables=rooted_tables(distribution),
    )
    x, rows = with_gaps(dependent(30, seed=5), share), all_rows(distribution)
    p, ones = np.exp(distribution.log_prob(rows)), np.zeros((len(rows), 12))
    ones[np.arange(len(rows))[:, None], codes_of(rows, distribution.levels, "test") + 3 * np.arange(4)] = 1.0
    pairs, entropy = np.zeros((12, 12)), 0.0
    for row in x:
        seen = ~np.isnan(row)
        inside = p * (rows[:, seen] == row[seen]).all(axis=1)
        inside /= inside.sum()
        pairs += (ones * inside[:, None]).T @ ones
        entropy -= (inside[inside > 0] * np.log(inside[inside > 0])).sum()
    stats = distribution.collect(x)
    assert not stats.complete and np.allclose(stats.pairs, pairs, atol=1e-11)
    assert stats.entropy == pytest.approx(entropy, abs=1e-10)
    assert distribution.objective(stats) == pytest.approx(distribution.log_prob(x).sum(), abs=1e-10)


def rooted_tables(distribution):
    """Tables of a distribution of which one column lost its parent: a forest of two trees."""
    tables = distribution.tables.copy()
    tables[distribution.parent.argmax()] = tables[distribution.parent.argmax(), 0]
    return tables


def test_em_never_falls_and_finds_the_tree():
    rng = np.random.default_rng(6)
    whole = np.cumsum(rng.random((3000, 6)) < 0.15, axis=1) % 2.0
    x = with_gaps(whole, 0.3)
    report = lk.fit(lk.distributions.ChowLiuTree.blank(x), x, stop=lk.StoppingRule(300, 1e-10))
    assert report.converged and report.iterations > 3 and (np.diff(report.trace) >= -1e-9 * len(x)).all()
    assert report.model.edges == [(j, j + 1) for j in range(5)]
    assert report.trace[-1] == pytest.approx(report.model.log_prob(x).sum(), rel=1e-8)
    shaken = report.model.tables + 0.02 * rng.normal(size=report.model.tables.shape)
    shaken = np.clip(shaken, 1e-6, None)
    shaken[report.model.parent < 0] = shaken[report.model.parent < 0][:, :1]
    shaken /= shaken.sum(axis=-1, keepdims=True)
    assert report.model.replace(tables=shaken).log_prob(x).sum() < report.trace[-1]


@pytest.mark.slow
def test_missing_values_that_know_what_they_hide_are_filled_by_what_is_seen():
    """A column is hidden where its neighbor is 1: counting what is shown errs, expectation does not."""
    rng = np.random.default_rng(7)
    a = (rng.random(20_000) < 0.5).astype(float)
    b = np.where(rng.random(20_000) < 0.9, a, 1 - a)
    x = np.column_stack([a, b])
    x[(a == 1) & (rng.random(20_000) < 0.8), 1] = np.nan
    distribution = lk.fit(lk.distributions.ChowLiuTree.blank(x), x, stop=lk.StoppingRule(300, 1e-9)).model
    assert abs(distribution.mean[1] - b.mean()) < 0.02 < abs(np.nanmean(x[:, 1]) - b.mean())


@pytest.mark.parametrize("members", [None, 2])
def test_missing_values_of_rows_without_weight_are_absent(members):
    tree = lk.distributions.ChowLiuTree.over((np.arange(3.0),) * 3, members)
    x = np.array([[1.0, 0.0, 2.0], [np.nan, 1.0, 0.0], [0.0, 2.0, np.nan]])
    assert tree.collect(x, [1.0, 0.0, 0.0]).complete and tree.collect(x, np.zeros(3)).complete
    assert not tree.collect(x, [1.0, 0.0, 2.0]).complete
    assert (tree.collect(x) * 0.0).complete and not (tree.collect(x) * 2.0).complete
    if members:
        assert tree.collect(x, labels=np.array([1, -1, -1])).complete
        assert tree.collect(x, np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])).complete
        assert not tree.collect(x, np.array([[1.0, 2.0], [0.0, 0.5], [0.0, 0.0]])).complete


def test_missing_values_weigh_as_copies_and_stacks_as_members():
    rng = np.random.default_rng(8)
    x, w = with_gaps(dependent(60), 0.3), rng.integers(0, 3, 60).astype(float)
    distribution = lk.distributions.ChowLiuTree.fit(dependent(), prior="weak")
    once, copies = distribution.collect(x, w), distribution.collect(np.repeat(x, w.astype(int), axis=0))
    assert np.allclose(once.pairs, copies.pairs, atol=1e-11) and once.entropy == pytest.approx(copies.entropy)
    labels = rng.integers(0, 2, 60)
    both = lk.distributions.ChowLiuTree.trusted(
        parent=np.stack([distribution.parent] * 2),
        tables=np.stack([distribution.tables] * 2),
        levels=distribution.levels,
    )
    stack = both.collect(x, labels=labels)
    for k in (0, 1):
        assert np.allclose(stack.member(k).pairs, distribution.collect(x[labels == k]).pairs, atol=1e-11)
    assert np.allclose(both.collect(x).member(1).pairs, distribution.collect(x).pairs, atol=1e-11)


def test_too_many_levels_for_em_are_reported():
    x = np.column_stack([np.arange(200.0) % 101, np.arange(200.0) % 2])
    x[0, 0] = np.nan
    distribution = lk.distributions.ChowLiuTree.blank(x)
    stats = distribution.collect(x)
    assert stats.complete and stats.pairs[:101, 101:].sum() == 199
    with pytest.warns(lk.FitWarning, match="available pairs are counted"):
        distribution.refit(stats)


def test_a_row_that_the_tree_calls_impossible_adds_what_it_shows():
    distribution = lk.distributions.ChowLiuTree.fit(np.array([[0.0, 0, 0], [1, 1, 1]]))
    stats = distribution.collect([[0, 1, np.nan]])
    assert stats.pairs[0, 3] == 1 and stats.pairs[4:].sum() == 0 and np.isfinite(stats.entropy)


def test_a_column_that_is_a_copy_leans_on_its_original():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (200, 6)).astype(float)
    x[:, 5] = x[:, 2]
    assert lk.distributions.ChowLiuTree.fit(x).parent[5] == 2 or lk.distributions.ChowLiuTree.fit(x).parent[2] == 5


def test_prim_takes_the_widest_edges():
    from scipy.sparse.csgraph import minimum_spanning_tree

    gain = np.random.default_rng(4).random((30, 30)) + 1
    gain = gain + gain.T
    np.fill_diagonal(gain, 0)
    parent = spanning_tree(gain)
    found = sum(gain[j, p] for j, p in enumerate(parent) if p >= 0)
    assert found == pytest.approx(-minimum_spanning_tree(-gain).sum())


def test_bad_input_is_named():
    distribution = lk.distributions.ChowLiuTree.blank([[0, 1], [1, 0]])
    with pytest.raises(lk.DataError, match=r"2 levels, got 5\.0 at row 1, column 0"):
        distribution.collect([[0, 1], [5, 0]])
    assert distribution.log_prob([[5, 0]])[0] == -np.inf
    with pytest.raises(lk.DataError, match="at most 512 distinct values in column 0"):
        lk.distributions.ChowLiuTree.blank(np.arange(600.0)[:, None])
    with pytest.raises(lk.DataError, match="8,192"):
        lk.distributions.ChowLiuTree.blank(np.random.default_rng(0).random((500, 20)))
    with pytest.raises(lk.DomainError, match="no cycles"):
        lk.distributions.ChowLiuTree([1, 0], np.full((2, 2, 2), 0.5), ([0, 1], [0, 1]))
    with pytest.raises(lk.DomainError, match="table 0 must hold probabilities"):
        lk.distributions.ChowLiuTree([-1], np.full((1, 2, 2), 0.6), ([0, 1],))


def test_variance_is_that_of_all_cells():
    distribution = lk.ChowLiuTreeDensity().fit(dependent()).model_
    cells = np.array(list(itertools.product(*distribution.levels)))
    p = np.exp(distribution.log_prob(cells))
    assert np.allclose(distribution.variance, p @ cells**2 - (p @ cells) ** 2)
    stack = lk.BayesClassifier(lk.ChowLiuTreeDensity()).fit(dependent(), np.arange(150) % 2).model_.components
    assert np.allclose(stack.variance[1], stack.member(1).variance)
