"""What every prior owes: data add to it as they add to each other, and the evidence is a chain of predictions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from likely import DomainError, Prior
from tests.properties.compare import bits, gap
from tests.properties.density import SIGMAS, dkw
from tests.properties.pairs import Pair
from tests.properties.suite import Suite

PROPERTIES = Suite()


def predicts(p: Pair) -> bool:
    return p.predicts


def simulated(p: Pair) -> bool:
    return p.simulation is not None


def collected(p: Pair, n: int, seed: int) -> tuple[np.ndarray, dict[str, Any], Any]:
    x, known = p.rows(n, np.random.default_rng(seed))
    return x, known, p.model().collect(x, **known)


def log_likelihood(model: Any, x: np.ndarray, known: dict[str, Any]) -> float:
    out = model.log_prob(x)
    return float(out[np.arange(len(x)), known["labels"]].sum() if known else out.sum())


@PROPERTIES.add()
def plays_the_role(p: Pair):
    assert isinstance(p.prior(), Prior)


@PROPERTIES.add()
def updates_add(p: Pair):
    for seed in range(5):
        (_, _, a), (_, _, b) = collected(p, 12, seed), collected(p, 5, seed + 100)
        assert gap(p.prior().update(a + b), p.prior().update(a).update(b)) <= 1e-13
        assert gap(p.prior().update(a), p.prior().update(a * 0.5).update(a * 0.5)) <= 1e-13


@PROPERTIES.add()
def nothing_seen_changes_nothing(p: Pair):
    x, known, _ = collected(p, 3, 1)
    nothing = p.model().collect(x[:0], **{k: v[:0] for k, v in known.items()})
    assert gap(p.prior().update(nothing), p.prior()) <= 1e-15
    assert np.sum(p.prior().log_evidence(nothing)) == pytest.approx(0.0, abs=1e-13)


@PROPERTIES.add(when=predicts)
def the_evidence_is_the_product_of_predictions(p: Pair):
    x, _, stats = collected(p, 25, 2)
    belief, model, total = p.prior(), p.model(), 0.0
    for row in x:
        total += float(np.sum(belief.predictive().log_prob(row[None])))
        belief = belief.update(model.collect(row[None]))
    assert abs(float(p.prior().log_evidence(stats)) - total) <= 1e-12 * len(x)


@PROPERTIES.add()
def evidences_chain(p: Pair):
    for seed in range(5):
        (_, _, a), (_, _, b) = collected(p, 12, seed), collected(p, 5, seed + 100)
        prior = p.prior()
        whole = np.sum(prior.log_evidence(a + b))
        assert abs(whole - np.sum(prior.log_evidence(a)) - np.sum(prior.update(a).log_evidence(b))) <= 1e-12 * 17


@PROPERTIES.add()
def bayes_theorem(p: Pair):
    """log p(θ | x) = log p(θ) + log p(x | θ) − log p(x), at any θ."""
    rng = np.random.default_rng(3)
    x, known, stats = collected(p, 8, 3)
    prior = p.prior()
    post, evidence = prior.update(stats), float(np.sum(prior.log_evidence(stats)))
    for size in (0.01, 0.1, 0.3, 1.0):
        model = p.nudge(p.model(), rng, size)
        left = float(np.sum(post.log_density(model)))
        right = float(np.sum(prior.log_density(model))) + log_likelihood(model, x, known) - evidence
        assert abs(left - right) <= 1e-11 * max(abs(left), abs(evidence), 10.0)


@PROPERTIES.add()
def the_mode_is_the_summit(p: Pair):
    rng = np.random.default_rng(4)
    _, _, stats = collected(p, 6, 4)
    for distribution in (p.prior(), p.prior().update(stats)):
        mode = distribution.point("mode")
        top = np.sum(distribution.log_density(mode))
        near = [
            np.sum(distribution.log_density(p.nudge(mode, rng, size)))
            for size in (1e-5, 1e-3, 0.03, 0.5)
            for _ in range(20)
        ]
        assert (np.array(near) <= top + 1e-12 * max(abs(top), 1.0)).all()
        # and it is a summit, not a plateau: steps of a thousandth cost about their square
        assert (np.array(near[20:40]) < top).all()


@PROPERTIES.add()
def refitting_with_the_prior_is_its_mode(p: Pair):
    rng = np.random.default_rng(5)
    _, _, stats = collected(p, 6, 5)
    prior = p.prior()
    fitted = p.model().refit(stats, prior)
    assert gap(fitted, prior.update(stats).point("mode")) <= 1e-15
    best = fitted.objective(stats, prior)
    assert best == pytest.approx(fitted.objective(stats) + float(np.sum(prior.log_density(fitted))), rel=1e-13)
    for size in (1e-4, 0.01, 0.3, 1.0):
        for start in (p.nudge(p.model(), rng, size), p.nudge(fitted, rng, size)):
            assert start.objective(stats, prior) <= best + 1e-12 * max(abs(best), 1.0)
            again = start.refit(stats, prior)
            assert again.objective(stats, prior) >= start.objective(stats, prior)
            assert gap(again, fitted) <= 1e-14


DRAWS = 1000


def drawn(p: Pair) -> dict[str, np.ndarray]:
    """Parameters of so many draws from the prior, by name."""
    rng, prior = np.random.default_rng(6), p.prior()
    draws = [p.numbers(prior.draw(rng)) for _ in range(DRAWS)]
    return {name: np.stack([d[name] for d in draws]) for name in draws[0]}


@PROPERTIES.add()
def means_are_the_means_of_draws(p: Pair):
    wanted, found_by_name, n = p.numbers(p.prior().point("mean")), drawn(p), DRAWS
    for name, value in wanted.items():
        found = found_by_name[name]
        assert (np.abs(found.mean(axis=0) - value) <= SIGMAS * found.std(axis=0) / np.sqrt(n) + 1e-12).all(), name


@PROPERTIES.add(when=lambda p: bool(p.medians))
def medians_halve_the_draws(p: Pair):
    wanted, found = p.numbers(p.prior().point("median")), drawn(p)
    for name in p.medians:
        below = (found[name] <= wanted[name]).mean(axis=0)
        assert (np.abs(below - 0.5) <= dkw(DRAWS)).all(), name


@PROPERTIES.add(when=predicts)
def the_predictive_is_the_mean_over_draws(p: Pair):
    rng, n = np.random.default_rng(8), DRAWS
    _, _, stats = collected(p, 10, 8)  # with few data the weights of a draw have no variance to speak of
    post = p.prior().update(stats)
    x, _ = p.rows(5, rng)
    wanted = np.exp(post.predictive().log_prob(x))
    each = np.exp([post.draw(rng).log_prob(x) for _ in range(n)])
    assert (np.abs(each.mean(axis=0) - wanted) <= SIGMAS * each.std(axis=0) / np.sqrt(n)).all()


@PROPERTIES.add()
def other_rules_are_refused(p: Pair):
    with pytest.raises(DomainError, match="rule must be one of 'mode', 'mean', 'median'"):
        p.prior().point("middle")


@PROPERTIES.add()
def copies_are_the_same_to_the_bit(p: Pair):
    prior = p.prior()
    assert bits(pickle.loads(pickle.dumps(prior))) == bits(copy.deepcopy(prior)) == bits(prior)


@PROPERTIES.add(when=lambda p: p.predicts and p.model().members is None and p.name != "ProductPrior")
def one_prior_serves_a_stack(p: Pair):
    """Updated by the statistics of a stack it is a stack, each member as if alone."""
    x, _, _ = collected(p, 30, 9)
    labels = np.random.default_rng(9).integers(0, 3, 30)
    prior, model = p.prior(), p.model()
    stack = stacked_model(model, 3)
    stats = stack.collect(x, labels=labels)
    post, evidence = prior.update(stats), prior.log_evidence(stats)
    modes, predictive = post.point("mode"), post.predictive().log_prob(x)
    assert np.shape(evidence) == (3,) and predictive.shape == (30, 3)
    for k in range(3):
        alone = model.collect(x[labels == k])
        one = prior.update(alone)
        assert evidence[k] == pytest.approx(prior.log_evidence(alone), abs=1e-11)
        assert np.abs(predictive[:, k] - one.predictive().log_prob(x)).max() <= 1e-9
        wanted = one.point("mode").log_prob(x)  # −inf where a row cannot be
        np.testing.assert_allclose(modes.log_prob(x)[:, k], wanted, rtol=0, atol=1e-9)
    assert np.shape(post.log_density(modes)) == (3,)
    assert post.draw(np.random.default_rng(0)).members == 3


def stacked_model(model: Any, members: int) -> Any:
    """The same model, so many times."""
    parts = {
        name: np.repeat(part[None], members, axis=0)
        for name, part in model.field_values().items()
        if isinstance(part, np.ndarray) and name != "levels"
    }
    return model.replace(**parts)


# ------------------------------------------------- simulation-based calibration


def ranks(p: Pair, post: Any, truth: Any, stats: Any, rng: np.random.Generator, draws: int = 9) -> np.ndarray:
    """Where the log-likelihood of the true parameters falls among those of posterior draws, made uniform (n,)."""
    s = p.simulation
    true = s.log_likelihood(truth, stats)
    below = sum((s.log_likelihood(s.read(post.draw(rng)), stats) < true).astype(float) for _ in range(draws))
    return (below + rng.random(len(true))) / (draws + 1)


def deviations(p: Pair, n: int, seed: int, update: Any = None, likelihood: bool = True) -> dict[str, float]:
    """Kolmogorov's distance to the uniform distribution of each parameter's place in its posterior."""
    rng, s = np.random.default_rng(seed), p.simulation
    truth, stats = s.simulate(p.prior(), n, rng)
    post = p.prior().update(stats) if update is None else update(p.prior(), stats)
    places = dict(s.pits(post, truth))
    if likelihood:
        places["log-likelihood"] = ranks(p, post, truth, stats, rng)
    return {name: distance(u) for name, u in places.items()}


def distance(u: np.ndarray) -> float:
    u, n = np.sort(u), len(u)
    return float(max((np.arange(1, n + 1) / n - u).max(), (u - np.arange(n) / n).max()))


@PROPERTIES.add(when=simulated)
def posteriors_are_calibrated(p: Pair):
    found = deviations(p, 100_000, 10)
    assert max(found.values()) <= dkw(100_000), found


@PROPERTIES.add(when=simulated, marks=(pytest.mark.campaign,))
def posteriors_are_calibrated_to_a_million(p: Pair):
    found = deviations(p, 1_000_000, 11)
    print(f"\n{p.name}: " + ", ".join(f"{k} {v:.5f}" for k, v in found.items()) + f" (bound {dkw(1_000_000):.5f})")
    assert max(found.values()) <= dkw(1_000_000), found


@PROPERTIES.add(when=simulated, marks=(pytest.mark.campaign,))
def wrong_posteriors_are_caught(p: Pair):
    """The check above has teeth: each seeded bug breaks it."""
    assert len(p.simulation.bugs) >= 3
    for name, wrong in p.simulation.bugs.items():
        found = deviations(p, 100_000, 10, wrong, likelihood=False)
        assert max(found.values()) > dkw(100_000), f"{name} was not caught: {found}"


@PROPERTIES.add(when=simulated)
def draws_follow_the_prior(p: Pair):
    """A prior's own draws fall uniformly in its own marginals."""
    rng, n, s = np.random.default_rng(12), 20_000, p.simulation
    _, stats = s.simulate(p.prior(), n, rng)
    many = p.prior().update(stats * 0.0)  # the prior itself, n times
    found = {name: distance(u) for name, u in s.pits(many, s.read(many.draw(rng))).items()}
    assert max(found.values()) <= dkw(n), found


@PROPERTIES.add(when=simulated)
def simulated_statistics_are_collected_ones(p: Pair):
    """The stack of statistics that the simulation builds is what `collect` gives, row by row: no second convention."""
    s = p.simulation
    _, stats = s.simulate(p.prior(), 3, np.random.default_rng(13))
    post = p.prior().update(stats)
    for k in range(3):
        assert gap(post_member(post, k), p.prior().update(stats.member(k))) <= 1e-14


def post_member(post: Any, k: int) -> Any:
    if hasattr(post, "belief"):
        return post.replace(belief=post.belief.member(k))
    if hasattr(post, "distribution"):
        return post.replace(distribution=post.distribution.member(k))
    arrays = {name: part[k] for name, part in post.field_values().items() if isinstance(part, np.ndarray)}
    return post.replace(**{name: np.array(part) for name, part in arrays.items()})
