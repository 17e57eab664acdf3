"""One node of a leaps-and-bounds tree, and the step to a child; its arrays are in :mod:`~.records`.

A node is a support S, a set of units whose first k members may not be dropped. A unit is a column,
or a group of columns that enter together. Each child drops one free member and fixes the free
members before the dropped member. Level ℓ of a tree of m units holds the current node with m − ℓ
members. For this node A = (G_S + γ/2 I)⁻¹ and the ridge fit β = A b_S are kept, as dropping the
columns D of a member adds β_Dᵀ(A_DD)⁻¹β_D to the objective. Entries of A and β that belong to fixed
members are never used again and are not stored. Most children are not searched; therefore a row of
A is computed only when the child without its column is, and the blocks A_DD of the members alone
are computed before.

A column leaves a node by one update of rank 1. A member of several columns leaves by as many, one
after the other. What only such members need is in functions of their own (:func:`drop_rest`,
:func:`unit_loss`), so that a tree of single columns takes the time of one update alone.
"""

from __future__ import annotations

import numpy as np

from ..kernels.compiled import kernel
from ..kernels.linalg import member_columns, order_steps, trailing_inverse
from .inverse import (
    LEAST_DIAGONAL_SHARE,
    drop_rest,
    factor_members,
    factorised_units,
    inverse_row,
    order_columns,
    sum_steps,
)


@kernel(inner=True)
def size_of_all(tree):
    """The size of all units together."""
    m, total = tree.mask.shape[0], 0
    if tree.weighted == 0:
        return m
    for unit in range(m):
        total += tree.counting.cost[unit]
    return total


@kernel(inner=True)
def sum_costs(tree, level, total):
    """Write the size ``total`` of the level's node, and what its children may not drop, to ``low``.

    The free members are in order.
    """
    counting, free, size = tree.counting, tree.free, total
    v = tree.mask.shape[0] - level - tree.fixed[level]
    counting.total[level] = total
    for a in range(v):
        size -= counting.cost[free[level, a]]
    for a in range(v):
        counting.low[level, a] = size
        size += counting.cost[free[level, a]]


@kernel(inner=True)
def size_without(tree, level, j):
    """The size of the child without free member j of the level's node."""
    if tree.weighted > 0:
        return tree.counting.total[level] - tree.counting.cost[tree.free[level, j]]
    return tree.mask.shape[0] - level - 1


@kernel(inner=True)
def mask_child(tree, level, j):
    """Write the members of the level's node without free member j to ``tree.lists.support``."""
    for w in range(tree.lists.support.shape[0]):
        tree.lists.support[w] = tree.mask[level, w]
    unit = tree.free[level, j]
    tree.lists.support[unit >> 6] &= ~(np.uint64(1) << np.uint64(unit & 63))


@kernel(inner=True)
def factorise(tree, level):
    """Compute A, β and added losses of the level's node afresh, from the factor of all columns.

    On entry the node's mask, number of fixed members and list of free members are set. All rows of
    A are then known. ``start``, ``n_columns``, ``diagonal`` and ``factorised_diagonal`` of the
    level are written as well, and ``cursor`` is put on the last free member.
    """
    first, free, T = tree.first, tree.free, tree.triangle
    m = tree.mask.shape[0] - level
    v, u = m - tree.fixed[level], 0
    member_columns(tree.mask, level, free, v, tree.members)
    for a in range(v):
        if tree.wide > 0:
            tree.start[level, a] = u
        u += first[free[level, a] + 1] - first[free[level, a]]
    tree.n_columns[level] = u
    n = factor_members(tree, m)
    trailing_inverse(T, n - u, n, tree.A, tree.beta, level)
    for a in range(u):
        tree.factorised_diagonal[level, a] = tree.diagonal[level, a] = tree.A[level, a, a]
        tree.known_row[level, a] = 1
    if tree.wide > 0:
        factorised_units(tree, level, v)
    else:
        for a in range(u):
            tree.added_loss[level, a] = tree.beta[level, a] ** 2 / tree.A[level, a, a]
    tree.cursor[level] = v - 1


@kernel(inline=True)
def drop(tree, level, j, one_path):
    """Begin the child without free member j of the level's node, one level below.

    Writes its mask, the number of its fixed members and, for each of its u free columns, the place
    at the parent, the coefficient and the diagonal of A, to ``source``, ``child_beta`` and
    ``child_diagonal``, and added losses to ``child_added_loss``. ``lists.support`` gets the mask,
    too. On entry the level's node is complete, and afterwards :func:`put_in_order` has to follow.

    one_path: Whether all other free members stay free; otherwise the members before j become fixed.
    Returns: False where too many digits cancel: then :func:`factorise` has to compute the rest.
    """
    A, beta, diagonal, source = tree.A, tree.beta, tree.diagonal, tree.source
    child_beta, child_diagonal = tree.child_beta, tree.child_diagonal
    child_added_loss, factorised = tree.child_added_loss, tree.factorised_diagonal
    member, i, below, u = tree.free[level, j], tree.start[level, j], level + 1, 0
    after = i + tree.first[member + 1] - tree.first[member]
    inverse_row(tree, level, i)
    for a in range(0 if one_path else after, tree.n_columns[level]):
        if a < i or a >= after:
            source[u] = a
            u += 1
    tree.n_columns[below] = u
    tree.fixed[below] = tree.fixed[level] + (0 if one_path else j)
    mask_child(tree, level, j)
    for w in range(tree.mask.shape[1]):
        tree.mask[below, w] = tree.lists.support[w]
    pivot = 1.0 / A[level, i, i]
    ratio = beta[level, i] * pivot
    fresh = True
    for a in range(u):
        c = source[a]
        off = A[level, i, c]
        left = diagonal[level, c] - off * pivot * off
        shifted = beta[level, c] - off * ratio
        child_beta[a], child_diagonal[a] = shifted, left
        if left > LEAST_DIAGONAL_SHARE * factorised[level, c]:
            child_added_loss[a] = shifted * shifted / left
        else:
            child_added_loss[a], fresh = tree.added_loss[level, c], False
    if tree.wide > 0:
        fresh = drop_rest(tree, level, j, u, fresh, one_path)
    return fresh


@kernel(inner=True)
def order_key(tree, column, diagonal, added):
    """The number by which a free column is put in order, the largest first: its loss, or more.

    A column that others determine can leave at next to no loss, so that the node with all of them
    ties with its children, and nearly every node below prunes by one size too few. Where such
    columns leave first, no node below has all of them free: with the indicators of all levels of
    three factors, 1,000 rows and 38 columns a tree takes a seventieth of the nodes.

    diagonal: The column's entry of the diagonal of A. added: Its loss, at most ``now.dependent``.
    """
    if diagonal >= tree.dependent_from[column]:
        return added + tree.lists.now[0].dependent
    return added


@kernel(inner=True)
def put_in_order(tree, level, j):
    """Write the arrays of the child that :func:`drop` has begun, those that add most first.

    Single columns that others determine come before all others, see :func:`order_key`.
    Where digits have cancelled, :func:`factorise` overwrites all but the order.
    """
    source, order, below = tree.source, tree.order, level + 1
    v = tree.mask.shape[0] - below - tree.fixed[below]
    key = tree.child_key if tree.bounded > 0 else tree.child_added_loss
    if tree.lists.now[0].dependent > 0:
        for a in range(v):
            tree.child_key[a] = order_key(
                tree, tree.free[level, source[a]], tree.child_diagonal[a], tree.child_added_loss[a]
            )
        key = tree.child_key
    order_steps(key, v, order, tree.rank)
    members, places = source, order
    if tree.wide > 0:
        members, places = tree.chain.source, tree.chain.places
        order_columns(tree, level, j, v)
    # Arrays are taken from the record before a loop, as code that writes to an array must read the
    # record anew after every number that it writes.
    free, added_loss, child_added_loss = tree.free, tree.added_loss, tree.child_added_loss
    for a in range(v):
        free[below, a] = free[level, members[order[a]]]
        added_loss[below, a] = child_added_loss[order[a]]
    beta, diagonal = tree.beta, tree.diagonal
    child_beta, child_diagonal = tree.child_beta, tree.child_diagonal
    parent_place, factorised, known = tree.parent_place, tree.factorised_diagonal, tree.known_row
    for a in range(tree.n_columns[below]):
        place = places[a]
        c = source[place]
        parent_place[below, a] = c
        beta[below, a] = child_beta[place]
        diagonal[below, a] = child_diagonal[place]
        factorised[below, a] = factorised[level, c]
        known[below, a] = 0
    tree.cursor[below] = v - 1
    tree.dropped[below] = tree.start[level, j]


@kernel(inline=True)
def open_sizes(tree, level, loss, updated):
    """Write the sizes that a search below the child is for to ``open_from``; whether there are any.

    A support T that lacks d free members of the child S has f_T ≥ f_S + Σ w_jβ_j² over their
    columns, with w_j = γ/2 + D_j and XᵀX − D ⪰ 0: f_T − f_S is at least
    (b − β)ᵀ(XᵀX + (γ/2)I)(b − β) for the coefficients b of T, which are 0 there. So f_S and the d
    smallest sums of w_jβ_j² over a member's columns bound all objectives of T's size from below.
    The size is closed if that is more than ``max_searched`` allows.

    On entry :func:`drop` has begun the child, and ``open_from`` of its parent is complete.

    loss: f_S less the objective of the fit on all columns.
    updated: Whether β has its digits; otherwise f_S alone bounds objectives.
    """
    step, searched, k = tree.step, tree.lists.max_searched, tree.fixed[level]
    m, opened, before = tree.mask.shape[0] - level, tree.open_from[level], tree.open_from[level - 1]
    child_beta, order = tree.child_beta, tree.order
    free, source, worth = tree.free[level - 1], tree.source, tree.worth
    for a in range(tree.n_columns[level]):
        # In a tree of groups all columns are worth the same.
        column = 0 if tree.wide > 0 else free[source[a]]
        step[a] = worth[column] * child_beta[a] * child_beta[a] if updated else 0.0
    if tree.wide > 0:
        sum_steps(tree, level, m - k)
    order_steps(step, m - k, order, tree.rank)
    least, every = tree.mask.shape[0] + 1, m > tree.pruned_up_to
    for d in range(1, m - k + 1):
        s = m - d
        loss += step[order[m - k - d]]
        if before[s] == s and (every or loss <= searched[s, 0]):
            least = s
        opened[s] = least
    return least < m


@kernel(inner=True)
def highest_rank(tree, level, rank):
    """The free member of highest rank; of members of equal rank, the member of least added loss.

    The level's node has at least one free member. The result is its place among these.

    rank, shape (m,): One number per unit.
    """
    best, added = 0, tree.least_added[level]
    for a in range(1, tree.mask.shape[0] - level - tree.fixed[level]):
        rank_here, rank_best = rank[tree.free[level, a]], rank[tree.free[level, best]]
        if rank_here > rank_best or (rank_here == rank_best and added[a] < added[best]):
            best = a
    return best
