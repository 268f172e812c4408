"""Sequential Monte Carlo sampler: tempering, sequences of targets, data added in pieces, and growing spaces.

Targets γ_0 = initial, γ_1, …, γ_K are unnormalized densities. At each step particles are weighted by γ_k / γ_{k−1};
when the effective sample size is small they are resampled and moved by MCMC steps that leave γ_k invariant. The product
of the mean weights estimates ∫γ_K: the evidence (Del Moral, Doucet, Jasra 2006; Chopin 2002). Targets may be on growing
spaces, γ_k(x₁ … x_k): each step then draws x_k from a proposal, and the weights are divided by its density (sequential
importance sampling with resampling; Doucet, de Freitas and Gordon 2001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, check_integer
from likely.core.errors import DataError, DomainError, LikelyError, ShapeError, sentence
from likely.distributions.stacks.one_row_per_member import draw_each, log_prob_each
from likely.numerics import spd
from likely.statespace.nonlinear.state_space import as_states
from likely.statespace.particle.particle_belief import MOVE, ParticleBelief, keyed, normalized, share
from likely.statespace.particle.proposals import is_poor
from likely.statespace.particle.resampling import ResamplingScheme, resampled, scheme

Log = Callable[[Array], Array]  # log-densities (N,) of states (N, d)
GOOD = 0.3  # target acceptance rate of the random walk: between the optimum for one dimension and for many
WHOSE = "smc_sampler"


@dataclass(frozen=True, eq=False, repr=False)
class SMCResult:
    """Result of an SMC sampler: particles of the last target, and diagnostics per step.

    Parameters
    ----------
    belief : ParticleBelief
        Particles of the last target: mean, covariance, quantile, expect, sample.
    log_evidences : ndarray (K,)
        Estimates of log ∫γ_k − log ∫γ_{k−1}.
    ess : ndarray (K,)
        Effective sample size before resampling.
    acceptance_rate : ndarray (K,)
        Acceptance rate of the MCMC steps; NaN without any.
    temperatures : ndarray (K,) or None
        Exponents of the likelihood, if it was tempered.
    paths : ndarray (N, K, d), optional
        Paths x₁ … x_K per particle, on growing spaces; their weights are `belief.weights`.

    See Also
    --------
    smc_sampler : The sampler.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> def likelihood(x):
    ...     return -0.5 * (x[:, 0] - 3.0) ** 2
    >>> found = lk.inference.smc_sampler(lk.Gaussian([0.0], 1.0), likelihood=likelihood, n_particles=500)
    >>> bool(found.temperatures[-1] == 1.0), len(found.ess) == len(found.log_evidences), found.mean.shape
    (True, True, (1,))
    """

    belief: ParticleBelief  # of the last target: mean, covariance, quantile, expect, sample
    log_evidences: Array  # (K,): estimates of log ∫γ_k − log ∫γ_{k−1}
    ess: Array  # (K,): effective sample size before resampling
    acceptance_rate: Array  # (K,): acceptance rate of the MCMC steps; NaN without any
    temperatures: Array | None  # (K,): exponents of the likelihood, if it was tempered
    paths: Array | None = None  # (N, K, d): x₁ … x_K per particle, on growing spaces; weights: belief.weights

    @property
    def log_evidence(self) -> float:
        """Estimate of log ∫γ_K, with a normalized initial distribution."""
        return float(self.log_evidences.sum())

    @property
    def mean(self) -> Array:
        """Mean E[x] under the last target (d,)."""
        return self.belief.mean

    @property
    def covariance(self) -> Array:
        """Covariance Cov[x] under the last target (d, d)."""
        return self.belief.covariance

    def __repr__(self) -> str:
        return f"SMCResult({len(self.ess)} steps, {len(self.belief)} particles, log_evidence={self.log_evidence:.4f})"


def smc_sampler(
    initial: Any, targets: Iterable[Log] | None = None, n_particles: int = 1000, *, likelihood: Log | None = None,
    pieces: Iterable[Log] | None = None, temperatures: ArrayLike | None = None, mcmc_steps: Any = None,
    resample: ResamplingScheme = "systematic", ess_threshold: float = 0.5, random_state: int = 0,
    proposal: Callable[[Array], Any] | None = None,
) -> SMCResult:  # fmt: skip
    """Sequential Monte Carlo sampler: weighted particles of the last of a sequence of targets, and its evidence.

    Exactly one of `targets`, `likelihood` and `pieces` is given. With a kernel that adapts to the particles the
    evidence is consistent, not unbiased.

    With a `proposal` the space grows: target k is a function of paths x (N, k, d) → log γ_k(x₁ … x_k) (N,), and
    `initial` is the density of x₁. The paths are `found.paths`, and `found.belief` is that of x_k alone.

    Parameters
    ----------
    initial : density
        Density of the first particles.
    targets : iterable of callables, optional
        Functions x (N, d) → log γ_k(x) (N,), in order; the last is the one of interest.
    n_particles : int, default 1000
        Number of particles N.
    likelihood : callable, optional
        Function x → log p(y | x). Targets are initial · likelihood^β, with β increasing to 1 as fast as
        `ess_threshold` allows, or by given `temperatures`.
    pieces : iterable of callables, optional
        Functions x → log p(y_k | x, earlier y): one more observation per step.
    temperatures : array-like (K,), optional
        Exponents β of the likelihood.
    mcmc_steps : int or callable, optional
        Number of random-walk Metropolis steps after resampling (None: 10, and 0 on growing spaces), with 2.38² / d
        times the covariance of the particles, scaled to an acceptance rate of about 30 %; or a function (x, log_target,
        rng) → x that leaves the target invariant (of paths, x is (N, k d), concatenated).
    resample : {"systematic", "stratified", "residual", "multinomial"}, default "systematic"
        Resampling scheme.
    ess_threshold : float, default 0.5
        Particles are resampled when the effective sample size falls below this share of N.
    random_state : int, default 0
        Seed.
    proposal : callable, optional
        Function of paths (N, k − 1, d) that returns the density of x_k: a stack of N, one per path, or one for all.

    Returns
    -------
    SMCResult
        Particles, log-evidence and diagnostics.

    References
    ----------
    Del Moral, Doucet and Jasra (2006).

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> seen = lambda x: -0.5 * (x[:, 0] - 1.0) ** 2 - 0.5 * np.log(2 * np.pi)
    >>> found = smc_sampler(lk.Gaussian([0.0], 1.0), likelihood=seen, n_particles=4000)
    >>> round(found.log_evidence, 1), found.mean.round(1).tolist()  # N(1 | 0, 2) and the posterior's mean
    (-1.5, [0.5])

    Self-avoiding walks on a square grid, 12 of two steps and 36 of three:

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
        raise DomainError(sentence(WHOSE, "temperatures need a likelihood", "none", "pass likelihood="))
    if proposal is not None and targets is None:
        raise DomainError(sentence(WHOSE, "a proposal needs targets=", "likelihood= or pieces="))
    if proposal is not None and not callable(proposal):
        raise DomainError(sentence(WHOSE, "proposal must be a function of paths", type(proposal).__name__))
    scheme(resample, WHOSE)
    mcmc_steps = (10 if proposal is None else 0) if mcmc_steps is None else mcmc_steps
    rule = _Rule(_checked_moves(mcmc_steps), resample, _checked_threshold(ess_threshold, likelihood, temperatures))
    cloud = _Cloud.first(
        initial, check_integer(n_particles, WHOSE, "n_particles", 1), check_integer(random_state, WHOSE, "random_state")
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
    resample: ResamplingScheme
    threshold: float


class _Cloud:
    """Particles of an SMC sampler: states, normalized log-weights, and the index of the current target."""

    def __init__(self, initial: Any, states: Array, seed: int) -> None:
        self.initial, self.states, self.seed, self.time, self.scale = initial, states, seed, 0, 1.0
        self.logs = np.full(len(states), -np.log(len(states)))

    @classmethod
    def first(cls, initial: Any, n: int, seed: int) -> _Cloud:
        if not (hasattr(initial, "log_prob") and hasattr(initial, "sample")):
            raise DomainError(sentence(WHOSE, "initial must be a density", type(initial).__name__))
        return cls(initial, as_states(initial.sample(n, keyed(seed, 0)), n, f"{WHOSE}: initial"), seed)

    def step(self, increments: Array, target: Log, rule: _Rule, always: bool = False) -> tuple[float, float, float]:
        """Reweight by log γ_k − log γ_{k−1} (N,), resample and move; returns evidence increment, ESS, acceptance."""
        self.time += 1
        self.logs, weights, log_ratio = normalized(self.logs + increments)
        if np.isneginf(log_ratio):
            expected = f"at least one particle must have positive density under target {self.time}"
            raise DataError(sentence(WHOSE, expected, "none", "use more particles, or more intermediate targets"))
        ess = 1.0 / float(np.add.reduce(weights * weights))
        if not (always or is_poor(ess, len(self.logs), rule.threshold)):
            return log_ratio, ess, np.nan
        return log_ratio, ess, self._renewed(weights, target, rule)

    def _renewed(self, weights: Array, target: Log, rule: _Rule) -> float:
        """Resample and move the particles; returns the acceptance rate."""
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
        """Random-walk Metropolis steps; the scale adapts to the acceptance rate."""
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
        """The particles as a belief; of paths, that of the last `last` entries."""
        states = self.states if last is None else np.ascontiguousarray(self.states[:, -last:])
        return ParticleBelief.trusted(
            states=states, log_weights=self.logs, time=self.time, seed=self.seed, seen=True, before=None,
            ancestors=None,
        )  # fmt: skip


# ---------------------------------------------------------------------- targets


def _given(cloud: _Cloud, targets: Iterable[Log]) -> Iterator[tuple[Array, Log]]:
    """Increments and targets of a given sequence."""
    before = _checked(cloud.initial.log_prob, "initial")
    for k, target in enumerate(targets, 1):
        log = _checked(target, f"target {k}")
        yield _difference(log(cloud.states), before(cloud.states)), log
        before = log


def _added(cloud: _Cloud, pieces: Iterable[Log]) -> Iterator[tuple[Array, Log]]:
    """Increments and targets with one more observation per step."""
    prior, taken = _checked(cloud.initial.log_prob, "initial"), []
    for k, piece in enumerate(pieces, 1):
        taken.append(_checked(piece, f"piece {k}"))
        yield taken[-1](cloud.states), _summed([prior, *taken])


def _grown(cloud: _Cloud, targets: Iterable[Log], proposal: Callable[[Array], Any]) -> Iterator[tuple[Array, Log]]:
    """Growing spaces: each target has one more variable, drawn from the proposal; states are concatenated paths."""
    n, d = cloud.states.shape
    before: Log = lambda x: np.zeros(len(x))  # noqa: E731  the empty path has density 1
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
    """Draws x_k (N, d) from the proposal, and their log-densities (N,)."""
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
    """Tempering: targets initial · likelihood^β for increasing β."""
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
    """The largest β ≤ 1 with an effective sample size of `threshold` times that of the possible particles."""
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
    """The function with a check: one number below infinity per state."""
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
            expected = f"{name} must give one log-density per state ({len(x)})"
            raise DataError(sentence(WHOSE, expected, out.shape))
        if not (out < np.inf).all():
            at = int(np.flatnonzero(~(out < np.inf))[0])
            expected = f"{name} must give numbers below infinity"
            raise DataError(sentence(WHOSE, expected, f"{out[at]} at {x[at].tolist()}", "use −inf for density 0"))
        return out

    return log


def _difference(new: Array, old: Array) -> Array:
    """log γ_k − log γ_{k−1}; particles of density 0 keep weight 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(old), -np.inf, new - old)


def _refuse_nowhere(logs: Array) -> None:
    if np.isneginf(logs).all():
        expected = "likelihood must be positive at some particle"
        raise DataError(sentence(WHOSE, expected, "0 at all", "use more particles"))


def _checked_moves(moves: Any) -> Any:
    return moves if callable(moves) else check_integer(moves, WHOSE, "mcmc_steps")


def _checked_threshold(threshold: Any, likelihood: Any, temperatures: Any) -> float:
    adaptive = likelihood is not None and temperatures is None
    wanted = share(threshold, WHOSE, "threshold")
    if adaptive and not 0 < wanted < 1:
        raise DomainError(sentence(WHOSE, "ess_threshold must lie between 0 and 1", threshold))
    return wanted


def _checked_temperatures(temperatures: Any) -> list[float]:
    betas = [float(b) for b in temperatures]
    if not betas or betas[-1] != 1.0 or betas[0] <= 0 or any(b <= a for a, b in pairwise(betas)):
        raise DomainError(sentence(WHOSE, "temperatures must increase from above 0 to 1", betas))
    return betas


def _report(
    cloud: _Cloud, steps: list[tuple[float, float, float]], betas: Array | None, grown: bool = False
) -> SMCResult:
    log_ratio, ess, acceptance_rate = np.array(steps).reshape(-1, 3).T.copy()
    if not grown:
        return SMCResult(cloud.belief(), log_ratio, ess, acceptance_rate, betas)
    n, d = len(cloud.states), cloud.states.shape[1] // max(len(steps), 1)
    return SMCResult(cloud.belief(d), log_ratio, ess, acceptance_rate, betas, cloud.states.reshape(n, -1, d))
