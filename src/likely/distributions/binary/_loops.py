"""Gibbs sampler for Ising models: one sweep over all spins of all chains."""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def gibbs_sweep(z, local_field, field, beta, J, logit_u):  # type: ignore[no-untyped-def]
    """One Gibbs sweep over all chains z (n, d), in place; `local_field` = z J is updated with each flip.

    A spin becomes +1 where 2 (β local_field + field) exceeds its `logit_u` (n, d), the logit of a uniform number.
    """
    n, d = z.shape
    for i in range(n):
        for j in range(d):
            new = 1.0 if 2.0 * (beta * local_field[i, j] + field[j]) > logit_u[i, j] else -1.0
            if new != z[i, j]:
                change = new - z[i, j]
                z[i, j] = new
                for k in range(d):
                    local_field[i, k] += change * J[j, k]
