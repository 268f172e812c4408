"""`likely tour`: a short demonstration on the wine data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.option(
    "-o", "--output", "out", default="likely-tour", show_default=True, metavar="FOLDER", help="Output folder."
)
def tour(out: str) -> None:
    """Demonstrate the library on the wine data: density, missing values, prediction, files, plots, decisions."""
    from likely.cli.example_data import wine

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    X, y, names = wine()
    for title, chapter in _CHAPTERS:
        click.secho(f"\n{title}", bold=True)
        chapter(X, y, names, folder)
    click.echo(f"\nSee {folder / 'tour.png'}, {folder / 'summary.html'} and {folder / 'report.html'}.")


def _learn(X: Any, y: Any, names: list[str], folder: Path) -> None:
    import likely as lk

    columns = ["alcohol", "flavanoids", "color intensity"]
    density: Any = lk.GaussianDensity().fit(X[:, [names.index(c) for c in columns]])
    density.feature_names_in_ = columns
    click.echo(str(density.summary()))
    (folder / "summary.html").write_text(density.summary().to_html(page=True), encoding="utf-8")


def _additive_statistics(X: Any, y: Any, names: list[str], folder: Path) -> None:
    import numpy as np

    import likely as lk

    whole = lk.Gaussian.fit(X)
    halves = whole.collect(X[:90]) + whole.collect(X[90:])
    gap = np.abs(whole.refit(halves).covariance - whole.covariance).max() / np.abs(whole.covariance).max()
    click.echo(f"sufficient statistics of 90 and of 88 wines, added, give the covariance of all up to {gap:.0e}")


def _missing_values(X: Any, y: Any, names: list[str], folder: Path) -> None:
    import numpy as np

    import likely as lk

    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    report = lk.fit(lk.Gaussian.blank(holes), holes, stop=lk.StoppingRule(200, 1e-6))
    full, filled = lk.Gaussian.fit(X), report.model
    off = np.abs(filled.mean - full.mean) / np.sqrt(full.variance)
    click.echo(f"a fifth of all entries removed: {'converged' if report.converged else 'NOT converged'} "
               f"after {report.iterations} EM iterations")  # fmt: skip
    click.echo(f"means are off by {off.mean():.3f} standard deviations on average, {off.max():.3f} at worst")


def _few_rows(X: Any, y: Any, names: list[str], folder: Path) -> None:
    import numpy as np

    import likely as lk

    columns = [names.index(c) for c in ("alcohol", "flavanoids", "color intensity", "hue")]
    wines = np.random.default_rng(0).permutation(X[y == "Barbera"][:, columns])
    few, rest = wines[:7], wines[7:]
    stats = lk.Gaussian.fit(few).collect(few)
    prior = lk.priors.NormalInverseWishart.weak(stats)
    plain, honest = lk.Gaussian.fit(few), prior.update(stats).predictive()
    click.echo("seven training samples with four features; mean log-density of the other samples (higher is better):")
    click.echo(f"  maximum likelihood (plug-in)                {plain.log_prob(rest).mean():8.2f}")
    click.echo(f"  posterior predictive (Student t)            {honest.log_prob(rest).mean():8.2f}")


def _mixed_columns(X: Any, y: Any, names: list[str], folder: Path) -> None:
    import numpy as np

    import likely as lk

    rows = lk.core.Columns(
        taste=X[:, [names.index("alcohol"), names.index("flavanoids")]],
        magnesium=np.round(X[:, names.index("magnesium")]), cultivar=y,
    )  # fmt: skip
    parts = [
        ("taste", lk.GaussianDensity()), ("magnesium", lk.PoissonDensity()), ("cultivar", lk.CategoricalDensity()),
    ]  # fmt: skip
    density = lk.ProductDensity(parts).fit(rows)
    lk.save(density, folder / "wine.likely")
    again = lk.load(folder / "wine.likely")
    same = bool((again.score_samples(rows) == density.score_samples(rows)).all())
    click.echo(f"a real vector, a count and a category in one density: {density.score(rows):.3f} nats per sample")
    click.echo(f"saved to {folder / 'wine.likely'}, read back: {'bit-for-bit the same' if same else 'DIFFERENT'}")


def _draw(X: Any, y: Any, names: list[str], folder: Path) -> None:
    from likely.plots.tour_figure import tour_picture

    tour_picture(X, y, names).savefig(folder / "tour.png", dpi=150)
    click.echo(f"figure: {folder / 'tour.png'}")


COSTS = """\
action,Barolo,Grignolino,Barbera
Barolo,0,9,9
Grignolino,2,0,1
Barbera,2,1,0
"""


def _decide(X: Any, y: Any, names: list[str], folder: Path) -> None:
    """The same as `likely fit wine.csv --target class --cost cost.csv --reject-cost 0.3 --report report.html`."""
    import polars as pl

    import likely as lk
    from likely.cli.console import Console
    from likely.cli.fitting.fit_job import Job
    from likely.cli.fitting.fit_run import run_job
    from likely.cli.fitting.model_facts import verdict

    table = pl.DataFrame({name: X[:, j] for j, name in enumerate(names)}).with_columns(pl.Series("class", y))
    table.write_csv(folder / "wine.csv")
    (folder / "cost.csv").write_text(COSTS, encoding="utf-8")
    wines, cost, report, out = (str(folder / name) for name in ("wine.csv", "cost.csv", "report.html", "model.likely"))
    job = Job((wines,), "class", cost=cost, reject_cost=0.3, baselines=False, report=report, out=out)
    fit_run = run_job(job, Console(quiet=True))
    click.echo(f"$ {job.command}")
    assert fit_run.contest is not None  # of classifiers of rows
    click.echo(f"{len(fit_run.contest.results)} models were compared. {verdict(fit_run.contest)}")
    click.echo(f">>> print(lk.load({job.out!r}).decide(wines[83], full=True))")
    click.echo(str(lk.load(job.out).decide(table[83], full=True)))


_CHAPTERS = (
    ("Fitting a density", _learn),
    ("Additive sufficient statistics", _additive_statistics),
    ("Missing values (EM)", _missing_values),
    ("Small samples: posterior predictive distribution", _few_rows),
    ("Mixed column types, and a model file without pickle", _mixed_columns),
    ("Plots", _draw),
    ("Classification with costs and a reject option", _decide),
)
