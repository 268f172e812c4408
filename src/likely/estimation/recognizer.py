"""Base class of recognizers: parameters, fitted attributes and model files."""

from __future__ import annotations

from os import PathLike

from likely.estimation.base_estimator import BaseEstimator, check_is_fitted


class Recognizer(BaseEstimator):
    """Base class of recognizers that are not classifiers: get_params, set_params, clone, save.

    `saved_attributes` names the fitted attributes stored in a model file.
    """

    saved_attributes: tuple[str, ...] = ()

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model file that `lk.load` reads."""
        from likely.io.model_files import save

        save(self, path)

    def _check_fitted(self) -> None:
        """Raise NotFittedError before fitting."""
        check_is_fitted(self)
