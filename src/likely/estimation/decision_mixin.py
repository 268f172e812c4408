"""Decision mixin of classifiers: predictions, minimum-cost decisions, reject option and novelty from posteriors."""

from __future__ import annotations

from contextlib import AbstractContextManager
from numbers import Real
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.core.arrays import Array, Mask, Rows, Targets
from likely.core.description import Description
from likely.core.docstrings import complete
from likely.core.errors import DomainError, sentence
from likely.core.warnings import Note, warnings_once, warnings_renamed
from likely.decision.combine import change_log_prior
from likely.decision.cost import Cost, CostLike
from likely.decision.decide import decisions_from
from likely.decision.posteriors import ClassPrior, class_shares
from likely.estimation.base_estimator import ClassifierMixin, check_is_fitted, is_fitted
from likely.estimation.class_labels import checked_labels, labeled_things
from likely.estimation.novelty.novelty_score import warn_of_support
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions

ClassPriorLike: TypeAlias = 'Literal["uniform"] | ClassPrior | None'  # of classifiers: None are relative frequencies
UNIFORM = StrOptions({"uniform"})
RULES = {  # constraints of the decision parameters
    "cost": ["array-like", dict, HasMethods(["expected"]), HasMethods(["to_numpy"]), None],
    "reject_cost": [Interval(Real, 0, None, closed="left"), None],
    "reject_below": [Interval(Real, 0, 1, closed="both"), None],
}
NO_DENSITY = "have density 0 under every class: the class prior decides"  # except for novel rows
NOVELTY = {"novelty": [Interval(Real, 0, 1, closed="neither"), None]}  # of generative classifiers


@complete
class Deciding(ClassifierMixin):
    """Mixin for a classifier with `classes_`, `class_prior_`, `log_posterior(X)` (n, C): predictions and decisions."""

    classes_: Any
    class_prior_: Any

    @property
    def _fit_calibrates(self) -> bool:
        """Whether each fit learns its own calibration map."""
        return False

    def log_posterior(self, X: Any) -> Array:
        """Log posterior probabilities log p(c | x) of each row (n, C), columns in the order of `classes_`."""
        raise NotImplementedError  # abstract

    def predict_log_proba(self, X: Rows) -> Array:
        """Log posterior probabilities log p(c | x) of each row (n, C), columns in the order of `classes_`."""
        return self.log_posterior(X)

    def predict_proba(self, X: Rows) -> Array:
        """Posterior probabilities p(c | x) of each row (n, C), columns in the order of `classes_`."""
        return np.exp(self.log_posterior(X))

    def predict(self, X: Rows) -> NDArray[Any]:
        """The class of smallest expected cost (n,), without the reject option; see `decide`."""
        check_is_fitted(self)
        P = self.predict_proba(X)
        cost = self._cost_of(None)
        return self.classes_[P.argmax(axis=1) if cost is None else cost.predicted(P)]

    def score(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the share of rows whose predicted class is the label; every row needs one."""
        checked_labels(y, None, type(self).__name__, each=labeled_things(X))
        return float(super().score(X, y, sample_weight))

    def decide(
        self, X: Rows, *, cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None, class_prior: ClassPriorLike = None,
        full: bool = False,
    ) -> Any:  # fmt: skip
        """Decide about each row: the action of least expected cost, or a rejection.

        The expected cost of action a is Σ_c cost[a, c] p(c | x). Arguments that are None default to the parameters of
        the classifier; without costs the loss is 0/1, so that the most probable class is chosen.

        Parameters
        ----------
        cost : Cost, matrix (A, C) or dict, optional
            Cost of each action (row) for each true class (column), in the order of `classes_`; a `Cost`, a data frame
            or {action: {class: cost}} may name them. Further actions beyond the classes are possible, such as "ask".
        reject_cost : float, optional
            Cost of rejecting: a row is rejected if every action has a larger expected cost.
        reject_below : float, optional
            A row is rejected if its largest posterior probability is below it.
        novelty : float, optional
            False-alarm rate, of generative classifiers: a row is novel (an outlier) if p(x) is smaller than for all but
            this share of held-out training rows, and wherever p(x) = 0.
        class_prior : {"uniform"}, array-like (C,) or dict, optional
            Class probabilities in place of those of training: in the order of `classes_`, or by label.
        full : bool, default False
            Return `Decisions`: choices with expected costs, posteriors, runner-up and reasons.

        Returns
        -------
        ndarray (n,) or Decisions
            Per row a label of `classes_`, the name of a further action, `lk.REJECT` for a rejected row, or `lk.NOVEL`
            for an outlier; compare with `is` or `==`.

        See Also
        --------
        decide : Decisions from posterior probabilities.
        Cost : Cost tables.
        """
        check_is_fitted(self)
        cost = getattr(self, "cost", None) if cost is None else cost
        reject_cost = getattr(self, "reject_cost", None) if reject_cost is None else reject_cost
        reject_below = getattr(self, "reject_below", None) if reject_below is None else reject_below
        novelty = getattr(self, "novelty", None) if novelty is None else novelty
        novel, why = (None, None) if novelty is None else self._novel(X, novelty)
        with warnings_once(*(() if novelty is None else (_decided_elsewhere,))):
            if class_prior is None:
                P = self.predict_proba(X).astype(np.float64, copy=False)
            else:
                P = np.exp(change_log_prior(self.log_posterior(X), self.class_prior_, self._prior_for(class_prior)))
        return decisions_from(
            P, self.classes_, cost=cost, reject_cost=reject_cost, reject_below=reject_below, novel=novel,
            why_novel=why, full=full,
        )  # fmt: skip

    def predict_frame(self, X: Any, **how: Any) -> Any:
        """Decisions, their expected costs and all posteriors as a data frame of the same library as X.

        Parameters
        ----------
        X : data frame (n, d)
            Samples.
        **how : settings
            Settings of `decide`.

        Returns
        -------
        data frame
            One row per sample: "decision", "cost", and "p(class)" per class.
        """
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        done = self.decide(X, full=True, **how)
        columns: dict[str, Any] = {"decision": [_plain(c) for c in done.choice], "cost": done.cost}
        columns |= {f"p({c})": done.posterior[:, i] for i, c in enumerate(self.classes_)}
        return nw.from_dict(columns, backend=frame.implementation).to_native()

    def describe(self) -> Description:
        """Classes, what rows are compared with, and the decision rule; of an unfitted classifier, its settings."""
        from likely.estimation.classifier_description import classifier_description

        if not is_fitted(self):
            found: Description = super().describe()  # type: ignore[misc]
            return found
        return classifier_description(self).plus(text=self._compares())

    def _compares(self) -> list[str]:
        """What rows are compared with, as sentences."""
        return []

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model file that `lk.load` reads."""
        from likely.io.model_files import save

        save(self, path)

    # ------------------------------------------------------------------- inside

    def file_settings(self) -> dict[str, Any]:
        """Parameters as stored in a file: costs as a `Cost`, class probabilities in the order of the classes."""
        settings: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        classes = getattr(self, "classes_", None)
        if hasattr(settings.get("cost"), "columns") or not _has_text_keys(settings.get("cost")):
            settings["cost"] = Cost.from_any(settings["cost"])
        if not _has_text_keys(settings.get("class_prior")) and classes is not None:
            settings["class_prior"] = self._prior_for(settings["class_prior"]).tolist()
        return settings

    def _spoken(self, inner: Any) -> AbstractContextManager[None]:
        """Context manager: warnings and errors of an inner classifier are reported in the name of this one."""
        return warnings_renamed(type(self).__name__, type(inner).__name__)

    def _novel(self, X: Any, rate: float) -> tuple[Mask | None, Any]:
        remedy = "use BayesClassifier, or omit novelty"
        raise DomainError(sentence(type(self).__name__, "novelty needs a model of p(x)", remedy=remedy))

    def held_out_novelty_scores(self) -> Array | None:
        """Novelty scores and weights (2 or more, m) of held-out training rows, for thresholds; None without p(x)."""
        return None

    def _warn_of_novelty(self) -> None:
        """After fitting: warn of the supported false-alarm rate, if `novelty` is smaller."""
        rate: float | None = getattr(self, "novelty", None)
        if rate is None:
            return
        kept = self.held_out_novelty_scores()
        if kept is not None and kept.shape[1]:
            warn_of_support(kept, rate, type(self).__name__)

    def _cost_of(self, cost: Any) -> Cost | None:
        """The costs for these classes, None for 0/1 loss."""
        cost = getattr(self, "cost", None) if cost is None else cost
        return None if cost is None else Cost.of(cost, self.classes_)

    def _prior_for(self, class_prior: Any) -> Array:
        return class_probabilities(class_prior, self.classes_, type(self).__name__)


def class_probabilities(given: Any, classes: Any, whose: str) -> Array:
    """Class probabilities in the order of `classes`: "uniform", a dict by label, or numbers in that order."""
    if isinstance(given, str):
        if given != "uniform":
            raise DomainError(sentence(whose, 'class_prior must be "uniform", numbers or a dict by label', repr(given)))
        return np.full(len(classes), 1.0 / len(classes))
    if isinstance(given, dict):
        missing = [c for c in classes.tolist() if c not in given]
        if missing or len(given) != len(classes):
            raise DomainError(sentence(whose, f"class_prior must name each class {classes.tolist()}", list(given)))
        given = [given[c] for c in classes.tolist()]
    return class_shares(given, len(classes), whose)


def _decided_elsewhere(note: Note) -> Note | None:
    """A warning, except the one on rows of density 0 that are novel."""
    return None if NO_DENSITY in note.text else note


def _has_text_keys(setting: Any) -> bool:
    """True for anything but a dict, or a dict with string keys only, recursively."""
    if not isinstance(setting, dict):
        return True
    return all(isinstance(key, str) and _has_text_keys(value) for key, value in setting.items())


def _plain(choice: Any) -> Any:
    choice = choice.item() if isinstance(choice, np.generic) else choice
    return choice if isinstance(choice, str | int | float) else str(choice)
