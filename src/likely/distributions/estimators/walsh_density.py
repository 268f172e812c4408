"""Estimator of dependent binary columns: Rademacher–Walsh expansion, or log-linear (Ising) model."""

from __future__ import annotations

from typing import Any, ClassVar

from likely.distributions.binary.log_linear import LogLinear
from likely.distributions.binary.walsh import Walsh
from likely.distributions.estimators.binary_density import BINARY_SETTINGS, BinaryDensity


class WalshDensity(BinaryDensity):
    """Dependent binary columns: `model_` is a `Walsh` expansion, or with log=True a `LogLinear` model (Ney 2.6.2).

    - **order**: highest order of interaction: 1, 2 (pairs), …; more than there are columns means all of them.
    - **log**: False expands p(x): means, no iteration, but it can be negative: the positive part counts, and log p
      is −inf elsewhere, with a warning. True expands log p(x), which stays positive: exact maximum likelihood; missing
      values are integrated out, by EM.
    - **prior**: "weak" (one pseudo-row of independent columns about the pooled means), None for maximum likelihood, a
      number of such rows, or a `Prior`.
    - **threshold**: numbers above it are 1, the others 0, with a warning if there were any but 0 and 1 (or −1 and 1);
      None: anything but 0 and 1 is an error in `fit`, and has probability 0 afterwards.

    Both sum over all cells, of at most 20 columns; with more, use `ChowLiuTreeDensity`. Statistics are additive:
    `partial_fit` equals the batch. Sparse rows are made dense block by block.

    >>> from likely.distributions.estimators.walsh_density import WalshDensity
    >>> w = WalshDensity(2, log=True, prior=None).fit([[0, 0], [1, 1], [1, 1], [0, 1], [1, 0]])
    >>> w.model_.probabilities.round(6)
    array([0.2, 0.2, 0.2, 0.4])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**BINARY_SETTINGS, "log": ["boolean"]}

    def __init__(
        self, order: int = 2, log: bool = False, *, prior: Any = "weak", threshold: float | None = 0.0,
        max_iter: int = 100, tol: float = 1e-6,
    ) -> None:  # fmt: skip
        self.order = order
        self.log = log
        self.prior = prior
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol

    model_types = (Walsh, LogLinear)

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Walsh | LogLinear:
        distribution: Any = LogLinear if self.log else Walsh
        blank: Walsh | LogLinear = distribution.blank(X[:1], members, min(int(self.order), X.shape[1]))
        return blank

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        return isinstance(model, LogLinear if self.log else Walsh) and super().accepts_model(model, width, members)
