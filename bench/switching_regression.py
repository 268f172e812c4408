"""Markov-switching regressions beside statsmodels: log-likelihood and CPU time, on its documented examples.

Run it where likely and statsmodels are installed: python bench/switching_regression.py

Both maximize the same likelihood, with the stationary distribution of the first state. A row is the median of ten fits;
the first fit of the process, which loads compiled code, stands apart. statsmodels starts once, from its default; the
example of three states is given its documented random search. The series come with the tests of statsmodels.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import likely as lk
from likely.linear_model import SwitchingRegression

FITS = 10
TIED = {"tied_noise": True}
WIDTHS = (13, 13, 12, 8, 9, 7, 8)


def examples() -> dict[str, tuple[Callable[[], Any], dict, np.ndarray, np.ndarray | None, dict]]:
    """statsmodels' model, our settings, the series, regressors, and arguments of statsmodels' fit."""
    from statsmodels.tsa.regime_switching.markov_autoregression import MarkovAutoregression
    from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression
    from statsmodels.tsa.regime_switching.tests import test_markov_autoregression
    from statsmodels.tsa.regime_switching.tests import test_markov_regression as data

    rate, returns, mumps = (np.asarray(getattr(data, n), dtype=float) for n in ("fedfunds", "areturns", "mumpspc"))
    gnp = np.asarray(test_markov_autoregression.rgnp, dtype=float)
    X = np.column_stack([data.ogap, data.inf]).astype(float)
    rule = np.column_stack([rate[3:-1], X[4:]])

    def shifted(y: np.ndarray) -> np.ndarray:
        return y[:-1]

    def adjusted(order: int, **more: Any) -> dict:
        return {"lags": order, "mean_adjusted": True, **more}

    common = {"shared": ["lags"]}
    return {
        "funds rate: intercept": (lambda: MarkovRegression(rate, 2), TIED, rate, None, {}),
        "funds rate: lag": (
            lambda: MarkovRegression(rate[1:], 2, exog=shifted(rate)), {"lags": 1, **TIED}, rate, None, {}),
        "funds rate: lag, gap, inflation": (
            lambda: MarkovRegression(rate[4:], 2, exog=rule), {"lags": 1, **TIED}, rate[3:], X[3:], {}),
        "funds rate: the same, 3 states": (
            lambda: MarkovRegression(rate[4:], 3, exog=rule), {"n_states": 3, "lags": 1, **TIED}, rate[3:], X[3:],
            {"search_reps": 50}),
        "returns: 3 variances": (
            lambda: MarkovRegression(returns, 3, trend="n", switching_variance=True),
            {"n_states": 3, "constant": False}, returns, None, {}),
        "returns: lag and variance": (
            lambda: MarkovRegression(returns[1:], 2, exog=shifted(returns), switching_variance=True),
            {"lags": 1}, returns, None, {}),
        "mumps: lag without constant": (
            lambda: MarkovRegression(mumps[1:], 2, trend="n", exog=shifted(mumps), switching_variance=True),
            {"lags": 1, "constant": False}, mumps, None, {}),
        "GNP: Hamilton, order 4": (
            lambda: MarkovAutoregression(gnp, 2, order=4, switching_ar=False),
            adjusted(4, **common, **TIED), gnp, None, {}),
        "GNP: order 2": (
            lambda: MarkovAutoregression(gnp, 2, order=2, switching_ar=False),
            adjusted(2, **common, **TIED), gnp, None, {}),
        "GNP: order 1, switching": (
            lambda: MarkovAutoregression(gnp, 2, order=1, switching_ar=True), adjusted(1, **TIED), gnp, None, {}),
        "GNP: order 4 and variance": (
            lambda: MarkovAutoregression(gnp, 2, order=4, switching_ar=False, switching_variance=True),
            adjusted(4, **common), gnp, None, {}),
        "GNP: order 1, 3 states": (
            lambda: MarkovAutoregression(gnp, 3, order=1, switching_ar=False),
            adjusted(1, n_states=3, **common, **TIED), gnp, None, {}),
        "returns: order 1 and variance": (
            lambda: MarkovAutoregression(returns, 2, order=1, switching_ar=False, switching_variance=True),
            adjusted(1, **common), returns, None, {}),
    }  # fmt: skip


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """The last result, CPU time of the first fit, and the median of ten."""
    each, found = [], None
    for _ in range(FITS):
        begin = time.process_time()
        found = fit()
        each.append(time.process_time() - begin)
    return found, each[0], statistics.median(each)


def main(only: str = "") -> None:
    import statsmodels

    warnings.simplefilter("ignore")
    versions = f"statsmodels {statsmodels.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    print(f"likely {lk.__version__}, {versions}; log-likelihoods, CPU seconds of theirs, of ours, and of our first fit")
    heads = zip(("statsmodels", "likely", "difference", "theirs", "ours", "ratio", "first"), WIDTHS, strict=True)
    print(f"{'example':34}" + "".join(f"{head:>{width}}" for head, width in heads))
    for name, (peer, settings, y, X, how) in examples().items():
        if only not in name:
            continue
        np.random.seed(12345)  # noqa: NPY002 — statsmodels' search draws from it
        theirs, _, slow = timed(lambda p=peer, h=how: p().fit(disp=False, **h))
        model = SwitchingRegression(**{"n_states": 2, **settings}, prior=None, random_state=0)
        ours, first, fast = timed(lambda m=model, y=y, X=X: m.fit(y, X))
        value, reached = float(theirs.llf), ours.log_prob(y, X)
        flag = "" if reached >= value - 1e-4 else "  LOWER"
        flag += "" if ours.report_.converged else "  not converged"
        cells = (f"{value:.5f}", f"{reached:.5f}", f"{reached - value:.5f}", f"{slow:.3f}", f"{fast:.4f}",
                 f"{slow / fast:.1f}", f"{first:.3f}")  # fmt: skip
        line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
        print(f"{name:34}{line}{flag}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
