"""Sequential Monte Carlo: from a distribution that is easy to draw from, by small steps, to one that is not.

Targets γ_0 = initial, γ_1, …, γ_K are densities up to a constant. At each step particles are weighted by
γ_k / γ_{k−1}; when few of them count they are drawn anew and moved by Markov steps that leave γ_k alone. The mean
weights multiply to an estimate of ∫γ_K: the evidence   (Del Moral, Doucet, Jasra 2006; Chopin 2002). Targets may live
on spaces that grow, γ_k(x₁ … x_k): each step then draws x_k from a proposal, and the weights divide by its density
(sequential importance sampling with resampling; Doucet, de Freitas and Gordon 2001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, LikelyError, ShapeError, sentence
from likely.distributions.stacks.one_row_per_member import draw_each, log_prob_each
from likely.numerics import spd
from likely.statespace.nonlinear.state_space import as_states
from likely.statespace.particle.particle_belief import MOVE, ParticleBelief, keyed, normalized, share, whole_number
from likely.statespace.particle.proposals import is_poor
from likely.statespace.particle.resampling import resampled, scheme

Log = Callable[[Array], Array]  # log-densities (N,) of states (N, d)
GOOD = 0.3  # share of accepted steps that a random walk aims at: between the best for one dimension and for many
WHOSE = "smc_sampler"


@dataclass(frozen=True, eq=False, repr=False)
class SMCResult:
    """What K steps came to: particles of the last target, and what each step did.

    >>> import likely as lk, numpy as np
    >>> def likelihood(x):
    ...     return -0.5 * (x[:, 0] - 3.0) ** 2
    >>> found = lk.smc_sampler(lk.Gaussian([0.0], 1.0), likelihood=likelihood, n_particles=500)
    >>> bool(found.temperatures[-1] == 1.0), len(found.ess) == len(found.log_evidences), found.mean.shape
    (True, True, (1,))
    """

    belief: ParticleBelief  # of the last target: mean, covariance, quantile, expect, sample
    log_evidences: Array  # (K,): estimates of log ∫γ_k − log ∫γ_{k−1}
    ess: Array  # (K,): effective number of particles, before they were drawn anew
    accepted: Array  # (K,): share of Markov steps that were accepted; NaN where none were made
    temperatures: Array | None  # (K,): exponents of the likelihood, where that was tempered
    paths: Array | None = None  # (N, K, d): x₁ … x_K of each particle, where the space grew; weights: belief.weights

    @property
    def log_evidence(self) -> float:
        """The estimate of log ∫γ_K, the initial distribution integrating to one."""
        return float(self.log_evidences.sum())

    @property
    def mean(self) -> Array:
        """E[x] under the last target (d,)."""
        return self.belief.mean

    @property
    def covariance(self) -> Array:
        """Cov[x] under the last target (d, d)."""
        return self.belief.covariance

    def __repr__(self) -> str:
        return f"SMCResult({len(self.ess)} steps, {len(self.belief)} particles, log_evidence={self.log_evidence:.4f})"


def smc_sampler(
    initial: Any, targets: Iterable[Log] | None = None, n_particles: int = 1000, *, likelihood: Log | None = None,
    pieces: Iterable[Log] | None = None, temperatures: Any = None, mcmc_steps: Any = None, resample: str = "systematic",
    ess_threshold: float = 0.5, random_state: int = 0, proposal: Callable[[Array], Any] | None = None,
) -> SMCResult:  # fmt: skip
    """Particles of the last of some targets, and its evidence. What they are is said in one of three ways:

    - **targets**: functions x (N, d) → log γ_k(x) (N,), one after another; the last is wanted.
    - **likelihood**: a function x → log p(y | x). Targets are initial · likelihood^β, with β rising to 1 as fast as
      `ess_threshold` allows, or by given **temperatures**.
    - **pieces**: functions x → log p(y_k | x, y before): one more observation a step.

    With a **proposal** the space grows: target k is a function of paths x (N, k, d) → log γ_k(x₁ … x_k) (N,). `initial`
    is the density from which x₁ is drawn, and `proposal` a function of paths (N, k − 1, d) that gives the density of
    x_k: a stack of N, one per path, or one for all. The paths are `found.paths`, and `found.belief` is of x_k alone.

    `initial` is a density. `mcmc_steps` is the number of random-walk Metropolis steps after particles were drawn anew
    (None: 10, and 0 where the space grows), with 2.38² / d times their own covariance, scaled to accept about 30 %; or
    a function (x, log_target, rng) → x that leaves the target alone (of paths, x is (N, k d), end to end).
    With a kernel that learns from the particles the evidence is consistent, not unbiased.

    >>> import likely as lk, numpy as np
    >>> seen = lambda x: -0.5 * (x[:, 0] - 1.0) ** 2 - 0.5 * np.log(2 * np.pi)
    >>> found = smc_sampler(lk.Gaussian([0.0], 1.0), likelihood=seen, n_particles=4000)
    >>> round(found.log_evidence, 1), found.mean.round(1).tolist()  # N(1 | 0, 2) and the posterior's mean
    (-1.5, [0.5])

    Walks on a square grid that never return to a place, 12 of two steps and 36 of three:

    >>> way = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    >>> def new_places(x):  # (N, k, 1) directions; −inf where a place comes twice
    ...     places = np.cumsum(way[x[:, :, 0].astype(int)], axis=1) @ [1, 1000]
    ...     return np.log([float(len({0, *one}) == len(one) + 1) for one in places.tolist()])
    >>> step = lk.Categorical(np.full(4, 0.25), levels=[0, 1, 2, 3])
    >>> with np.errstate(divide="ignore"):
    ...     found = smc_sampler(step, [new_places] * 3, n_particles=4000, proposal=lambda x: step)
    >>> abs(np.exp(found.log_evidences.cumsum()) - [4, 12, 36]).max() < 1
    np.True_
    """
    if sum(given is not None for given in (targets, likelihood, pieces)) != 1:
        raise DomainError(sentence(WHOSE, "one of targets, likelihood, pieces must be given", "none or several"))
    if temperatures is not None and likelihood is None:
        raise DomainError(sentence(WHOSE, "temperatures temper a likelihood", "none", "pass likelihood="))
    if proposal is not None and targets is None:
        raise DomainError(sentence(WHOSE, "proposal= goes with targets=", "likelihood= or pieces="))
    if proposal is not None and not callable(proposal):
        raise DomainError(sentence(WHOSE, "proposal must be a function of paths", type(proposal).__name__))
    scheme(resample, WHOSE)
    mcmc_steps = (10 if proposal is None else 0) if mcmc_steps is None else mcmc_steps
    rule = _Rule(_checked_moves(mcmc_steps), resample, _checked_threshold(ess_threshold, likelihood, temperatures))
    cloud = _Cloud.first(
        initial, whole_number(n_particles, WHOSE, "n_particles", 1), whole_number(random_state, WHOSE, "random_state")
    )
    if likelihood is not None:
        return _tempered(cloud, likelihood, rule, temperatures)
    if proposal is not None:
        steps = _grown(cloud, targets or (), proposal)
    else:
        steps = _added(cloud, pieces) if pieces is not None else _given(cloud, targets or ())
    done = [cloud.step(increments, log, rule) for increments, log in steps]
    return _report(cloud, done, None, grown=proposal is not None)


@dataclass(frozen=True)
class _Rule:
    mcmc_steps: Any
    resample: str
    threshold: float


class _Cloud:
    """Particles on their way: states, log-weights that add up to one, and the step that they have reached."""

    def __init__(self, initial: Any, states: Array, seed: int) -> None:
        self.initial, self.states, self.seed, self.time, self.scale = initial, states, seed, 0, 1.0
        self.logs = np.full(len(states), -np.log(len(states)))

    @classmethod
    def first(cls, initial: Any, n: int, seed: int) -> _Cloud:
        if not (hasattr(initial, "log_prob") and hasattr(initial, "sample")):
            raise DomainError(sentence(WHOSE, "initial must be a density", type(initial).__name__))
        return cls(initial, as_states(initial.sample(n, keyed(seed, 0)), n, f"{WHOSE}: initial"), seed)

    def step(self, increments: Array, target: Log, rule: _Rule, always: bool = False) -> tuple[float, float, float]:
        """Take in log γ_k − log γ_{k−1} (N,); move if few particles count. Increment of evidence, ESS, acceptance."""
        self.time += 1
        self.logs, weights, news = normalized(self.logs + increments)
        if np.isneginf(news):
            expected = f"some particle must be possible under target {self.time}"
            raise DataError(sentence(WHOSE, expected, "none", "take more particles, or more targets between"))
        ess = 1.0 / float(np.add.reduce(weights * weights))
        if not (always or is_poor(ess, len(self.logs), rule.threshold)):
            return news, ess, np.nan
        return news, ess, self._renewed(weights, target, rule)

    def _renewed(self, weights: Array, target: Log, rule: _Rule) -> float:
        """Draw particles anew and move them; the share of steps that were accepted."""
        rng, n = keyed(self.seed, self.time, MOVE), len(weights)
        about = ParticleBelief.trusted(states=self.states, log_weights=self.logs)
        self.states = self.states[resampled(rule.resample, weights, n, rng)]
        self.logs = np.full(n, -np.log(n))
        if callable(rule.mcmc_steps):
            self.states = as_states(
                rule.mcmc_steps(self.states, target, rng), n, f"{WHOSE}: mcmc_steps", self.states.shape[1]
            )
            return np.nan
        return self._walk(rule.mcmc_steps, about, target, rng)

    def _walk(self, moves: int, about: ParticleBelief, target: Log, rng: Generator) -> float:
        """Random-walk Metropolis; the scale of the next step follows how many were accepted."""
        (n, d), taken = self.states.shape, 0
        if not moves:
            return np.nan
        root = spd.cholesky(spd.repaired(about.covariance)[0])
        assert root is not None
        logs = target(self.states)
        for k in range(moves):
            x = self.states + self.scale * 2.38 / np.sqrt(d) * (rng.standard_normal((n, d)) @ root.T)
            ahead = target(x)
            yes = np.log(rng.random(n)) < ahead - logs
            self.states, logs = np.where(yes[:, None], x, self.states), np.where(yes, ahead, logs)
            taken += int(yes.sum())
            self.scale *= float(np.exp((yes.mean() - GOOD) / np.sqrt(k + 1)))
        return taken / (n * moves)

    def belief(self, last: int | None = None) -> ParticleBelief:
        """What the particles say now; of paths, about the last place, of `last` entries."""
        states = self.states if last is None else np.ascontiguousarray(self.states[:, -last:])
        return ParticleBelief.trusted(
            states=states, log_weights=self.logs, time=self.time, seed=self.seed, seen=True, before=None,
            ancestors=None,
        )  # fmt: skip


# ---------------------------------------------------------------------- targets


def _given(cloud: _Cloud, targets: Iterable[Log]) -> Iterator[tuple[Array, Log]]:
    """Targets as they come."""
    before = _checked(cloud.initial.log_prob, "initial")
    for k, target in enumerate(targets, 1):
        log = _checked(target, f"target {k}")
        yield _difference(log(cloud.states), before(cloud.states)), log
        before = log


def _added(cloud: _Cloud, pieces: Iterable[Log]) -> Iterator[tuple[Array, Log]]:
    """One more observation a step."""
    prior, taken = _checked(cloud.initial.log_prob, "initial"), []
    for k, piece in enumerate(pieces, 1):
        taken.append(_checked(piece, f"piece {k}"))
        yield taken[-1](cloud.states), _summed([prior, *taken])


def _grown(cloud: _Cloud, targets: Iterable[Log], proposal: Callable[[Array], Any]) -> Iterator[tuple[Array, Log]]:
    """Each target has one more variable, which is drawn from the proposal; states are whole paths, end to end."""
    n, d = cloud.states.shape
    before: Log = lambda x: np.zeros(len(x))  # noqa: E731  nothing is known of no variable
    drawn, old = _checked(cloud.initial.log_prob, "initial")(cloud.states), np.zeros(n)
    for k, target in enumerate(targets, 1):
        if k > 1:
            paths = cloud.states.reshape(n, k - 1, d)
            old = before(cloud.states)
            new, drawn = _proposed(proposal(paths), n, d, k, keyed(cloud.seed, k))
            cloud.states = np.concatenate([paths, new[:, None]], axis=1).reshape(n, k * d)
        before = _of_paths(target, k, d)
        yield _difference(before(cloud.states), old) - drawn, before


def _of_paths(target: Any, k: int, d: int) -> Log:
    """A target of paths (N, k, d) as a function of states (N, k d)."""
    return _checked(lambda x: target(x.reshape(len(x), k, d)) if callable(target) else target, f"target {k}")


def _proposed(distribution: Any, n: int, d: int, k: int, rng: Generator) -> tuple[Array, Array]:
    """x_k (N, d) drawn from the proposal's density, and its log-density (N,)."""
    whose = f"{WHOSE}: proposal at step {k}"
    if not (hasattr(distribution, "log_prob") and hasattr(distribution, "sample")):
        raise DomainError(sentence(whose, "a density of x must be given", type(distribution).__name__))
    members = getattr(distribution, "members", None)
    if members not in (None, n):
        raise ShapeError(sentence(whose, f"one density per path ({n}) is needed, or one for all", members))
    draw = distribution.sample(n, rng) if members is None else draw_each(distribution, rng)
    new = as_states(draw, n, whose, d)
    log = distribution.log_prob(draw) if members is None else log_prob_each(distribution, draw)
    return new, np.asarray(log, dtype=np.float64)


def _summed(parts: list[Log]) -> Log:
    return lambda x: np.sum([part(x) for part in parts], axis=0)


def _tempered(cloud: _Cloud, likelihood: Log, rule: _Rule, temperatures: Any) -> SMCResult:
    """initial · likelihood^β for rising β."""
    log, prior = _checked(likelihood, "likelihood"), _checked(cloud.initial.log_prob, "initial")
    given = None if temperatures is None else _checked_temperatures(temperatures)
    betas: list[float] = []
    steps, beta = [], 0.0
    while beta < 1.0:
        logs, before = log(cloud.states), beta
        _refuse_nowhere(logs)
        beta = given[len(betas)] if given is not None else _next_temperature(cloud.logs, logs, beta, rule.threshold)
        increments = np.where(np.isneginf(logs), -np.inf, (beta - before) * logs)
        target = _warm(prior, log, beta)
        steps.append(cloud.step(increments, target, rule, always=given is None))
        betas.append(beta)
    return _report(cloud, steps, np.array(betas))


def _warm(prior: Log, likelihood: Log, beta: float) -> Log:
    def target(x: Array) -> Array:
        first = prior(x)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(first), -np.inf, first + beta * likelihood(x))

    return target


def _next_temperature(weights: Array, logs: Array, beta: float, threshold: float) -> float:
    """The largest β up to 1 at which a share `threshold` of the particles that can count still does."""
    possible = np.isfinite(logs)
    weights, logs = weights[possible], logs[possible]
    wanted = threshold * len(logs)

    def ess(more: float) -> float:
        w = weights + more * logs
        w = np.exp(w - w.max())
        return float(w.sum() ** 2 / (w * w).sum())

    if ess(1.0 - beta) >= wanted:
        return 1.0
    low, high = 0.0, 1.0 - beta
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if ess(middle) >= wanted else (low, middle)
    return min(beta + max(high, 1e-12), 1.0)


# ----------------------------------------------------------------------- checks


def _checked(f: Any, name: str) -> Log:
    """The same function, which must give one number below infinity for each of the states."""
    if not callable(f):
        raise DomainError(sentence(WHOSE, f"{name} must be a function of states (N, d)", type(f).__name__))

    def log(x: Array) -> Array:
        try:
            out = np.asarray(f(x), dtype=np.float64)
        except LikelyError:
            raise
        except (TypeError, ValueError) as error:
            expected, got = f"{name} must give log-densities of states {x.shape}", f"a {type(error).__name__} from it"
            raise DataError(sentence(WHOSE, expected, got, "try it on an array of that shape")) from error
        out = out.reshape(1) if out.ndim == 0 and len(x) == 1 else out
        if out.shape != (len(x),):
            expected = f"{name} must give one log-density for each of the {len(x)} states"
            raise DataError(sentence(WHOSE, expected, out.shape))
        if not (out < np.inf).all():
            at = int(np.flatnonzero(~(out < np.inf))[0])
            expected = f"{name} must give numbers below infinity"
            raise DataError(sentence(WHOSE, expected, f"{out[at]} at {x[at].tolist()}", "−inf is for what cannot be"))
        return out

    return log


def _difference(new: Array, old: Array) -> Array:
    """log γ_k − log γ_{k−1}; what was impossible has no weight left to change."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(old), -np.inf, new - old)


def _refuse_nowhere(logs: Array) -> None:
    if np.isneginf(logs).all():
        raise DataError(sentence(WHOSE, "likelihood must be positive at some particle", "0 at all", "take more"))


def _checked_moves(moves: Any) -> Any:
    return moves if callable(moves) else whole_number(moves, WHOSE, "mcmc_steps")


def _checked_threshold(threshold: Any, likelihood: Any, temperatures: Any) -> float:
    adaptive = likelihood is not None and temperatures is None
    wanted = share(threshold, WHOSE, "threshold")
    if adaptive and not 0 < wanted < 1:
        raise DomainError(sentence(WHOSE, "threshold must lie between 0 and 1", threshold))
    return wanted


def _checked_temperatures(temperatures: Any) -> list[float]:
    betas = [float(b) for b in temperatures]
    if not betas or betas[-1] != 1.0 or betas[0] <= 0 or any(b <= a for a, b in pairwise(betas)):
        raise DomainError(sentence(WHOSE, "temperatures must rise from above 0 to 1", betas))
    return betas


def _report(
    cloud: _Cloud, steps: list[tuple[float, float, float]], betas: Array | None, grown: bool = False
) -> SMCResult:
    news, ess, accepted = np.array(steps).reshape(-1, 3).T.copy()
    if not grown:
        return SMCResult(cloud.belief(), news, ess, accepted, betas)
    n, d = len(cloud.states), cloud.states.shape[1] // max(len(steps), 1)
    return SMCResult(cloud.belief(d), news, ess, accepted, betas, cloud.states.reshape(n, -1, d))
