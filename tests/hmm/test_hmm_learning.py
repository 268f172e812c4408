"""Baum–Welch: weights are repetitions, statistics add, known states are counted, and zeros stay zero."""

from __future__ import annotations

import numpy as np
import pytest

from likely import (
    HMM,
    Categorical,
    DataError,
    DomainError,
    Gaussian,
    Mixture,
    Poisson,
    Ragged,
    ShapeError,
    StoppingRule,
    fit,
)
from likely.core import Blocks, Serial, Threads
from likely.core.em_loop import gather
from likely.distributions import Tied
from likely.distributions.product import Product
from likely.priors import HMMPrior
from tests.hmm.in_one_piece import in_one_piece
from tests.properties.compare import arrays_of, gap


def rows(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1]) if len(shape) > 1 else rng.dirichlet(np.ones(shape[0]))


def distributions(rng):
    """Emissions of three states in two columns of counts."""
    means = rng.uniform(1, 6, (3, 2))
    diagonal = Gaussian(means, np.full((3, 2), 2.0), kind="diagonal")
    return {
        "full": Gaussian(means, np.stack([2 * np.eye(2)] * 3)),
        "diagonal": diagonal,
        "Poisson": Poisson(means),
        "mixture": Mixture(rows(rng, 3, 2), Gaussian(rng.uniform(1, 6, (6, 2)), np.full((6, 2), 2.0), kind="diagonal")),
        "tied mixture": Mixture(rows(rng, 3, 2), Tied(diagonal.take([0, 1]), [0, 1, 0, 1, 0, 1])),
        "shared": Tied(diagonal.take([0, 1]), [0, 1, 1]),
    }


NAMES = ["full", "diagonal", "Poisson", "mixture", "tied mixture", "shared"]


def problem(name, seed=0, final=True, nulls=1):
    rng = np.random.default_rng([seed, 4])
    N = 3 + nulls
    on = rows(rng, N, N + 1) if final else rows(rng, N, N)
    on[3:, 3:N] = 0.0
    on /= on.sum(axis=1, keepdims=True)
    h = HMM(rows(rng, N), on[:, :N].copy(), distributions(rng)[name], final=on[:, N].copy() if final else None)
    x = Ragged.from_list([rng.poisson(3.0, (T, 2)).astype(float) for T in (9, 1, 4, 7, 2, 5)])
    return h, x, rng


def alike(a, b, tol=1e-9):
    for one, two in zip(arrays_of(a), arrays_of(b), strict=True):
        one, two = np.asarray(one, float), np.asarray(two, float)
        assert np.abs(one - two).max(initial=0) <= tol * max(1.0, float(np.abs(two).max(initial=0)))


def learned(h, x, weight=None, **how):
    return fit(h, Blocks.of(x, weight, **how), prior="weak", engine=Serial(), stop=StoppingRule(5, 0.0)).model


# --------------------------------------------------------------- weights, parts, engines


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hard", [False, True])
def test_weights_are_copies_and_nothing_is_absence(name, hard):
    h, x, _ = problem(name)
    weight = np.array([2.0, 0.0, 1.0, 3.0, 0.0, 1.0])
    copies = x[np.repeat(np.arange(6), weight.astype(int))]
    alike(h.collect(x, weight, hard=hard), h.collect(copies, hard=hard))
    model = fit(h, Blocks.of(x, weight), prior="weak", hard=hard, stop=StoppingRule(5, 0.0)).model
    alike(model, fit(h, copies, prior="weak", hard=hard, stop=StoppingRule(5, 0.0)).model)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hard", [False, True])
def test_statistics_of_parts_add_up(name, hard):
    h, x, rng = problem(name)
    weight = rng.random(6)
    whole = h.collect(x, weight, hard=hard)
    parts = h.collect(x[:2], weight[:2], hard=hard) + h.collect(x[2:3], weight[2:3], hard=hard)
    parts += h.collect(x[3:], weight[3:], hard=hard)
    alike(parts, whole, 1e-12)
    assert h.objective(parts) == pytest.approx(h.objective(whole), rel=1e-12)
    alike(whole * 2.0, h.collect(x, 2 * weight, hard=hard), 1e-12)


@pytest.mark.parametrize("name", ["full", "mixture", "Poisson"])
def test_engines_and_workers_give_the_same_bits(name):
    h, x, rng = problem(name)
    many = x[rng.integers(0, 6, 4000)]
    blocks = Blocks.of(many, rng.random(4000), rows=500)
    found = [engine.total(lambda b: gather(h, b), blocks) for engine in (Serial(), Threads(1), Threads(2))]
    for other in found[1:]:
        assert all((a == b).all() for a, b in zip(arrays_of(found[0]), arrays_of(other), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_empty_sequences_count_once(name):
    """Among others, they say how likely it is to leave at once; and where that cannot be, the objective is −inf."""
    h, x, _ = problem(name)
    with_empty = Ragged(x.values, np.sort(np.concatenate([x.offsets, [0, 9, 9, x.offsets[-1]]])))
    for found, want in ((with_empty, x),):
        more = h.collect(found).sequences - h.collect(want).sequences
        assert more == pytest.approx(4.0, abs=1e-12) or more == pytest.approx(0.0, abs=1e-12)
        total = h.log_prob(found).sum()
        assert h.objective(h.collect(found)) == pytest.approx(total, rel=1e-12)
        assert total == pytest.approx(h.log_prob(want).sum() + 4 * np.log(h.chains[0].summed.empty), rel=1e-12)
    h, x, _ = problem(name, nulls=0)
    with_empty = Ragged(x.values, np.insert(x.offsets, 3, x.offsets[3]))
    assert h.log_prob(with_empty)[3] == -np.inf and h.objective(h.collect(with_empty)) == -np.inf


@pytest.mark.parametrize("name", ["full", "diagonal", "mixture"])
def test_one_sweep_is_the_plain_way(name):
    """Scores and sums of Gaussian emissions share their features; the plain way forms them twice."""
    h, x, rng = problem(name)
    weight = rng.random(6)
    with np.errstate(all="ignore"):
        alike(h.collect(x, weight), in_one_piece(h, x, weight), 1e-10)


def test_weights_count_where_one_sweep_needs_logarithms():
    """States never change, and the frames disagree about them by more than numbers can tell apart."""
    means = 3.0 * np.arange(4.0)[:, None] * [1.0, 0.0]
    h = HMM(np.full(4, 0.25), np.eye(4), Gaussian(means, np.stack([np.eye(2)] * 4)))
    x = Ragged.from_list([np.repeat(means[[0, 2]], [300, 400], axis=0), np.array([[0.3, 1.0], [0.1, 0.0]])])
    weight = np.array([3.0, 0.5])
    assert h.objective(h.collect(x, weight)) == pytest.approx(weight @ h.log_prob(x), rel=1e-12)


# -------------------------------------------------------------------- known states


def test_known_states_are_counted_in_one_pass():
    """Relative frequencies, by hand."""
    x = [np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([[1.0], [1.0]]), np.array([[0.0]])]
    given = [np.array([0, 0, 1, 1]), np.array([1, 0]), np.array([0])]
    h = HMM([0.5, 0.5], [[0.4, 0.4], [0.4, 0.4]], Categorical([[0.5, 0.5], [0.5, 0.5]]), final=[0.2, 0.2])
    report = fit(h, Blocks.of(Ragged.from_list(x), [2.0, 1.0, 1.0], log_mask=Ragged.from_list(given)))
    assert report.converged and len(report.trace) == 1 and report.stats.complete
    m = report.model
    assert np.allclose(m.initial, [3 / 4, 1 / 4])
    assert np.allclose(m.transition, [[2 / 6, 2 / 6], [1 / 5, 2 / 5]]) and np.allclose(m.final, [2 / 6, 2 / 5])
    assert np.allclose(m.emission.probs, [[3 / 6, 3 / 6], [2 / 5, 3 / 5]])


def test_known_states_are_respected_where_they_are_known():
    h, x, rng = problem("diagonal", nulls=0)
    states = [np.where(rng.random(len(s)) < 0.5, rng.integers(0, 3, len(s)), -1) for s in x]
    stats = h.collect(x, log_mask=states)
    known = np.concatenate(states)
    assert not stats.complete
    least = np.bincount(known[known >= 0], minlength=3)
    assert (stats.counts >= least - 1e-9).all() and stats.counts.sum() == pytest.approx(len(known))
    first = np.array([s[0] for s in states])
    assert (stats.initial >= np.bincount(first[first >= 0], minlength=3) - 1e-9).all()
    all_but = h.collect(x, log_mask=[np.full(len(s), -1) for s in x])
    alike(all_but, h.collect(x), 1e-12)


def test_what_is_given_must_fit():
    h, x, _ = problem("diagonal", nulls=0)
    with pytest.raises(DomainError, match="known states must be 0 … 2"):
        h.collect(x, log_mask=[np.full(len(s), 3) for s in x])
    with pytest.raises(ShapeError, match="one entry per frame"):
        h.collect(x, log_mask=[np.zeros(len(s) + 1, int) for s in x])
    with pytest.raises(DomainError, match="log-mask must be 0"):
        h.collect(x, log_mask=[np.full((len(s), 3), -1.0) for s in x])
    with pytest.raises(DomainError, match="known states must be"):
        h.collect(x, log_mask=[np.full(len(s), 0.5) for s in x])


# ------------------------------------------------------------------------- refit


def test_a_state_never_left_keeps_its_ways_and_its_density():
    h = HMM([1.0, 0.0, 0.0], [[0.5, 0.5, 0], [0, 0.7, 0.3], [0.2, 0.3, 0.5]], Gaussian([[0.0], [3.0], [9.0]], 1.0))
    m = h.refit(h.collect([np.array([[0.0], [0.1]])], log_mask=[np.array([0, 0])]))
    assert m.transition[1].tolist() == [0, 0.7, 0.3] and m.transition[2].tolist() == [0.2, 0.3, 0.5]
    assert m.transition[0].tolist() == [1.0, 0.0, 0.0]
    assert m.emission.mean[1:].ravel().tolist() == [3.0, 9.0]


def test_zeros_of_a_topology_stay_exactly_zero():
    transition = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    h = HMM([1.0, 0.0, 0.0], transition, Gaussian([[0.0], [1.0], [2.0]], [[1.0]] * 3, kind="diagonal"))
    x = [np.random.default_rng(i).normal(0, 1, (30, 1)) for i in range(3)]
    for prior in (None, "weak", lambda m, s: HMMPrior.symmetric(m, 3.0, m.emission.weak_prior(s.emission))):
        m = fit(h, Ragged.from_list(x), prior=prior, stop=StoppingRule(8, 0.0)).model
        assert (m.transition[transition == 0] == 0).all() and m.initial.tolist() == [1.0, 0.0, 0.0]


def test_nothing_to_learn_from_is_said():
    h, x, _ = problem("diagonal")
    with pytest.raises(DataError, match="at least one frame with weight"):
        h.refit(h.collect(x, np.zeros(6)))


def test_posterior_mode_of_arcs():
    """α − 1 fictitious uses, on top of what was counted."""
    h = HMM([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], Categorical([[0.5, 0.5], [0.5, 0.5]]))
    stats = h.collect([np.array([[0.0], [1.0], [1.0]])], log_mask=[np.array([0, 1, 1])])
    prior = HMMPrior([2.0, 3.0], [[1.0, 4.0], [2.0, 2.5]], None, None)
    m = h.refit(stats, prior)
    assert np.allclose(m.initial, [2 / 4, 2 / 4]) and np.allclose(m.transition, [[0, 1], [1 / 3.5, 2.5 / 3.5]])


def test_evidence_of_seen_states_is_the_chain_rule():
    """log p(a) + log p(b | a) = log p(a, b), from the prior and from what it becomes."""
    h, x, rng = problem("Poisson", nulls=0)
    states = [rng.integers(0, 3, len(s)) for s in x]
    prior = HMMPrior.weak(h, h.emission.weak_prior(h.collect(x, log_mask=states).emission))
    a, b = h.collect(x[:3], log_mask=states[:3]), h.collect(x[3:], log_mask=states[3:])
    assert prior.log_evidence(a + b) == pytest.approx(
        prior.log_evidence(a) + prior.update(a).log_evidence(b), rel=1e-12
    )
    point = prior.update(a + b).point("mode")
    alike(point, h.refit(a + b, prior), 1e-12)


# ------------------------------------------------------------------------- stacks


@pytest.mark.parametrize("name", ["full", "diagonal", "Poisson", "mixture"])
def test_a_stack_is_its_chains_side_by_side(name):
    one, x, rng = problem(name, 1)
    two, _, _ = problem(name, 2)
    both = HMM(np.stack([one.initial, two.initial]), np.stack([one.transition, two.transition]), _end_to_end(one, two),
               final=np.stack([one.final, two.final]))  # fmt: skip
    want = np.stack([one.log_prob(x), two.log_prob(x)], axis=1)
    assert np.allclose(both.log_prob(x), want, rtol=1e-12) and both.members == 2
    assert np.allclose(both.best_log_prob(x), np.stack([one.best_log_prob(x), two.best_log_prob(x)], 1), rtol=1e-12)
    alike(both.member(1), two, 0.0)
    labels, weight = np.array([0, 1, -1, 1, 0, 0]), rng.random(6)
    stats = both.collect(x, weight, labels=labels)
    for c, h in enumerate((one, two)):
        assert gap(stats.member(c), h.collect(x[labels == c], weight[labels == c])) <= 1e-10
    shares = rng.random((6, 2))
    assert gap(both.collect(x, shares).member(1), two.collect(x, shares[:, 1])) <= 1e-10
    assert both.objective(stats) == pytest.approx(
        sum(h.objective(h.collect(x[labels == c], weight[labels == c])) for c, h in enumerate((one, two))), rel=1e-10
    )
    alike(both.take([1]).member(0), two, 0.0)
    with pytest.raises(DomainError, match="needs a single chain"):
        both.viterbi(x)


def _end_to_end(one, two):
    a, b = one.emission, two.emission
    if isinstance(a, Mixture):
        parts = Gaussian(
            np.concatenate([a.components.mean, b.components.mean]),
            np.concatenate([a.components.covariance, b.components.covariance]),
            kind="diagonal",
        )
        return Mixture(np.concatenate([a.weights, b.weights]), parts)
    if isinstance(a, Poisson):
        return Poisson(np.concatenate([a.rate, b.rate]))
    return Gaussian(np.concatenate([a.mean, b.mean]), np.concatenate([a.covariance, b.covariance]), kind=a.kind)


def test_streams_of_unlike_kinds():
    """A product of a Gaussian and a symbol: the score of a state is the sum of both."""
    rng = np.random.default_rng(0)
    distribution = Product({"size": Gaussian([[0.0], [4.0]], 1.0), "color": Categorical([[0.9, 0.1], [0.3, 0.7]])})
    h = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], distribution)
    x = h.sample(4, rng, length=[3, 1, 5, 2])
    parts = [HMM(h.initial, h.transition, p).scores(x.map(lambda v, n=n: np.asarray(v[n]).reshape(len(v), -1)))
             for n, p in distribution.components]  # fmt: skip
    assert np.allclose(h.scores(x), parts[0] + parts[1], rtol=1e-12)
    stats = h.collect(x)
    assert h.objective(stats) == pytest.approx(h.log_prob(x).sum(), rel=1e-12)


def test_parts_of_weight_0_take_no_share():
    """A start may leave a part of a state's mixture empty: log 0 must not become a number that is none."""
    _, x, _ = problem("mixture")
    parts = Gaussian(np.arange(12.0).reshape(6, 2), np.full((6, 2), 2.0), kind="diagonal")
    h = HMM(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), Mixture([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], parts))
    stats = h.collect(x)
    assert h.objective(stats) == pytest.approx(h.log_prob(x).sum(), rel=1e-12)
    assert stats.emission.counts[0, 1] == 0 and stats.emission.counts[2, 0] == 0
    with np.errstate(all="ignore"):
        alike(stats, in_one_piece(h, x), 1e-10)
