"""Compiled loops: quadratic features (1, u, products of columns of u) of rows, squares of whitened coordinates.

NumPy needs ten short calls for either, each of which releases and acquires the interpreter's lock; two threads with
many short calls are no faster than one. The results are bit-for-bit equal.
"""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def expand_rows(x, origin, unit, first, second, out, length):  # type: ignore[no-untyped-def]
    """Write 1, u = (x − origin) / unit and u[first] · u[second] of rows x (n, d) into out (p, at least n).

    `length` (at least n) becomes |u|². The rows of a table are the columns of `out`.
    """
    n, d = x.shape
    for r in range(n):
        out[0, r] = 1.0
        length[r] = 0.0
    for i in range(d):
        u, a, b = out[1 + i], origin[i], unit[i]
        for r in range(n):
            u[r] = (x[r, i] - a) / b
        for r in range(n):
            length[r] += u[r] * u[r]
    for q in range(len(first)):
        u, v, product = out[1 + first[q]], out[1 + second[q]], out[1 + d + q]
        for r in range(n):
            product[r] = u[r] * v[r]


@compiled
def subtract_squares(v, center, members, out):  # type: ignore[no-untyped-def]
    """out[members[j]] −= ½ (v_j − c_j)² for coordinates v (D, n) of n rows about their centers (D, 1)."""
    for j in range(len(members)):
        row, c = out[members[j]], center[j, 0]
        for r in range(v.shape[1]):
            row[r] -= 0.5 * ((v[j, r] - c) * (v[j, r] - c))
