"""The component protocol: what a classifier, a mixture or an HMM needs of the density estimator inside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.random import Generator

from likely.core.blocks import Block


@dataclass(frozen=True)
class Traits:
    """Properties of a component that the estimator around it must know.

    - **sequences**: a row is a sequence (`lk.Ragged`), not a vector.
    - **latent**: the density has latent variables of its own, as a mixture has: it is fitted by EM, and `initialize`
      must break the symmetry of its parts.
    - **sketchable**: a blank model needs only a sample of the rows; False where levels or edges come from all rows.
    - **second_pass**: `scoring_model` chooses hyperparameters in a second pass over the rows.
    - **reports_unobserved**: the distribution itself warns of columns without observed values.
    """

    sequences: bool = False
    latent: bool = False
    sketchable: bool = True
    second_pass: bool = False
    reports_unobserved: bool = True


@runtime_checkable
class Component(Protocol):
    """A density estimator that can be the density of a class, the component of a mixture or the emission of an HMM.

    `DensityEstimator` implements all methods but `blank_model`. A stack is a model with a leading axis of members.
    """

    traits: Traits

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        """Validated rows in the form of the model; `reset` stores the number and names of columns."""
        ...

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Any:
        """A model for rows like these before fitting, or a stack of `members`."""
        ...

    def initialize(self, blank: Any, X: Any, labels: Any, weight: Any, rng: Generator, run: int = 0) -> Any:
        """The initial model of a run of EM: the members of a stack from rows with labels; without labels, one model."""
        ...

    def prior_rule(self) -> Any:
        """The `prior` argument of `lk.fit`: a Prior, "weak", None, or a function of (model, stats)."""
        ...

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Block | None = None, choose: bool = True) -> Any:
        """The model that scores, from the fitted one: the same, or a predictive distribution, or a shrunk covariance.

        `choose`: hyperparameters are chosen anew, from the rows where given, else from the statistics.
        """
        ...

    def mask_unknown(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        """Rows with unknown levels replaced by missing values, and the mask of such rows (n,) by column."""
        ...

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        """Rows of the model in the form of the input, the inverse of `validate_rows`; or of the rows `like`."""
        ...

    def extend_model(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        """The model and statistics so far, extended for new levels or columns in X."""
        ...


# Public names of estimators that other estimators and model files use, and users do not: `dir` leaves them out.
INTERNAL = frozenset(name for name in vars(Component) if not name.startswith("_")) | {
    "traits", "learned_model_", "model_types", "accepts_model", "column_names", "column_titles", "strict_support",
    "member_noun", "in_words",
    "saved_attributes", "check_state", "file_settings", "why_not_saved", "held_out_novelty_scores", "refit_once",
    "scoring_model_of", "blank_mixture", "blocks_of", "is_hard", "run_em", "checked_rows", "as_online_filter",
    "unseen_categories",
}  # fmt: skip
