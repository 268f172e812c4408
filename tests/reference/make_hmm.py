"""Writes hmm.json: ten passes of Baum–Welch by hmmlearn, without priors, from a given start.

Run it where hmmlearn is installed: python tests/reference/make_hmm.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

PASSES = 10
LENGTHS = [30, 1, 17, 52]


def start(K: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K)


def gaussian(kind: str) -> dict:
    from hmmlearn.hmm import GaussianHMM

    rng = np.random.default_rng(1)
    K, d = 3, 2
    x = np.cumsum(rng.standard_normal((sum(LENGTHS), d)), axis=0).round(3)
    starts, moves = start(K, rng)
    means = rng.standard_normal((K, d)).round(3) * 3
    covars = {"diag": np.full((K, d), 4.0), "full": np.tile(4.0 * np.eye(d), (K, 1, 1))}[kind]
    h = GaussianHMM(
        K, kind, init_params="", n_iter=PASSES, tol=-np.inf, covars_prior=0, covars_weight=1, min_covar=0,
        implementation="log",
    )  # fmt: skip
    h.startprob_, h.transmat_, h.means_, h.covars_ = starts, moves, means, covars
    h.fit(x, LENGTHS)
    return {
        "x": x.tolist(), "starts": starts.tolist(), "moves": moves.tolist(), "means": means.tolist(),
        "learned": {
            "starts": h.startprob_.tolist(), "moves": h.transmat_.tolist(), "means": h.means_.tolist(),
            "covariance": h.covars_.tolist(), "log_likelihood": h.score(x, LENGTHS),
        },
    }  # fmt: skip


def categorical() -> dict:
    from hmmlearn.hmm import CategoricalHMM

    rng = np.random.default_rng(2)
    K, L = 3, 4
    x = np.repeat(rng.integers(0, L, sum(LENGTHS) // 2), 2)
    starts, moves = start(K, rng)
    probs = rng.dirichlet(np.ones(L), K)
    h = CategoricalHMM(K, init_params="", n_iter=PASSES, tol=-np.inf, implementation="log")
    h.startprob_, h.transmat_, h.emissionprob_ = starts, moves, probs
    h.fit(x[:, None], LENGTHS)
    return {
        "x": x.tolist(), "starts": starts.tolist(), "moves": moves.tolist(), "probs": probs.tolist(),
        "learned": {
            "starts": h.startprob_.tolist(), "moves": h.transmat_.tolist(), "probs": h.emissionprob_.tolist(),
            "log_likelihood": h.score(x[:, None], LENGTHS),
        },
    }  # fmt: skip


if __name__ == "__main__":
    import hmmlearn

    made = {
        "version": f"hmmlearn {hmmlearn.__version__}", "passes": PASSES, "lengths": LENGTHS,
        "diag": gaussian("diag"), "full": gaussian("full"), "categorical": categorical(),
    }  # fmt: skip
    Path(__file__).with_name("hmm.json").write_text(json.dumps(made) + "\n")
