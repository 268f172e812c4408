"""What a recognizer is to those around it: settings with names, something learned, and a file that holds both."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from likely.estimation.base_estimator import BaseEstimator


class Recognizer(BaseEstimator):
    """For recognizers that decide nothing about classes: get_params, set_params, clone, save.

    `_saved` names what a model file keeps besides the settings.
    """

    _saved: tuple[str, ...] = ()

    def save(self, path: Any) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.io.model_files import save

        save(self, path)

    def _check_fitted(self) -> None:
        """NotFittedError before anything was learned."""
        check_is_fitted(self)
