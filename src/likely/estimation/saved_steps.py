"""Pipelines and scalers of scikit-learn that model files may hold.

A file holds no code, so a pipeline can be saved if each of its steps can: a model of likely, or `StandardScaler`. What
`lk.load` gives is a subclass of scikit-learn's class with the same settings and the same answers.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn import pipeline, preprocessing

from likely.core.description import Description
from likely.core.errors import DataError, sentence
from likely.estimation.base_estimator import whole_state
from likely.io.registry import class_for


class Pipeline(pipeline.Pipeline):  # type: ignore[misc, unused-ignore]
    """A pipeline whose steps can all be saved.

    >>> import likely as lk
    >>> from sklearn.pipeline import make_pipeline
    >>> X = [[0.0, 1.0], [1.0, 0.0], [3.0, 2.0], [4.0, 2.0]]
    >>> steps = make_pipeline(lk.PCA(1), lk.BayesClassifier()).fit(X, [0, 0, 1, 1])
    >>> from likely.io.model_files import dumps, loads
    >>> loads(dumps(steps)).predict([[3.0, 2.0]]).tolist()
    [1]
    """

    stands_for: ClassVar[type] = pipeline.Pipeline
    saved_attributes: tuple[str, ...] = ()

    def why_not_saved(self) -> tuple[str, str, str] | None:
        """Expected, got and remedy, if some step or setting cannot be in a file."""
        foreign = next(((name, step) for name, step in self.steps if not _is_storable(step)), None)
        if foreign is not None:
            kind = type(foreign[1])
            expected = f'step "{foreign[0]}" of the pipeline must be a model of likely or a StandardScaler'
            return (
                expected,
                f"{kind.__module__}.{kind.__qualname__}",
                "save the other steps, and apply this one in code",
            )
        if self.memory is not None:
            return "a pipeline is saved without its cache", "memory", "set_params(memory=None)"
        return None

    def describe(self) -> Description:
        """Each step in turn."""
        parts = {n: step.describe() if hasattr(step, "describe") else Description(str(step)) for n, step in self.steps}
        sections = [part.plus(title=f"{name}: {part.title}") for name, part in parts.items()]
        return Description(type(self).__name__, [f"steps: {', '.join(parts)}"], sections=sections)

    def check_state(self) -> None:
        """After loading a file: steps have names of their own, and all but the last transform."""
        sound = all(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in self.steps)
        sound = sound and len({name for name, _ in self.steps}) == len(self.steps) > 0 and self.memory is None
        sound = sound and all(_is_storable(step) for _, step in self.steps)
        sound = sound and all(_is_idle(step) or hasattr(step, "fit") for _, step in self.steps)
        if not (sound and all(_is_idle(step) or hasattr(step, "transform") for _, step in self.steps[:-1])):
            raise DataError(sentence("Pipeline", "steps must be pairs of a name and an estimator, with distinct names"))
        self._refuse_widths()

    def _refuse_widths(self) -> None:
        """Raise an error for a fitted step that takes another number of columns than the step before it gives."""
        before, width = "", None
        for name, step in self.steps:
            if _is_idle(step):
                continue
            taken = getattr(step, "n_features_in_", None)
            if width is not None and taken is not None and taken != width:
                expected = f'step "{name}" must take as many columns as step "{before}" gives ({width})'
                raise DataError(sentence("Pipeline", expected, taken, "fit the pipeline as a whole"))
            before, width = name, _width_of_output(step)


def _width_of_output(step: Any) -> int | None:
    """Number of columns that a fitted step gives; None if it is not fitted, or gives no columns."""
    if isinstance(step, pipeline.Pipeline):
        inner = [one for _, one in step.steps if not _is_idle(one)]
        return _width_of_output(inner[-1]) if inner else None
    own: int | None = getattr(step, "n_features_in_", None)
    return getattr(step, "_n_features_out", own) if hasattr(step, "transform") else None


def _is_idle(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def _is_storable(step: Any) -> bool:
    return _is_idle(step) or class_for(step) is not None


class StandardScaler(preprocessing.StandardScaler):  # type: ignore[misc, unused-ignore]
    """Columns scaled to mean 0 and variance 1, as a step of a saved pipeline."""

    stands_for: ClassVar[type] = preprocessing.StandardScaler
    saved_attributes: tuple[str, ...] = (
        "mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def describe(self) -> Description:
        """Means and scales of the columns."""
        names = [name for name in ("mean_", "scale_", "n_samples_seen_") if name in vars(self)]
        fitted = {name.rstrip("_"): vars(self)[name] for name in names}
        return Description.of_fields(type(self).__name__, fitted or self.get_params())

    def check_state(self) -> None:
        """After loading a file: one mean and one positive scale per column."""
        if not whole_state(self):
            return
        asked = {"mean_": self.with_mean or self.with_std, "var_": self.with_std, "scale_": self.with_std}
        arrays = [getattr(self, name) for name, there in asked.items() if there]
        sound = all(_is_row(a, self.n_features_in_) for a in arrays) and (not self.with_std or (self.scale_ > 0).all())
        sound = sound and all(getattr(self, name) is None for name, there in asked.items() if not there)
        seen = np.asarray(self.n_samples_seen_)
        if not (sound and seen.dtype.kind in "iuf" and seen.shape in ((), (self.n_features_in_,))):
            raise DataError(sentence("StandardScaler", "means and scales must be finite, one per column"))


def _is_row(a: Any, size: int) -> bool:
    return isinstance(a, np.ndarray) and a.shape == (size,) and a.dtype.kind == "f" and bool(np.isfinite(a).all())
