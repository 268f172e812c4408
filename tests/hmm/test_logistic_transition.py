"""HMM with covariates and time-varying transitions: all paths, the plain HMM, and finite differences."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import likely as lk
from likely.core.covariates import with_covariates
from likely.core.em_loop import StoppingRule, fit, iterate
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.hmm import sequence_blocks
from likely.hmm.hmm import HMM
from likely.hmm.logistic_transition import LogisticPrior, LogisticTransition, bound, log_transition, step

K, P = 3, 2
LENGTHS = (5, 1, 4)


def driven(initial, coefficients, emission, possible=None) -> HMM:
    return HMM(initial, LogisticTransition(coefficients, possible), emission)


def moved(h: HMM, **parts) -> HMM:
    """The same HMM with another transition."""
    return h.replace(transition=h.transition.replace(**parts))


def chain(seed: int = 0, mask: bool = True, spread: float = 1.0) -> HMM:
    rng = np.random.default_rng(seed)
    possible = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool) if mask else None
    emission = lk.Gaussian(rng.normal(0, 2, (K, 2)), np.tile(np.eye(2), (K, 1, 1)))
    return driven([0.5, 0.3, 0.2], rng.normal(0, spread, (K, K, P + 1)), emission, possible)


def some(seed: int = 1, lengths: tuple[int, ...] = LENGTHS, gaps: bool = True) -> tuple[list, list]:
    rng = np.random.default_rng(seed)
    x = [rng.normal(0, 2, (t, 2)) for t in lengths]
    if gaps:
        x[0][1, 0] = np.nan
        x[0][2] = np.nan
    return x, [rng.normal(0, 1, (t, P)) for t in lengths]


def every_path(h: HMM, x: np.ndarray, u: np.ndarray) -> dict[tuple[int, ...], float]:
    """log p(x, path) of all paths."""
    logs, z = h.emission.log_prob(x), np.column_stack([np.ones(len(u)), u])
    out = {}
    for path in product(range(h.states), repeat=len(x)):
        value = np.log(h.initial[path[0]]) + logs[0, path[0]]
        for t in range(1, len(x)):
            scores = np.where(
                h.transition.possible[path[t - 1]], h.transition.coefficients[path[t - 1]] @ z[t], -np.inf
            )
            value += scores[path[t]] - np.logaddexp.reduce(scores) + logs[t, path[t]]
        out[path] = float(value)
    return out


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("spread", [1.0, 400.0])  # the second leaves the range of plain numbers
def test_all_paths(mask: bool, spread: float) -> None:
    h, (x, u) = chain(mask=mask, spread=spread), some()
    total, best, shares = h.log_prob(x, u), h.viterbi(x, u), h.posterior(x, covariates=u)
    for i in range(len(x)):
        paths = every_path(h, x[i], u[i])
        logs = np.array(list(paths.values()))
        assert_allclose(total[i], np.logaddexp.reduce(logs), rtol=1e-10)
        assert_allclose(best.log_prob[i], logs.max(), rtol=1e-10)
        assert paths[tuple(best.states[i].tolist())] == pytest.approx(logs.max())
        weight = np.exp(logs - np.logaddexp.reduce(logs))
        expected = np.zeros((len(x[i]), K))
        for path, w in zip(paths, weight, strict=True):
            expected[np.arange(len(path)), path] += w
        assert_allclose(shares[i], expected, atol=1e-10)


@pytest.mark.parametrize("spread", [1.0, 400.0])
def test_filters_with_a_lag_are_posteriors_of_what_was_seen_by_then(spread: float) -> None:
    h, (x, u) = chain(spread=spread), some()
    for lag in (0, 1, 2, 9):
        found = h.posterior(x, lag, u)
        for i in range(len(x)):
            for t in range(len(x[i])):
                seen = min(t + lag + 1, len(x[i]))
                paths = every_path(h, x[i][:seen], u[i][:seen])
                logs = np.array(list(paths.values()))
                shares = np.exp(logs - np.logaddexp.reduce(logs))
                expected = [sum(w for p, w in zip(paths, shares, strict=True) if p[t] == k) for k in range(K)]
                assert_allclose(found[i][t], expected, atol=1e-10)


def test_smooth_is_posterior_and_likelihood() -> None:
    h, (x, u) = chain(), some()
    both, one = h.smooth(x, u), h.smooth(x[0], u[0])
    assert_allclose(both.states.values, h.posterior(x, covariates=u).values)
    assert_allclose(both.log_prob, h.log_prob(x, u))
    assert isinstance(one.log_prob, float)
    assert_allclose(one.states, both.states[0])


def test_the_k_best_paths_are_those_of_all() -> None:
    h, (x, u) = chain(), some()
    every = sorted(every_path(h, x[0], u[0]).items(), key=lambda item: -item[1])
    finite = [(p, v) for p, v in every if np.isfinite(v)]
    found = h.k_best(x[0], 12, u[0])
    assert [tuple(path.states.tolist()) for path in found] == [p for p, _ in every[:12]]
    assert_allclose([path.log_prob for path in found], [v for _, v in every[:12]])
    assert len(h.k_best(x[0], 3**5, u[0])) == len(finite)
    with pytest.raises(DomainError, match="k must be"):
        h.k_best(x[0], 0, u[0])
    with pytest.raises(DataError, match="one sequence"):
        h.k_best(x, 2, u)


def test_a_live_belief_is_the_filter() -> None:
    h, (x, u) = chain(), some()
    belief, total, filtered = None, 0.0, h.posterior(x[0], 0, u[0])
    for t in range(len(x[0])):
        belief, news = lk.step(h, belief, (x[0][t], u[0][t]))
        total += news
        assert_allclose(belief.probs, filtered[t], atol=1e-12)
    assert_allclose(total, h.log_prob(x[:1], u[:1])[0])
    rows, again = with_covariates(x[0], u[0])[0], None
    for t in range(len(rows)):
        again, _ = lk.step(h, again, rows[t : t + 1])
    assert_allclose(again.probs, belief.probs)
    ahead = h.predict(belief, [0.3, -0.2])
    assert_allclose(ahead.probs, h.forecast(x[0], 1, covariates=[[0.3, -0.2]], past=u[0]).states[0])
    two = lk.Product({"a": lk.Gaussian([[0.0], [3.0]], 1.0), "b": lk.Gaussian([[0.0], [1.0]], 1.0)})
    parts = driven([0.5, 0.5], np.zeros((2, 2, 2)), two)
    row = {"a": [0.1], "b": [0.3]}
    beliefs = [lk.step(parts, None, (frame, 0.0))[0].probs for frame in (row, lk.core.Columns(a=[[0.1]], b=[[0.3]]))]
    assert_allclose(*beliefs)
    first, _ = lk.step(h, None, (x[0][0], None))  # nothing moves into the first frame
    assert_allclose(first.probs, filtered[0])


def test_what_is_no_observation_is_said_in_words() -> None:
    h, (x, u) = chain(), some()
    belief, _ = lk.step(h, None, (x[0][0], u[0][0]))
    with pytest.raises(DataError, match="a pair"):
        lk.step(h, belief, x[0][1])
    with pytest.raises(ShapeError, match="one row"):
        lk.step(h, belief, with_covariates(x[0], u[0])[0])
    with pytest.raises(ShapeError, match="2 columns"):
        lk.step(h, belief, (x[0][1], [1.0, 2.0, 3.0]))
    with pytest.raises(DataError, match="finite numbers"):
        lk.step(h, belief, (x[0][1], [1.0, np.nan]))
    with pytest.raises(DomainError, match="due already"):
        h.predict(h.predict(belief))
    with pytest.raises(ShapeError, match="covariates=u"):
        h.posterior(x[0], u[0])
    with pytest.raises(DomainError, match="integer"):
        h.posterior(x[0], -1, u[0])


def test_far_from_all_states_posteriors_still_sum_to_one() -> None:
    h, (x, u) = chain(), some(lengths=(60,), gaps=False)
    x[0][30] = 1e6
    found = h.posterior(x[0], covariates=u[0])
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    near = [x[0][28:33], u[0][28:33]]
    paths = every_path(h, *near)
    logs = np.array(list(paths.values()))
    shares = np.exp(logs - logs.max())
    expected = np.zeros((5, K))
    for path, w in zip(paths, shares / shares.sum(), strict=True):
        expected[np.arange(5), path] += w
    assert_allclose(h.posterior(near[0], covariates=near[1]), expected, atol=1e-3)  # scores of 1e12 have 4 digits left


def test_paths_are_drawn_where_past_and_future_disagree() -> None:
    h = driven([0.5, 0.5], np.zeros((2, 2, 2)), lk.Gaussian([[0.0], [100.0]], 1.0), np.eye(2, dtype=bool))
    x, u = np.array([0.0, 0.0, np.nan, 100.0, 100.0, 100.0]), np.zeros(6)
    data = with_covariates([x] * 20, [u] * 20)
    assert (h.sample_states(data, np.random.default_rng(0)) == 1).all()
    filled = lk.impute(h, data, np.random.default_rng(1))
    assert_allclose(filled.values["frames"].reshape(20, 6)[:, 2], 100.0, atol=6)
    with pytest.raises(DataError, match="impossible"):
        h.replace(emission=lk.Categorical([[1.0, 0.0], [0.0, 1.0]], levels=["a", "b"])).sample_states(
            with_covariates(np.array(["a", "b"]), np.zeros(2)), np.random.default_rng(0)
        )


def test_hard_takes_the_best_path_alone() -> None:
    h, (x, u) = chain(), some()
    w = np.array([1.0, 2.0, 0.5])
    stats = h.collect(x, w, hard=True, covariates=u)
    best = [max(every_path(h, a, b).items(), key=lambda item: item[1]) for a, b in zip(x, u, strict=True)]
    assert_allclose(h.objective(stats), w @ [value for _, value in best], rtol=1e-12)
    given = h.collect(x, w, log_mask=[np.array(path) for path, _ in best], covariates=u)
    for name in ("initial", "counts"):
        assert_allclose(getattr(stats, name), getattr(given, name), atol=1e-12)
    for name in ("gradient", "curvature", "fitted"):
        assert_allclose(getattr(stats.transition, name), getattr(given.transition, name), atol=1e-12)
    truth = chain(5)
    rng = np.random.default_rng(6)
    data = truth.sample(20, rng, covariates=[rng.normal(0, 1, (30, P)) for _ in range(20)])
    report = fit(truth, data, prior="weak", hard=True, stop=StoppingRule(300, 1e-6))
    assert report.converged
    assert (np.diff(report.trace) >= -1e-9 * abs(report.trace[0])).all()


def test_hard_goes_down_to_the_parts_of_mixtures() -> None:
    rng = np.random.default_rng(0)
    parts = lk.Gaussian(rng.normal(0, 2, (4, 2)), np.tile(np.eye(2), (4, 1, 1)))
    h = driven([0.5, 0.5], rng.normal(size=(2, 2, P + 1)), lk.Mixture([[0.5, 0.5], [0.3, 0.7]], parts))
    x, u = some(gaps=False)
    stats = h.collect(x, hard=True, covariates=u)
    best = 0.0
    for a, b in zip(x, u, strict=True):
        joint = np.log(h.emission.weights)[None] + parts.log_prob(a).reshape(len(a), 2, 2)
        flat = h.replace(emission=_Table(joint.max(axis=2)))
        best += max(every_path(flat, a, b).values())
    assert_allclose(h.objective(stats), best, rtol=1e-12)


class _Table:
    """Scores that are given."""

    members = 2

    def __init__(self, logs: np.ndarray) -> None:
        self.logs = logs

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        return self.logs


def test_far_scores_go_through_logarithms() -> None:
    h, (x, u) = chain(), some(gaps=False)
    far = [1e3 * a for a in x]
    expected = [np.logaddexp.reduce(list(every_path(h, a, b).values())) for a, b in zip(far, u, strict=True)]
    assert_allclose(h.log_prob(far, u), expected, rtol=1e-12)
    assert_allclose(h.posterior(far, covariates=u).values.sum(axis=1), 1.0)


def test_moves_that_no_covariate_changes_are_those_of_a_plain_chain() -> None:
    rng = np.random.default_rng(2)
    transition = rng.dirichlet(np.ones(K), K)
    emission = lk.Gaussian(rng.normal(0, 2, (K, 1)), 1.0)
    plain = lk.HMM([0.2, 0.3, 0.5], transition, emission)
    beta = np.concatenate([np.log(transition)[:, :, None], np.zeros((K, K, 1))], axis=2)
    chain_ = driven(plain.initial, beta, emission)
    x, u = [rng.normal(0, 2, (t, 1)) for t in (50, 3)], [rng.normal(0, 9, (t, 1)) for t in (50, 3)]
    assert_allclose(chain_.log_prob(x, u), plain.log_prob(x), rtol=1e-13)
    assert_allclose(chain_.posterior(x, covariates=u).values, plain.posterior(x).values, atol=1e-12)
    assert (chain_.viterbi(x, u).states.values == plain.viterbi(x).states.values).all()
    ahead = chain_.forecast(x[0], 4, covariates=np.zeros(4), past=u[0])
    assert_allclose(ahead.states, plain.forecast(x[0], 4).states, atol=1e-13)


def test_a_fit_with_constant_covariates_is_that_of_a_plain_chain() -> None:
    rng = np.random.default_rng(3)
    truth = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], lk.Gaussian([[0.0], [3.0]], 1.0))
    x = truth.sample(30, rng, 40)
    u = Ragged.trusted(values=np.full((len(x.values), 1), 7.0), offsets=x.offsets)
    start = lk.HMM([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], lk.Gaussian([[-1.0], [4.0]], 1.0))
    beta = np.concatenate([np.log(start.transition)[:, :, None], np.zeros((2, 2, 1))], axis=2)
    stop = StoppingRule(2000, 1e-12)
    plain = fit(start, x, stop=stop).model
    found = fit(driven(start.initial, beta, start.emission), with_covariates(x, u), stop=stop).model
    assert_allclose(found.transition.matrices([[7.0]])[0], plain.transition, atol=1e-5)
    assert_allclose(found.log_prob(x, u).sum(), plain.log_prob(x).sum(), atol=1e-6)


def test_the_gradient_is_that_of_the_likelihood() -> None:
    h, (x, u) = chain(), some()
    w = np.array([1.0, 2.0, 0.5])
    stats = h.collect(x, w, covariates=u)
    step = 1e-5
    for i, j, q in product(range(K), range(K), range(P + 1)):
        shift = np.zeros((K, K, P + 1))
        shift[i, j, q] = step
        up, down = (moved(h, coefficients=h.transition.coefficients + s).log_prob(x, u) @ w for s in (shift, -shift))
        assert_allclose(stats.transition.gradient[i, j, q], (up - down) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("ruled", [False, True])
def test_the_objective_is_a_bound_that_is_tight_where_it_was_taken(ruled: bool) -> None:
    h, (x, u) = chain(), some()
    stats = h.collect(x, covariates=u)
    prior = h.weak_prior(stats) if ruled else None

    def truth(model: HMM) -> float:
        return float(model.log_prob(x, u).sum()) + (0.0 if prior is None else prior.log_density(model))

    assert_allclose(h.objective(stats, prior), truth(h), rtol=1e-12)
    rng = np.random.default_rng(0)
    for size in (0.1, 1.0, 10.0):
        other = moved(h, coefficients=h.transition.coefficients + rng.normal(0, size, h.transition.coefficients.shape))
        assert other.objective(stats, prior) <= truth(other) + 1e-9
    better = h.refit(stats, prior)
    assert better.objective(stats, prior) > h.objective(stats, prior)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_the_step_is_the_maximum_of_the_bound(ridge: float) -> None:
    h, (x, u) = chain(), some()
    stats = h.collect(x, covariates=u)
    penalty, rng = np.array([0.0, ridge, ridge]), np.random.default_rng(0)

    def value(change: np.ndarray) -> float:
        beta = np.where(h.transition.possible[:, :, None], h.transition.coefficients + change, 0.0)
        return bound(
            change, h.transition.possible, stats.transition.gradient, stats.transition.curvature
        ) - 0.5 * float((penalty * beta**2).sum())

    best = step(
        h.transition.coefficients, h.transition.possible, stats.transition.gradient, stats.transition.curvature, penalty
    )
    assert value(best) > value(np.zeros_like(best))
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            assert value(best + rng.normal(0, size, best.shape)) <= value(best) + 1e-12


def test_the_likelihood_never_falls() -> None:
    truth = chain(5)
    rng = np.random.default_rng(6)
    data = truth.sample(20, rng, covariates=[rng.normal(0, 1, (30, P)) for _ in range(20)])
    start = driven(np.full(K, 1 / K), np.zeros((K, K, P + 1)), truth.emission, truth.transition.possible)
    trace = []
    for look in iterate(start, data, prior="weak"):
        trace.append(look.objective)
        if len(trace) > 40:
            break
    assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all()
    assert trace[-1] > trace[0] + 20


@pytest.mark.slow
def test_known_coefficients_are_recovered() -> None:
    beta = np.zeros((2, 2, 2))
    beta[0, 1], beta[1, 0] = (-2.0, 1.5), (-1.0, -1.0)  # relative to staying
    truth = driven([0.5, 0.5], beta, lk.Gaussian([[0.0], [4.0]], 1.0))
    rng = np.random.default_rng(7)
    data = truth.sample(200, rng, covariates=[rng.normal(0, 1, (100, 1)) for _ in range(200)])
    start = driven([0.5, 0.5], np.zeros((2, 2, 2)), lk.Gaussian([[-1.0], [5.0]], [[[2.0]], [[2.0]]]))
    report = fit(start, data, prior="weak", stop=StoppingRule(500, 1e-8))
    found = report.model.transition.coefficients
    assert report.converged
    assert_allclose(found[0, 1] - found[0, 0], beta[0, 1], atol=0.15)
    assert_allclose(found[1, 0] - found[1, 1], beta[1, 0], atol=0.15)


def test_statistics_add_and_weights_are_copies() -> None:
    h, (x, u) = chain(), some()
    both = with_covariates(x, u)
    whole = h.collect(both)
    parts = h.collect(both[:1]) + h.collect(both[1:])
    twice, copies = h.collect(both, [2.0, 1.0, 0.0]), h.collect(both[np.array([0, 0, 1])])
    for one, two, factor in ((parts, whole, 1.0), (twice, copies, 1.0), (whole * 3.0, whole, 3.0)):
        for name in ("initial", "counts", "entropy"):
            assert_allclose(getattr(one, name), factor * getattr(two, name), atol=1e-12)
        for name in ("gradient", "curvature", "fitted"):
            assert_allclose(getattr(one.transition, name), factor * getattr(two.transition, name), atol=1e-12)
    with pytest.raises(DomainError, match="same coefficients"):
        whole + moved(h, coefficients=h.transition.coefficients + 1.0).collect(both)


def test_pieces_equal_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    h, u = chain(), [rng.normal(0, 1, (50, P)) for _ in range(12)]
    data = h.sample(12, rng, covariates=u)
    scores, stats = h.log_prob(data), h.collect(data)
    monkeypatch.setattr(sequence_blocks, "FRAMES", 64)
    assert_allclose(h.log_prob(data), scores, rtol=1e-13)
    assert_allclose(h.collect(data).transition.gradient, stats.transition.gradient, atol=1e-10)


def answers(h: HMM, data: Ragged, given: list) -> dict[str, np.ndarray]:
    """All that a chain can say, as arrays."""
    out = {"log_prob": h.log_prob(data), "posterior": h.posterior(data).values, "path": h.viterbi(data).states.values}
    out |= {"drawn": h.sample_states(data, np.random.default_rng(0)), "smooth": h.smooth(data).log_prob}
    out |= {f"lag {lag}": h.posterior(data, lag).values for lag in (0, 1, 5, 100)}
    last, u = data[0], np.zeros((3, P))
    out |= {"ahead": h.forecast(last, 3, u).states, "second": h.k_best(last, 2)[-1].states}
    out["second score"] = np.array(h.k_best(last, 2)[-1].log_prob)
    for name, stats in (
        ("soft", h.collect(data, [1.0, 0.5, 2.0])), ("hard", h.collect(data, hard=True)),
        ("given", h.collect(data, log_mask=given)),
    ):  # fmt: skip
        inner = {f: getattr(stats, f) for f in ("initial", "counts", "entropy")}
        inner |= {f: getattr(stats.transition, f) for f in ("fitted", "gradient", "curvature")}
        out |= {f"{name} {f}": value for f, value in inner.items()} | {f"{name} mean": stats.emission.mean}
    return out


@pytest.mark.parametrize("trouble", [None, "far moves", "an outlier", "an impossible sequence"])
def test_a_long_sequence_in_pieces_is_the_same(trouble: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    h = chain(spread=400.0 if trouble == "far moves" else 1.0)
    lengths = (70, 3, 41)
    x, u = [rng.normal(0, 2, (t, 2)) for t in lengths], [rng.normal(0, 1, (t, P)) for t in lengths]
    x[0][30:34] = np.nan
    if trouble == "an outlier":
        x[0][37], x[2][40] = 1e3, -3e3
    if trouble == "an impossible sequence":
        h = moved(h.replace(initial=np.array([1.0, 0.0, 0.0])), possible=np.eye(K, dtype=bool))
    data, given = with_covariates(x, u), [np.full(t, -1) for t in lengths]
    given[0][:40:3] = h.viterbi(x[0], u[0]).states[:40:3]
    if trouble == "an impossible sequence":
        given[0][50] = 1  # from state 0 there is no way to it
    whole = answers(h, data, given)
    monkeypatch.setattr(sequence_blocks, "FRAMES", 8)
    pieces = answers(h, data, given)
    for name, value in whole.items():
        assert_allclose(pieces[name], value, rtol=1e-9, atol=1e-9, err_msg=name)
    if trouble == "an impossible sequence":
        assert np.isneginf(whole["given entropy"])


def test_what_is_wrong_in_a_piece_is_named_by_its_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_blocks, "FRAMES", 8)
    h, (x, u) = chain(), some(lengths=(3, 50), gaps=False)
    u[1][33, 1] = np.inf
    with pytest.raises(DataError, match="inf at sequence 1, frame 33, column 1"):
        h.log_prob(x, u)
    u[1][33, 1], x[1][29, 0] = 0.0, np.inf
    with pytest.raises(DataError, match="inf at sequence 1, frame 29, column 0"):
        h.collect(x, covariates=u)


@pytest.mark.slow
def test_memory_is_that_of_a_piece() -> None:
    rng = np.random.default_rng(0)
    T = 16_000
    h = driven(np.full(16, 1 / 16), rng.normal(size=(16, 16, 2)), lk.Gaussian(rng.normal(0, 3, (16, 1)), 1.0))
    x, u = rng.normal(0, 3, T), rng.normal(size=T)
    data, far = with_covariates([x], [u]), with_covariates([np.where(np.arange(T) == T // 2, 1e5, x)], [u])
    for some_data in (data, far):  # the moves of all frames would be 33 MB an array
        for doing in (h.collect, lambda d: h.collect(d, hard=True), h.log_prob, h.posterior, h.viterbi):
            tracemalloc.start()
            doing(some_data)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 25e6


def test_moves_and_their_slow_twin() -> None:
    h, z = chain(spread=30.0), np.random.default_rng(0).normal(size=(50, P + 1))
    fast = h.transition.arcs(h.initial, z)
    slow = log_transition(h.transition.coefficients, h.transition.possible, z)
    assert_allclose(fast.log_transition, slow, atol=1e-12)
    assert_allclose(fast.transition, np.exp(slow), rtol=1e-12)


def test_units_do_not_matter() -> None:
    h, (x, u) = chain(), some()
    center, scale = np.array([3.0, -1.0]), np.array([0.1, 20.0])
    scaled = [a * scale + center for a in u]
    other = moved(h, units=np.stack([center, scale]))
    assert_allclose(other.log_prob(x, scaled), h.log_prob(x, u), rtol=1e-12)
    raw = moved(h, coefficients=other.transition.raw_coefficients())
    assert_allclose(raw.log_prob(x, scaled), h.log_prob(x, u), rtol=1e-10)


def test_a_covariate_that_never_changes_does_no_harm() -> None:
    h, (x, u) = chain(), some(lengths=(40, 30))
    for a in u:
        a[:, 1] = 2.0
    stats = h.collect(x, covariates=u)
    for prior in (None, "weak"):
        rule = h.weak_prior(stats) if prior else None
        better = h.refit(stats, rule)
        assert np.isfinite(better.transition.coefficients).all()
        assert better.objective(stats, rule) > h.objective(stats, rule)


def test_drawn_paths_follow_the_posterior() -> None:
    h, (x, u) = chain(), some()
    data = with_covariates(x[:1] * 4000, u[:1] * 4000)
    paths = h.sample_states(data, np.random.default_rng(0)).reshape(4000, -1)
    every = every_path(h, x[0], u[0])
    logs = np.array(list(every.values()))
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    top = int(shares.argmax())
    assert abs((paths == list(every)[top]).all(axis=1).mean() - shares[top]) < 0.04
    assert_allclose(np.eye(K)[paths].mean(axis=0), h.posterior(x[0], covariates=u[0]), atol=0.04)


def test_known_states_leave_only_their_path() -> None:
    h, (x, u) = chain(), some()
    path = [np.array([0, 1, 2, 1, 0]), np.array([1]), np.array([2, -1, 1, 1])]
    stats = h.collect(x, log_mask=path, covariates=u)
    assert_allclose(stats.initial, [1, 1, 1])
    joint = every_path(h, x[0], u[0])[tuple(path[0].tolist())] + every_path(h, x[1], u[1])[(1,)]
    joint += np.logaddexp.reduce([every_path(h, x[2], u[2])[(2, s, 1, 1)] for s in range(K)])
    assert_allclose(h.objective(stats), joint, rtol=1e-12)


@pytest.mark.slow
def test_draws_follow_the_covariates() -> None:
    beta = np.zeros((2, 2, 2))
    beta[:, 1] = (0.0, 3.0)
    h = driven([1.0, 0.0], beta, lk.Gaussian([[0.0], [100.0]], 1.0))
    u = np.repeat([[1.0], [-1.0]], 2000, axis=0)
    drawn = h.sample(1, np.random.default_rng(0), covariates=u)
    high = drawn.values["frames"][:, 0] > 50
    assert abs(high[1:2000].mean() - 1 / (1 + np.exp(-3))) < 0.02
    assert abs(high[2000:].mean() - 1 / (1 + np.exp(3))) < 0.02


def test_what_is_wrong_is_said_in_words() -> None:
    h, (x, u) = chain(), some()
    first = [a.copy() for a in u]
    first[0][0] = np.nan  # drives nothing
    assert_allclose(h.log_prob(x, first), h.log_prob(x, u))
    bad = [a.copy() for a in u]
    bad[2][3, 1] = np.nan
    with pytest.raises(DataError, match="nan at sequence 2, frame 3, column 1"):
        h.log_prob(x, bad)
    with pytest.raises(DataError, match="every frame needs its covariates"):
        h.log_prob(x)
    with pytest.raises(ShapeError, match="sequence 1 must have one row for each of its 1 frames"):
        h.log_prob(x, [u[0], u[0], u[2]])
    with pytest.raises(ShapeError, match="2 columns"):
        h.log_prob(x, [a[:, :1] for a in u])
    with pytest.raises(DomainError, match="covariates=u"):
        h.sample(3, np.random.default_rng(0))
    with pytest.raises(ShapeError, match="3 frames to come"):
        h.forecast(x[0], 3, covariates=u[2][:2], past=u[0])
    with pytest.raises(DataError, match="nan at row 1, column 0"):
        h.forecast(x[0], 2, covariates=np.array([[1.0, 1.0], [np.nan, 0.0]]), past=u[0])
    with pytest.raises(DomainError, match="a transition from every state"):
        driven(h.initial, h.transition.coefficients, h.emission, np.zeros((K, K), bool))
    with pytest.raises(ShapeError, match=r"must have shape \(K, K, p \+ 1\)"):
        driven(h.initial, h.transition.coefficients[:2], h.emission)
    with pytest.raises(ShapeError, match=r"need initial .3,. and a stack of 3 emissions"):
        driven(h.initial[:2], h.transition.coefficients, h.emission)
    with pytest.raises(DomainError, match="final probabilities need constant transitions"):
        HMM(h.initial, h.transition, h.emission, final=[0.1, 0.1, 0.1])
    with pytest.raises(DomainError, match="take no covariates"):
        HMM(h.initial, np.eye(K), h.emission).log_prob(x, u)
    with pytest.raises(DomainError, match="must not be negative"):
        LogisticPrior(1.0, [0.0], [-1.0])
    prior = lk.priors.HMMPrior([2.0, 2.0], LogisticPrior(1.0, [0.0], [1.0]), None, None)
    for refused in (lambda p: p.update(None), lambda p: p.point()):
        with pytest.raises(DomainError, match="not conjugate"):
            refused(prior)


def test_no_frames_at_all() -> None:
    h = chain()
    empty = with_covariates(Ragged(np.empty((0, 2)), [0, 0]), Ragged(np.empty((0, P)), [0, 0]))
    assert h.log_prob(empty).tolist() == [0.0]
    assert h.collect(empty).total_weight == 0


def test_impossible_frames_are_passed_over_as_in_a_plain_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them made the whole call an error, also for frames before it and for other sequences."""
    emits = lk.Categorical([[0.7, 0.3, 0.0], [0.0, 0.2, 0.8]], levels=["a", "b", "c"])
    chain_ = driven([0.5, 0.5], np.zeros((2, 2, 2)), emits, np.array([[True, True], [False, True]]))
    plain = lk.HMM([0.5, 0.5], [[0.5, 0.5], [0.0, 1.0]], emits)
    x = np.array([*"aabcb", "zz", *"cac"], dtype=object)
    u = np.zeros(len(x))
    for frames in (4096, 3):
        monkeypatch.setattr(sequence_blocks, "FRAMES", frames)
        for lag in (0, 2, None):
            with pytest.warns(lk.FitWarning, match=r"^HMM.posterior: frame 5 of sequence 1 is impossible"):
                found = chain_.posterior([x[:4], x], lag, [u[:4], u])
            with pytest.warns(lk.FitWarning, match=r"^HMM.posterior"):
                assert_allclose(found.values, plain.posterior([x[:4], x], lag).values, atol=1e-12)
    with pytest.warns(lk.FitWarning, match=r"^HMM.forecast"):
        ahead = chain_.forecast(with_covariates(x, u), 2, np.zeros(2))
    with pytest.warns(lk.FitWarning, match=r"^HMM.forecast"):
        assert_allclose(ahead.states, plain.forecast(x, 2).states)


def test_time_varying_transitions_are_an_argument() -> None:
    """The matrices that covariates make, passed to an HMM of constant transitions, give what the covariates give."""
    h, (x, u) = chain(), some()
    matrices = [h.transition.matrices(one) for one in u]
    plain = HMM(h.initial, np.eye(K), h.emission)
    for model in (plain, h):
        assert_allclose(model.log_prob(x, transition=matrices), h.log_prob(x, u), rtol=1e-13)
        assert_allclose(model.posterior(x, transition=matrices).values, h.posterior(x, covariates=u).values, atol=1e-13)
        assert_allclose(model.posterior(x, 1, transition=matrices).values, h.posterior(x, 1, u).values, atol=1e-13)
        assert_allclose(model.smooth(x, transition=matrices).log_prob, h.log_prob(x, u), rtol=1e-13)
        best, same = model.viterbi(x, transition=matrices), h.viterbi(x, u)
        assert (best.states.values == same.states.values).all()
        assert_allclose(best.log_prob, same.log_prob, rtol=1e-13)
    one, two = (plain.k_best(x[0], 3, transition=matrices[0]), h.k_best(x[0], 3, u[0]))
    assert_allclose([p.log_prob for p in one], [p.log_prob for p in two])
    constant = HMM(h.initial, matrices[0][1], h.emission)
    tiled = [np.repeat(matrices[0][1:2], len(a), axis=0) for a in x]
    assert_allclose(plain.log_prob(x, transition=tiled), constant.log_prob(x), rtol=1e-13)


def test_time_varying_transitions_that_do_not_fit_are_refused() -> None:
    h, (x, u) = chain(), some()
    matrices = [h.transition.matrices(one) for one in u]
    plain = HMM(h.initial, np.eye(K), h.emission)
    with pytest.raises(ShapeError, match=r"one matrix .K, K. per frame"):
        plain.log_prob(x, transition=matrices[:2])
    bad = [m.copy() for m in matrices]
    bad[0][0], bad[2][3, 1] = np.nan, [0.5, 0.6, 0.0]  # the first frame's has no effect
    with pytest.raises(DomainError, match=r"sum to 1.*at sequence 2, frame 3"):
        plain.viterbi(x, transition=bad)
    ending = HMM(h.initial, 0.9 * np.eye(K), h.emission, final=np.full(K, 0.1))
    with pytest.raises(DomainError, match="without null states and final probabilities"):
        ending.posterior(x, transition=matrices)
