"""Online EM: stepwise statistics with slow forgetting of early models."""

from __future__ import annotations

from typing import Any

from likely.core.blocks import Blocks
from likely.core.em_loop import gather, reached, resolve_prior
from likely.core.engine import Threads
from likely.core.fit_report import FitReport

FORGETTING = 0.7  # step size η = (share of new rows)^0.7 (Cappé and Moulines)


def stepped(known: Any, new: Any) -> Any:
    """A_t = (1 − η) A_{t−1} + η s_t per row, for all rows so far; η = (n_t / N_t)^0.7."""
    before, fresh = known.total_weight, new.total_weight
    if not before > 0 or not fresh > 0:
        return known + new
    total = before + fresh
    eta = (fresh / total) ** FORGETTING
    return known * (total * (1 - eta) / before) + new * (total * eta / fresh)


def one_step(estimator: Any, X: Any, weight: Any) -> FitReport:
    """One EM step with more rows: after a `fit` statistics add, in a stream they are stepped."""
    model, known = estimator.extend_model(estimator.learned_model_, estimator.stats_, X)
    new = Threads().total(lambda block: gather(model, block, estimator.hard), Blocks.of(X, weight))
    stats = stepped(known, new) if estimator.is_online_ else known + new
    with estimator._named_columns():
        prior = resolve_prior(model, stats, estimator.prior_rule())
        model = model.refit(stats, prior)
    reason = "one step of EM for each call of partial_fit"
    return FitReport(model, stats, prior, False, reason, [reached(model, stats, prior)], streaming=True)
