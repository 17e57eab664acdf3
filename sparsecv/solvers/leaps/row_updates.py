"""What a node says of the problems that each lack one row, from its parent or from its factor."""

from __future__ import annotations

from ..kernels.compiled import kernel
from .inverse import solve_rows, update_columns


@kernel(inner=True)
def fit_rows(tree, level):
    """Compute leverages, residuals and W of the open problems at a node just factorised."""
    u, m = tree.n_columns[level], 0
    for a in range(tree.mask.shape[0] - level):
        m += tree.first[tree.members[a] + 1] - tree.first[tree.members[a]]
    k = m - u
    triangle = tree.triangle
    # Of V = T⁻ᵀ Z_Sᵀ leverages and residuals are sums over members.
    remain, deleted, V, W = tree.one_minus_leverage, tree.deleted_residual, tree.V, tree.W
    n, problem_of = tree.n_open[level], tree.problem_of
    for i in range(n):
        remain[level, i] = 1.0
        deleted[level, i] = tree.targets[problem_of[level, i]]
    solve_rows(tree, level, m)
    for a in range(m):
        z = triangle[a, m]
        for i in range(n):
            v = V[a, i]
            remain[level, i] -= v * v
            deleted[level, i] -= z * v
    for i in range(n):
        deleted[level, i] /= remain[level, i]
    # The rows of W = T⁻¹V that belong to free members need the trailing triangle only.
    base = tree.offset[level]
    for a in range(u - 1, -1, -1):
        for i in range(n):
            W[base + a, i] = V[k + a, i]
        for c in range(a + 1, u):
            weight = triangle[k + a, k + c]
            for i in range(n):
                W[base + a, i] -= weight * W[base + c, i]
        inverse = 1.0 / triangle[k + a, k + a]
        for i in range(n):
            W[base + a, i] *= inverse


@kernel(inner=True)
def list_open_problems(tree, level, low, improved):
    """List the problems that the child is open for; whether some of its parent's are left out.

    A child that can improve three quarters of its parent's problems keeps all of them; otherwise
    the problems that it can improve are copied together. The share is measured for leave-one-out.

    low: Least wanted size that the child reaches.
    improved: How many problems the child can improve at that size.
    """
    count, below = tree.n_open[level], level + 1
    problem_of, losses, most = tree.problem_of, tree.child_loss, tree.lists.max_searched
    every = improved >= 0.75 * count
    n_open = 0
    for i in range(count):
        if every or losses[i] <= most[low, problem_of[level, i]]:
            tree.parent_place_of[n_open] = i
            problem_of[below, n_open] = problem_of[level, i]
            tree.loss[below, n_open] = losses[i]
            n_open += 1
    tree.n_open[below] = n_open
    return not every


@kernel(inner=True)
def update_rows(tree, level, j, some):
    """Compute leverages, residuals and W of the child without free member j from its parent's.

    Dropping member j takes A_cj A_jᵀ/A_jj off row c of A. So with W_j the row of W of member j, row
    c of W loses W_j A_cj/A_jj, 1 − h_i grows by W_ji²/A_jj, and r_i grows by W_ji β_j/A_jj.

    On entry the parent's arrays at ``level`` are complete. ``drop`` has written the number of the
    child's fixed members and, in ``parent_place``, the place of each of its free members among the
    parent's. :func:`list_open_problems` has written which of the parent's problems the child is
    open for: their number to ``n_open``, their places to ``parent_place_of``. Writes the child's
    rows of ``W``, which begin at ``offset`` of its level, ``one_minus_leverage`` and
    ``deleted_residual``, which is r/(1 − h).

    A tree with ``wide`` above 0 has units of several columns, and :func:`update_columns` drops all
    columns of the unit; what it needs on entry stands there.

    some: Whether the child is open for only some of its parent's problems; otherwise their places
        are those of the parent.
    """
    A, W, parent_place, place = tree.A, tree.W, tree.parent_place, tree.parent_place_of
    below = level + 1
    n = tree.n_open[below]
    if tree.wide > 0:
        update_columns(tree, level, j)
        return
    pivot = 1.0 / A[level, j, j]
    ratio = tree.beta[level, j] * pivot
    dropped, target, origin = tree.offset[level] + j, tree.offset[below], tree.offset[level]
    for a in range(tree.n_columns[below]):
        c = parent_place[below, a]
        weight = A[level, j, c] * pivot
        if some:
            for i in range(n):
                W[target + a, i] = W[origin + c, place[i]] - weight * W[dropped, place[i]]
        else:
            for i in range(n):
                W[target + a, i] = W[origin + c, i] - weight * W[dropped, i]
    remain, deleted = tree.one_minus_leverage, tree.deleted_residual
    for i in range(n):
        o = place[i]
        w = W[dropped, o]
        grown = remain[level, o] + w * w * pivot  # a sum of positive terms: no digits cancel
        deleted[below, i] = (deleted[level, o] * remain[level, o] + w * ratio) / grown
        remain[below, i] = grown
