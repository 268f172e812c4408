"""Writes series.json: exact diffuse log-likelihoods and smoothed signals by statsmodels, at given variances.

Run it where statsmodels is installed, with the data at hand: python tests/reference/make_series.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data") / "timeseries"


def column(name: str) -> np.ndarray:
    lines = (DATA / f"{name}.csv").read_text().split()[1:]
    return np.array([float(line.split(",")[-1] or "nan") for line in lines])


def components(y: np.ndarray, named: dict, **options) -> dict:
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    model = UnobservedComponents(y, use_exact_diffuse=True, **options)
    assert sorted(model.param_names) == sorted(named), model.param_names
    found = model.smooth([named[name] for name in model.param_names])
    level = np.asarray(found.level.smoothed) if found.level is not None else np.zeros(len(y))
    return {"log_prob": float(found.llf), "level": level[:: max(1, len(y) // 10)].tolist()}


def autoregression(y: np.ndarray, phi: list[float], noise: float) -> dict:
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    model = SARIMAX(y, order=(len(phi), 0, 0))
    return {"log_prob": float(model.loglike([*phi, noise]))}


def made() -> dict:
    nile, air, co2, huron = (
        column("Nile"),
        np.log(column("AirPassengers")),
        column("mauna_loa_co2_weekly"),
        column("LakeHuron"),
    )
    common = {"sigma2.irregular": 1e-3, "sigma2.level": 4e-4, "sigma2.trend": 1e-6}
    cycle = {"sigma2.cycle": 30.0, "frequency.cycle": 2 * np.pi / 7.5, "damping.cycle": 0.9}
    return {
        "nile": components(nile, {"sigma2.irregular": 15099.0, "sigma2.level": 1469.0}, level="llevel"),
        "nile with a cycle": components(
            nile, {"sigma2.irregular": 15099.0, "sigma2.level": 1469.0, **cycle},
            level="llevel", cycle=True, stochastic_cycle=True, damped_cycle=True,
        ),
        "air, dummies": components(air, {**common, "sigma2.seasonal": 6e-5}, level="lltrend", seasonal=12),
        "air, waves": components(
            air, {**common, "sigma2.freq_seasonal_12(6)": 1e-5}, level="lltrend", freq_seasonal=[{"period": 12}]
        ),
        "co2": components(
            co2[2:802:4],  # every fourth week: of weekly waves its exact diffuse phase does not end
            {"sigma2.irregular": 0.05, "sigma2.level": 0.02, "sigma2.trend": 1e-6,
             "sigma2.freq_seasonal_13.044375(3)": 1e-4},
            level="lltrend", freq_seasonal=[{"period": 52.1775 / 4, "harmonics": 3}],
        ),
        "huron": autoregression(huron - 579.0, [1.04, -0.25], 0.5),
    }  # fmt: skip


if __name__ == "__main__":
    import statsmodels

    told = {"version": f"statsmodels {statsmodels.__version__}", **made()}
    Path(__file__).with_name("series.json").write_text(json.dumps(told, indent=1) + "\n")
