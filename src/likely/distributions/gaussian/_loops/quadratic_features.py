"""Compiled loops: quadratic features (1, u, products of columns of u) of rows, log-densities in whitened coordinates.

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
def from_white(white, center, constant, members, out):  # type: ignore[no-untyped-def]
    """out[members] = constant − ½ |v − c|² for whitened coordinates v (T · d, n) of n rows, d of them per member."""
    T, n = len(members), white.shape[1]
    d = white.shape[0] // T
    for t in range(T):
        row = out[members[t]]
        for r in range(n):
            row[r] = 0.0
        for i in range(d):
            v, c = white[t * d + i], center[t * d + i, 0]
            for r in range(n):
                row[r] += (v[r] - c) * (v[r] - c)
        for r in range(n):
            row[r] = constant[t] - 0.5 * row[r]
