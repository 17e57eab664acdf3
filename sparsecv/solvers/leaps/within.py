"""Bounds on coefficients in a leaps-and-bounds tree: the fit at a node, and what it bounds.

Bounds only raise objectives, so that the ridge fit of a node bounds all supports below it. Where
that does not close a node, the node is fitted within the bounds. With v the objective of this fit,
less what it may lack to the optimum, and b its coefficients, a support T that lacks the columns D
of the node has at least the objective v + (1 − 2s)·b_Dᵀ(A_DD)⁻¹b_D: the optimum within the bounds
has no slope towards any other coefficients within them, and s is the share ``LACKING_SHARE`` of the
curvature that makes up for the slopes that rounding leaves.

At every level ``value`` is the objective that the bounded fit of the node attains, ``own`` the same
less what it may lack to the optimum, and ``bound`` the largest bound of the node and of those
above. ``least_bound`` has, by size, the least ``own`` of the nodes that were fitted.
"""

from __future__ import annotations

import numpy as np

from ..core.bounded_fit import LACKING_SHARE, fit_inside
from ..core.rows import LOST_SHARE
from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import dot, has_bit
from .inverse import unit_loss
from .leaps_node import size_of_all

# Up to this sum of the variance inflation factors of all columns, the sum stands for that of the
# columns of a node, which is no larger. The value is a choice.
FEW_INFLATED = 1e6


@kernel(inner=True)
def inflation(fit, m):
    """The sum of the variance inflation factors of the columns ``fit.columns[:m]``, γ/2 included.

    On entry these columns increase. Entry c of column c of the tree's factor, at least √(γ/2) > 0,
    then stays in what earlier columns leave of it, so that something is left of every column.
    ``fit.triangle``, ``fit.work`` and ``fit.left`` are written.
    """
    T, row, total = fit.triangle, fit.left, 0.0
    ridge_triangle(
        T, fit.columns_of, fit.columns, m, 0.0, triangular=True, work=fit.work, least_value=0.0
    )
    for i in range(m):  # row i of T⁻¹
        square = 0.0
        for c in range(i, m):
            entry = 1.0 if c == i else 0.0
            for q in range(i, c):
                entry -= row[q] * T[q, c]
            row[c] = entry / T[c, c]
            square += row[c] * row[c]
        total += square * fit.lengths[fit.columns[i]] ** 2
    return total


@kernel(inner=True)
def fit_members(tree, level):
    """Fit the node of the level within the bounds, from its coefficients ``inside`` on.

    On entry its mask is set, and ``inside`` of the level holds coefficients within the bounds.
    Writes ``inside``, ``value`` and ``own`` of the level.
    """
    within, first, n = tree.within, tree.first, 0
    fit, now = within.fit, tree.lists.now[0]
    for unit in range(first.shape[0] - 1):
        if has_bit(tree.mask, level, unit):
            for column in range(first[unit], first[unit + 1]):
                fit.columns[n] = column
                n += 1
    total = now.inflation
    if total > FEW_INFLATED:
        total = inflation(fit, n)
    for a in range(n):
        fit.coef[fit.columns[a]] = within.inside[level, fit.columns[a]]
    # The least eigenvalue of the Gram matrix at unit length is at least 1 over the sum; half of
    # that is taken. From 1e13 on the sum has at best three digits, and γ/2 alone bounds it.
    curvature = 0.5 / total if total < 1e13 else 0.0
    value, lacking = fit_inside(fit, n, now.least_pivot**2, curvature)
    for a in range(n):
        within.inside[level, fit.columns[a]] = fit.coef[fit.columns[a]]
    within.value[level], within.own[level] = value, max(value - lacking, 0.0)


@kernel(inner=True)
def begin_within(tree):
    """Fit the root within the bounds, from coefficients of 0 on, after its ridge fit.

    The p columns and y, which is column p of the tree's triangular factor, are copied to the
    bounded fit. Writes ``inside``, ``value``, ``own``, ``bound`` and ``least_added`` of the root,
    and ``least_bound``, which is ∞ but for all members.
    """
    within, p = tree.within, tree.scale.shape[0]
    fit = within.fit
    for a in range(p + 1):
        fit.y[a] = tree.columns_of[p, a]
        for c in range(p):
            fit.columns_of[c, a] = tree.columns_of[c, a]
    for c in range(p):
        fit.lengths[c] = np.sqrt(dot(fit.columns_of[c], fit.columns_of[c], p))
        fit.nothing[c] = LOST_SHARE * fit.lengths[c]
        within.inside[0, c] = 0.0
    within.least_bound[:] = np.inf
    fit_members(tree, 0)
    within.bound[0] = within.least_bound[size_of_all(tree)] = within.own[0]
    bound_members(tree, 0)


@kernel(inner=True)
def fit_child(tree, level, j, size, low):
    """Fit the child without free member j within the bounds, where its ridge fit leaves it open.

    On entry its mask is in ``lists.support``, and ``child_loss`` holds the loss of its ridge fit.
    Writes ``child_value``, and the fit to the level below.

    size, low: The size of the child, and the least wanted size that the child reaches.
    Returns: Whether the child improves its own size, and whether a support below the child may
        improve size ``low``.
    """
    within, below, lists, member = tree.within, level + 1, tree.lists, tree.free[level, j]
    for w in range(tree.mask.shape[1]):
        tree.mask[below, w] = lists.support[w]
    zero = True
    for column in range(tree.first[member], tree.first[member + 1]):
        zero = zero and within.inside[level, column] == 0.0
    for column in range(within.inside.shape[1]):
        within.inside[below, column] = within.inside[level, column]
    if zero:  # The same coefficients are the best ones without the member.
        within.value[below], within.own[below] = within.value[level], within.own[level]
    else:
        fit_members(tree, below)
    own, loss = within.own[below], tree.child_loss[0]
    within.bound[below] = max(own, loss, within.bound[level])
    within.least_bound[size] = min(within.least_bound[size], own)
    tree.child_value[0] = within.value[below]
    better = 1 if within.value[below] <= lists.max_kept[size, 0] else 0
    open_below = within.bound[below] <= lists.max_searched[low, 0] or size > tree.pruned_up_to
    return better, 1 if open_below else 0


@kernel(inner=True)
def key_members(tree, level, v, updated):
    """Write to ``child_key`` how much the loss within the bounds rises without each free member.

    The v members are those of the child that ``drop`` has begun one level below, in its order. The
    numbers decide the order of the child's members only, so that they may be estimates.

    updated: Whether the child's coefficients, diagonal and blocks of A are complete. Otherwise
        the parent's ``least_added`` of the members is taken.
    """
    within, below, wide = tree.within, level + 1, tree.wide > 0
    members = tree.chain.source if wide else tree.source
    for b in range(v):
        unit = tree.free[level, members[b]]
        start, width = tree.chain.start[b] if wide else b, tree.first[unit + 1] - tree.first[unit]
        if not updated:
            tree.child_key[b] = tree.least_added[level, members[b]]
            continue
        for d in range(width):
            within.placed[start + d] = within.inside[below, tree.first[unit] + d]
        given = within.placed, tree.child_diagonal, tree.chain.child_block, start, width
        tree.child_key[b], _ = unit_loss(tree.chain, *given)


@kernel(inner=True)
def bound_members(tree, level):
    """Write ``least_added``, what leaving out each free member adds to the node's loss at least.

    On entry the level's ridge fit, its diagonal and blocks of A, and the fit within the bounds are
    complete. Without a member the loss within the bounds is at least the ridge fit's loss without
    it, at least the loss ``own`` plus a rise, and at least ``bound``. The
    rise is what :func:`unit_loss` gives, less the share 2·``LACKING_SHARE`` of it, which makes up
    for the slopes that rounding leaves.
    """
    within = tree.within
    loss, own, bound = tree.loss[level, 0], within.own[level], within.bound[level]
    for a in range(tree.mask.shape[0] - level - tree.fixed[level]):
        unit, start = tree.free[level, a], tree.start[level, a]
        width = tree.first[unit + 1] - tree.first[unit]
        for d in range(width):
            within.placed[start + d] = within.inside[level, tree.first[unit] + d]
        given = within.placed, tree.diagonal[level], tree.chain.block[level], start, width
        rise, _ = unit_loss(tree.chain, *given)
        rise *= 1.0 - 2.0 * LACKING_SHARE
        least = max(loss + tree.added_loss[level, a], own + rise, bound)
        tree.least_added[level, a] = least - loss
