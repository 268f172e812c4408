"""Model-based clustering: each row belongs to its most probable mixture component."""

from __future__ import annotations

from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin

from likely.core.arrays import Array, Index, Rows, Seed, Targets
from likely.core.engine import map_rows
from likely.core.protocols import PriorLike
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_constraints import Interval
from likely.mixture.estimators.mixture_density import MixtureDensity, TiedParameters
from likely.mixture.initialization import Initialization
from likely.mixture.mixture import Mixture


class MixtureClusterer(ClusterMixin, MixtureDensity):
    """Model-based clustering by a mixture.

    `labels_` are the most probable components, `predict_proba` their posterior probabilities. All settings are those of
    `MixtureDensity`.

    Parameters
    ----------
    component : DensityEstimator, optional
        The estimator of one component; None: `GaussianDensity()`.
    n_components : int or None, default 8
        Number of clusters; None chooses it by BIC among 1 … 10, as `choose_components` does.
    tie : {"covariance", "covariance per class", "all"}, optional
        What components share.
    early_stopping : float, optional
        Proportion of held-out rows; EM stops when their likelihood no longer improves.

    Attributes
    ----------
    model_ : Mixture
        The fitted density.
    labels_ : ndarray of int (n,)
        Cluster of each training row.
    n_components_ : int
        Number of clusters.

    See Also
    --------
    MixtureDensity : Density estimation by the same model.
    KMeans : Clusters of equal, spherical shape.
    choose_components : The number of components.

    References
    ----------
    Bishop (2006), chapter 9.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (100, 2)) for m in (-4.0, 4.0)])
    >>> lk.MixtureClusterer(n_components=None, random_state=0).fit(X).n_components_
    2
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        **MixtureDensity._parameter_rules,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self, component: DensityEstimator | None = None, n_components: int | None = 8, *,
        tie: TiedParameters | None = None, prior: PriorLike | float = "weak",
        init: Initialization | Mixture | ArrayLike = "k-means++", n_init: int = 1, max_iter: int = 100,
        tol: float = 1e-6, hard: bool = False, random_state: Seed = None, early_stopping: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            component, n_components, tie=tie, prior=prior, init=init, n_init=n_init, max_iter=max_iter,  # type: ignore[arg-type]
            tol=tol, hard=hard, random_state=random_state, early_stopping=early_stopping,
        )  # fmt: skip

    def fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None, *, lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit to rows X (n, d); `y` is ignored, and `lengths` are those of `MixtureDensity`."""
        X = self._cut(X, lengths)
        if self.n_components is None:
            self.chosen_ = self._choose(X, sample_weight)
        super().fit(X, y, sample_weight, checkpoint)
        self.labels_ = self.predict(X)
        return self

    def fit_predict(self, X: Rows, y: Targets | None = None, **settings: Any) -> Index:
        """Fit to rows and return their clusters.

        Parameters
        ----------
        **settings : settings
            Settings of `fit`, such as `sample_weight`.
        """
        return self.fit(X, y, **settings).labels_

    def _choose(self, X: Any, sample_weight: Any) -> int:
        """The number of components of least BIC."""
        from likely.mixture.estimators.choose_components import choose_components

        self._validate_params()
        settings = {**self.get_params(deep=False), "n_components": 1}
        self.choice_ = choose_components(MixtureDensity(**settings), X, sample_weight=sample_weight, criteria=("bic",))
        return self.choice_.best["bic"]

    @property
    def _size(self) -> int:
        """Number of clusters: as given, or as chosen by BIC."""
        return self.__dict__.get("chosen_", 1) if self.n_components is None else self.n_components

    @property
    def n_components_(self) -> int:
        """Number of components of the learned mixture."""
        return int(self.model_.size)

    def predict(self, X: Rows, lengths: ArrayLike | None = None) -> Index:
        """The most probable component of each row (n,)."""
        check_is_fitted(self)
        rows = self.mask_unknown(self.validate_rows(self._cut(X, lengths), reset=False), self.learned_model_)[0]
        return map_rows(self.model_.most_probable, rows, None, np.intp)

    def predict_proba(self, X: Rows, lengths: ArrayLike | None = None) -> Array:
        """Posterior probabilities p(k | x) of each row.

        Returns
        -------
        ndarray (n, K)
            Posterior probabilities of the clusters.
        """
        check_is_fitted(self)
        rows = self.validate_rows(self._cut(X, lengths))
        return self.model_.posterior(self.mask_unknown(rows, self.learned_model_)[0])
