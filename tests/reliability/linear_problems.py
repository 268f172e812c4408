"""Random problems for learning linear-Gaussian models: a model, what of it is learned, sequences with gaps, inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likely import LinearGaussian, Ragged
from likely.core import Blocks
from likely.core.covariates import with_covariates
from likely.statespace import ConstrainedLinearGaussian

KINDS = ["plain", "gaps", "inputs", "structure", "singular", "diffuse", "changing", "far"]


@dataclass(frozen=True)
class Problem:
    """Everything that `iterate` takes."""

    start: ConstrainedLinearGaussian
    x: Ragged
    weight: np.ndarray | None
    prior: Any

    @property
    def data(self) -> Blocks:
        return Blocks.of(self.x, self.weight)


def spread(rng: Generator, d: int, rank: int | None = None) -> np.ndarray:
    """A covariance with units of its own, perhaps singular."""
    half = rng.normal(size=(d, d + 1 if rank is None else rank)) * np.exp(rng.normal(size=(d, 1)))
    return half @ half.T


def problem(kind: str, seed: int) -> Problem:
    """A model that is not the one that made the sequences."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    d, p, k = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 3)) if kind == "inputs" else 0
    lengths = rng.integers(1 if kind != "diffuse" else 3 * d, 25, size=int(rng.integers(1, 6)))
    made, start = (_model(rng, kind, d, p, k, int(lengths.max())) for _ in range(2))
    u = Ragged.from_list([rng.normal(size=(n, k)) for n in lengths]) if k else None
    x = made.sample(len(lengths), rng, lengths) if u is None else made.sample(len(lengths), rng, inputs=u)
    y = x.values + (1e6 * rng.normal(size=p) if kind == "far" else 0.0)
    if kind in ("gaps", "structure", "changing"):
        y = np.where(rng.random(y.shape) < 0.2, np.nan, y)
        y[rng.random(len(y)) < 0.1] = np.nan
    x = Ragged(y, x.offsets)
    learn, form = _asked(rng, kind, start)
    prior = "weak" if rng.random() < 0.4 else None
    weight = rng.integers(0, 4, len(x)).astype(float) + (np.arange(len(x)) == 0) if rng.random() < 0.4 else None
    return Problem(
        ConstrainedLinearGaussian.of(start, learn, form), x if u is None else with_covariates(x, u), weight, prior
    )


def _model(rng: Generator, kind: str, d: int, p: int, k: int, T: int) -> LinearGaussian:
    A = rng.normal(size=(d, d))
    A *= rng.uniform(0.2, 1.0) / np.abs(np.linalg.eigvals(A)).max()
    rank = max(d - 1, 1) if kind == "singular" else None
    Q, R = spread(rng, d, rank), spread(rng, p)
    C = rng.normal(size=(p, d))
    F, G = (rng.normal(size=(d, k)), rng.normal(size=(p, k)) if rng.random() < 0.7 else None) if k else (None, None)
    if k and G is not None and rng.random() < 0.4:
        F = None
    if kind == "diffuse":
        return LinearGaussian(transition=A, process_covariance=Q, observation=C, observation_covariance=R)
    if kind == "changing":
        sizes = np.where(rng.random(T) < 0.1, 0.0, np.exp(rng.normal(size=T)))
        Q, R = Q * sizes[:, None, None], R * np.exp(rng.normal(size=(T, 1, 1)))
    return LinearGaussian(
        transition=A,
        process_covariance=Q,
        observation=C,
        observation_covariance=R,
        initial_mean=rng.normal(size=d),
        initial_covariance=spread(rng, d),
        control=F,
        feedthrough=G,
    )


def _asked(rng: Generator, kind: str, m: LinearGaussian) -> tuple[Any, dict[str, Any]]:
    if kind == "changing":
        return ["process_covariance", "observation_covariance"], {
            "process_covariance": "scale",
            "observation_covariance": "scale",
        }
    if kind == "plain":
        return None, {}
    names = ["transition", "observation", "process_covariance", "observation_covariance"] + (
        ["initial"] if m.diffuse is None else []
    )
    names += [n for n in ("control", "feedthrough") if getattr(m, n) is not None]
    learn = [n for n in names if rng.random() < 0.7] or ["process_covariance"]
    form: dict[str, Any] = {}
    if kind in ("structure", "singular", "inputs"):
        for n in learn:
            form |= {n: _form(rng, n, m)} if n != "initial" and rng.random() < 0.7 else {}
    return learn, form


def _form(rng: Generator, name: str, m: LinearGaussian) -> Any:
    a = getattr(m, name)
    if name in ("process_covariance", "observation_covariance"):
        return [*("full", "diagonal", "spherical", "scale"), rng.integers(0, 3, len(a))][int(rng.integers(5))]
    return rng.random(a.shape) < 0.6 if rng.random() < 0.5 else rng.integers(0, 4, a.shape)
