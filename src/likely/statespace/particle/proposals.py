"""Proposal distributions of particle filters: bootstrap, guided, auxiliary, and user functions.

Importance weights are α = p(y | x) p(x | x′) / q(x | x′, y); a proposal q that depends on the observation lowers their
variance. Each function here returns states, and log-weights *without* the factor p(y | x).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, check_option, rows
from likely.core.errors import DataError, DomainError, sentence
from likely.core.protocols import AnyDensity
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.one_row_per_member import draw_each, log_prob_each, spread_factor
from likely.numerics import small_matrices
from likely.statespace.nonlinear.function_arguments import PROPOSAL, wrapped
from likely.statespace.nonlinear.state_space import as_states
from likely.statespace.particle.particle_belief import LOOK, ParticleBelief, keyed, normalized
from likely.statespace.particle.resampling import resampled

ProposalName = Literal["bootstrap", "guided", "auxiliary"]
ProposalLike: TypeAlias = "ProposalName | Callable[..., AnyDensity]"
STEP = 1e-3  # of a central difference, in standard deviations of the noise
DEFENSE = 0.3  # share of the first-stage weights of "auxiliary" that ignores the observation: none is ruled out
SHARP = 1e12  # largest precision of an observation, in units of the noise, that a proposal uses


class Placed(NamedTuple):
    """Proposed states (N, d), their log-weights (N,), and the ancestor of each."""

    states: Array
    logs: Array
    ancestors: Index | None


class Setting(NamedTuple):
    """Arguments of a proposal: the filter's model and settings, the predicted belief, y (1, p), the inputs."""

    model: Any
    belief: ParticleBelief
    y: Any
    u: Any
    resample: str
    threshold: float


def bootstrap(at: Setting) -> Placed:
    """Bootstrap proposal: the transition, q = p(x | x′), α = p(y | x)."""
    return Placed(at.belief.states, at.belief.log_weights, at.belief.ancestors)


def is_first(at: Setting) -> bool:
    """Whether the particles are the filter's own draws from the initial distribution, not a given belief."""
    b, n = at.belief, len(at.belief)
    if b.time != 0 or b.before is not None or not (b.log_weights == -np.log(n)).all():
        return False
    return np.array_equal(b.states, at.model.sample_initial(n, keyed(b.seed, 0)))


# --------------------------------------------------------------------- guided


def guided(at: Setting) -> Placed:
    """Guided proposal: an extended Kalman update of the transition distribution per particle.

    With x = m + L z, z ~ N(0, I), and y ≈ h(m) + G z + v, G by central differences along the columns of L:
    q(z) = N(Λ⁻¹GᵀR⁻¹(y − h), Λ⁻¹), Λ = I + GᵀR⁻¹G. In these coordinates a singular process noise needs no special care.
    Draws from a non-Gaussian initial distribution, and the particles of a given belief, are kept as they are.
    """
    b, n = at.belief, len(at.belief)
    if b.before is None and not is_first(at):
        return bootstrap(at)
    distribution = (
        at.model.initial_distribution()
        if b.before is None
        else at.model.transition_distribution(b.before, b.time, at.u)
    )
    if not isinstance(distribution, Gaussian):
        if b.before is None:
            return bootstrap(at)
        expected = 'proposal="guided" needs a Gaussian transition distribution'
        raise DomainError(
            sentence("ParticleFilter", expected, type(distribution).__name__, 'use "auxiliary" or "bootstrap"')
        )
    center, factor = np.broadcast_to(distribution.mean, (n, distribution.dim)), spread_factor(distribution)
    states, ratio = _steered(at, center, factor, keyed(b.seed, b.time, LOOK))
    return Placed(states, b.log_weights + ratio, b.ancestors)


def _steered(at: Setting, center: Array, factor: Array, rng: Generator) -> tuple[Array, Array]:
    """States drawn from the proposal (N, d), and log p(x | x′) − log q(x) (N,)."""
    n, r = len(center), factor.shape[1]
    whitened, innovation = _white_regression(at, center, factor)
    precision = np.einsum("pin,pjn->ijn", whitened, whitened)
    ease = SHARP / np.maximum(np.einsum("iin->n", precision), SHARP)
    root = small_matrices.roots(np.eye(r)[:, :, None] + ease * precision)
    assert root is not None  # the identity plus at most SHARP
    pulled = ease * np.einsum("pin,pn->in", whitened, innovation)
    noise = rng.standard_normal((r, n))
    z = small_matrices.solve_transposed(root, small_matrices.solve(root, pulled) + noise)
    ratio = 0.5 * (np.einsum("in,in->n", noise, noise) - np.einsum("in,in->n", z, z) - small_matrices.logdet(root))
    return center + small_matrices.apply(factor, z).T, ratio


def _white_regression(at: Setting, center: Array, factor: Array) -> tuple[Array, Array]:
    """Whitened slope R^−½G (p, r, N) and innovation R^−½(y − h) (p, N) for the observed entries of y."""
    distribution = at.model.observation_distribution(center, at.belief.time, at.u)
    y = rows(at.y, getattr(distribution, "dim", None), "ParticleFilter")
    seen = np.flatnonzero(~np.isnan(y[0]))
    root = small_matrices.roots(_spread(distribution, seen))
    if root is None:
        expected = 'proposal="guided" needs an observation distribution with noise in every direction'
        raise DomainError(sentence("ParticleFilter", expected, "a singular one", "give it a small variance"))
    slopes = [_slope(at, center, STEP * factor[:, j], seen) / (2 * STEP) for j in range(factor.shape[1])]
    away = y[0, seen][:, None] - _mean(distribution, "observation")[:, seen].T
    return small_matrices.solve(root, np.stack(slopes, axis=1)), small_matrices.solve(root, away)


def _slope(at: Setting, center: Array, step: Array, seen: Index) -> Array:
    """h(m + s) − h(m − s) (p, N) for steps s (d, N or 1)."""
    ends = [at.model.observation_distribution(center + sign * step.T, at.belief.time, at.u) for sign in (1.0, -1.0)]
    high, low = (_mean(distribution, "observation")[:, seen].T for distribution in ends)
    return high - low


def _mean(distribution: Any, name: str) -> Array:
    """The means (N, d) of a stack."""
    mean = getattr(distribution, "mean", None)
    if not isinstance(mean, np.ndarray):
        expected = f"this proposal needs an {name} distribution that has a mean"
        raise DomainError(sentence("ParticleFilter", expected, type(distribution).__name__, 'use proposal="bootstrap"'))
    return np.atleast_2d(mean)


def _spread(distribution: Any, seen: Index) -> Array:
    """Covariances (p, p, N or 1) of the observed entries."""
    if isinstance(distribution, Gaussian):
        full = np.atleast_3d(
            distribution.covariance_matrix[:1] if distribution.tied else distribution.covariance_matrix
        )
        return small_matrices.members_last(full.reshape(-1, distribution.dim, distribution.dim)[:, seen[:, None], seen])
    variance = getattr(distribution, "variance", None)
    if not isinstance(variance, np.ndarray):
        expected = 'proposal="guided" needs an observation distribution with mean and variance'
        raise DomainError(
            sentence("ParticleFilter", expected, type(distribution).__name__, 'use "auxiliary" or "bootstrap"')
        )
    return small_matrices.members_last(np.atleast_2d(variance)[:, seen, None] * np.eye(len(seen)))


# ------------------------------------------------------------------ auxiliary


def auxiliary(at: Setting) -> Placed:
    """Auxiliary particle filter (Pitt and Shephard): resample by W · g, g = p(y | mean of the transition), then move.

    The increment Σ W g · 1/N Σ p(y | x_j) / g_{a_j} is unbiased for every positive g.
    """
    b, n = at.belief, len(at.belief)
    if b.before is None:
        return bootstrap(at)
    center = np.ascontiguousarray(_mean(at.model.transition_distribution(b.before, b.time, at.u), "transition"))
    ahead = log_prob_each(at.model.observation_distribution(center, b.time, at.u), at.y)
    top = ahead.max()
    if not np.isfinite(top):  # the means carry no information
        return bootstrap(at)
    ahead = _defended(ahead - top, b.log_weights)  # a common factor cancels; that of an outlier would be large
    _, shares, total = normalized(b.log_weights + ahead)
    if not is_poor(1.0 / np.add.reduce(shares * shares), n, at.threshold):
        return bootstrap(at)
    rng = keyed(b.seed, b.time, LOOK)
    ancestors = resampled(at.resample, shares, n, rng)
    states = at.model.sample_transition(b.before[ancestors], b.time, at.u, rng)
    return Placed(states, total - np.log(n) - ahead[ancestors], ancestors)


def _defended(ahead: Array, logs: Array) -> Array:
    """First-stage weights mixed with their mean (defensive mixture): weights grow threefold at most."""
    mean = normalized(logs + ahead)[2]
    return np.logaddexp(np.log1p(-DEFENSE) + ahead, np.log(DEFENSE) + mean) if np.isfinite(mean) else ahead


def is_poor(ess: float, n: int, threshold: float) -> bool:
    """True if the effective sample size is below the threshold."""
    return threshold >= 1 or ess < threshold * n


# ------------------------------------------------------------------ user functions


def by_function(propose: Callable[..., Any]) -> Callable[[Setting], Placed]:
    """User-defined proposal: propose(x, y, t) returns a stack of N distributions for previous states x (N, d).

    For the first frame x is None and one distribution is needed. Functions of four arguments also get the inputs u of
    the frame. If it returns None, the model's own distribution is the proposal.
    """
    ask = wrapped(propose, PROPOSAL, "ParticleFilter.proposal")

    def place(at: Setting) -> Placed:
        b, n = at.belief, len(at.belief)
        if b.before is None and not is_first(at):
            return bootstrap(at)
        frame = at.y[0] if isinstance(at.y, np.ndarray) else at.y
        distribution = ask(b.before, frame, b.time, at.u)
        if distribution is None:
            return bootstrap(at)
        rng, whose = keyed(b.seed, b.time, LOOK), f"the proposal at frame {b.time}"
        d = b.states.shape[1]
        if b.before is None:
            states = as_states(distribution.sample(n, rng), n, whose, d)
            ratio = at.model.initial_distribution().log_prob(states) - distribution.log_prob(states)
        else:
            states = as_states(draw_each(distribution, rng), n, whose, d)
            ratio = log_prob_each(at.model.transition_distribution(b.before, b.time, at.u), states) - log_prob_each(
                distribution, states
            )
        if np.isnan(ratio).any() or np.isposinf(ratio).any():
            expected = "the proposal's density must be positive and finite where it draws"
            raise DataError(sentence("ParticleFilter", expected, "0, infinity or NaN", "check proposal"))
        return Placed(states, b.log_weights + ratio, b.ancestors)

    return place


PROPOSALS: dict[str, Callable[[Setting], Placed]] = {
    "bootstrap": bootstrap, "guided": guided, "auxiliary": auxiliary,
}  # fmt: skip


def proposal_of(proposal: ProposalLike) -> Callable[[Setting], Placed]:
    """A proposal by name, or from a function."""
    if callable(proposal):
        return by_function(proposal)
    other = "a function (x, y, t, u) that returns distributions"
    check_option(proposal, ProposalName, "ParticleFilter", "proposal", other)
    return PROPOSALS[proposal]
