"""A tree over units of columns: the arrays of the path to a node, and the step to a child."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.bounded_fit import BoundedFit, new_bounded_fit
from ..core.problem import SparseRidgeProblem
from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import Array, mask_words, record, trailing_inverse, zeros
from .leaps_node import COUNTS, NODE, OPTIONS, wanted_from

FREE, FIXED, OUT = 0, 1, 2  # states of a unit at a node


class UnitTree(NamedTuple):
    """The path of a tree over m units of p columns, and the incumbents of every size.

    Columns are ordered by unit. Level 0 is the root; each level drops at least one unit. Supports
    are bit masks of units.
    """

    first: NDArray[np.int64]  # (m+1,) columns of unit u are first[u] … first[u+1] − 1
    parent_at: NDArray[np.int64]  # (m+1,) parents of unit u are parents[parent_at[u]:…]
    parents: NDArray[np.int64]
    fit: BoundedFit  # fits within the bounds, whose arrays are work space of other steps too
    rules: Any  # of RULES
    columns_of: Array  # (p+1, p+1) the triangular factor R, one column per row; its last entry is 0
    state: NDArray[np.int8]  # (levels, m) FREE, FIXED or OUT
    order: NDArray[np.int64]  # (levels, m) free units, the one of largest added loss first
    cursor: NDArray[np.int64]  # (levels,) place of the unit whose child comes next
    n_units: NDArray[np.int64]  # (levels,) units that are not out
    n_fixed: NDArray[np.int64]  # (levels,) units that may not be dropped
    A: Array  # (levels, p, p) in the places of the node's columns
    beta: Array  # (levels, p)
    factorised_diagonal: Array  # (levels, p) diagonal of A at the last factorisation
    added: Array  # (levels, m) loss added by dropping a unit with what needs it
    rise: Array  # (levels, m) what dropping a unit adds to ``own_bound``
    loss: Array  # (levels,) of the ridge fit
    own_bound: Array  # (levels,) loss, or a bound on losses within the bounds on coefficients
    bound: Array  # (levels,) the largest bound of the node and of those above
    inside: Array  # (levels, p) coefficients within the bounds on coefficients
    best: Array  # (m+2,) least loss known of every size
    max_kept: Array  # (m+2,) a support of larger loss is not entered
    max_searched: Array  # (m+2,) a node of larger bound is not searched for this size
    least_bound: Array  # (m+2,) least bound of a support within bounds on coefficients
    next_wanted: NDArray[np.int64]  # (m+2,)
    found: NDArray[np.uint64]  # (m+1, 1, ties + 1, words)
    found_loss: Array  # (m+1, 1, ties)
    found_n: NDArray[np.int64]  # (m+1, 1)
    support: NDArray[np.uint64]  # (words,)
    counts: Any  # of COUNTS
    options: Any  # of OPTIONS
    dropped: NDArray[np.int64]  # (p,) columns that the child at hand lacks
    units: NDArray[np.int64]  # (m,) work space
    steps: Array  # (m,)
    block: Array  # (2, p, p)


RULES = np.dtype(
    [
        ("strong", "i8"),  # 1 where a unit needs all its parents, 0 where it needs one of them
        ("bounded", "i8"),  # 1 where coefficients have bounds
        ("ridge", "f8"),  # γ/2
        ("full", "f8"),  # objective of the ridge fit on all columns
    ],
    align=True,
)


def new_unit_tree(
    problem: SparseRidgeProblem, sizes: NDArray[np.intp], ties: int, n_best: int = 1
) -> UnitTree:
    """Allocate a tree over the units of a problem that are not excluded.

    sizes: Numbers of units wanted.
    ties: How many supports are kept for each size.
    n_best: How many of the best supports of each size are wanted.
    """
    asked, ridge, left = problem.constraints, problem.gamma / 2.0, problem.constraints.left
    R = problem.factor(left.columns)
    p, m, words = left.columns.size, left.units.size, mask_words(left.units.size)
    columns_of = np.ascontiguousarray(R.T)
    columns_of[p, p] = 0.0
    fit = new_bounded_fit(R, asked.lower[left.columns], asked.upper[left.columns])
    bounded = bool(np.isfinite([fit.lower, fit.upper]).any())
    levels, unknown = m + 1, np.full(m + 2, np.inf)
    return UnitTree(
        first=left.first,
        parent_at=left.parent_at,
        parents=left.parents,
        fit=fit,
        rules=record(RULES, strong=asked.strong, bounded=bounded, ridge=ridge, full=R[p, p] ** 2),
        columns_of=columns_of,
        next_wanted=wanted_from(sizes, m),
        found=np.zeros((m + 1, 1, ties + 1, words), dtype=np.uint64),
        found_loss=np.full((m + 1, 1, ties), np.inf),
        found_n=np.zeros((m + 1, 1), dtype=np.int64),
        support=np.zeros(words, dtype=np.uint64),
        counts=record(COUNTS),
        options=record(OPTIONS, least_pivot=np.sqrt(ridge), n_best=n_best),
        state=np.zeros((levels, m), dtype=np.int8),
        order=np.zeros((levels, m), dtype=np.int64),
        cursor=np.full(levels, -1, dtype=np.int64),
        n_units=np.full(levels, m, dtype=np.int64),
        n_fixed=np.zeros(levels, dtype=np.int64),
        A=np.empty((levels, p, p)),
        units=np.zeros(m, dtype=np.int64),
        steps=np.zeros(m),
        block=np.empty((2, p, p)),
        best=unknown,
        max_kept=unknown.copy(),
        max_searched=unknown.copy(),
        least_bound=unknown.copy(),
        **zeros("beta factorised_diagonal inside", levels, p),
        **zeros("added rise", levels, m),
        **zeros("loss own_bound bound", levels),
        dropped=np.zeros(p, dtype=np.int64),
    )


@kernel(inner=True)
def lacks_parent(tree, state, unit):
    """Whether a unit needs a parent that is out; ``state`` (m,) says which units are out."""
    begin, end = tree.parent_at[unit], tree.parent_at[unit + 1]
    if begin == end:
        return False
    out = 0
    for e in range(begin, end):
        out += state[tree.parents[e]] == OUT
    return out > 0 if tree.rules[0].strong > 0 else out == end - begin


@kernel(inner=True)
def put_out(tree, state, unit):
    """Put a unit out, and the units that need it; False where one of these units is fixed."""
    if state[unit] == FIXED:
        return False
    state[unit] = OUT
    changed = True
    while changed:
        changed = False
        for u in range(state.shape[0]):
            if state[u] != OUT and lacks_parent(tree, state, u):
                if state[u] == FIXED:
                    return False
                state[u] = OUT
                changed = True
    return True


@kernel(inner=True)
def fix(tree, state, unit):
    """Fix a unit, and under strong heredity all units that it needs."""
    if state[unit] != FREE:
        return
    state[unit] = FIXED
    if tree.rules[0].strong == 0:
        return
    changed = True
    while changed:
        changed = False
        for u in range(state.shape[0]):
            if state[u] != FIXED:
                continue
            for e in range(tree.parent_at[u], tree.parent_at[u + 1]):
                if state[tree.parents[e]] == FREE:
                    state[tree.parents[e]] = FIXED
                    changed = True


@kernel(inner=True)
def list_columns(tree, state, above, columns):
    """Write columns to ``columns``, increasing; returns how many there are.

    Listed are the columns of units that are not out in ``above`` (m,) and, where ``state`` is
    another array, are out there: what a child lacks.
    """
    count, whole = 0, True
    for u in range(state.shape[0]):
        whole = whole and state[u] == above[u]
    for u in range(state.shape[0]):
        if above[u] != OUT and (whole or state[u] == OUT):
            for c in range(tree.first[u], tree.first[u + 1]):
                columns[count] = c
                count += 1
    return count


@kernel(inner=True)
def factorise_units(tree, level, m):
    """Compute A and β of a level, whose columns are ``tree.fit.columns[:m]``, from the factor."""
    T, work, columns = tree.fit.triangle, tree.fit.work, tree.fit.columns
    least = tree.options[0].least_pivot
    ridge_triangle(T, tree.columns_of, columns, m, 0.0, True, work, 0.0)
    for c in range(m):  # In exact arithmetic no pivot is smaller than √(γ/2).
        T[c, c] = min(T[c, c], -least)
    trailing_inverse(T, 0, m, tree.block, work, 0)
    for a in range(m):
        tree.beta[level, columns[a]] = work[0, a]
        tree.factorised_diagonal[level, columns[a]] = tree.block[0, a, a]
        for c in range(m):
            tree.A[level, columns[a], columns[c]] = tree.block[0, a, c]


@kernel(inner=True)
def drop_columns(tree, level, m, n):
    """Compute A and β one level below, without the n columns ``tree.dropped`` of the level.

    m: Number of columns left, ``tree.fit.columns``. Returns: False where too many digits cancel.
    """
    A, beta, below = tree.A, tree.beta, level + 1
    columns, coef = tree.fit.columns, tree.fit.coef
    for a in range(m):
        i = columns[a]
        beta[below, i] = beta[level, i]
        tree.factorised_diagonal[below, i] = tree.factorised_diagonal[level, i]
        for c in range(m):
            A[below, i, columns[c]] = A[level, i, columns[c]]
    # One column after the other is dropped; ``left`` are those that are still to be dropped.
    W, D = tree.block[0], tree.block[1]  # rows of A of the columns dropped, and among these
    for d in range(n):
        j = tree.dropped[d]
        for a in range(m):
            W[d, a] = A[level, j, columns[a]]
        for e in range(n):
            D[d, e] = A[level, j, tree.dropped[e]]
        coef[d] = beta[level, j]
    for d in range(n):
        if not D[d, d] > NODE.least_diagonal_share * A[level, tree.dropped[d], tree.dropped[d]]:
            return False
        pivot = 1.0 / D[d, d]
        ratio = coef[d] * pivot
        for a in range(m):
            i, weight = columns[a], W[d, a] * pivot
            beta[below, i] -= W[d, a] * ratio
            for c in range(m):
                A[below, i, columns[c]] -= weight * W[d, c]
        for e in range(d + 1, n):
            weight = D[d, e] * pivot
            coef[e] -= D[d, e] * ratio
            for a in range(m):
                W[e, a] -= weight * W[d, a]
            for f in range(d + 1, n):
                D[e, f] -= weight * D[d, f]
    for a in range(m):
        i = columns[a]
        least = NODE.least_diagonal_share * tree.factorised_diagonal[below, i]
        if not A[below, i, i] > least:
            return False
    return True


@kernel(inner=True)
def added_loss(tree, level, n, beta):
    """β_Dᵀ(A_DD)⁻¹β_D for the n columns D = ``tree.dropped`` of the level, by elimination.

    A column of which elimination leaves too few digits stays: the sum without it is not larger.
    """
    D, coef, total = tree.block[1], tree.fit.coef, 0.0
    for d in range(n):
        j = tree.dropped[d]
        coef[d] = beta[j]
        for e in range(n):
            D[d, e] = tree.A[level, j, tree.dropped[e]]
    for d in range(n):
        pivot = D[d, d]
        j = tree.dropped[d]
        if not pivot > NODE.least_diagonal_share * tree.A[level, j, j]:
            continue
        total += coef[d] * coef[d] / pivot
        for e in range(d + 1, n):
            weight = D[d, e] / pivot
            coef[e] -= weight * coef[d]
            for f in range(d + 1, n):
                D[e, f] -= weight * D[d, f]
    return total
