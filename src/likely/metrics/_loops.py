"""Edit distance: compiled dynamic program with backtracking.

Operations are 0 for a match, 1 for a substitution, 2 for a deletion and 3 for an insertion.
"""

from __future__ import annotations

from likely.numerics.compile import compiled_for_size


@compiled_for_size
def edit_rows(reference, hypothesis, costs, tolerance, row, moves):  # type: ignore[no-untyped-def]
    """Continue from costs `row` (m + 1,) over reference (b,): the best operations go to (b, m + 1), the costs to `row`.

    costs (3,) are those of a substitution, a deletion, an insertion. Costs that differ by less than `tolerance` are
    equal, and ties prefer a diagonal step, then a deletion, then an insertion.
    """
    for i in range(len(reference)):
        corner = row[0]
        row[0] += costs[1]
        moves[i, 0] = 2
        for j in range(len(hypothesis)):
            same = reference[i] == hypothesis[j]
            best, move = corner + (0.0 if same else costs[0]), 0 if same else 1
            if row[j + 1] + costs[1] < best - tolerance:
                best, move = row[j + 1] + costs[1], 2
            if row[j] + costs[2] < best - tolerance:
                best, move = row[j] + costs[2], 3
            corner = row[j + 1]
            row[j + 1] = best
            moves[i, j + 1] = move


@compiled_for_size
def edit_trace(moves, column, out, end):  # type: ignore[no-untyped-def]
    """Backtrack through operations (b, m + 1) from the last row to above the first; they are written before out[end].

    Returns the column and the end that are reached.
    """
    i = len(moves) - 1
    while i >= 0:
        end -= 1
        move = moves[i, column]
        out[end] = move
        if move != 3:
            i -= 1
        if move != 2:
            column -= 1
    return column, end
