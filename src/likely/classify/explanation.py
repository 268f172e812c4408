"""Explanation of decisions: log-odds contribution of each column, and its effect on the expected cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.classify.calibration.calibration_maps import Calibration, IsotonicMap
from likely.classify.calibration.recalibration import applied
from likely.core.arrays import Array, Index, Mask
from likely.core.columns import Columns
from likely.core.description import Described, Description, DescriptionTable
from likely.core.errors import DataError, DomainError, sentence
from likely.core.ragged import Ragged
from likely.decision.cost import Cost
from likely.decision.decide import why_not_the_likeliest
from likely.distributions.gaussian.gaussian import Gaussian
from likely.hmm.hmm import HMM
from likely.numerics.special import LOG_2PI

NOTHING, SOMETHING = 5e-4, 1e-2  # log-odds printed as 0.000, and the threshold for a note
SATURATED = (
    "the calibration is saturated here: it gives one posterior with and without each column; these log-odds are those"
    " before it"
)
IMPOSSIBLE = "p(x) is 0: no class has a density here, and the class probabilities decide; with novelty= it is novel"
SHOWN = 12  # maximum number of printed columns per row
FRAMES, FRAME_COLUMNS = 8, 4  # of a sequence: printed frames, and columns whose values stand beside them
OF_FRAMES = "frames with the most evidence"
OF_SEQUENCES = (
    "Log-odds of a column are what it adds given all other columns: they need not add up. Those of a frame are what it"
    " adds given the frames before it: all frames and the class probabilities add up to the log-odds of the posterior"
)
NOTE = "Log-odds are what a column adds given all other columns: they need not add up."
CALIBRATED = (
    "Log-odds are what a column adds after calibration, given all other columns: they need not add up. Before"
    " calibration they add up to the log-odds of the uncalibrated posterior."
)
STEPWISE = (
    "Log-odds are those before calibration, given all other columns: the isotonic map is flat between its steps, where"
    " no column changes the calibrated posterior. They "
)
ADD_UP = "add up to the log-odds of the uncalibrated posterior."


@dataclass(frozen=True, eq=False)
class Explanation(Described):
    """Log-odds contribution of each column between the chosen class and the next best, for each row or sequence.

    `log_odds[i, j]` = log p(x_j | x_rest, decided) − log p(x_j | x_rest, runner_up): the change of the log-odds when
    column j becomes known after all others. In naive Bayes these add up, with the prior's, to the log-odds of
    the posterior. `cost_change[i, j]` is how much more (or less) the best decision is expected to cost when column j is
    marginalized out.

    With a calibration map, `log_odds`, `prior_log_odds` and the posterior are those after it, and `before` and
    `prior_before` those before it. In naive Bayes it is the latter that add up, to the log-odds of the uncalibrated
    posterior; after a map that is not linear (a temperature with a lapse rate, isotonic steps) they do not.

    Far outside, a calibration map may give the same posterior with and without each column. Such a row is
    `saturated`: its columns are then explained by `before`, the log-odds before the map. An isotonic map
    is flat between its steps everywhere (`stepwise`): there the text shows `before` and `prior_before` for all rows.

    Of sequences, a column is marginalized out in all frames, and `frames[i][t]` = log p(x_t | x_1 … x_{t−1}, decided) −
    log p(x_t | x_1 … x_{t−1}, runner_up), before calibration: with those of the class probabilities they add up to the
    log-odds of the uncalibrated posterior, `odds_before`. The text shows all log-odds of sequences before calibration.
    """

    columns: list[str]
    decided: NDArray[Any]  # (n,)
    runner_up: NDArray[Any]  # (n,)
    posterior: Array  # (n, C)
    classes: NDArray[Any]
    log_odds: Array  # (n, d)
    prior_log_odds: Array  # (n,)
    cost_change: Array  # (n, d)
    without: NDArray[Any]  # (n, d): the decision without each column
    values: list[list[Any]]  # (n, d): the cells
    before: Array | None = None  # (n, d): log-odds before calibration, where there was one
    impossible: Mask | None = None  # (n,): rows of density 0 under all classes, novel with `novelty`
    expected_costs: Array | None = None  # (n, C): expected cost of each class
    prior_before: Array | None = None  # (n,): log-odds of the class probabilities before calibration
    odds_before: Array | None = None  # (n,): log-odds of the posterior before calibration
    stepwise: bool = False  # the calibration map is constant in places
    frames: list[Array] | None = None  # n of (T,): log-odds of the frames of sequences under hidden Markov models
    frame_values: list[list[list[Any]]] | None = None  # n of (T, d): the cells of the frames

    @classmethod
    def of(cls, clf: Any, X: Any, calibration: Calibration | None = None) -> Explanation:
        """Explain the decisions of a fitted classifier for rows X, whose posteriors may go through a map."""
        rows, class_prior = clf._rows(X), clf.class_prior_
        raw, cost = clf._log_joint(rows), Cost.of(clf.cost, clf.classes_)
        joint = applied(calibration, raw)
        cost = (
            cost if cost.decides_classes else Cost.zero_one(cost.n_classes)
        )  # the log-joints by which classes are compared
        prior = applied(calibration, np.log(np.maximum(class_prior, 1e-300))[None])[0]
        P = _shares(joint, class_prior)
        expected = cost.expected_of(P)[:, : cost.n_classes]
        (decided, runner_up), least = _best_two(expected), expected.min(axis=1)
        odds, before, change, without = [], [], [], []
        conditional = _conditional(clf, rows) if calibration is None else None
        for j in range(_width(rows)):
            less = raw - conditional[:, :, j] if conditional is not None else _without(clf, rows, j)
            hidden = applied(calibration, less)
            odds.append(_log_odds_gain(joint, hidden, decided, runner_up))
            before.append(odds[-1] if calibration is None else _log_odds_gain(raw, less, decided, runner_up))
            blind = cost.expected_of(_shares(hidden, class_prior))[:, : cost.n_classes]
            change.append(blind.min(axis=1) - least)
            without.append(blind.argmin(axis=1))
        at, plain = np.arange(len(raw)), np.log(np.maximum(class_prior, 1e-300))
        with np.errstate(invalid="ignore"):
            odds_before = raw[at, decided] - raw[at, runner_up]
        shown = clf._decoded(rows)
        frames = _frame_log_odds(clf, rows, decided, runner_up)
        return cls(
            clf.column_names(), clf.classes_[decided], clf.classes_[runner_up], P, clf.classes_,
            np.stack(odds, axis=1), prior[decided] - prior[runner_up], np.stack(change, axis=1),
            clf.classes_[np.stack(without, axis=1)], _cells(shown),
            None if calibration is None else np.stack(before, axis=1), np.isneginf(raw).all(axis=1), expected,
            None if calibration is None else plain[decided] - plain[runner_up],
            None if calibration is None and frames is None else odds_before,
            stepwise=isinstance(calibration, IsotonicMap), frames=frames,
            frame_values=None if frames is None else [_cells(one) for one in shown],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.decided)

    @property
    def saturated(self) -> NDArray[np.bool_]:
        """Rows (n,) whose calibrated posterior does not change with any column, although some log-odds are large."""
        if self.before is None:
            return np.zeros(len(self), dtype=bool)
        flat = np.abs(self.log_odds).max(axis=1, initial=0.0) < NOTHING
        return np.asarray(flat & (np.abs(self.before).max(axis=1, initial=0.0) > SOMETHING))

    def _evidence(self, i: int) -> Array:
        """The log-odds of the columns of row i (d,), before a saturated calibration."""
        if self.before is not None and (self._shows_before or self.saturated[i]):
            return self.before[i]
        return self.log_odds[i]

    @property
    def _shows_before(self) -> bool:
        """Whether the text has log-odds before calibration: of steps, and of sequences, which have large ones."""
        return self.stepwise or self.frames is not None

    @property
    def note(self) -> str:
        """A note on the interpretation of the log-odds; empty if they add up to the log-odds of the posterior.

        Of a calibrated model, it says whether those before calibration add up to the uncalibrated log-odds.
        """
        if self.frames is not None:
            return f"{OF_SEQUENCES}{'' if self.before is None else ' before calibration, as all of them are'}."
        calibrated = self.before is not None and self.prior_before is not None and self.odds_before is not None
        before = calibrated and _add_up(self.prior_before, self.before, self.odds_before)
        if self.stepwise:
            return STEPWISE + (ADD_UP if before else "need not add up.")
        places = {c: k for k, c in enumerate(self.classes.tolist())}
        at = np.arange(len(self))
        ours, theirs = ([places[c] for c in side.tolist()] for side in (self.decided, self.runner_up))
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(self.posterior[at, ours]) - np.log(self.posterior[at, theirs])
        if _add_up(self.prior_log_odds, self.log_odds, odds):
            return ""
        return CALIBRATED if before else NOTE

    def cost_decided(self, i: int) -> str:
        """If the decision is not the most probable class, the explanation by costs; else ""."""
        names, top = self.classes.tolist(), int(self.posterior[i].argmax())
        decided = names.index(self.decided[i])
        if self.expected_costs is None or decided == top:
            return ""
        costs = self.expected_costs[i, [decided, top]]
        return why_not_the_likeliest(names[top], self.posterior[i, top], names[decided], *costs)

    def ranking(self, i: int) -> Index:
        """Columns of row i by absolute log-odds, largest first."""
        return np.argsort(-np.abs(self._evidence(i)), kind="stable")

    def records(self) -> Iterator[dict[str, Any]]:
        """One plain dict per row, for JSON."""
        for i in range(len(self)):
            yield {
                "decided": _as_python(self.decided[i]), "runner_up": _as_python(self.runner_up[i]),
                "posterior": {str(c): float(p) for c, p in zip(self.classes, self.posterior[i], strict=True)},
                "prior_log_odds": float(self.prior_log_odds[i]),
                **({} if self.prior_before is None else {"prior_log_odds_before": float(self.prior_before[i])}),
                "saturated": bool(self.saturated[i]),
                "impossible": self.impossible is not None and bool(self.impossible[i]),
                "reason": self.cost_decided(i) or None,
                "columns": [
                    {
                        "column": self.columns[j], "value": _as_python(self.values[i][j]),
                        "log_odds": float(self.log_odds[i, j]), "cost_change": float(self.cost_change[i, j]),
                        "without": _as_python(self.without[i, j]),
                        **({} if self.before is None else {"log_odds_before": float(self.before[i, j])}),
                    }
                    for j in self.ranking(i)
                ],
                **({} if self.frames is None else {"frames": self.frames[i].tolist()}),
            }  # fmt: skip

    def __str__(self) -> str:
        pages = "\n\n".join(page.to_text(indented=True) for page in self.pages())
        return "\n".join([pages, *filter(None, [self.note])])

    def describe(self) -> Description:
        """All rows as sections."""
        return Description("Explanation", notes=[self.note] * bool(self.note), sections=self.pages())

    def pages(self, names: Sequence[Any] | None = None) -> list[Description]:
        """The description of each row or sequence; `names` are those in a file: numbers, or IDs of sequences."""
        return [self._page(i, name) for i, name in enumerate(range(len(self)) if names is None else names)]

    def _page(self, i: int, name: Any) -> Description:
        share = self.posterior[i, self.classes.tolist().index(self.decided[i])]
        unit = "row" if self.frames is None else "sequence"
        title = f"{unit} {name}: {self.decided[i]} (posterior {share:.4g}), against {self.runner_up[i]}"
        prior = self.prior_before if self._shows_before and self.prior_before is not None else self.prior_log_odds
        evidence = self._evidence(i)
        rows = [("class probabilities", "", float(prior[i]), "", "")] + [
            (self.columns[j], _shown(self.values[i][j]), float(evidence[j]), float(self.cost_change[i, j]),
             str(self.without[i, j]))
            for j in self.ranking(i)
        ]  # fmt: skip
        head = ("column", "value" if unit == "row" else "typical value", "log-odds", "cost without", "decision without")
        formats = {head[1]: ".5g", "log-odds": "+.3f", "cost without": "+.4g"}
        tables = [DescriptionTable("", head, rows, formats, "with less evidence", most=SHOWN + 1)]
        notes = [SATURATED] if self.saturated[i] and self.frames is None else []
        notes += [IMPOSSIBLE] if self.impossible is not None and self.impossible[i] else []
        tables += [] if self.frames is None else [self._frame_table(i)]
        return Description(title, [reason for reason in [self.cost_decided(i)] if reason], tables=tables, notes=notes)

    def _frame_table(self, i: int) -> DescriptionTable:
        """The frames with the largest absolute log-odds in order of time, then all others together."""
        assert self.frames is not None and self.frame_values is not None
        odds, cells = self.frames[i], self.frame_values[i]
        names = self.columns if len(self.columns) <= FRAME_COLUMNS else []
        top = np.sort(np.argsort(-np.abs(odds), kind="stable")[:FRAMES])
        rows = [(str(t), *(_shown(cells[t][j]) for j in range(len(names))), float(odds[t])) for t in top.tolist()]
        more = {f"{len(odds) - len(top):,} others": np.delete(odds, top)} if len(odds) > len(top) else {}
        more["all frames"] = odds
        rows += [(what, *[""] * len(names), float(some.sum())) for what, some in more.items()]
        formats = {**dict.fromkeys(names, ".5g"), "log-odds": "+.3f"}
        return DescriptionTable(OF_FRAMES, ("frame", *names, "log-odds"), rows, formats)


def _frame_log_odds(clf: Any, rows: Any, decided: Index, runner_up: Index) -> list[Array] | None:
    """log p(x_t | x_1 … x_{t−1}, decided) − that of the runner-up, per sequence (T,); None unless classes are HMMs."""
    chains = getattr(getattr(clf, "model_", None), "components", None)
    if not isinstance(rows, Ragged) or not isinstance(chains, HMM):
        return None
    odds = [np.zeros(n) for n in rows.lengths.tolist()]
    for side, sign in ((decided, 1.0), (runner_up, -1.0)):
        for c in np.unique(side).tolist():
            here = np.flatnonzero(side == c)
            for i, found in zip(here.tolist(), chains.member(c).predictive_log_prob(rows[here]), strict=True):
                with np.errstate(invalid="ignore"):
                    odds[i] = odds[i] + sign * found
    return [np.nan_to_num(one, nan=0.0, posinf=np.inf, neginf=-np.inf) for one in odds]  # impossible for both: 0


def _add_up(prior: Any, each: Any, whole: Any) -> bool:
    """Whether log-odds of the class probabilities (n,) and columns (n, d) sum to those of the posterior (n,)."""
    return bool(np.allclose(prior + each.sum(axis=1), whole, rtol=1e-6, atol=NOTHING))


def _shares(joint: Array, prior: Array) -> Array:
    """p(c | x) (n, C) from log p(c, x) up to a constant of each row; rows of density 0 get the prior."""
    top = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(top), prior, shares / shares.sum(axis=1, keepdims=True))


def _log_odds_gain(joint: Array, hidden: Array, decided: Index, runner_up: Index) -> Array:
    """log p(x_j | x_rest, decided) − log p(x_j | x_rest, runner_up) (n,) from joints with and without column j."""
    at = np.arange(len(joint))
    with np.errstate(invalid="ignore"):
        gain = joint - hidden
        return np.nan_to_num(gain[at, decided] - gain[at, runner_up], nan=0.0)


def _without(clf: Any, rows: Any, j: int) -> Array:
    """log p(c, x) without column j, if the distribution supports marginalization."""
    try:
        return np.asarray(clf._log_joint(with_column_missing(rows, j)))
    except DataError as error:
        expected, model = "an explanation needs a model that can marginalize a column", getattr(clf, "density", clf)
        remedy = "use one that takes missing entries"
        raise DomainError(sentence(type(clf).__name__, expected, type(model).__name__, remedy)) from error


def _conditional(clf: Any, rows: Any) -> Array | None:
    """log p(x_j | other columns, c) (n, C, d) of complete rows under Gaussians, from the precision matrix.

    With Λ = Σ⁻¹ and z = Λ(x − μ): log N(z_j/Λ_jj | 0, 1/Λ_jj). None where another way is needed.
    """
    parts = getattr(getattr(clf, "model_", None), "components", None)
    if not isinstance(parts, Gaussian) or not isinstance(rows, np.ndarray) or parts.form.roots is None:
        return None
    x = rows.astype(np.float64)
    if np.isnan(x).any():
        return None
    precision = np.linalg.inv(parts.covariance_matrix)
    z = np.einsum("cij,ncj->nci", precision, x[:, None, :] - parts.mean)
    own = np.diagonal(precision, axis1=1, axis2=2)
    return np.asarray(0.5 * (np.log(own) - LOG_2PI - z**2 / own))


def _best_two(expected: Array) -> tuple[Index, Index]:
    """The cheapest and the second cheapest class of each row."""
    order = np.argsort(expected, axis=1, kind="stable")
    return order[:, 0], order[:, min(1, order.shape[1] - 1)]


def _width(rows: Any) -> int:
    if isinstance(rows, Ragged):
        return _width(rows.values)
    if isinstance(rows, Columns):
        return sum(_width(part) for part in rows.parts.values())
    return 1 if rows.ndim == 1 else int(rows.shape[1])


def with_column_missing(rows: Any, j: int) -> Any:
    """The rows with column j missing; of sequences, in every frame."""
    if isinstance(rows, Ragged):
        return rows.map(lambda frames: with_column_missing(frames, j))
    if isinstance(rows, Columns):
        parts = dict(rows.parts)
        for name, part in parts.items():
            width = _width(part)
            if j < width:
                parts[name] = with_column_missing(part, j)
                break
            j -= width
        return Columns(parts)
    out = rows.astype(rows.dtype if rows.dtype.kind == "f" else np.float64 if rows.dtype.kind in "biu" else object)
    out[(..., j) if out.ndim > 1 else slice(None)] = None if out.dtype == object else np.nan
    return out


def _cells(rows: Any) -> list[list[Any]]:
    if isinstance(rows, Ragged):
        width = _width(rows)
        return [[typical(column) for column in zip(*_cells(one), strict=True)] or [None] * width for one in rows]
    if isinstance(rows, Columns):
        each = [_cells(part) for part in rows.parts.values()]
        return [list(chain.from_iterable(cells)) for cells in zip(*each, strict=True)]
    return np.asarray(rows).reshape(len(rows), -1).tolist()


def typical(column: tuple[Any, ...]) -> Any:
    """A representative value of a column of a sequence: its mean, or its mode."""
    seen = [cell for cell in column if cell is not None and cell == cell]
    if not seen or isinstance(seen[0], float):
        return sum(seen) / len(seen) if seen else None
    return max(dict.fromkeys(seen), key=seen.count)


def _as_python(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and value != value else value


def _shown(value: Any) -> Any:
    """A number as it is, another value as a short text."""
    value = _as_python(value)
    return "missing" if value is None else value if isinstance(value, float) else str(value)[:12]
