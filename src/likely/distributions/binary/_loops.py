"""Gibbs' sampler for signs that like or dislike each other: one column after another, given all the others."""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def sweep_signs(z, couple, field, beta, J, chance):  # type: ignore[no-untyped-def]
    """Visit every column of all chains z (n, d) once, in place; `couple` = z J is kept true as columns turn.

    A column becomes 1 where 2 (β couple + field) exceeds its `chance` (n, d), the logit of a uniform number.
    """
    n, d = z.shape
    for i in range(n):
        for j in range(d):
            new = 1.0 if 2.0 * (beta * couple[i, j] + field[j]) > chance[i, j] else -1.0
            if new != z[i, j]:
                change = new - z[i, j]
                z[i, j] = new
                for k in range(d):
                    couple[i, k] += change * J[j, k]
