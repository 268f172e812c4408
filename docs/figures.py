"""Draws every picture of the documentation into docs/_static; `./run docs` calls it before it builds."""

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
from likely.estimators.examples import wine
from likely.plots.chains import chain
from likely.plots.clouds import cloud, regimes
from likely.plots.density import DensityDisplay
from likely.plots.evaluation import decision_map
from likely.plots.factors import ScoresDisplay, ScreeDisplay
from likely.plots.learning import components, trace
from likely.plots.sequences import occupancy, trellis
from likely.plots.states import bands
from likely.plots.theme import INK, PALETTE, themed
from likely.plots.tour import tour_picture
from likely.plots.tracks import track
from likely.plots.transcripts import words
from likely.plots.trees import dendrogram

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


def decisions() -> None:
    """What is decided where: three cultivars, a band where it refuses, and grey where nothing like it was seen."""
    X, y, names = wine()
    at = [names.index("flavanoids"), names.index("color intensity")]
    clf = lk.BayesClassifier().fit(X[:, at], y)
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
        decision_map(clf, X[:, at], y, ax=ax, steps=400, reject_below=0.8, novelty=0.02)
        ax.set(xlabel=names[at[0]], ylabel=names[at[1]], title="White: refused. Grey: unlike any wine seen")
        figure.savefig(STATIC / "decisions.png", dpi=130)


def mixture() -> None:
    """Wines without their labels: three parts, rows in the colours of their responsibilities, and how EM came there."""
    X, _, names = wine()
    at = [names.index("flavanoids"), names.index("color intensity")]
    m = lk.MixtureDensity(lk.GaussianDensity("full"), 3, restarts=8, random_state=0).fit(X[:, at])
    colours = np.array([to_rgb(c) for c in PALETTE[:3]])
    with themed() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained", width_ratios=(1.3, 1))
        for k in range(3):
            DensityDisplay.from_model(m.model_.parts.member(k), ax=left, color=PALETTE[k], names=["", ""])
        left.scatter(*X[:, at].T, c=m.model_.posterior(X[:, at]) @ colours, s=14, edgecolor="white", linewidth=0.3)
        left.set(xlabel=names[at[0]], ylabel=names[at[1]], title="178 wines, labels hidden: three parts")
        trace(m.report_, right)
        figure.savefig(STATIC / "mixture.png", dpi=130)


def how_many() -> None:
    """Three clouds: what BIC, rows left out and a sparse prior say of their number."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.0, (150, 2)) for c in ([0, 0], [4, 0], [2, 4])])
    choice = lk.choose_components(lk.MixtureDensity(random_state=0, max_iter=500), X, range(1, 9))
    with themed() as plt:
        figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
        components(choice, ax).set_title("How many components?")
        figure.savefig(STATIC / "components.png", dpi=130)


def variances() -> None:
    """A wide and a narrow cloud: spheres of one size cut the wide one, spheres of their own sizes do not."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([0, 0], 3.0, (300, 2)), rng.normal([6, 0], 0.4, (100, 2))])
    grid = np.stack(np.meshgrid(np.linspace(-11, 9.5, 1025), np.linspace(-10, 9, 950)), axis=-1)
    with themed() as plt:
        figure, both = plt.subplots(1, 2, figsize=(9.0, 4.3), layout="constrained")
        for ax, kind, title in zip(both, ("equal", "own"), ("One variance", "A variance each"), strict=True):
            found = lk.KMeans(2, variances=kind, restarts=5, random_state=0).fit(X)
            wide = np.bincount(found.labels_).argmax()
            colours = [PALETTE[0] if k == wide else PALETTE[1] for k in found.labels_]
            ax.scatter(*X.T, c=colours, s=12, edgecolor="white", linewidth=0.3)
            side = found.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
            ax.contour(grid[..., 0], grid[..., 1], side, levels=[0.5], colors=[INK], linewidths=1.0)
            ax.scatter(*found.cluster_centers_.T, marker="+", s=90, color=INK, linewidth=1.6)
            ax.set(title=title, xlim=(-11, 9.5), ylim=(-10, 9), aspect="equal", xticks=[], yticks=[])
        figure.savefig(STATIC / "variances.png", dpi=130)


def tree_of_wines() -> None:
    """Wines merged as Ward does: the tree, and what its cuts are worth."""
    X, _, _ = wine()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    tree = lk.linkage(Z)
    curve = lk.cut_curve(tree, Z, most=10)
    with themed() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained", width_ratios=(1.7, 1))
        dendrogram(tree, left, cut=curve.best, labels=["1 row"] * len(Z), most=24)
        right.plot(curve.k, curve.bic, color=PALETTE[0], marker=".")
        right.plot(curve.best, curve.bic.min(), "o", color=PALETTE[1], ms=9, mfc="none", mew=1.6)
        right.set(xlabel="clusters", ylabel="BIC", title="What a cut is worth", xticks=curve.k)
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
        ax.set_title(f"178 wines: two axes of thirteen hold {1 - p.relative_error_:.0%} of the variance")
        figure.savefig(STATIC / "scores.png", dpi=130)


def chains() -> None:
    """Three models: with a null state, left-to-right with skips, ergodic."""
    rng = np.random.default_rng(0)
    moves = [[0.6, 0, 0, 0.4], [0, 0.5, 0.5, 0], [0, 0, 0.7, 0], [0, 0.6, 0.4, 0]]
    null = lk.HMM([1, 0, 0, 0], moves, lk.Gaussian([[0.0], [3.0], [6.0]], 1.0), [0, 0, 0.3, 0])
    rises = [np.repeat([0.0, 2.0, 5.0, 9.0], rng.integers(0, 6, 4) + [1, 0, 0, 1]) for _ in range(60)]
    skips = lk.HMMDensity(states=4, topology=(0, 1, 2)).fit(
        [r + rng.normal(0, 0.5, len(r)) for r in rises if len(r) > 2]
    )
    walk = np.repeat(rng.choice([0.0, 4.0, 8.0], 60), rng.integers(2, 9, 60))
    free = lk.HMMDensity(states=3, random_state=0).fit(walk + rng.normal(0, 1, len(walk)))
    with themed() as plt:
        figure, both = plt.subplot_mosaic("ac;bc", figsize=(10.0, 4.6), layout="constrained", width_ratios=(1.45, 1))
        titles = ("The middle part may be left out", "Stay, go on, or skip one", "All from all")
        for name, model, title in zip("abc", (null, skips, free), titles, strict=True):
            chain(model, both[name]).set_title(title, loc="left")
        figure.savefig(STATIC / "chains.png", dpi=130)


def states() -> None:
    """A signal, the states behind it shaded by their probability, and, as a stack, what was known at the time."""
    rng = np.random.default_rng(4)
    x = np.repeat([0.0, 3.0, 1.2, 3.0, 0.0], [25, 20, 30, 12, 33]) + rng.normal(0, 0.9, 120)
    h = lk.HMMDensity(states=3, random_state=0).fit([x])
    names = [f"about {abs(m):.0f}" for m in h.model_.emissions.mean.ravel()]
    trellis(h, x, names=names, columns=["signal"]).figure.savefig(STATIC / "trellis.png", dpi=130)
    occupancy(h, x, names=names, columns=["signal"], lag=0).figure.savefig(STATIC / "occupancy.png", dpi=130)


def utterance() -> None:
    """Gestures in a row, noisy: which they were, when, and how sure one may be."""
    rng = np.random.default_rng(3)
    courses = {"up": [-2, 0, 2], "down": [2, 0, -2], "wave": [0, 2, 0, -2, 0]}

    def made(word: str, noise: float) -> np.ndarray:
        return np.concatenate([rng.normal(level, noise, (rng.integers(2, 7), 1)) for level in courses[word]])

    labels = np.repeat(list(courses), 40)
    density = lk.HMMDensity(lk.GaussianDensity("diagonal"), states=5, topology=(0, 1, 2))
    known = lk.BayesClassifier(density).fit([made(word, 0.9) for word in labels], labels)
    x = np.concatenate([made(word, 0.9) for word in ("wave", "up", "down", "up", "wave")])
    heard = lk.WordNetwork.of(known).decode(x)
    words(heard, x).figure.savefig(STATIC / "words.png", dpi=130)


def level_with_gap() -> None:
    """A wandering level with a gap: its band, which is wide where nobody looked, and what comes."""
    level = lk.LinearGaussian.local_level(noise=1.0, observation=4.0, start=([20.0], 1.0))
    y = level.sample(1, np.random.default_rng(5), 110)[0].copy()
    y[45:65] = np.nan
    guess = lk.LinearGaussian.local_level(noise=1.0, observation=4.0)
    bands(guess, y, ahead=15, names="level").figure.savefig(STATIC / "bands.png", dpi=130)


def robot() -> None:
    """A robot that knows its distance from two beacons: the smoothed track, with ellipses."""
    beacons = np.array([[0.0, 0.0], [10.0, 0.0]])
    moving = lk.LinearGaussian.constant_velocity(dim=2, dt=0.5, noise=0.2)
    laws = lk.StateSpace(
        lk.Gaussian([2.0, 4.0, 1.0, 0.5], 0.5),
        lambda x: lk.Gaussian(x @ moving.transition.T, moving.noise),
        lambda x: lk.Gaussian(np.linalg.norm(x[:, None, :2] - beacons, axis=2), 0.05),
    )
    seen = laws.sample(1, np.random.default_rng(11), 60)
    ranges = seen.observations[0].copy()
    ranges[20:28] = np.nan
    ax = track(lk.UnscentedFilter(laws).smooth(ranges), truth=seen.states[0], ellipses=40)
    ax.plot(*beacons.T, "^", color=INK, markersize=8)
    ax.set_title("60 frames, ranges to two beacons (▲), silent for eight frames", loc="left")
    ax.figure.savefig(STATIC / "track.png", dpi=130)


def volatility() -> None:
    """Stochastic volatility: particles over time around the volatility that was."""
    laws = lk.StateSpace(
        lk.Gaussian([-1.0], 0.64),
        lambda x: lk.Gaussian(-1.0 + 0.95 * (x + 1.0), 0.0625),
        lambda x: lk.Gaussian(np.zeros_like(x), np.exp(x), kind="diagonal"),
    )
    seen = laws.sample(1, np.random.default_rng(2), 150)
    run = lk.ParticleFilter(laws, 5000, seed=1).run(seen.observations[0])
    cloud(run, truth=seen.states[0], name="log-volatility").figure.savefig(STATIC / "cloud.png", dpi=130)


def regimes_of_a_pump() -> None:
    """A series that is calm, then wild: what was seen, and the probabilities of its regimes at the time."""
    calm, wild = (lk.LinearGaussian([[0.98]], [[q]], [[1.0]], [[0.5]], [0.0], [[1.0]]) for q in (0.01, 1.0))
    jump = lk.SwitchingLinear([calm, wild], [[0.98, 0.02], [0.05, 0.95]], [1.0, 0.0])
    z, _, y = jump.simulate(1, np.random.default_rng(4), 200)
    run = lk.RaoBlackwell(jump, 500, seed=1).run(y[0])
    regimes(run, y[0], names=["calm", "wild"], truth=z[0]).figure.savefig(STATIC / "regimes.png", dpi=130)


def clutter() -> None:
    """A target among false echoes, and the track that was confirmed."""
    rng = np.random.default_rng(1)
    moving = lk.LinearGaussian.constant_velocity(
        dim=2, dt=1.0, noise=0.02, observation=0.1, start=([0, 0, 1, 0.6], 0.01)
    )
    states, seen = moving.simulate(1, rng, 60)
    false = [rng.uniform([-10, -30], [90, 60], (rng.poisson(5), 2)) for _ in range(60)]
    scans = [np.vstack([y, f]) if rng.random() < 0.9 else f for y, f in zip(seen[0], false, strict=True)]
    rule = {"clutter": 5 / (100 * 90), "detection": 0.9, "speed": 2.0}
    found = lk.Tracker(dim=2, noise=0.02, observation=0.1, **rule).run(scans)
    ax = track(found, seen=scans, truth=states[0], ellipses=30)
    ax.set_title("Five false echoes a scan: the track that was confirmed", loc="left")
    ax.figure.savefig(STATIC / "clutter.png", dpi=130)


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
        command = "fit wine.csv --target cultivar --cost cost.csv --reject-cost 0.3 --no-rivals --report r.html --quiet"
        subprocess.run([sys.executable, "-m", "likely", *command.split()], cwd=folder, check=True)
        page = Path(folder, "r.html").read_text(encoding="utf-8")
        hidden = "section:not(#plane){display:none}section#plane{border:0}nav{display:none}"
        Path(folder, "r.html").write_text(page.replace("</style>", hidden + "</style>", 1), encoding="utf-8")
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars --force-device-scale-factor=1"
        shot = [f"--user-data-dir={folder}/browser", f"--screenshot={STATIC / 'report.png'}", "--window-size=980,1390"]
        subprocess.run([browser, *flags.split(), *shot, f"file://{folder}/r.html"], check=True, capture_output=True)


if __name__ == "__main__":
    STATIC.mkdir(exist_ok=True)
    ney_3_8()
    decisions()
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
    clutter()
    report()
    tour_picture(*wine()).savefig(STATIC / "tour.png", dpi=130)
