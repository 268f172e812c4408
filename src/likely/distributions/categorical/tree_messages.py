"""Belief propagation on a tree of discrete columns: missing entries are summed out by messages to the root."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index


def visiting_order(parent: Index) -> Index:
    """Topological order of the columns (d,): parents before children.

    >>> visiting_order(np.array([2, 0, -1])).tolist()
    [2, 0, 1]
    """
    depth = np.full(len(parent), -1)
    depth[parent < 0] = 0
    for level in range(len(parent)):
        on = depth == level
        if not on.any():
            break
        depth[(parent >= 0) & on[parent]] = level + 1
    order = np.argsort(depth, kind="stable")
    return order[depth[order] >= 0]


def log_of_complete(codes: Index, parent: Index, logs: Array) -> Array:
    """Σⱼ log p(xⱼ | its parent) of rows (n, d) of level numbers; `logs` is (d, L, L)."""
    d = len(parent)
    above = np.where(parent >= 0, codes[:, parent], 0)
    return np.asarray(logs[np.arange(d), above, codes].sum(axis=1))


def log_of_observed(codes: Index, parent: Index, tables: Array) -> Array:
    """log p(observed entries) of rows (n, d), −1 where missing: messages from the leaves to the root."""
    belief, log_scale = _upward(codes, parent, tables)[1:]
    return _log_roots(belief, log_scale, parent, tables)


def _log_roots(belief: Array, log_scale: Array, parent: Index, tables: Array) -> Array:
    """log p(observed entries) (n,) from the messages at the roots."""
    with np.errstate(divide="ignore"):
        each = [np.log((belief[:, r] * tables[r, 0]).sum(axis=1)) for r in np.flatnonzero(parent < 0)]
    return np.asarray(log_scale + np.sum(each, axis=0))


def _upward(codes: Index, parent: Index, tables: Array) -> tuple[Index, Array, Array]:
    """Upward pass: order of visits; for each column and level the probability of the observed entries below it
    (n, d, L), up to a scale whose logarithm is the last (n,)."""
    n, L = len(codes), tables.shape[-1]
    order = visiting_order(parent)
    belief = np.where((codes < 0)[:, :, None], 1.0, codes[:, :, None] == np.arange(L))
    log_scale = np.zeros(n)
    for j in order[::-1]:
        if parent[j] < 0:
            continue
        message = belief[:, j] @ tables[j].T
        top = message.max(axis=1)
        safe = np.where(top > 0, top, 1.0)
        with np.errstate(divide="ignore"):
            log_scale += np.log(top)
        belief[:, parent[j]] *= message / safe[:, None]
    return order, belief, log_scale


def expected_pairs(codes: Index, parent: Index, tables: Array, w: Array, start: Index) -> tuple[Array, Array]:
    """Expected pair counts (W, W) of incomplete rows (n, d) with weights (n,), and log p(observed) (n,).

    A row of probability 0 under the tree adds nothing.
    """
    from likely.distributions.categorical._loops import add_expected_pairs

    order, belief, log_scale = _upward(codes, parent, tables)
    logs = _log_roots(belief, log_scale, parent, tables)
    possible = np.isfinite(logs)
    out = np.zeros((int(start[-1]), int(start[-1])))
    add_expected_pairs(
        order.astype(np.int64), np.array(parent, dtype=np.int64), np.array(tables),
        np.ascontiguousarray(belief[possible]), np.array(w[possible]), np.array(start, dtype=np.int64), out,
    )  # fmt: skip
    return out + out.T - np.diag(np.diagonal(out)), logs


def marginals_given(codes: Index, parent: Index, tables: Array) -> Array:
    """p(xⱼ = level | observed entries) of every column (n, d, L): upward and downward pass."""
    order, belief, _ = _upward(codes, parent, tables)
    out = np.empty_like(belief)
    for j in order:
        if parent[j] < 0:
            out[:, j] = belief[:, j] * tables[j, 0]
        else:
            message = belief[:, j] @ tables[j].T
            above = np.divide(out[:, parent[j]], message, out=np.zeros_like(message), where=message > 0)
            out[:, j] = belief[:, j] * (above @ tables[j])
        total = out[:, j].sum(axis=1, keepdims=True)
        np.divide(out[:, j], total, out=out[:, j], where=total > 0)
    return out


def drawn(n: int, parent: Index, tables: Array, rng: Generator, codes: Index | None = None) -> Index:
    """Ancestral sampling of codes (n, d), each column given its parent; with `codes`, −1 entries given the rest."""
    d = len(parent)
    codes = np.full((n, d), -1, dtype=np.intp) if codes is None else codes
    order, belief, _ = _upward(codes, parent, tables)
    out, points = np.zeros((n, d), dtype=np.intp), rng.random((n, d))
    for j in order:
        p = tables[j, 0] if parent[j] < 0 else tables[j, out[:, parent[j]]]
        edges = np.cumsum(np.broadcast_to(p, belief[:, j].shape) * belief[:, j], axis=1)
        out[:, j] = (edges <= (points[:, j] * edges[:, -1])[:, None]).sum(axis=1)
    return np.minimum(out, (tables.any(axis=1).shape[-1] - 1))


def best_path(parent: Index, tables: Array) -> Index:
    """The most probable row (d,) of codes: max-product (Viterbi) recursion on a tree."""
    order, d = visiting_order(parent), len(parent)
    with np.errstate(divide="ignore"):
        logs = np.log(tables)
    score = np.zeros((d, tables.shape[-1]))
    choice = np.zeros((d, tables.shape[-1]), dtype=np.intp)
    for j in order[::-1]:
        if parent[j] >= 0:
            total = logs[j] + score[j]
            choice[j] = total.argmax(axis=1)
            score[parent[j]] += total.max(axis=1)
    out = np.zeros(d, dtype=np.intp)
    for j in order:
        out[j] = (logs[j, 0] + score[j]).argmax() if parent[j] < 0 else choice[j, out[parent[j]]]
    return out
