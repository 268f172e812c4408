"""Estimator of the Chow–Liu tree of discrete columns."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from likely.core.warnings import tell
from likely.distributions.categorical.chow_liu import ChowLiuTree
from likely.distributions.categorical.pair_counts import UNKNOWN, codes_of, joined_levels, levels_of, pseudo_pair_counts
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.distributions.estimators.vocabulary_codes import coded, refuse_unlike_words, worded
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator
from likely.estimation.input_validation import foreign, refuse_dates
from likely.estimation.sparse_validation import checked_sparse

MANY, FEW = 64, 8  # levels beyond which a column looks continuous; for mostly unique fractions, beyond the second


class ChowLiuTreeDensity(DensityEstimator):
    """Chow–Liu tree of discrete columns: `model_` is a `ChowLiuTree`   (Chow and Liu 1968; named in Ney 2.6.2).

    Columns hold numbers of few levels, binary, ternary (−1, 0, 1) or more; levels are found in the data, at most
    512 per column and 8,192 in all, and `partial_fit` may add new ones. Pair counts are additive statistics, and the
    tree of highest likelihood is found exactly. NaN is summed out exactly, in scoring and, by EM, in fitting (with
    very many levels available pairs are counted, with a warning). In a classifier each class has its own tree. A
    level not seen in training has probability 0 (a classifier treats it as missing).

    - **words**: None for columns of numbers; the words of each column where columns hold strings, one list per column.
      A word that is none of them is treated as an unseen level.
    - **prior**: "weak" (one pseudo-row of independent columns with the pooled level frequencies), None for maximum
      likelihood, a number of such rows, or a `Prior`.

    >>> from likely.distributions.estimators.chow_tree_density import ChowLiuTreeDensity
    >>> t = ChowLiuTreeDensity().fit([[0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1]])
    >>> t.parents_.tolist(), t.levels_[0].tolist()
    ([-1, 0, 0], [0.0, 1.0])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "words": [list, tuple, None], "prior": [*PRIOR, Interval(Real, 0, None, closed="neither")], **EM,
    }  # fmt: skip

    def __init__(self, *, words: Any = None, prior: Any = "weak", max_iter: int = 100, tol: float = 1e-6) -> None:
        self.words = words
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    model_types = (ChowLiuTree,)
    _for_text = "say which words each column may hold: ChowLiuTreeDensity(words=[['n', 'y'], …])"
    traits = Traits(reports_unobserved=False, sketchable=False)  # levels must be found in all rows

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> ChowLiuTree:
        distribution = ChowLiuTree.blank(X, members)
        self._tell_of_measurements(
            [j for j, known in enumerate(distribution.levels) if _measured(known, X.shape[0])], distribution
        )
        return distribution

    def _tell_of_measurements(self, continuous: list[int], distribution: ChowLiuTree) -> None:
        if not continuous:
            return
        names = ", ".join(str(self.column_names()[j]) for j in continuous[:3]) + (", …" if len(continuous) > 3 else "")
        values = len(distribution.levels[continuous[0]])
        what = f"{_columns(len(continuous))} real numbers rather than few levels ({names}: {values} values)"
        text = "each value becomes a level of its own, and any other value has probability 0"
        tell(f"ChowLiuTreeDensity: {what}: {text}; bin them, or use GaussianDensity or KernelDensity")

    def extend_model(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        levels = joined_levels(model.levels, levels_of(X, "ChowLiuTreeDensity"))
        return model.grown(levels), stats.grown(levels)

    def prior_rule(self) -> Any:
        from likely.distributions.priors.pseudo_data import EarlierData

        if isinstance(self.prior, Real):
            strength = float(self.prior)
            return lambda model, stats: EarlierData.trusted(
                distribution=model, stats=pseudo_pair_counts(stats, strength)
            )
        return self.prior

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        if self.words is not None:
            return self._coded(X, reset)
        return checked_sparse(self, X, reset) if is_sparse(X) else super().validate_rows(X, reset)

    def _coded(self, X: Any, reset: bool) -> Any:
        """Words as their codes in the vocabulary."""
        refuse_unlike_words(self.words, "ChowLiuTreeDensity")
        X = foreign(X)
        refuse_dates(X, "ChowLiuTreeDensity")
        cells = validate_data(self, X, reset=reset, dtype=object, ensure_all_finite=False)
        return coded(cells, self.words, "ChowLiuTreeDensity")

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        return super().decode_rows(rows if self.words is None else worded(rows, self.words), like)

    def mask_unknown(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        unseen = codes_of(X.toarray() if scipy.sparse.issparse(X) else X, model.levels, "ChowLiuTreeDensity") == UNKNOWN
        if not unseen.any():
            return X, {}
        X = X.toarray() if scipy.sparse.issparse(X) else X
        names = self.column_names()
        return np.where(unseen, np.nan, X), {names[j]: unseen[:, j] for j in np.flatnonzero(unseen.any(axis=0))}

    @property
    def parents_(self) -> Any:
        """The parent of each column (d,); −1 at the root."""
        return self.model_.parent

    @property
    def levels_(self) -> Any:
        """The levels of each column."""
        return self.model_.levels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _measured(levels: Any, rows: int) -> bool:
    """True where a column looks continuous: very many levels, or fractions that are mostly unique."""
    broken = bool((levels != np.round(levels)).any())
    return len(levels) > MANY or (broken and len(levels) > max(FEW, rows / 2))


def _columns(n: int) -> str:
    return "1 column looks like" if n == 1 else f"{n} columns look like"
