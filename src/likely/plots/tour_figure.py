"""Figure of `likely tour`: class densities, conditional (regression), posterior predictive."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.priors.normal_inverse_wishart import NormalInverseWishart
from likely.plots.density_display import DensityDisplay
from likely.plots.theme import PALETTE, SOFT, themed


def tour_picture(X: Any, y: Any, names: list[str]) -> Any:
    """Three panels about 178 wines."""
    with themed() as plt:
        figure, (classes, line, few) = plt.subplots(1, 3, figsize=(13.5, 4.1), layout="constrained")
        _classes(classes, X, y, names)
        _regression(line, X, names)
        _predictive(few, X, y, names)
    return figure


def _classes(ax: Any, X: Any, y: Any, names: list[str]) -> None:
    at = [names.index("flavanoids"), names.index("color intensity")]
    for label, color in zip(dict.fromkeys(y), PALETTE, strict=False):
        rows = X[y == label][:, at]
        DensityDisplay(Gaussian.fit(rows), rows, [names[j] for j in at]).plot(ax, color=color, label=label)
    ax.legend(loc="upper right")
    ax.set_title("One density per cultivar: 50, 90, 99 % contours")


def _regression(ax: Any, X: Any, names: list[str]) -> None:
    a, b = names.index("alcohol"), names.index("proline")
    joint = Gaussian.fit(X[:, [a, b]])
    x = np.linspace(X[:, a].min(), X[:, a].max(), 100)
    given = joint.condition({0: x})
    mean, sd = given.mean[:, 0], np.sqrt(given.variance[:, 0])
    ax.scatter(X[:, a], X[:, b], s=9, color=SOFT, linewidths=0)
    ax.plot(x, mean, color=PALETTE[0])
    ax.fill_between(x, mean - 2 * sd, mean + 2 * sd, color=PALETTE[0], alpha=0.15, lw=0)
    ax.set(xlabel="alcohol", ylabel="proline", title="Conditional distribution (regression): ±2 σ")


def _predictive(ax: Any, X: Any, y: Any, names: list[str]) -> None:
    values = X[y == "Barbera"][:, [names.index("color intensity")]]
    values = np.random.default_rng(1).permutation(values)  # the table is sorted: take five at random
    few = values[:5]
    stats = Gaussian.fit(few).collect(few)
    post = NormalInverseWishart.weak(stats).update(stats)
    x = np.linspace(values.min() - 4, values.max() + 5, 400)[:, None]
    ax.hist(values[5:, 0], bins=14, density=True, color=SOFT, alpha=0.5, label="other samples")
    plain, honest = np.mean([_scores(np.random.default_rng(i).permutation(values)) for i in range(200)], axis=0)
    ax.plot(x, np.exp(Gaussian.fit(few).log_prob(x)), color=PALETTE[1], label=f"plug-in: {plain:.2f}")
    ax.plot(x, np.exp(post.predictive().log_prob(x)), color=PALETTE[0], label=f"predictive: {honest:.2f}")
    ax.plot(few[:, 0], np.zeros(5), "|", color=PALETTE[1], ms=14, mew=2, clip_on=False)
    ax.set(xlabel="color intensity", ylabel="density", ylim=(0, 0.34), title="Predictive density from five samples")
    ax.legend(loc="upper right", title="mean log-density of the others,\n200 random choices of five", alignment="left")


def _scores(values: Any) -> tuple[float, float]:
    """Mean log-density of the wines that follow the first five, both ways."""
    few, rest = values[:5], values[5:]
    stats = Gaussian.fit(few).collect(few)
    post = NormalInverseWishart.weak(stats).update(stats)
    return float(Gaussian.fit(few).log_prob(rest).mean()), float(post.predictive().log_prob(rest).mean())
