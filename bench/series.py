"""Series that everybody knows: the Nile, CO₂ at Mauna Loa, airline passengers, beside statsmodels in the same run.

    python bench/series.py                     all sections, and the page docs/results/time-series.md
    python bench/series.py --only nile         sections whose name contains one of these; the others of the page stay

Data come from LIKELY_DATA, else from ../shared/data. Rows of statsmodels are made in the same run, if it is there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likely import LinearGaussian, LinearGaussianDensity
from likely.statespace import structural_components
from pages import Page

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "timeseries"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "time-series.md"
YEAR = 365.25 / 7  # weeks
HELD = 5 * 52  # weeks of CO₂, of which each quarter begins a forecast
AHEAD = (4, 13, 26, 52)
PREFACE = """# Results: structural time series

By `python bench/series.py` (data from `LIKELY_DATA`). Variances are learned as users do it, by `LinearGaussianDensity`
with its settings as they come (EM, then steps along the exact gradient) and exact diffuse initialization. Rows of
*statsmodels* are its own numbers, `UnobservedComponents` by its default optimizer, made in the same run; only
the log-likelihood of its variances is computed here, since its own leaves out the first frames unless asked not to.
Seconds were taken on a busy machine with two cores: orders of magnitude only.
"""


def column(name: str) -> Any:
    lines = (DATA / f"{name}.csv").read_text().split()[1:]
    return np.array([float(line.split(",")[-1] or "nan") for line in lines])


def learned(model: LinearGaussian, y: Any, form: Any = None) -> tuple[Any, Any, float]:
    """The model with its variances learned, the report, and seconds."""
    model.collect(y)  # loads the compiled loops
    begin = time.perf_counter()
    found = LinearGaussianDensity(model, ["process_covariance", "observation_covariance"], form=form).fit(y)
    seconds = time.perf_counter() - begin
    print(f"  … {found.n_iter_} passes, {seconds:.1f} s, {found.report_.reason}", file=sys.stderr, flush=True)
    return found.model_, found.report_, seconds


def peer(y: Any, **options: Any) -> tuple[Any, float] | None:
    """What statsmodels makes of it, and its seconds; None where it is not installed."""
    try:
        from statsmodels.tsa.statespace.structural import UnobservedComponents
    except ImportError:
        return None
    begin = time.perf_counter()
    found = UnobservedComponents(y, **options).fit(disp=False, maxiter=500)
    seconds = time.perf_counter() - begin
    print(f"  … statsmodels, {seconds:.1f} s", file=sys.stderr, flush=True)
    return found, seconds


# ------------------------------------------------------------------------ tables


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; numbers stand right."""
    rule = ["---" if i == 0 else "--:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in (head, rule, *rows))


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)


class Ahead(NamedTuple):
    """Forecasts beside what came: errors, and whether each lay within its 95 % and 50 % intervals."""

    error: Any
    within: Any
    half: Any

    @classmethod
    def of(cls, mean: Any, std: Any, came: Any) -> Ahead:
        error = came - mean
        return cls(error, _share(np.abs(error) <= 1.959964 * std, error), _share(np.abs(error) <= 0.67449 * std, error))


def _share(true: Any, error: Any) -> Any:
    """1 or 0, NaN where nothing came."""
    return np.where(np.isnan(error), np.nan, true)


def rms(error: Any) -> float:
    return float(np.sqrt(np.nanmean(np.square(error))))


# -------------------------------------------------------------------------- Nile


def nile(_: bool = False) -> str:
    y = column("Nile")
    half = float(np.var(y)) / 2
    model, report, seconds = learned(LinearGaussian.local_level(half, half), y)
    row = (
        float(model.observation_covariance[0, 0]),
        float(model.process_covariance[0, 0]),
        float(model.log_prob(y)[0]),
        seconds,
    )
    rows = [("from equal halves of the variance", *row), *_peer_nile(y)]
    text = table(["local level, 100 years", "observation", "level", "exact diffuse log-likelihood", "s"], rows)
    level = model.smooth(y)
    text += f"\n\nPublished: 15099 and 1469 (Durbin and Koopman). Learning took {report.iterations} passes. "
    before, after = level.mean[:28, 0].mean(), level.mean[28:, 0].mean()
    return text + f"The smoothed level is {before:.0f} on average until 1898, and {after:.0f} from then on."


def _peer_nile(y: Any) -> Iterator[Sequence[Any]]:
    found = peer(y, level="llevel", use_exact_diffuse=True)
    if found is not None:
        yield "statsmodels", *map(float, found[0].params), float(found[0].llf), found[1]


# ----------------------------------------------------------------------- airline


def passengers(level: float, season: float, observation: float) -> LinearGaussian:
    return LinearGaussian.local_trend(level, 0.0, observation) + LinearGaussian.seasonal(12, season)


def airline(_: bool = False) -> str:
    y = np.log(column("AirPassengers"))
    form = {"process_covariance": np.array([1, 0, 2] + [0] * 10)}
    model, _, seconds = learned(passengers(1e-3, 1e-4, 1e-3), y[:120], form)
    ahead = model.forecast(y[:120], 24)
    found = [
        float(x)
        for x in (model.process_covariance[0, 0], model.process_covariance[2, 2], model.observation_covariance[0, 0])
    ]
    judged = _judged(ahead.mean[:, 0], ahead.std[:, 0], y[120:])
    rows = [("likely", *found, float(model.log_prob(y[:120])[0]), *judged, seconds), *_peer_airline(y)]
    names = ("level", "season", "observation", "exact diffuse log-likelihood", "error", "within 95 %", "s")
    text = table(["log passengers, first ten years learned", *names], rows)
    rise = y[108:120] - y[96:108]
    naive = np.concatenate([y[108:120] + rise, y[108:120] + 2 * rise])
    text += (
        "\n\nThe slope is constant in both models. *error* is the root mean square over the last 24 months, in logs "
    )
    return text + f"(0.05 is 5 %); the year before, with its own rise once or twice, has {rms(naive - y[120:]):.4f}."


def _judged(mean: Any, std: Any, came: Any) -> tuple[float, float]:
    a = Ahead.of(mean, std, came)
    return rms(a.error), float(np.nanmean(a.within))


def _peer_airline(y: Any) -> Iterator[Sequence[Any]]:
    found = peer(y[:120], level="lldtrend", seasonal=12)
    if found is None:
        return
    model, seconds = found
    named = dict(zip(model.param_names, map(float, model.params), strict=True))
    ahead = model.get_forecast(24)
    judged = _judged(np.asarray(ahead.predicted_mean), np.asarray(ahead.se_mean), y[120:])
    variances = [named.get(f"sigma2.{name}", 0.0) for name in ("level", "seasonal", "irregular")]
    yield "statsmodels", *variances, float(passengers(*variances).log_prob(y[:120])[0]), *judged, seconds


# --------------------------------------------------------------------------- CO₂


def weekly(level: float, slope: float, waves: float, observation: float) -> list[LinearGaussian]:
    """Trend and season, whose sum is the model."""
    season = LinearGaussian.seasonal(YEAR, waves, form="trigonometric", harmonics=4)
    return [LinearGaussian.local_trend(level, slope, observation), season]


STARTS = {"likely": (1e-2, 1e-7, 1e-5, 1e-1), "from ten times that": (1e-1, 1e-6, 1e-4, 1.0), "from 1": (1.0,) * 4}


def co2(_: bool = False) -> str:
    y = column("mauna_loa_co2_weekly")
    rows, judged, models = [], [], []
    for name, start in STARTS.items():
        form = {"process_covariance": np.array([1, 2] + [3] * 8)}
        model, report, seconds = learned(sum(weekly(*start)), y[:-HELD], form)
        found = [float(x) for x in (*np.diagonal(model.process_covariance)[:3], model.observation_covariance[0, 0])]
        passes = f"{report.iterations}{'' if report.converged else ', not converged'}"
        rows.append((name, *found, float(model.log_prob(y[:-HELD])[0]), passes, seconds))
        judged.append(_row(name, forecasts(y, lambda o, model=model: _ahead(model, y[:o]))))
        models.append(model)
    told, theirs = _peer_co2(y)
    judged += [*([_row("statsmodels", theirs)] if theirs else []), _row("a year before", _naive(y))]
    names = ("level", "slope", "waves", "observation", "exact diffuse log-likelihood", "passes", "s")
    text = table(["CO₂, weekly until 1996", *names], [*rows, *told])
    first = ", ".join(f"{x:g}" for x in STARTS["likely"])
    apart = np.ptp([row[5] for row in rows])
    text += (
        f"\n\nLearning began at {first} in the first row, at ten times that, and with all variances 1: the three are "
    )
    text += f"{apart:.2g} nats apart. "
    text += "Forecasts of a year from the end of every quarter of the last five years, variances as learned before:\n\n"
    text += table(["error, ppm", *(f"{weeks} weeks" for weeks in AHEAD), "within 95 %", "within 50 %"], judged)
    text += "\n\n*a year before* adds the rise of the year before to the value of its week. "
    return text + _told(models[0], y)


def _told(model: LinearGaussian, y: Any) -> str:
    up, wave = structural_components(model.smooth(y), *weekly(*STARTS["likely"]))
    rises = [(k, float((up.mean[a + 520, 0] - up.mean[a, 0]) / (520 / YEAR))) for k, a in _decades()]
    text = "The smoothed trend rises by " + ", ".join(f"{rise:.2f} ppm a year from {k}" for k, rise in rises)
    text += f"; the season swings by {np.ptp(wave.mean[:52, 0]):.1f} ppm in the first year and by "
    text += f"{np.ptp(wave.mean[-52:, 0]):.1f} in the last. {int(np.isnan(y).sum())} of {len(y)} weeks are missing."
    return text


def _decades() -> Iterator[tuple[int, int]]:
    for year in (1960, 1970, 1980, 1990):
        yield year, round((year - 1958.24) * YEAR)


def _ahead(model: LinearGaussian, y: Any) -> tuple[Any, Any]:
    found = model.forecast(y, 52)
    return found.mean[:, 0], found.std[:, 0]


def forecasts(y: Any, ask: Callable[[int], tuple[Any, Any]]) -> list[Ahead]:
    """A year ahead from the end of every quarter of what was held out."""
    starts = range(len(y) - HELD, len(y) - 51, 13)
    return [Ahead.of(*ask(o), y[o : o + 52]) for o in starts]


def _row(name: str, found: list[Ahead]) -> Sequence[Any]:
    errors = np.array([a.error for a in found])
    cover = [np.nanmean([getattr(a, part) for a in found]) for part in ("within", "half")]
    shown = ["–" if np.isnan(c) else f"{100 * c:.1f} %" for c in cover]
    return name, *(f"{rms(errors[:, weeks - 1]):.3f}" for weeks in AHEAD), *shown


def _naive(y: Any) -> list[Ahead]:
    """The value of its week a year before, plus that year's rise (of four weeks, which have no gap)."""

    def ask(o: int) -> tuple[Any, Any]:
        rise = np.nanmean(y[o - 4 : o]) - np.nanmean(y[o - 56 : o - 52])
        return y[o - 52 : o] + rise, np.full(52, np.nan)

    found = forecasts(y, ask)
    return [Ahead(a.error, np.full(52, np.nan), np.full(52, np.nan)) for a in found]


def _peer_co2(y: Any) -> tuple[list[Sequence[Any]], list[Ahead]]:
    found = peer(y[:-HELD], level="lltrend", freq_seasonal=[{"period": YEAR, "harmonics": 4}])
    if found is None:
        return [], []
    model, seconds = found
    named = dict(zip(model.param_names, map(float, model.params), strict=True))
    waves = next(value for name, value in named.items() if "freq_seasonal" in name)
    variances = (named["sigma2.level"], named["sigma2.trend"], waves, named["sigma2.irregular"])
    row = ("statsmodels", *variances, float(sum(weekly(*variances)).log_prob(y[:-HELD])[0]), "–", seconds)

    def ask(o: int) -> tuple[Any, Any]:
        ahead = model.apply(y[:o]).get_forecast(52)
        return np.asarray(ahead.predicted_mean), np.asarray(ahead.se_mean)

    return [row], forecasts(y, ask)


# ---------------------------------------------------------------------- the page

SECTIONS: dict[str, Callable[[bool], str]] = {"The Nile": nile, "Airline passengers": airline, "CO₂ at Mauna Loa": co2}


if __name__ == "__main__":
    Page(PAGE, PREFACE, SECTIONS, DATA).main("series", __doc__)
