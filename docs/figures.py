"""Draws every picture of the documentation into docs/_static; `./run docs` calls it before it builds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import likely as lk
from likely.estimators.examples import wine
from likely.plots.theme import PALETTE, themed
from likely.plots.tour import tour_picture

STATIC = Path(__file__).parent / "_static"


def ney_3_8() -> None:
    """Ney's figure 3.8: belief about a mean moves from the prior to the data, and sharpens."""
    prior = lk.NormalMean(lk.Gaussian([-2.0], 1.0), 4.0)
    x = np.linspace(-5, 2, 500)[:, None]
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
        for n, color in zip((0, 1, 4, 12, 100), ("#9fb3bf", *PALETTE), strict=False):
            stats = lk.Gaussian([0.0], 1.0).collect(np.zeros((n, 1)))
            belief = prior.update(stats).belief
            ax.plot(x, np.exp(belief.log_prob(x)), color=color, label=f"{n} row{'s' * (n > 1)}" if n else "prior")
        ax.set(xlabel="mean", ylabel="density", ylim=(0, None), title="What we believe of the mean (Ney 3.8)")
        ax.legend()
        figure.savefig(STATIC / "ney-3-8.png", dpi=130)


if __name__ == "__main__":
    STATIC.mkdir(exist_ok=True)
    ney_3_8()
    tour_picture(*wine()).savefig(STATIC / "tour.png", dpi=130)
