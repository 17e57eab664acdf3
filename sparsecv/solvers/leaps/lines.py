"""Nodes of a leaps-and-bounds tree for all responses on a line at once.

A problem of such a tree has the responses y + vδ of all numbers v, where δ is a vector of squared
length 1/2. For every support T the objective f_T(v) is a quadratic polynomial of v, and
f_T(v) + v²/2 = L + ρ(v + σ)² is what a tree with deleted rows keeps of T for the row Xᵀδ with the
response δᵀy: L is the loss with the row deleted, ρ is 1 − h, and σ is r/(1 − h). Hence a node needs
no further arrays than a *set* of v, the numbers at which a support below the node may win. Such a
set is a union of intervals.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, Mask


@by_reference()
class Gathering(NamedTuple):
    """What a tree keeps that hands out every support it enters, in place of lists of the best.

    Of every problem ``region`` holds the numbers v at which no support that was entered wins. A set
    has at most ``length`` intervals: beyond that it becomes larger than need be. Polynomials are
    three coefficients, that of v² first, and are f + v²/2 less the minimum of the same of all
    columns.
    """

    found: Annotated[Mask, "room words"]  # supports entered since they were last taken
    n_found: Annotated[Ints, "1"]  # how many there are
    pieces: Annotated[Array, "m+1 problems length 2"]  # by level: the set of a node; the last is
    # work space
    n_pieces: Annotated[Ints, "m+1 problems"]
    region: Annotated[Array, "problems length 2"]
    n_region: Annotated[Ints, "problems"]
    left: Annotated[Array, "length 2"]  # work space
    wins: Annotated[Array, "sizes problems 3"]  # supports of at least this size may win where
    # theirs is below this polynomial
    cuts: Annotated[Array, "sizes problems 3"]  # a support of this size wins where its is below


@kernel
def below_zero(a, b, c):
    """The v with av² + bv + c < 0: the ends of two intervals, which may be empty, as (0, 0) is."""
    square = b * b - 4.0 * a * c
    if square <= 0.0:
        if a < 0.0 or (a == 0.0 and c < 0.0):
            return -np.inf, np.inf, 0.0, 0.0
        return 0.0, 0.0, 0.0, 0.0
    half = -0.5 * (b + np.copysign(np.sqrt(square), b))
    other = c / half
    if a == 0.0:
        if b > 0.0:
            return -np.inf, other, 0.0, 0.0
        return other, np.inf, 0.0, 0.0
    low, high = min(half / a, other), max(half / a, other)
    if a > 0.0:
        return low, high, 0.0, 0.0
    return -np.inf, low, high, np.inf


@kernel(inner=True)
def narrow_set(gathering, source, target, i, a, b, c):
    """Write what R and av² + bv + c < 0 leave of problem i's set at one level to another level.

    Returns: The number of its intervals, which are increasing.
    """
    pieces, region, n = gathering.pieces, gathering.region, 0
    low, high, second, last = below_zero(a, b, c)
    if low == high:
        gathering.n_pieces[target, i] = 0
        return 0
    for s in range(gathering.n_pieces[source, i]):
        for r in range(gathering.n_region[i]):
            start = max(pieces[source, i, s, 0], region[i, r, 0])
            end = min(pieces[source, i, s, 1], region[i, r, 1])
            for one, two in ((low, high), (second, last)):
                left, right = max(start, one), min(end, two)
                if left < right and n < pieces.shape[2]:
                    pieces[target, i, n, 0], pieces[target, i, n, 1] = left, right
                    n += 1
                elif left < right:
                    pieces[target, i, n - 1, 1] = right
    gathering.n_pieces[target, i] = n
    return n


@kernel(inner=True)
def take_out(gathering, i, low, high):
    """Take an interval out of problem i's region, if there is room for what is left."""
    region, left, n = gathering.region, gathering.left, 0
    if not low < high:
        return
    for r in range(gathering.n_region[i]):
        start, end = region[i, r, 0], region[i, r, 1]
        for one, two in ((start, min(end, low)), (max(start, high), end)):
            if one < two and n == left.shape[0]:
                return
            if one < two:
                left[n, 0], left[n, 1] = one, two
                n += 1
    for r in range(n):
        region[i, r, 0], region[i, r, 1] = left[r, 0], left[r, 1]
    gathering.n_region[i] = n


@kernel(inner=True)
def narrow_lines(tree, level, j, size, low):
    """Write the sets of the child without free member j to the level below.

    On entry ``evaluate`` has evaluated the child. A problem for which nothing can win gets the loss
    ∞. Where the child itself wins, that is taken out of the region.

    size, low: Units of the child, and the least wanted size that the child reaches.
    Returns: For how many problems the child may win, and for how many a support below it may.
    """
    gathering, losses, chain = tree.gathering, tree.child_loss, tree.chain
    better, promising, scratch = 0, 0, gathering.pieces.shape[0] - 1
    for k in range(tree.n_open[level]):
        if losses[k] == np.inf:
            continue
        i = tree.problem_of[level, k]
        if tree.wide > 0:
            spare, centre = chain.remain[k], chain.deleted[k]
        else:
            w, pivot = tree.W[tree.offset[level] + j, k], 1.0 / tree.diagonal[level, j]
            before = tree.one_minus_leverage[level, k]
            spare = before + w * w * pivot
            centre = before * tree.deleted_residual[level, k] + w * pivot * tree.beta[level, j]
            centre /= spare
        a, b, c = spare, 2.0 * spare * centre, losses[k] + spare * centre * centre
        most = gathering.wins[low, i]
        below = level + 1
        if narrow_set(gathering, level, below, i, a - most[0], b - most[1], c - most[2]) == 0:
            losses[k] = np.inf
            continue
        promising += 1
        if tree.lists.next_wanted[size] > size:
            continue
        most = gathering.wins[size, i]
        if narrow_set(gathering, below, scratch, i, a - most[0], b - most[1], c - most[2]) > 0:
            better += 1
            most = gathering.cuts[size, i]
            start, end, other, last = below_zero(a - most[0], b - most[1], c - most[2])
            take_out(gathering, i, start, end)
            take_out(gathering, i, other, last)
    return better, promising


@kernel(inner=True)
def hand_out(tree):
    """Hand out the support in ``tree.lists.support``, for which there must be room."""
    found, n = tree.gathering.found, tree.gathering.n_found[0]
    for w in range(found.shape[1]):
        found[n, w] = tree.lists.support[w]
    tree.gathering.n_found[0] = n + 1
