"""Checks of a table and its costs: target leakage, zeros that may mean missing, implausible costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.arrays import Array, Index

if TYPE_CHECKING:
    from likely.automl.model_comparison import ComparisonTask
    from likely.decision.cost import Cost

FEWEST = 50  # rows from which one column can be called suspicious
BINS = 20  # of equally many rows, into which a column of many numbers is cut
LEVELS = 1000  # words up to which each is a bin of its own
SPLITS = 20  # beyond which rows are split anew
LEAK_OF_BASE, LEAK_OF_REST = 0.05, 0.1  # share of the errors of the best single answer, and of the next best column
ZEROS = (0.005, 0.7)  # share of zeros that may stand for missing cells: below it is chance, above it zero is the rule
CONTINUOUS = 20  # different values above zero that make a column continuous
ISOLATED = 4  # how many times the usual step between small values the step from zero must be
HIGH = 0.1  # share of the median of values above zero that the least of them must reach
NAMED = 8  # columns that a sentence names


# --------------------------------------------------------------------------- leaks


def leaks(field: ComparisonTask) -> Iterator[str]:
    """Columns that predict the label almost alone, far better than any other: possible target leakage."""
    if len(field.labels) < FEWEST or field.X.width < 2:
        return
    names = list(field.X.columns)
    error = np.array([_error_of_one(field, name) for name in names])
    base = _error(field, np.zeros(len(field.labels), dtype=np.intp))
    near = error <= LEAK_OF_BASE * base
    rest = float(error[~near].min(initial=base))
    if near.all() or not near.any() or error[near].max() > LEAK_OF_REST * rest:
        return
    for at in np.flatnonzero(near):
        alone = f'Column "{names[at]}" alone predicts the label of {1 - error[at]:.1%} of held-out rows'
        known = "If it is known only after the label, it leaks the target, and these figures are too optimistic"
        yield f'{alone}, the best of the others of {1 - rest:.1%}. {known}: leave it out with --ignore "{names[at]}".'


def _error_of_one(field: ComparisonTask, name: str) -> float:
    """Held-out error of a classifier that predicts the majority class per bin of one column."""
    return _error(field, _bins(field.X[name]))


def _error(field: ComparisonTask, code: Index) -> float:
    size, C = int(code.max()) + 1, len(field.classes)
    cell = code * C + field.labels
    weight = np.ones(len(code)) if field.weight is None else field.weight
    wrong = total = 0.0
    for train, test in _splits(field):
        counts = np.bincount(cell[train], weight[train], size * C).reshape(size, C)
        usual = int(counts.sum(axis=0).argmax())
        said = np.where(counts.any(axis=1), counts.argmax(axis=1), usual)[code[test]]
        wrong += float(weight[test] @ (said != field.labels[test]))
        total += float(weight[test].sum())
    return wrong / max(total, 1e-300)


def _splits(field: ComparisonTask) -> Iterator[tuple[Index, Index]]:
    """The splits of the comparison, or five of their own where these are very many."""
    if len(field.splits) <= SPLITS:
        yield from ((split.train, split.test) for split in field.splits)
        return
    fold = np.random.default_rng(0).permutation(len(field.labels)) % 5
    yield from ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5))


def _bins(column: Any) -> Index:
    """The bin of each cell (n,): its level, or a quantile bin of 5 % of the rows; missing values have their own bin."""
    seen = column.is_not_null().to_numpy()
    code = np.zeros(len(seen), dtype=np.intp)
    if not seen.any():
        return code
    if column.dtype.is_numeric():
        x = column.drop_nulls().to_numpy()
        values = np.unique(x)
        inner = values if len(values) <= 2 * BINS else np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)[:-1]))
        code[seen] = np.searchsorted(inner, x, side="right")
    else:
        rank = column.drop_nulls().rank("dense").to_numpy().astype(np.intp)
        code[seen] = np.where(rank <= LEVELS, rank, LEVELS + 1)
    return code


# --------------------------------------------------------------------------- zeros


def zeros(field: ComparisonTask, kinds: dict[str, str]) -> Iterator[str]:
    """Positive columns in which zero is far from all other values."""
    found = {name: share for name, kind in kinds.items() if kind == "real" and (share := odd_zeros(field.X[name]))}
    if found:
        ranked = sorted(found, key=lambda name: -found[name])
        shown = ", ".join(f'"{name}" ({found[name]:.1%})' for name in ranked[:NAMED])
        more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
        yield (
            f"Zeros may mean missing values in {shown}{more}: all other values there are well above 0. If so, "
            "leave these cells empty (--missing 0 takes zeros as missing in every column)."
        )


def odd_zeros(column: Any) -> float:
    """Fraction of zeros if they are far from all other values, which are positive and continuous; else 0."""
    x = column.drop_nulls().to_numpy()
    share = float((x == 0).mean()) if len(x) else 0.0
    if not ZEROS[0] <= share <= ZEROS[1] or (x < 0).any():
        return 0.0
    above = np.sort(x[x > 0])
    values = np.unique(above)
    if len(values) < CONTINUOUS:
        return 0.0
    step = float(np.median(np.diff(values[:10])))
    return share if values[0] >= max(ISOLATED * step, HIGH * float(np.median(above))) else 0.0


# --------------------------------------------------------------------------- costs


def odd_costs(cost: Cost, classes: Any) -> Iterator[str]:
    """Implausible entries of a cost matrix: gains, costly correct decisions, dominated actions."""
    table, names = cost.table, [str(name) for name in cost.names(classes).tolist()]
    truths = names[: cost.n_classes]
    action, true = divmod(int(table.argmin()), cost.n_classes)
    if table[action, true] < 0:
        finding = f'deciding "{names[action]}" where "{truths[true]}" is true costs {table[action, true]:g}'
        yield f"The table has a negative cost, which is a gain: {finding}. Mean costs below 0 are then possible."
    everywhere = [i for i in range(len(names)) if (table[i] <= table).all()]
    if everywhere:
        yield f'Deciding "{names[everywhere[0]]}" is cheapest whatever is true: with these costs no column can help.'
        return
    for c, truth in enumerate(truths):
        other = int(table[:, c].argmin())
        if not np.isfinite(table[c, c]):  # never to be decided, as the table says itself
            continue
        if table[other, c] < table[c, c]:
            finding = f'Where "{truth}" is true, deciding "{names[other]}" costs less than deciding "{truth}"'
            price = f"{table[other, c]:g} against {table[c, c]:g}"
            yield f"{finding} ({price}). Rows of the table are decisions, columns true classes."
        elif table[c, c] > 0:
            yield f'Deciding "{truth}" costs {table[c, c]:g} even where it is right: costs are taken as they stand.'
    for i, name in enumerate(names):
        dearer = (_dominates(table[j], table[i]) for j in range(len(names)) if j != i)
        if np.isfinite(table[i]).any() and any(dearer):
            yield f'Deciding "{name}" is never the cheapest, whatever is true: it will not be decided.'


def _dominates(one: Array, other: Array) -> bool:
    return bool((one <= other).all() and (one < other).any())
