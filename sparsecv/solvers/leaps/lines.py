"""Nodes of a leaps-and-bounds tree for all responses on a line at once.

A problem of such a tree has the responses y + vδ of all numbers v, where δ is a vector of squared
length 1/2. For every support T the objective f_T(v) is a quadratic polynomial of v, and
f_T(v) + v²/2 = L + ρ(v + σ)² is what a tree with deleted rows keeps of T for the row Xᵀδ with the
response δᵀy: L is the loss with the row deleted, ρ is 1 − h, and σ is r/(1 − h). Objectives rise
from a node to its children at every v, so that a node keeps no v of its own: it is closed where its
polynomial, at all v that known supports leave open, is too large for any support below it.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, Mask, least_of_parabola


@by_reference()
class Gathering(NamedTuple):
    """What a tree keeps that hands out every support it enters, in place of lists of the best.

    Of every problem ``region`` has finite intervals that hold the numbers v at which no known
    support wins. Polynomials are three coefficients, that of v² first, and are f + v²/2 less the
    minimum of the same of all columns.
    """

    found: Annotated[Mask, "room words"]  # supports entered since they were last taken
    n_found: Annotated[Ints, "1"]  # how many there are
    region: Annotated[Array, "problems length 2"]
    n_region: Annotated[Ints, "problems"]
    # A support of at least this size may win where its polynomial is below this one.
    wins: Annotated[Array, "sizes problems 3"]


@kernel(inner=True)
def may_win(gathering, size, i, a, b, c):
    """Whether a support of at least this size, with av² + bv + c, may win problem i somewhere.

    It may where its polynomial is below ``wins[size, i]`` at some v in an interval of ``region``.
    """
    most, region = gathering.wins[size, i], gathering.region
    for r in range(gathering.n_region[i]):
        start, end = region[i, r, 0], region[i, r, 1]
        if least_of_parabola(c - most[2], b - most[1], a - most[0], start, end) < 0.0:
            return True
    return False


@kernel(inner=True)
def close_lines(tree, level, j, size, low):
    """Give the child without free member j the loss ∞ for problems that nothing below it can win.

    On entry ``evaluate`` has evaluated the child.

    size, low: Units of the child, and the least wanted size that the child reaches.
    Returns: For how many problems the child may win, and for how many a support below it may.
    """
    gathering, losses, chain = tree.gathering, tree.child_loss, tree.chain
    better, promising = 0, 0
    for k in range(tree.n_open[level]):
        if losses[k] == np.inf:
            continue
        i = tree.problem_of[level, k]
        spare, centre = chain.remain[k], chain.deleted[k]
        a, b, c = spare, 2.0 * spare * centre, losses[k] + spare * centre * centre
        if not may_win(gathering, low, i, a, b, c):
            losses[k] = np.inf
            continue
        promising += 1
        better += tree.lists.next_wanted[size] == size and may_win(gathering, size, i, a, b, c)
    return better, promising


@kernel(inner=True)
def hand_out(tree):
    """Hand out the support in ``tree.lists.support``, for which there must be room."""
    found, n = tree.gathering.found, tree.gathering.n_found[0]
    for w in range(found.shape[1]):
        found[n, w] = tree.lists.support[w]
    tree.gathering.n_found[0] = n + 1
