"""Writes regression.json: ordinary and weighted least squares by statsmodels, on rows of a fixed seed.

Run it where statsmodels is installed: python tests/reference/make_regression.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def rows(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Regressors and a target; integers over powers of two, so that the file holds them exactly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4096, 4096, (n, d)) / 1024
    y = np.round((X @ np.arange(1, d + 1) + 3 + rng.standard_normal(n)) * 1024) / 1024
    return X, y


def fitted(
    X: np.ndarray, y: np.ndarray, constant: bool, level: float = 0.9, variance: np.ndarray | None = None
) -> dict:
    import statsmodels.api as sm

    design = sm.add_constant(X) if constant else X
    model = sm.OLS(y, design) if variance is None else sm.WLS(y, design, weights=1 / variance)
    found = model.fit()
    new = design[:3] * 1.5
    new[:, 0] = 1.0 if constant else new[:, 0]
    predicted = found.get_prediction(new)
    names = ("rsquared", "rsquared_adj", "fvalue", "f_pvalue", "llf", "aic", "bic", "df_resid")
    return {
        "X": X.tolist(), "y": y.tolist(), "variance": None if variance is None else variance.tolist(),
        "constant": constant, "level": level, "params": found.params.tolist(), "bse": found.bse.tolist(),
        "tvalues": found.tvalues.tolist(), "pvalues": found.pvalues.tolist(),
        "conf_int": found.conf_int(1 - level).tolist(), "cov": found.cov_params().tolist(),
        "sigma": float(np.sqrt(found.scale)), "new": new.tolist(), "mean": predicted.predicted_mean.tolist(),
        "interval": predicted.conf_int(obs=True, alpha=1 - level).tolist(),
        **{name: float(getattr(found, name)) for name in names},
    }  # fmt: skip


def made() -> dict:
    X, y = rows(1, 40, 3)
    deficient, z = rows(2, 30, 3)
    deficient[:, 2] = deficient[:, 0] - deficient[:, 1]
    variance = np.random.default_rng(3).integers(1, 9, 40) / 4
    return {
        "with constant": fitted(X, y, True),
        "without constant": fitted(X, y, False),
        "rank deficient": fitted(deficient, z, True),
        "heteroscedastic": fitted(X, y, True, variance=variance),
    }


if __name__ == "__main__":
    Path(__file__).with_name("regression.json").write_text(json.dumps(made(), indent=1) + "\n")
