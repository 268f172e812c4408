"""Draws the figures of the documentation into docs/_static, or into the folder given as an argument."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.colors import to_rgb
from sklearn.datasets import load_digits

import likely as lk
from likely.cli.example_data import wine
from likely.plots.boundary_plot import plot_decision_boundary
from likely.plots.chow_liu_plot import plot_chow_liu_tree
from likely.plots.decision_regions import plot_decision_regions
from likely.plots.dendrogram_plot import plot_dendrogram
from likely.plots.density_curve import plot_distribution
from likely.plots.density_display import DensityDisplay
from likely.plots.fisher_plot import plot_fisher_projection
from likely.plots.fit_trace import plot_component_criteria, plot_convergence
from likely.plots.particle_cloud import plot_particles, plot_regimes
from likely.plots.scree_display import ScoresDisplay, ScreeDisplay
from likely.plots.state_bands import plot_state_estimates
from likely.plots.state_graph import plot_transition_graph
from likely.plots.state_sequences import plot_state_probabilities, plot_trellis
from likely.plots.theme import INK, PALETTE, themed
from likely.plots.tour_figure import tour_picture
from likely.plots.track_plot import plot_track
from likely.plots.word_plot import plot_word_segments

STATIC = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else Path(__file__).parent / "_static"


def ney_3_8() -> None:
    """Ney's figure 3.8: belief about a mean moves from the prior to the data, and sharpens."""
    prior = lk.priors.MeanGivenCovariance(lk.Gaussian([-2.0], 1.0), 4.0)
    x = np.linspace(-5, 2, 500)[:, None]
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
        for n, color in zip((0, 1, 4, 12, 100), ("#9fb3bf", *PALETTE), strict=False):
            stats = lk.Gaussian([0.0], 1.0).collect(np.zeros((n, 1)))
            belief = prior.update(stats).belief
            ax.plot(x, np.exp(belief.log_prob(x)), color=color, label=f"{n} row{'s' * (n > 1)}" if n else "prior")
        ax.set(xlabel="mean", ylabel="density", ylim=(0, None), title="Posterior of the mean (Ney 3.8)")
        ax.legend()
        figure.savefig(STATIC / "ney-3-8.png", dpi=130)


def every_distribution() -> None:
    """Distributions of one column, each with some of its parameters."""
    panels = {
        "Uniform(l, u)": ((-0.6, 3.6), [(lk.Uniform(0.0, 3.0), "0, 3"), (lk.Uniform(1.0, 2.0), "1, 2")]),
        "Triangular(a, c, b)": ((-0.3, 4.3),
            [(lk.distributions.Triangular(0.0, m, 4.0), f"0, {m:g}, 4") for m in (0.0, 1.0, 3.0)]),
        "Laplace(μ, v)": ((-6, 6), [(lk.Laplace(0.0, v), f"0, {v:g}") for v in (0.5, 1.0, 2.0)]),
        "Cauchy(μ, s)": ((-6, 6), [(lk.distributions.Cauchy(0.0, s), f"0, {s:g}") for s in (0.5, 1.0, 2.0)]),
        "Exponential(λ)": ((0, 5), [(lk.Exponential(r), f"{r:g}") for r in (0.5, 1.0, 2.0)]),
        "ChiSquare(D)": ((0.03, 30), [(lk.distributions.ChiSquare(k), f"{k:g}") for k in (2.0, 8.0, 16.0)]),
        "Gamma(a, b)": ((0.01, 8), [(lk.Gamma(a, b), f"{a}, {b}") for a, b in ((1, 1), (3, 1), (9, 3))]),
        "Beta(a, b)": ((0.004, 0.996), [(lk.Beta(a, b), f"{a}, {b}") for a, b in ((0.5, 0.5), (2, 3), (8, 2))]),
        "StudentT(μ, s, ν)": ((-6, 6), [(lk.StudentT([0.0], [[1.0]], v), f"0, 1, {v:g}") for v in (1.0, 3.0, 30.0)]),
        "VonMises(μ, κ)": ((-np.pi, np.pi),
            [(lk.distributions.VonMises(0.0, k), f"0, {k:g}") for k in (0.5, 2.0, 8.0)]),
        "Binomial(n, p)": ((-0.5, 20.5), [(lk.Binomial(20, p), f"20, {p:g}") for p in (0.2, 0.5)]),
        "Poisson, negative binomial": (
            (-0.5, 20.5), [(lk.Poisson(6.0), "Poisson 6"), (lk.NegativeBinomial(2.0, 0.25), "2, 0.25")],
        ),
    }  # fmt: skip
    with themed() as plt:
        figure, places = plt.subplots(4, 3, figsize=(9.6, 9.6), layout="constrained")
        for ax, (title, (window, distributions)) in zip(places.ravel(), panels.items(), strict=True):
            for (distribution, name), color in zip(distributions, PALETTE, strict=False):
                plot_distribution(distribution, ax, window=window, label=name, color=color)
            ax.set(title=title, ylabel="", yticks=[], xlim=window)
            ax.legend(fontsize=8)
        figure.savefig(STATIC / "distributions.png", dpi=130)


def decisions() -> None:
    """What is decided where: three cultivars, a band where it refuses, and gray where nothing like it was seen."""
    X, y, names = wine()
    at = [names.index("flavanoids"), names.index("color intensity")]
    clf = lk.BayesClassifier().fit(X[:, at], y)
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
        plot_decision_regions(clf, X[:, at], y, ax=ax, steps=400, reject_below=0.8, novelty=0.02)
        ax.set(xlabel=names[at[0]], ylabel=names[at[1]], title="Decision regions; white: rejected, gray: novel")
        figure.savefig(STATIC / "decisions.png", dpi=130)


def borders() -> None:
    """Six kinds of borders between two Gaussians (Ney 2.4)."""
    G = lk.Gaussian
    pairs = [
        (G([0, 0], 1.0), G([0.5, 0], 4.0)), (G([0, 0], 1.0), G([1, 0.5], [4.0, 9.0])),
        (G([0, 0], 1.0), G([2, 0], [1.0, 4.0])), (G([0, 0], [1.0, 4.0]), G([2, 1], [4.0, 1.0])),
        (G([0, 0], [1.0, 4.0]), G([0, 0], [4.0, 1.0])),
        (G([-1, -1], [[1, 0.5], [0.5, 1]]), G([1, 1], [[1, 0.5], [0.5, 1]])),
    ]  # fmt: skip
    with themed() as plt:
        figure, places = plt.subplots(2, 3, figsize=(9.6, 6.4), layout="constrained")
        for (p, q), ax in zip(pairs, places.ravel(), strict=True):
            plot_decision_boundary(lk.decision_boundary(p, q), ax, window=((-6, 6), (-6, 6))).set(
                aspect="equal", xticks=[], yticks=[]
            )
        places[0, 0].legend(loc="upper left", frameon=True, framealpha=0.85)
        figure.savefig(STATIC / "borders.png", dpi=130)


def neighbors_and_bayes() -> None:
    """Between which errors the nearest neighbor rule must lie, given the Bayes error (Ney 5.4)."""
    with themed() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
        for classes, color in zip((2, 3, 10), PALETTE, strict=False):
            e = np.linspace(0, 1 - 1 / classes, 200)
            left.plot(e, lk.decision.cover_hart_bound(e, classes), color=color, label=f"upper bound, {classes} classes")
            left.fill_between(e, e, lk.decision.cover_hart_bound(e, classes), color=color, alpha=0.12, lw=0)
        left.plot([0, 0.9], [0, 0.9], color=INK, lw=1, label="lower bound")
        left.set(
            xlabel="Bayes error",
            ylabel="nearest neighbor error",
            title="Cover and Hart",
            xlim=(0, 0.9),
            ylim=(0, 0.95),
        )
        left.legend(loc="lower right")
        p = np.linspace(1e-9, 1 - 1e-9, 400)
        bounds = [lk.decision.error_bounds([[a, 1 - a]]) for a in p]
        right.plot(p, [b.bayes for b in bounds], color=INK, label="1 − max p: the error")
        right.plot(p, [b.gini for b in bounds], color=PALETTE[0], label="1 − Σ p²: Gini")
        right.plot(
            p, [lk.decision.hellman_raviv_bound(b.entropy) for b in bounds], color=PALETTE[1], label="½ entropy in bits"
        )
        right.plot(p, [b.entropy for b in bounds], color=PALETTE[2], label="entropy in nats")
        right.set(
            xlabel="p(first class | x)", title="Bounds of the error at one x, two classes", xlim=(0, 1), ylim=(0, 0.75)
        )
        right.legend(loc="lower center")
        figure.savefig(STATIC / "bounds.png", dpi=130)


def maps() -> None:
    """Wines: who decides what where, by two models, and where they refuse."""
    X, y, names = wine()
    at = [names.index("flavanoids"), names.index("color intensity")]
    with themed() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.8, 4.1), layout="constrained")
        plot_decision_regions(lk.BayesClassifier().fit(X[:, at], y), X[:, at], y, ax=left, steps=300)
        left.get_legend().remove()
        left.set_title("Without reject option: exact conics")
        plot_decision_regions(
            lk.BayesClassifier().fit(X[:, at], y), X[:, at], y, ax=right, steps=300, reject_below=0.8, novelty=0.02
        )
        right.set_title("With reject option and novelty")
        for ax in (left, right):
            ax.set(xlabel=names[at[0]], ylabel=names[at[1]])
        figure.savefig(STATIC / "maps.png", dpi=130)


def two_moons(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Two half-moons that overlap a little, for pictures of neighbors."""
    rng = np.random.default_rng(4)
    angle, y = np.pi * rng.random(n), np.arange(n) % 2
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X[y == 1] = [1.0, 0.35] - X[y == 1]
    return X + 0.24 * rng.standard_normal((n, 2)), np.where(y == 1, "below", "above")


def nearest_rows() -> None:
    """One neighbor, fifteen, and a few rows that decide almost as well."""
    X, y = two_moons()
    kept = lk.neighbors.edited_nearest_neighbors(X, y, method="multiedit")
    kept = kept[lk.neighbors.condensed_nearest_neighbor(X[kept], y[kept])]
    tries = {
        "1 neighbor": (lk.KNeighborsClassifier(1).fit(X, y), X, y),
        "15 neighbors": (lk.KNeighborsClassifier(15).fit(X, y), X, y),
        f"1 neighbor among {len(kept)} rows that were kept": (
            lk.KNeighborsClassifier(1, smoothing=0.05).fit(X[kept], y[kept]), X, None,
        ),
    }  # fmt: skip
    with themed() as plt:
        figure, axes = plt.subplots(1, 3, figsize=(12.6, 3.9), layout="constrained", sharey=True)
        for ax, (title, (clf, rows, labels)) in zip(axes, tries.items(), strict=True):
            plot_decision_regions(clf, rows, labels, ax=ax, steps=300)
            ax.get_legend().remove()
            ax.set(title=title, xlabel="x", ylabel="y" if ax is axes[0] else "")
        colors = [PALETTE[0] if label == "above" else PALETTE[1] for label in y[kept]]
        axes[2].scatter(*X[kept].T, s=70, c=colors, edgecolors="white", linewidths=1.2, zorder=5)
        figure.savefig(STATIC / "neighbors.png", dpi=130)


def nearest_centers() -> None:
    """Three centers and four ways to measure: what is near depends on the metric."""
    rng = np.random.default_rng(2)
    y = np.repeat(["a", "b", "c"], 60)
    turn = np.array([[1.5, 0.9], [0.0, 0.5]])
    X = np.repeat([[0.0, 0.0], [3.2, 0.4], [1.2, 2.6]], 60, axis=0) + rng.normal(size=(180, 2)) @ turn
    with themed() as plt:
        figure, axes = plt.subplots(1, 4, figsize=(13.6, 3.6), layout="constrained", sharey=True)
        for ax, metric in zip(axes, ("l1", "l2", "linf", "mahalanobis"), strict=True):
            clf = lk.NearestCentroidClassifier(metric).fit(X, y)
            plot_decision_regions(clf, X, y, ax=ax, steps=300)
            ax.get_legend().remove()
            ax.scatter(*clf.centers_.T, s=90, marker="X", color=INK, edgecolors="white", zorder=6)
            wrong = np.mean(clf.predict(X) != y)
            ax.set(title=f"{metric}: {wrong:.0%} wrong", xlabel="x", ylabel="y" if ax is axes[0] else "")
        figure.savefig(STATIC / "centers.png", dpi=130)


def far_and_near() -> None:
    """Distances lose their contrast as columns are added, and some rows become everybody's neighbor."""
    rng = np.random.default_rng(0)
    dims = np.array([2, 3, 5, 8, 12, 20, 35, 60, 100, 200])
    reports = [lk.metrics.distance_diagnostics(rng.normal(size=(1500, d))) for d in dims]
    planes = [lk.metrics.distance_diagnostics(rng.normal(size=(1500, 3)) @ rng.normal(size=(3, d))) for d in dims[1:]]
    with themed() as plt:
        figure, axes = plt.subplots(1, 3, figsize=(12.6, 3.6), layout="constrained")
        kinds = ((dims, reports, "independent columns"), (dims[1:], planes, "three hidden directions"))
        for (d, found, label), color in zip(kinds, PALETTE, strict=False):
            axes[0].loglog(d, [r.contrast for r in found], "o-", ms=4, color=color, label=label)
            axes[1].semilogx(d, [r.hubs.skewness for r in found], "o-", ms=4, color=color, label=label)
            value, error = np.array([r.dimension for r in found]).T
            axes[2].errorbar(d, value, 2 * error, fmt="o-", ms=4, color=color, label=label)
        axes[0].set(xlabel="columns", title="(farthest − nearest) / nearest")
        axes[1].set(xlabel="columns", title="Hubness: skewness of k-occurrences")
        axes[2].plot([2, 200], [2, 200], ":", color=INK, lw=1)
        axes[2].set(xlabel="columns", title="Intrinsic dimension", xscale="log", yscale="log")
        axes[0].legend()
        figure.savefig(STATIC / "dimensions.png", dpi=130)


def windows() -> None:
    """Kernel density estimates with three bandwidths, and the leave-one-out log-likelihood that chooses one."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 140), rng.normal(5, 0.5, 60)])[:, None]
    best = lk.KernelDensity().fit(x)
    at, factors = np.linspace(-4, 8, 1200)[:, None], {"too small": 0.1, "leave-one-out": 1.0, "too large": 5.5}
    with themed() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained", width_ratios=(3, 2))
        for (name, factor), color in zip(factors.items(), (PALETTE[1], PALETTE[0], PALETTE[2]), strict=True):
            model = best.model_.replace(bandwidth=best.bandwidth_ * factor)
            style = {"lw": 2.2, "zorder": 3} if factor == 1 else {"lw": 1.0, "alpha": 0.8}
            label = "best by leave-one-out" if factor == 1 else name
            left.plot(at, np.exp(model.log_prob(at)), color=color, label=label, **style)
        left.plot(x[:, 0], np.full(len(x), -0.012), "|", color=INK, alpha=0.4, ms=6)
        left.set(xlabel="x", ylabel="density", xlim=(-4, 8), ylim=(-0.03, 1.02), title="Three bandwidths")
        left.legend(loc="upper right", ncols=3, fontsize="small")
        grid = best.bandwidth_ * np.geomspace(0.1, 10, 60)
        scores = [best.model_.replace(bandwidth=h).objective(best.stats_) / len(x) for h in grid]
        right.plot(grid, scores, color=PALETTE[0])
        right.axvline(best.bandwidth_[0], color=INK, lw=0.8, ls=":")
        right.set(xscale="log", xlabel="bandwidth", ylabel="mean log p")
        right.set(title="Leave-one-out log-likelihood", ylim=(max(scores) - 1.0, max(scores) + 0.08))
        figure.savefig(STATIC / "windows.png", dpi=130)


def rings() -> None:
    """What nonparametric densities decide about a ring and what lies inside of it."""
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    angle = rng.uniform(0, 2 * np.pi, 400)
    radius = np.where(y, 3.0 + 0.15 * rng.normal(size=400), 1.2 * rng.random(400) ** 0.5)
    X = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    X += 0.6 * rng.normal(size=(400, 2)) * (1 - y)[:, None]
    of = {
        "Gaussians": lk.GaussianDensity(), "histograms, 8 × 8": lk.HistogramDensity(8, joint=True),
        "5 nearest neighbors": lk.KNNDensity(5), "kernel density": lk.KernelDensity(),
    }  # fmt: skip
    with themed() as plt:
        figure, grid = plt.subplots(2, 2, figsize=(7.6, 7.4), layout="constrained", sharex=True, sharey=True)
        for ax, (name, density) in zip(grid.ravel(), of.items(), strict=True):
            plot_decision_regions(lk.BayesClassifier(density).fit(X, y), X, y, ax=ax, steps=200)
            ax.set(title=name, xlabel="", ylabel="", aspect="equal")
            ax.get_legend().remove()
        figure.savefig(STATIC / "nonparametric.png", dpi=130)


def symptoms(n: int = 600) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Yes and no of six complaints in two illnesses: the same shares of each, but other pairs go together."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, n)
    x = (rng.random((n, 6)) < 0.4).astype(float)
    for a, b, c in ((0, 1, 0), (1, 2, 0), (3, 4, 0), (0, 3, 1), (3, 5, 1), (1, 4, 1)):
        x[:, b] = np.where((y == c) & (rng.random(n) < 0.7), x[:, a], x[:, b])
    return x, y, ["fever", "cough", "fatigue", "rash", "itch", "nausea"]


def chow_trees() -> None:
    """One tree a class: which complaints go together in each illness."""
    x, y, names = symptoms()
    clf = lk.BayesClassifier(lk.ChowLiuTreeDensity()).fit(x, y)
    with themed() as plt:
        figure, ax = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
        for k in (0, 1):
            title = f"illness {'AB'[k]}: bits that complaints tell of each other"
            plot_chow_liu_tree(clf.model_.components.member(k), ax[k], names=names, title=title)
        figure.savefig(STATIC / "chow-trees.png", dpi=130)


def cut_expansions() -> None:
    """A distribution of four binary columns, and three expansions of it cut at pairs: two go below 0."""
    p = np.full(16, 0.004)
    p[[0, 15, 1, 3]] = 0.56, 0.22, 0.10, 0.072  # rare columns that come together
    cells = ((np.arange(16)[:, None] >> np.arange(4)[::-1]) & 1).astype(float)
    kinds = {
        "Walsh": lk.distributions.Walsh,
        "Bahadur": lk.distributions.Bahadur,
        "log Walsh": lk.distributions.LogLinear,
    }
    distributions = {name: distribution.blank(cells) for name, distribution in kinds.items()}
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(8.2, 3.6), layout="constrained")
        ax.bar(np.arange(16), p, color="#d5dde2", width=0.86, label="the distribution itself")
        for i, (name, distribution) in enumerate(distributions.items()):
            fitted = distribution.refit(distribution.collect(cells, p))
            value = fitted.value(cells) if hasattr(fitted, "value") else fitted.probabilities
            at = np.arange(16) + 0.22 * (i - 1)
            ax.plot(at, value, "o", color=PALETTE[i], markersize=4.5, label=f"{name}, pairs only")
        ax.axhline(0, color=INK, linewidth=0.8)
        ax.set_xticks(range(16), ["".join(str(int(v)) for v in c) for c in cells], rotation=90)
        ax.set(xlabel="cell", ylabel="probability")
        ax.set_title("Truncated at pairs: expansions of p can be negative, that of log p cannot", loc="left")
        ax.legend()
        figure.savefig(STATIC / "cut-expansions.png", dpi=130)


def fisher_of_wines() -> None:
    """Thirteen columns of wines in the plane that keeps three cultivars apart."""
    X, y, _ = wine()
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(7.2, 4.9), layout="constrained")
        plot_fisher_projection(lk.FisherDiscriminant().fit(X, y), X, y, ax)
        ax.set_title("178 wines along two discriminant directions", loc="left")
        figure.savefig(STATIC / "fisher.png", dpi=130)


def mixture() -> None:
    """Wines without their labels: three parts, rows in the colors of their responsibilities, and how EM came there."""
    X, _, names = wine()
    at = [names.index("flavanoids"), names.index("color intensity")]
    m = lk.MixtureDensity(lk.GaussianDensity("full"), 3, n_init=8, random_state=0).fit(X[:, at])
    colors = np.array([to_rgb(c) for c in PALETTE[:3]])
    with themed() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained", width_ratios=(1.3, 1))
        for k in range(3):
            DensityDisplay.from_model(m.model_.components.member(k), ax=left, color=PALETTE[k], names=["", ""])
        left.scatter(*X[:, at].T, c=m.model_.posterior(X[:, at]) @ colors, s=14, edgecolor="white", linewidth=0.3)
        left.set(xlabel=names[at[0]], ylabel=names[at[1]], title="178 wines without labels: three components")
        plot_convergence(m.report_, right)
        figure.savefig(STATIC / "mixture.png", dpi=130)


def how_many() -> None:
    """Three clouds: what BIC, rows left out and a sparse prior say of their number."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.0, (150, 2)) for c in ([0, 0], [4, 0], [2, 4])])
    choice = lk.choose_components(lk.MixtureDensity(random_state=0, max_iter=500), X, range(1, 9))
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
        plot_component_criteria(choice, ax).set_title("Choosing the number of components")
        figure.savefig(STATIC / "components.png", dpi=130)


def variances() -> None:
    """A wide and a narrow cloud: spheres of one size cut the wide one, spheres of their own sizes do not."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([0, 0], 3.0, (300, 2)), rng.normal([6, 0], 0.4, (100, 2))])
    grid = np.stack(np.meshgrid(np.linspace(-11, 9.5, 1025), np.linspace(-10, 9, 950)), axis=-1)
    with themed() as plt:
        figure, both = plt.subplots(1, 2, figsize=(9.0, 4.3), layout="constrained")
        for ax, kind, title in zip(both, ("equal", "own"), ("One variance", "A variance each"), strict=True):
            found = lk.KMeans(2, variances=kind, n_init=5, random_state=0).fit(X)
            wide = np.bincount(found.labels_).argmax()
            colors = [PALETTE[0] if k == wide else PALETTE[1] for k in found.labels_]
            ax.scatter(*X.T, c=colors, s=12, edgecolor="white", linewidth=0.3)
            side = found.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
            ax.contour(grid[..., 0], grid[..., 1], side, levels=[0.5], colors=[INK], linewidths=1.0)
            ax.scatter(*found.cluster_centers_.T, marker="+", s=90, color=INK, linewidth=1.6)
            ax.set(title=title, xlim=(-11, 9.5), ylim=(-10, 9), aspect="equal", xticks=[], yticks=[])
        figure.savefig(STATIC / "variances.png", dpi=130)


def tree_of_wines() -> None:
    """Wines merged as Ward does: the tree, and what its cuts are worth."""
    X, _, _ = wine()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    tree = lk.cluster.linkage(Z)
    curve = lk.cluster.bic_curve(tree, Z, max_clusters=10)
    with themed() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained", width_ratios=(1.7, 1))
        plot_dendrogram(tree, left, cut=curve.best, labels=["1 row"] * len(Z), max_branches=24)
        right.plot(curve.k, curve.bic, color=PALETTE[0], marker=".")
        right.plot(curve.best, curve.bic.min(), "o", color=PALETTE[1], ms=9, mfc="none", mew=1.6)
        right.set(xlabel="clusters", ylabel="BIC", title="BIC of the cuts", xticks=curve.k)
        figure.savefig(STATIC / "dendrogram.png", dpi=130)


def scree() -> None:
    """Images of digits: variance along the axes, and what so many of them leave out."""
    X, _ = load_digits(return_X_y=True)
    with themed() as plt:
        figure, both = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
        ScreeDisplay.from_estimator(lk.PCA().fit(X), ax=both)
        figure.savefig(STATIC / "scree.png", dpi=130)


def scores() -> None:
    """The wines in the plane that shows most of their differences."""
    X, y, _ = wine()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    p = lk.PCA(2).fit(Z)
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
        ScoresDisplay.from_estimator(p, Z, y, ax=ax)
        for points in ax.collections:
            points.set(sizes=[22], alpha=0.85, edgecolor="white", linewidth=0.4)
        ax.legend(loc="lower left")
        ax.set_title(f"178 wines: two principal components explain {1 - p.relative_error_:.0%} of the variance")
        figure.savefig(STATIC / "scores.png", dpi=130)


def chains() -> None:
    """Three models: with a null state, left-to-right with skips, ergodic."""
    rng = np.random.default_rng(0)
    moves = [[0.6, 0, 0, 0.4], [0, 0.5, 0.5, 0], [0, 0, 0.7, 0], [0, 0.6, 0.4, 0]]
    null = lk.HMM([1, 0, 0, 0], moves, lk.Gaussian([[0.0], [3.0], [6.0]], 1.0), final=[0, 0, 0.3, 0])
    rises = [np.repeat([0.0, 2.0, 5.0, 9.0], rng.integers(0, 6, 4) + [1, 0, 0, 1]) for _ in range(60)]
    skips = lk.HMMDensity(n_states=4, topology=(0, 1, 2)).fit(
        [r + rng.normal(0, 0.5, len(r)) for r in rises if len(r) > 2]
    )
    walk = np.repeat(rng.choice([0.0, 4.0, 8.0], 60), rng.integers(2, 9, 60))
    free = lk.HMMDensity(n_states=3, random_state=0).fit(walk + rng.normal(0, 1, len(walk)))
    with themed() as plt:
        figure, both = plt.subplot_mosaic("ac;bc", figsize=(10.0, 4.6), layout="constrained", width_ratios=(1.45, 1))
        titles = ("The middle part may be left out", "Stay, go on, or skip one", "All from all")
        for name, model, title in zip("abc", (null, skips, free), titles, strict=True):
            plot_transition_graph(model, both[name]).set_title(title, loc="left")
        figure.savefig(STATIC / "chains.png", dpi=130)


def states() -> None:
    """A signal, the states behind it shaded by their probability, and, as a stack, what was known at the time."""
    rng = np.random.default_rng(4)
    x = np.repeat([0.0, 3.0, 1.2, 3.0, 0.0], [25, 20, 30, 12, 33]) + rng.normal(0, 0.9, 120)
    h = lk.HMMDensity(n_states=3, random_state=0).fit([x])
    names = [f"about {abs(m):.0f}" for m in h.model_.emission.mean.ravel()]
    plot_trellis(h, x, names=names, columns=["signal"]).figure.savefig(STATIC / "trellis.png", dpi=130)
    plot_state_probabilities(h, x, names=names, columns=["signal"], lag=0).figure.savefig(
        STATIC / "occupancy.png", dpi=130
    )


def utterance() -> None:
    """Gestures in a row, noisy: which they were, when, and how sure one may be."""
    rng = np.random.default_rng(3)
    courses = {"up": [-2, 0, 2], "down": [2, 0, -2], "wave": [0, 2, 0, -2, 0]}

    def made(word: str, noise: float) -> np.ndarray:
        return np.concatenate([rng.normal(level, noise, (rng.integers(2, 7), 1)) for level in courses[word]])

    labels = np.repeat(list(courses), 40)
    density = lk.HMMDensity(lk.GaussianDensity("diagonal"), n_states=5, topology=(0, 1, 2))
    known = lk.BayesClassifier(density).fit([made(word, 0.9) for word in labels], labels)
    x = np.concatenate([made(word, 0.9) for word in ("wave", "up", "down", "up", "wave")])
    heard = lk.speech.WordNetwork.of(known).decode(x)
    plot_word_segments(heard, x).figure.savefig(STATIC / "words.png", dpi=130)


def level_with_gap() -> None:
    """A wandering level with a gap: its band, which is wide where nobody looked, and what comes."""
    level = lk.LinearGaussian.local_level(level_variance=1.0, observation_variance=4.0, initial=([20.0], 1.0))
    y = level.sample(1, np.random.default_rng(5), 110)[0].copy()
    y[45:65] = np.nan
    guess = lk.LinearGaussian.local_level(level_variance=1.0, observation_variance=4.0)
    plot_state_estimates(guess, y, ahead=15, names="level").figure.savefig(STATIC / "bands.png", dpi=130)


def robot() -> None:
    """A robot that knows its distance from two beacons: the smoothed track, with ellipses."""
    beacons = np.array([[0.0, 0.0], [10.0, 0.0]])
    moving = lk.LinearGaussian.constant_velocity(dim=2, dt=0.5, spectral_density=0.2)
    distributions = lk.StateSpace(
        lk.Gaussian([2.0, 4.0, 1.0, 0.5], 0.5),
        lambda x: lk.Gaussian(x @ moving.transition.T, moving.process_covariance),
        lambda x: lk.Gaussian(np.linalg.norm(x[:, None, :2] - beacons, axis=2), 0.05),
    )
    seen = distributions.sample(1, np.random.default_rng(11), 60)
    ranges = seen.observations[0].copy()
    ranges[20:28] = np.nan
    ax = plot_track(lk.UnscentedKalmanFilter(distributions).smooth(ranges), truth=seen.states[0], ellipses=40)
    ax.plot(*beacons.T, "^", color=INK, markersize=8)
    ax.set_title("60 frames, ranges to two beacons (▲), eight frames missing", loc="left")
    ax.figure.savefig(STATIC / "track.png", dpi=130)


def volatility() -> None:
    """Stochastic volatility: particles over time around the volatility that was."""
    distributions = lk.StateSpace(
        lk.Gaussian([-1.0], 0.64),
        lambda x: lk.Gaussian(-1.0 + 0.95 * (x + 1.0), 0.0625),
        lambda x: lk.Gaussian(np.zeros_like(x), np.exp(x), kind="diagonal"),
    )
    seen = distributions.sample(1, np.random.default_rng(2), 150)
    run = lk.ParticleFilter(distributions, 5000, random_state=1).run(seen.observations[0])
    plot_particles(run, truth=seen.states[0], name="log-volatility").figure.savefig(STATIC / "cloud.png", dpi=130)


def regimes_of_a_pump() -> None:
    """A series that is calm, then wild: what was seen, and the probabilities of its regimes at the time."""
    calm, wild = (
        lk.LinearGaussian(
            transition=[[0.98]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[0.5]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (0.01, 1.0)
    )
    jump = lk.SwitchingLinearGaussian([calm, wild], [[0.98, 0.02], [0.05, 0.95]], [1.0, 0.0])
    z, _, y = jump.simulate(1, np.random.default_rng(4), 200)
    run = lk.statespace.RaoBlackwellizedFilter(jump, 500, random_state=1).run(y[0])
    plot_regimes(run, y[0], names=["calm", "wild"], truth=z[0]).figure.savefig(STATIC / "regimes.png", dpi=130)


def predictive_bands() -> None:
    """A noisy sine, and Bayesian regressions on three bases."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(25))[:, None]
    t = np.sin(2 * np.pi * x[:, 0]) + 0.25 * rng.standard_normal(25)
    new = np.linspace(x.min(), x.max(), 300)[:, None]
    with themed() as plt:
        figure, axes = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained", sharey=True)
        for ax, degree, color in zip(axes, (1, 3, 15), PALETTE, strict=False):
            m = lk.BayesianLinearRegression(lk.basis.OrthogonalPolynomial(degree)).fit(x, t)
            ax.fill_between(new[:, 0], *m.interval(new, 0.9), color=color, alpha=0.18, lw=0)
            ax.plot(new, m.predict(new), color=color)
            ax.plot(new, np.sin(2 * np.pi * new), color=INK, lw=1, ls=":")
            ax.scatter(x, t, 14, color=INK, zorder=3)
            ax.set(xlabel="x", ylabel="y" if degree == 1 else "", ylim=(-2, 2),
                   title=f"degree {degree}: log evidence {m.log_evidence_:.1f}")  # fmt: skip
        figure.savefig(STATIC / "regression.png", dpi=130)


def crossing_lines() -> None:
    """Two regressions found among unlabeled rows, and predictive densities."""
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, 200)
    first = rng.random(200) < 0.4
    y = np.where(first, 1 + 2 * x, -1 - x) + np.where(first, 0.3, 0.5) * rng.standard_normal(200)
    m = lk.linear_model.MixtureRegression(2, random_state=0).fit(x[:, None], y)
    with themed():
        fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, width_ratios=(3, 2))
        color = m.posterior(x[:, None], y) @ np.array([to_rgb(PALETTE[0]), to_rgb(PALETTE[1])])
        left.scatter(x, y, 14, color=np.clip(color, 0, 1))
        for k, (a, b) in enumerate(m.coefficients_):
            left.axline((0, a), slope=b, color=PALETTE[k])
        left.set(xlim=(-2.1, 2.1), xlabel="x", ylabel="y")
        grid = np.linspace(-5, 6, 300)
        for at in (-1.5, 0.0, 1.5):
            density = np.exp(m.predictive([[at]]).log_prob(grid[:, None])[:, 0])
            right.plot(density, grid, label=f"x = {at:g}")
        right.set(xlabel="predictive density")
        right.legend()
        fig.tight_layout()
        fig.savefig(STATIC / "mixture-of-regressions.png", dpi=130)


def growth_and_recession() -> None:
    """A series with Hamilton's parameters, and the smoothed probability of the state of low growth."""
    import matplotlib.pyplot as plt

    mean, phi, sd = np.array([-0.36, 1.16]), np.array([0.01, -0.06, -0.25, -0.21]), np.sqrt(0.59)
    rng, state, y = np.random.default_rng(7), np.ones(154, dtype=int), np.full(154, 1.16)
    for t in range(4, 154):
        state[t] = rng.random() < (0.245, 0.905)[state[t - 1]]
        y[t] = mean[state[t]] + phi @ (y[t - 4 : t] - mean[state[t - 4 : t]])[::-1] + sd * rng.standard_normal()
    settings = {"lags": 4, "mean_adjusted": True, "shared": ["lags"], "tied_noise": True}
    m = lk.linear_model.SwitchingRegression(2, **settings, random_state=0).fit(y)
    low = int(m.coefficients_[:, 0].argmin())
    with themed():
        fig, (top, bottom) = plt.subplots(2, 1, figsize=(9, 4.2), sharex=True, height_ratios=(3, 2))
        top.plot(y, color=INK, linewidth=1)
        bottom.plot(m.smooth(y)[:, low], color=PALETTE[1])
        for ax in (top, bottom):
            ax.fill_between(np.arange(154), *ax.get_ylim(), where=state == 0, color=PALETTE[0], alpha=0.15, step="mid")
            ax.set_xlim(4, 153)
        top.set(ylabel="growth, percent")
        bottom.set(xlabel="quarter", ylabel="P(low growth)")
        fig.tight_layout()
        fig.savefig(STATIC / "markov-switching.png", dpi=130)


def clutter() -> None:
    """A target among false echoes, and the track that was confirmed."""
    rng = np.random.default_rng(1)
    moving = lk.LinearGaussian.constant_velocity(
        dim=2, dt=1.0, spectral_density=0.02, observation_variance=0.1, initial=([0, 0, 1, 0.6], 0.01)
    )
    states, seen = moving.simulate(1, rng, 60)
    false = [rng.uniform([-10, -30], [90, 60], (rng.poisson(5), 2)) for _ in range(60)]
    scans = [np.vstack([y, f]) if rng.random() < 0.9 else f for y, f in zip(seen[0], false, strict=True)]
    rule = {"clutter_density": 5 / (100 * 90), "detection_probability": 0.9, "speed": 2.0}
    found = lk.Tracker(dim=2, spectral_density=0.02, observation_variance=0.1, **rule).run(scans)
    ax = plot_track(found, observed=scans, truth=states[0], ellipses=30)
    ax.set_title("Five false measurements per scan: the confirmed track", loc="left")
    ax.figure.savefig(STATIC / "clutter.png", dpi=130)


def divergence() -> None:
    """A mixture, and the Gaussians that are nearest to it, asked in both directions."""
    p = lk.Mixture([0.65, 0.35], lk.Gaussian([[0.0], [5.0]], [[[1.0]], [[0.7]]]))
    mean = 0.35 * 5.0
    cover = lk.Gaussian([mean], 0.65 * (1 + mean**2) + 0.35 * (0.7 + (5 - mean) ** 2))
    tries = [lk.Gaussian([m], v) for m in np.linspace(-0.3, 0.3, 13) for v in np.linspace(0.7, 1.5, 17)]
    settle = min(tries, key=lambda q: lk.kl_divergence(q, p).value)
    x = np.linspace(-7, 11, 600)[:, None]
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
        ax.fill_between(x[:, 0], np.exp(p.log_prob(x)), color="#dbe4e9", label="p, a mixture")
        distributions = ((cover, "least KL(p ‖ q)", PALETTE[0]), (settle, "least KL(q ‖ p)", PALETTE[1]))
        for q, name, color in distributions:
            apart = f"{lk.kl_divergence(p, q).value:.2f} and {lk.kl_divergence(q, p).value:.2f} nats"
            ax.plot(x, np.exp(q.log_prob(x)), color=color, label=f"{name}: {apart}")
        ax.set(xlabel="x", ylabel="density", ylim=(0, None), title="Gaussians of least KL(p ‖ q) and KL(q ‖ p)")
        ax.legend()
        figure.savefig(STATIC / "divergence.png", dpi=130)


def laplace_of_a_rate() -> None:
    """A gamma posterior and Laplace's bell over it, in rates and in logarithms of rates."""
    posterior = lk.Gamma(4.0, 2.0)
    plain = lk.inference.laplace_approximation(posterior.log_prob, [1.0])
    logs = lk.inference.laplace_approximation(lambda z: posterior.log_prob(np.exp(z)) + z[:, 0], [0.0])
    rate, z = np.linspace(0.01, 6, 500)[:, None], np.linspace(-2.0, 2.4, 500)[:, None]
    with themed() as plt:
        figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
        of_logs = lk.distributions.Transformed(posterior, lk.distributions.Bijector.log())
        for ax, x, exact, found, name in (
            (axes[0], rate, posterior, plain, "rate"), (axes[1], z, of_logs, logs, "logarithm of the rate")
        ):  # fmt: skip
            ax.fill_between(x[:, 0], np.exp(exact.log_prob(x)), color="#dbe4e9", label="posterior")
            ax.plot(x, np.exp(found.distribution.log_prob(x)), color=PALETTE[1], label="Laplace")
            ax.set(xlabel=name, ylim=(0, None), title=f"log evidence off by {found.log_evidence:+.3f}")
        axes[0].set_ylabel("density")
        axes[0].legend()
        figure.savefig(STATIC / "laplace.png", dpi=130)


def sums() -> None:
    """Sums of uniform variables, standardized, and the Gaussian that they come near."""
    z = np.linspace(-3.2, 3.2, 801)
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
        for n, color in zip((1, 2, 3, 8), PALETTE, strict=False):
            distribution, deviation = lk.distributions.sum_of(lk.Uniform(0.0, 1.0), copies=n), np.sqrt(n / 12)
            density = deviation * np.exp(distribution.log_prob(n / 2 + deviation * z[:, None]))
            ax.plot(z, density, color=color, label=f"{n} variable{'s' * (n > 1)}")
        ax.plot(z, np.exp(lk.Gaussian([0.0], 1.0).log_prob(z[:, None])), color=INK, ls=":", label="Gaussian")
        ax.set(xlabel="sum, in standard deviations from its mean", ylabel="density", ylim=(0, None),
               title="Sums of uniform variables")  # fmt: skip
        ax.legend()
        figure.savefig(STATIC / "sums.png", dpi=130)


def equalized() -> None:
    """A dull synthetic landscape and its histogram, before and after."""
    rng = np.random.default_rng(4)
    down, across = np.mgrid[0:180, 0:260]
    ridge = 70 + 18 * np.sin(across / 31.0) + 9 * np.sin(across / 11.0 + 1) + 4 * np.sin(across / 4.0)
    near = 125 + 14 * np.sin(across / 45.0 + 2)
    sky = 128 - 0.12 * down + 9 * np.exp(-((across - 190) ** 2 + (down - 35) ** 2) / 300)
    gray = np.where(down > near, 92 + 0.05 * across, np.where(down > ridge, 104 - 0.1 * (down - ridge), sky))
    dull = np.clip(np.rint(gray + rng.normal(0, 1.2, gray.shape)), 0, 255).astype(np.uint8)
    bright = np.rint(255 * lk.density.equalize_histogram(dull))
    with themed() as plt:
        figure, axes = plt.subplots(2, 2, figsize=(8, 5), layout="constrained", height_ratios=[3, 1.3])
        for column, (image, title) in enumerate(((dull, "as it came"), (bright, "equalized"))):
            axes[0, column].imshow(image, cmap="gray", vmin=0, vmax=255)
            axes[0, column].set(title=title)
            axes[0, column].axis("off")
            axes[1, column].hist(image.ravel(), bins=64, range=(0, 256), color=PALETTE[column])
            axes[1, column].set(xlabel="gray level", yticks=[])
        axes[1, 0].set_ylabel("pixels")
        figure.savefig(STATIC / "equalize.png", dpi=130)


def robust_t() -> None:
    """Rows of which a fifth is wrong: the Gaussian believes them, the t distribution does not."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([1.0, 2.0], [[1.0, 0.6], [0.6, 1.0]], 200)
    X[:40] = rng.normal([9.0, -6.0], 1.0, (40, 2))
    gaussian, robust = lk.Gaussian.fit(X), lk.StudentT.fit(X)
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
        ax.scatter(*X[40:].T, s=14, color=INK, alpha=0.55, linewidths=0, label="160 regular rows")
        ax.scatter(*X[:40].T, s=16, color=PALETTE[1], marker="x", linewidths=1, label="40 outliers")
        heavy = f"Student t, {float(robust.dof):.1f} degrees of freedom"
        rings = {"Gaussian": (gaussian.mean, gaussian.covariance), heavy: (robust.center, robust.scale)}
        for (name, (center, spread)), color in zip(rings.items(), (PALETTE[1], PALETTE[0]), strict=True):
            ring = circle @ np.linalg.cholesky(spread).T
            ax.plot(*(center + ring).T, color=color, lw=1.8, label=name)
            ax.plot(*(center + 2 * ring).T, color=color, lw=1.8, alpha=0.5)
            ax.plot(*center, "+", color=color, ms=11, mew=2)
        ax.set(xlabel="x₀", ylabel="x₁", title="20 % outliers: one- and two-scale ellipses about each center")
        ax.legend(loc="lower left")
        figure.savefig(STATIC / "robust_t.png", dpi=130)


def report() -> None:
    """The head and the map of a report on the wines, photographed by a browser where there is one."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("figures: no browser on the path, report.png stays as it is")
        return
    with tempfile.TemporaryDirectory() as folder:
        X, y, names = wine()
        costs = "action,Barolo,Grignolino,Barbera\nBarolo,0,1,9\nGrignolino,5,0,1\nBarbera,1,1,0\n"
        Path(folder, "cost.csv").write_text(costs, encoding="utf-8")
        pl.DataFrame(X, schema=names).with_columns(pl.Series("cultivar", y.tolist())).write_csv(f"{folder}/wine.csv")
        command = "fit wine.csv --target cultivar --cost cost.csv --reject-cost 0.3 --no-baselines --report r.html -q"
        subprocess.run([sys.executable, "-m", "likely", *command.split()], cwd=folder, check=True)
        page = Path(folder, "r.html").read_text(encoding="utf-8")
        hidden = "section:not(#plane){display:none}section#plane{border:0}nav{display:none}"
        Path(folder, "r.html").write_text(page.replace("</style>", hidden + "</style>", 1), encoding="utf-8")
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars --force-device-scale-factor=1"
        shot = [f"--user-data-dir={folder}/browser", f"--screenshot={STATIC / 'report.png'}", "--window-size=980,1390"]
        subprocess.run([browser, *flags.split(), *shot, f"file://{folder}/r.html"], check=True, capture_output=True)


if __name__ == "__main__":
    STATIC.mkdir(parents=True, exist_ok=True)
    ney_3_8()
    every_distribution()
    decisions()
    borders()
    neighbors_and_bayes()
    maps()
    nearest_rows()
    nearest_centers()
    far_and_near()
    windows()
    rings()
    chow_trees()
    cut_expansions()
    fisher_of_wines()
    mixture()
    how_many()
    variances()
    tree_of_wines()
    scree()
    scores()
    chains()
    states()
    utterance()
    level_with_gap()
    robot()
    volatility()
    regimes_of_a_pump()
    predictive_bands()
    crossing_lines()
    growth_and_recession()
    clutter()
    divergence()
    laplace_of_a_rate()
    sums()
    equalized()
    robust_t()
    report()
    tour_picture(*wine()).savefig(STATIC / "tour.png", dpi=130)
