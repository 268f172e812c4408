"""Check of variances near the boundary 0: score tests on the variance itself, since its logarithm has no gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd
from likely.statespace.linear.linear_e_step import mean_variance, pinv_logdet_rank
from likely.statespace.linear.linear_em import about_model
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.linear_structure import COVARIANCES, Structure, blocks_of, in_blocks, variance_labels
from likely.statespace.linear.log_likelihood_gradient import support_root

SMALL = 1e-5  # share of the noise that data determine, below which the gradient is evaluated at a larger variance
PROBE = 1e-3  # share at which it is evaluated
LEAST = 1e-12  # smallest share that can be distinguished from 0
ROUNDED = 1e-7  # share of a variance that may be rounding
EPS = 64 * float(np.finfo(np.float64).eps)  # relative rounding of the terms whose differences are moments
PROBES = 5

CollectPair = Callable[[Any], tuple[LinearStats, LinearStats]]


class VarianceDirection(NamedTuple):
    """A learned variance and its gradient: `part` (d, d) is the part of the covariance that is a multiple of it."""

    name: str
    part: Array
    gradient: float  # ∂ log p / ∂ log of the variance
    share: float  # 1 − (posterior variance of its noise) / variance: variance / share is the scale set by the data
    rounding: float  # share of the variance that is within rounding of the moments
    frames: float

    @classmethod
    def of(cls, name: str, part: Array, n: float, all_of: float, explained: float, rounded: float) -> VarianceDirection:
        """From n second moments in units of the variance."""
        return cls(name, part, 0.5 * (all_of - n), 1.0 - (all_of - explained) / n, rounded / n, n)

    @property
    def below_rounding(self) -> bool:
        """True if the variance is too small for its gradient to exceed rounding."""
        return self.share < SMALL or self.rounding > ROUNDED

    @property
    def probe_factor(self) -> float:
        """Multiple of the variance to add so that its gradient exceeds rounding, still far below the data's scale."""
        if self.rounding > ROUNDED:
            return 2.0 * self.rounding / ROUNDED
        return PROBE / max(self.share, LEAST)

    @property
    def gain(self) -> float:
        """Approximate gain of log p if it were raised to the data's scale: a score test, ½ gradient² / information."""
        return (self.gradient / max(self.share, LEAST)) ** 2 / self.frames if self.gradient > 0 else 0.0


class Scatters(NamedTuple):
    """Residual scatter Σ E[r rᵀ], its part Σ E[r] E[r]ᵀ, its rounding error, each (d, d), and the total weight."""

    total: Array
    explained: Array
    rounded: Array
    n: float
    whitened: Array  # (2, 2): of total and of explained, of a time-varying covariance, as in `LinearStats`

    def inside(self, at: Any) -> Scatters:
        """Scatters of a block."""
        return self._replace(total=self.total[at], explained=self.explained[at], rounded=self.rounded[at])

    def through(self, f: Callable[[Array], float]) -> tuple[float, float, float]:
        """f of the three scatters."""
        return f(self.total), f(self.explained), f(self.rounded)


def variance_directions(
    model: Any, moments: tuple[LinearStats, LinearStats], prior: Any, structure: Structure
) -> list[VarianceDirection]:
    """All learned variances, from the E-step's moments and those of the posterior means alone.

    Noise w of variance v has Σ E[w²] = Z, of which M = Σ E[w]² is explained: the data determine a share ρ = 1 − (Z − M)
    / (n v) of it, which is proportional to v once v is below the scale v / ρ set by the data. At a maximum the gradient
    is not positive: (Z / v − n) / 2 ≤ 0, or v is below the data's scale because EM could not move it.
    """
    total, explained = (about_model(model, s if prior is None else s + prior.stats) for s in moments)
    out: list[VarianceDirection] = []
    for name, of in _scatters(model, total, explained):
        if name in structure.learn and of.n > 0:
            out += _of_form(name, getattr(model, name), of, structure.form.get(name, "full"))
    return out


def _scatters(model: Any, total: LinearStats, explained: LinearStats) -> Iterator[tuple[str, Scatters]]:
    whitened, d = np.stack([total.whitened_scatter, explained.whitened_scatter], axis=1), model.states
    P, squares = (total.transition_gram - explained.transition_gram)[:d, :d], np.diagonal(explained.transition_gram)[:d]
    A = total.transition[:, :d]
    moved = np.maximum(np.diagonal(P), np.einsum("ij,jk,ik->i", A, P, A))
    observed_squares = np.einsum("ij,jk,ik->i", total.observation, explained.observation_gram, total.observation)
    first = model.initial_mean**2 * total.n_initial + np.diagonal(explained.initial_scatter)
    yield (
        "process_covariance",
        Scatters(
            total.process_scatter,
            explained.process_scatter,
            _rounded(moved, squares),
            float(total.n_transitions),
            whitened[0],
        ),
    )
    yield (
        "observation_covariance",
        Scatters(
            total.observation_scatter,
            explained.observation_scatter,
            _rounded(0.0, observed_squares),
            float(total.n_observed),
            whitened[1],
        ),
    )
    scatter = total.initial_scatter, explained.initial_scatter
    yield "initial_covariance", Scatters(*scatter, _rounded(0.0, first), float(total.n_initial), whitened[0])


def _rounded(differences: Any, squares: Array) -> Array:
    """Rounding error of differences of second moments, and of squares of differences."""
    return np.diag(EPS * np.abs(differences) + EPS**2 * np.abs(squares))


def _of_form(name: str, S: Array, of: Scatters, form: Any) -> Iterator[VarianceDirection]:
    if S.ndim == 3:
        yield from _of_changing(name, S, of)
    elif in_blocks(form):
        for kind, at in blocks_of(form):
            inside = np.ix_(at, at)
            for direction in [] if kind == "fixed" else _of_form(name, S[inside], of.inside(inside), kind):
                yield direction._replace(part=_placed(direction.part, inside, S.shape))
    elif isinstance(form, str) and form in ("full", "scale"):
        yield from (_of_directions if form == "full" else _of_size)(name, S, of)
    else:
        yield from _of_labels(name, S, of, variance_labels(len(S), form))


def _placed(part: Array, inside: Any, shape: tuple[int, ...]) -> Array:
    out = np.zeros(shape)
    out[inside] = part
    return out


def _of_changing(name: str, S: Array, of: Scatters) -> Iterator[VarianceDirection]:
    """The scale of a time-varying covariance."""
    total, explained = of.whitened[:, 0] / max(mean_variance(S), 1e-300)
    if of.whitened[0, 1] > 0:
        rounded = float(np.trace(of.rounded)) / max(mean_variance(S), 1e-300)
        yield VarianceDirection.of(name, S, float(of.whitened[0, 1]), total, explained, rounded)


def _of_size(name: str, S: Array, of: Scatters) -> Iterator[VarianceDirection]:
    inv, _, rank = pinv_logdet_rank(S)
    if rank:
        yield VarianceDirection.of(name, S, of.n * float(rank), *of.through(lambda a: float((inv * a).sum())))


def _of_labels(name: str, S: Array, of: Scatters, labels: Any) -> Iterator[VarianceDirection]:
    v = np.diagonal(S)
    for label in np.unique(labels[(labels > 0) & (v > 0)]):
        at = np.flatnonzero((labels == label) & (v > 0))
        part = np.zeros_like(S)
        part[at, at] = v[at]
        moments = of.through(lambda a, i=at: float((a[i, i] / v[i]).sum()))  # type: ignore[misc]
        yield VarianceDirection.of(name, part, of.n * len(at), *moments)


def _of_directions(name: str, S: Array, of: Scatters) -> Iterator[VarianceDirection]:
    """Eigendirections of the posterior covariance of the noise, for a free covariance."""
    K, s = support_root(S), spd.scales(S)
    back = np.linalg.pinv(K / s[:, None]) / s
    uncertain = back @ (of.total - of.explained) @ back.T
    _, vectors = np.linalg.eigh(spd.symmetric(uncertain))
    for u in vectors.T:
        part, row = K @ u, u @ back
        yield VarianceDirection.of(name, np.outer(part, part), of.n, *of.through(lambda a, r=row: float(r @ a @ r)))  # type: ignore[misc]


def with_raised(model: Any, directions: list[VarianceDirection], by: list[float]) -> Any:
    """The model with these variances increased by the given multiples of themselves."""
    parts = {name: getattr(model, name) for name in (*COVARIANCES, "initial_covariance")}
    for direction, times in zip(directions, by, strict=True):
        parts[direction.name] = parts[direction.name] + times * direction.part
    return model.replace(**{direction.name: parts[direction.name] for direction in directions})


class BoundaryCheck(NamedTuple):
    """Variances that should be raised, largest gain first; number of E-steps, and whether more were needed."""

    variance_directions: list[VarianceDirection]
    n_looks: int
    cut: bool


def check_boundary(
    model: Any, collect: CollectPair, prior: Any, structure: Structure, least: float, n_looks: int = PROBES
) -> BoundaryCheck:
    """Variances near 0 that should be raised for a gain of at least `least`, though their logarithms have no gradient.

    Those below rounding are evaluated at larger values, and only those: the raised model is not at a maximum, so the
    gradients of all others are not informative.
    """
    found, made, candidates = variance_directions(model, collect(model), prior, structure), 1, []
    while True:
        candidates += [direction for direction in found if not direction.below_rounding and direction.gain > least]
        below_rounding = [direction for direction in found if direction.below_rounding]
        if not below_rounding or made >= min(n_looks, PROBES):
            return BoundaryCheck(
                sorted(candidates, key=lambda direction: -direction.gain), made, bool(below_rounding) and made < PROBES
            )
        by = [direction.probe_factor for direction in below_rounding]
        model = with_raised(model, below_rounding, by)
        found = [
            direction
            for direction in variance_directions(model, collect(model), prior, structure)
            if _is_raised(direction, model, below_rounding, by)
        ]
        made += 1


def _is_raised(
    direction: VarianceDirection, model: Any, below_rounding: list[VarianceDirection], by: list[float]
) -> bool:
    """True if most of a variance of the raised model is due to the increase; directions may differ from before."""
    grown = [
        (1.0 + times) * other.part
        for other, times in zip(below_rounding, by, strict=True)
        if other.name == direction.name
    ]
    S = getattr(model, direction.name)
    if not grown or S.ndim == 3:
        return bool(grown)
    inv = pinv_logdet_rank(S)[0]
    part = inv @ direction.part
    return float(np.trace(part @ inv @ sum(grown))) > 0.5 * float(np.trace(part))
