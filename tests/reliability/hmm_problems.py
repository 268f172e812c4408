"""Random problems for Baum and Welch: a chain, what its states emit, sequences, and what is known of their states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp
from scipy.stats import dirichlet

from likely import HMM, Mixture, Ragged
from likely.core import Blocks
from likely.distributions import Tied
from likely.distributions.stacks.tied import untied
from likely.priors import HMMPrior
from tests.hmm.all_paths import random_chain
from tests.reliability import em_problems, plainly

EMISSIONS = ["full", "diagonal", "spherical", "tied", "shared covariance", "shared all", "factors", "categorical",
             "Poisson", "multinomial", "Bernoulli", "product", "mixtures", "tied mixtures"]  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """Everything that `iterate` takes."""

    start: HMM
    x: Ragged
    weight: np.ndarray | None
    given: Ragged | None
    prior: Any
    hard: bool

    @property
    def data(self) -> Blocks:
        return Blocks.of(self.x, self.weight, log_mask=self.given)

    def scores(self, model: HMM) -> np.ndarray:
        """Of all frames under all states, by SciPy; where `hard`, a mixture counts by its best part."""
        distribution = model.emission
        if self.hard and isinstance(untied(distribution), Mixture):
            inner = untied(distribution)
            joint = plainly.log_probs(inner.components, self.x.values) + plainly.log(inner.weights.ravel())
            logs = joint.reshape(len(joint), *inner.weights.shape).max(axis=-1)
            logs = logs[:, distribution.index] if isinstance(distribution, Tied) else logs
        else:
            logs = plainly.log_probs(distribution, self.x.values)
        return logs if self.given is None else logs + self.given.values

    def log_likelihoods(self, model: HMM) -> np.ndarray:
        """log p(x, what is known of the states) of each sequence, or of the best path where `hard`."""
        chain, logs = model.chains[0], self.scores(model)
        way = (chain.best if self.hard else chain.summed).logs
        join = np.max if self.hard else logsumexp
        out = np.empty(len(self.x))
        for i, (a, b) in enumerate(zip(self.x.offsets[:-1], self.x.offsets[1:], strict=True)):
            if a == b:
                out[i] = way.empty
                continue
            now = way.initial + logs[a]
            for t in range(a + 1, b):
                now = join(now[:, None] + way.transition, axis=0) + logs[t]
            out[i] = join(now + way.final)
        return out

    def objective(self, model: HMM, prior: Any) -> float:
        each = self.log_likelihoods(model)
        w = np.ones(len(each)) if self.weight is None else self.weight
        return float(w @ np.where(w > 0, each, 0.0)) + log_prior(model, prior)


def log_prior(model: HMM, prior: Any) -> float:
    """log p of arcs and emissions, by SciPy."""
    if prior is None:
        return 0.0
    value = plainly.log_prior(model.emission, prior.emission)
    if prior.initial is None:
        return value
    rows = [(prior.initial, model.initial)]
    for k in range(len(model.initial)):
        alpha, p = prior.transition[k], model.transition[k]
        if model.final is not None:
            alpha, p = np.append(alpha, prior.final[k]), np.append(p, model.final[k])
        rows.append((alpha, p))
    for alpha, p in rows:
        may = alpha > 0
        assert (p[~may] == 0).all()
        if may.sum() > 1:
            value += float(dirichlet.logpdf(p[may] / p[may].sum(), alpha[may]))
    return value


def emissions(family: str, rng: Generator, n: int, K: int, gaps: float) -> tuple[Any, Any]:
    """A stack of K distributions, and n frames."""
    if family != "tied mixtures":
        return em_problems.FAMILIES[family](rng, n, K, gaps)
    M = int(rng.integers(1, 4))
    parts, x = em_problems.SIMPLE[str(rng.choice(["full", "diagonal", "categorical", "Poisson"]))](rng, n, M, gaps)
    return Mixture(rng.dirichlet(np.ones(M), K), Tied(parts, np.tile(np.arange(M), K))), x


def problem(family: str, seed: int) -> Problem:
    """A problem of a family; the same seed gives the same one."""
    rng = np.random.default_rng([11, len(family), sum(map(ord, family)), seed])
    lengths = rng.integers(0, 9, int(rng.integers(1, 6)))
    lengths[0] = max(lengths[0], 1)
    T, K = int(lengths.sum()), int(rng.integers(1, 5))
    distribution, frames = emissions(family, rng, T, K, float(rng.choice([0.0, 0.0, 0.2])))
    Q = int(rng.integers(0, 3)) if rng.random() < 0.4 else 0
    starts, moves, ends = random_chain(rng, K, Q, bool(rng.random() < 0.5), float(rng.choice([0.0, 0.0, 0.3])))
    model = HMM(starts, moves, distribution, final=ends)
    weight = em_problems.weights(rng, len(lengths))
    x = Ragged(frames, np.concatenate([[0], np.cumsum(lengths)]))
    weight = np.ones(len(lengths)) if weight is not None and not weight[lengths > 0].sum() > 0 else weight
    given = None
    if rng.random() < 0.3:
        may = rng.random((T, K)) < 0.7
        given = Ragged(np.where(may | ~may.any(axis=1, keepdims=True), 0.0, -np.inf), x.offsets)
    prior = (None, "weak", symmetric(float(rng.uniform(1.0, 3.0))))[int(rng.integers(0, 3))]
    return Problem(model, x, weight, given, prior, bool(rng.random() < 0.25))


def symmetric(alpha: float) -> Any:
    """A rule: the same Dirichlet distribution for all arcs, and a weak prior of the emissions."""
    return lambda model, stats: HMMPrior.symmetric(
        model, alpha, untied(model.emission).weak_prior(model.for_prior(stats))
    )
