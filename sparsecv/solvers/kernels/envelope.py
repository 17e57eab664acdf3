"""Which of several supports is best at every γ of an interval, by bounds that hold in between.

With t = γ/2 and the singular values √d_m of a problem's rows on a support, the objective of the
ridge fit is f(t) = ρ + Σ e_m t/(d_m + t), a concave function of t. So a chord of f is a lower bound
between its ends, and a tangent is an upper bound everywhere. Intervals are divided until one
support alone can be best, or until no two of the supports differ by more than rounding.

A singular value decomposition is exact for data that are off by δ = 128u of their lengths, so that
√f moves by at most δ(|y| + ‖X_S‖‖β‖).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel
from .linalg import EPS, LEAST_DIVISOR_SHARE, LEAST_GAIN_SHARE, LOST_GAMMA_SHARE, TIE, Array

# A fit by singular values is the exact fit of columns and a response that are off by at most this
# share of their lengths: some tens of rounding units (Higham 2002, Theorem 19.4, for Householder's
# QR; the singular values of a triangular factor lose no more). What compressing a long table has
# lost comes besides, see ``Fits.off``.
BACKWARD = 64.0 * EPS

# An interval of t = γ/2 whose ends differ by at most this share of the upper end is not divided:
# every support that may be best there is listed. A choice.
CELL_TOLERANCE = 1e-9
# At most this many intervals wait while another is divided. Halves in the logarithm end at
# ``CELL_TOLERANCE`` after some thirty divisions of a decade, so that few intervals wait at a time.
# At the limit the cell counts as not divided.
MAX_WAITING = 256
# Supports are not told apart where their objectives exceed the least by at most (1 + this share)
# times what rounding adds: however often an interval were divided, one half would have them and the
# other would not. The share is a choice.
BLURRED = 0.25


class Fits(NamedTuple):
    """The ridge fits of several supports as functions of t = γ/2: f(t) = ρ + Σ e_m t/(d_m + t)."""

    energy: Array  # (supports, s): the numbers e
    squares: Array  # (supports, s): the numbers d
    left: Array  # (supports,): ρ
    # (supports, 2): the root of the sum of the columns' squared lengths, and the least singular
    # value. That is −1 where a singular value was taken for 0 and columns are independent at length
    # 1: as fits have it, they then explain more at a small t than these numbers say.
    reach: Array
    # (supports,): The fit is exact for columns and a response that are off by this share of their
    # lengths.
    off: Array


class Division(NamedTuple):
    """Work space for dividing a cell among at most k supports."""

    waiting: Array  # (MAX_WAITING, 2) ends of intervals
    active: NDArray[np.bool_]  # (MAX_WAITING, ≥ k) which supports may be best there
    room: Array  # (5, ≥ max(k, 4)): rows as :func:`bracket` uses them


class FoundPieces(NamedTuple):
    """Pieces of cells, in increasing order."""

    ends: Array  # (most, 2)
    rows: NDArray[np.int64]  # (most,) of ``Fits``


class ListedRows(NamedTuple):
    """The listed supports of several problems: of problem i ``rows[start[i] : start[i + 1]]``."""

    rows: NDArray[np.int64]  # of ``Fits``
    start: NDArray[np.int64]


@kernel(inner=True)
def value_between(low, high, share, yy):
    """A lower bound on the objectives of some supports between two γ, for numbers or arrays.

    An objective f grows with γ and is a concave function of γ, and so is 1/(yᵀy − f), because
    yᵀy − f is a sum of multiples of 1/(d_m + t). So each is at least its chord.

    low, high: Lower bounds on f at the two γ, at least 0.
    share: Where the γ is between them, from 0 to 1.
    """
    high = np.maximum(low, high)
    # The factors 4·EPS and 16·EPS are more than the few roundings of the formulas.
    chord = ((1.0 - share) * low + share * high) * (1.0 - 4.0 * EPS)
    left, right = (
        np.maximum(yy - low, LEAST_GAIN_SHARE * yy),
        np.maximum(yy - high, LEAST_GAIN_SHARE * yy),
    )
    gain = left * right / ((1.0 - share) * right + share * left)
    return np.maximum(chord, yy - gain * (1.0 + 16.0 * EPS) - 16.0 * EPS * yy)


# The same function in Python, for arrays.
values_between = getattr(value_between, "py_func", value_between)


@kernel(inner=True)
def ridge_objective(fits, c, t):
    """Objective of support c at t = γ/2, and its derivative with respect to t, which is ‖β‖²."""
    energy, squares = fits.energy, fits.squares
    objective, slope = fits.left[c], 0.0
    for m in range(energy.shape[1]):
        share = 1.0 / (squares[c, m] + t)
        objective += energy[c, m] * t * share
        slope += energy[c, m] * squares[c, m] * share * share
    return objective, slope


@kernel(inner=True)
def split_point(low, high):
    """Where an interval of t ≥ 0 is divided: at √(low·high), or at high/100 if low is 0."""
    return np.sqrt(low * high) if low > 0.0 else 0.01 * high


@kernel(inner=True)
def hidden_share(fits, c, low, high):
    """The share of objective c that singular values taken for 0 may explain for low ≤ t ≤ high.

    They are at most 2·fits.off of the columns' length.
    """
    square, size = fits.reach[c, 0] ** 2, fits.squares.shape[1]
    lost = LOST_GAMMA_SHARE * square / size
    if fits.reach[c, 1] < 0.0:
        lost = LEAST_DIVISOR_SHARE * square
    elif fits.reach[c, 1] > 0.0 or high <= lost:
        return 0.0
    return 4.0 * size * fits.off[c] ** 2 * square / max(low, lost)


@kernel(inner=True)
def fit_rounding(fits, length, c, low, high, objective, slope):
    """What rounding may add to, or take off, the objective of support c for low ≤ t ≤ high.

    The result is an upper bound, in the units of the objective.

    The objective rises with t and its derivative ‖β‖² falls, so that their largest values are those
    at one end each.

    length: The length of y.
    objective, slope: The objective at t = high, and its derivative at t = low.
    """
    # The fit is exact for columns and a response that are off by the share ``off`` of their
    # lengths. The root of the objective is the length of a residual, which moves by at most this.
    off = fits.off[c] * (length + fits.reach[c, 0] * np.sqrt(slope))
    return 2.0 * np.sqrt(objective) * off + off * off + objective * hidden_share(fits, c, low, high)


@kernel
def objective_bounds(fits, lengths, t, bounds):
    """Write a lower bound on the objective of every support at t = γ/2, rounding taken off.

    lengths, shape (supports, 2): Length of every support's y, and its square.
    bounds, shape (supports,): Takes the bounds, which are at least 0.
    """
    for c in range(bounds.shape[0]):
        objective, slope = ridge_objective(fits, c, t)
        lost = fit_rounding(fits, lengths[c, 0], c, t, t, objective, slope)
        bounds[c] = max(objective - lost, 0.0)


@kernel(inner=True)
def same_function(fits, c, other, low, high, allowed):
    """Whether bounds prove that two objectives differ by at most ``allowed`` for low ≤ t ≤ high.

    The bounds on all terms are added up. False says nothing, as terms may cancel one another.
    """
    energy, squares = fits.energy, fits.squares
    apart = abs(fits.left[c] - fits.left[other])
    for m in range(energy.shape[1]):
        share = high / (squares[c, m] + high)
        apart += abs(energy[c, m] - energy[other, m]) * share
        gap = abs(squares[c, m] - squares[other, m])
        apart += energy[other, m] * gap * share / (squares[other, m] + low)
    return apart <= allowed


@kernel(inner=True)
def others_are_worse(others, yy, cell, low, high, upper):
    """Whether supports that are not listed are worse in [low, high]; 1 yes, 2 unknown.

    The result is 0 where one of them may be best at an end, and −1 where that is so at both ends.

    cell: Its ends, at which ``others`` bounds the objectives.
    upper: What :func:`bracket` writes.
    """
    if others[0] == np.inf or others[1] == np.inf:
        return 1
    width = cell[1] - cell[0]
    at_low = value_between(others[0], others[1], (low - cell[0]) / width, yy)
    at_high = value_between(others[0], others[1], (high - cell[0]) / width, yy)
    # The least objective of the supports that are not listed is concave, and above its chord.
    if (upper[0] < at_low and upper[1] < at_high) or (upper[2] < at_low and upper[3] < at_high):
        return 1
    worse_at_low, worse_at_high = upper[0] < at_low, upper[3] < at_high
    if worse_at_low and worse_at_high:
        return 2
    return 0 if worse_at_low or worse_at_high else -1


@kernel(inner=True)
def bracket(fits, lengths, low, high, listed, here, room):
    """Bound the objectives of the supports that may be best in [low, high], and leave out others.

    listed, here, shape (k,): Rows of ``fits``, and which may be best; ``here`` is changed.
    room: ``Division.room``. Its rows 0 to 3 take for every support the objective at low and at
        high, the slope at low, and what rounding may add. Row 4 takes the values at low and at high
        of two tangents, both upper bounds on the least objective: that at low of the best support
        there, and that at high of the best support there.
    Returns: How many supports may be best, and whether none of them is worse at an end by more than
        rounding and the share ``BLURRED`` of it.
    """
    low_f, high_f, slope, margin, upper = room[0], room[1], room[2], room[3], room[4]
    first, second, left, alike = -1, -1, 0, True
    for c in range(listed.shape[0]):
        if here[c]:
            low_f[c], slope[c] = ridge_objective(fits, listed[c], low)
            high_f[c], _ = ridge_objective(fits, listed[c], high)
            margin[c] = fit_rounding(fits, lengths[0], listed[c], low, high, high_f[c], slope[c])
            if first < 0 or low_f[c] + margin[c] < low_f[first] + margin[first]:
                first = c
            if second < 0 or high_f[c] + margin[c] < high_f[second] + margin[second]:
                second = c
    upper[0] = low_f[first] + margin[first]
    upper[1] = upper[0] + slope[first] * (high - low)
    upper[3] = high_f[second] + margin[second]
    upper[2] = upper[3] - ridge_objective(fits, listed[second], high)[1] * (high - low)
    for c in range(listed.shape[0]):
        if here[c]:
            a, b = low_f[c] - margin[c], high_f[c] - margin[c]
            # The objective is concave, and above its chord.
            here[c] = (a <= upper[0] or b <= upper[1]) and (a <= upper[2] or b <= upper[3])
            blur = BLURRED * margin[c]
            alike = alike and (not here[c] or (a - blur <= upper[0] and b - blur <= upper[3]))
            left += here[c]
    return left, alike


@kernel(inner=True)
def first_of_tied(fits, lengths, low, high, listed, here):
    """Mark the supports of which no earlier one has the same objective at all γ of a cell.

    Two objectives tie where they differ by at most ``TIE`` of the smaller of the objective and
    yᵀy − objective: the lexicographically first support then counts.
    """
    for c in range(listed.shape[0]):
        least, _ = ridge_objective(fits, listed[c], low)
        most, _ = ridge_objective(fits, listed[c], high)
        allowed = TIE * max(min(least, lengths[1] - most), 0.0)
        here[c] = True
        for q in range(c):
            hidden = hidden_share(fits, listed[c], low, high) * most
            hidden += hidden_share(fits, listed[q], low, high) * most
            if here[q] and same_function(fits, listed[c], listed[q], low, high, allowed - hidden):
                here[c] = False


@kernel(inner=True)
def divide(cell, others, lengths, listed, fits, work, found, n):
    """Divide a cell of γ until it is known which of the listed supports is best where.

    cell: Low and high end of t = γ/2.
    others: Lower bounds on the objective of other supports at both ends; ∞ without others.
    lengths: Length of y, and its square.
    listed, shape (k,), k ≥ 1: Rows of ``fits``, of supports in lexicographic order.
    work: A ``Division``.
    found, n: A ``FoundPieces``, whose first n entries are pieces of other problems. The pieces of
        this problem take the next. Pieces overlap where several supports may be best.
    Returns: The number of entries afterwards; −1 where other supports may be best; −2 where there
        is no room; −3 where other supports may be best at both ends of the cell.
    """
    top, begin = 0, n
    waiting, active, room, ends, at = work.waiting, work.active, work.room, found.ends, found.rows
    waiting[0, 0], waiting[0, 1] = cell[0], cell[1]
    first_of_tied(fits, lengths, cell[0], cell[1], listed, active[0])
    while top >= 0:
        low, high, here = waiting[top, 0], waiting[top, 1], active[top]
        left, alike = bracket(fits, lengths, low, high, listed, here, room)
        worse = others_are_worse(others, lengths[1], cell, low, high, room[4])
        narrow = high - low <= CELL_TOLERANCE * high or high <= CELL_TOLERANCE * cell[1]
        if worse == -1 and low == cell[0] and high == cell[1]:
            return -3
        if worse <= 0 or (worse == 2 and narrow):
            return -1
        if worse == 2 or not (left == 1 or narrow or alike):
            if top + 1 == waiting.shape[0]:
                return -2
            between = split_point(low, high)
            waiting[top + 1, 0], waiting[top + 1, 1], waiting[top, 0] = low, between, between
            for c in range(listed.shape[0]):
                active[top + 1, c] = here[c]
            top += 1
            continue
        again, last = n - begin >= left, n - left
        for c in range(listed.shape[0]):
            if here[c] and again:
                again = at[last] == listed[c] and ends[last, 1] == low
                last += 1
        if not again and n + left > at.shape[0]:
            return -2
        if again:  # The last pieces, of the same supports, become longer.
            ends[n - left : n, 1] = high
        for c in range(0 if again else listed.shape[0]):
            if here[c]:
                ends[n, 0], ends[n, 1], at[n] = low, high, listed[c]
                n += 1
        top -= 1
    return n


@kernel
def divide_cells(cell, others, lengths, listed, fits, work, found, count):
    """Divide a cell of γ for several problems, by :func:`divide` for one after the other.

    cell: The low and the high end of t = γ/2.
    others, shape (problems, 2): For every problem lower bounds, at both ends of the cell, on the
        objective of supports that are not listed.
    lengths, shape (problems, 2): The length of every problem's y, and its square.
    listed: A ``ListedRows``.
    work: A ``Division``, which is overwritten.
    found: A ``FoundPieces``, which takes the pieces of the problems, one problem after the other.
    count, shape (problems,): Takes the number of every problem's pieces, or the −1, −2 or −3 that
        :func:`divide` returns. Such a problem has no pieces.
    """
    n, every, start = 0, listed.rows, listed.start
    for i in range(count.shape[0]):
        mine = every[start[i] : start[i + 1]]
        end = divide(cell, others[i], lengths[i], mine, fits, work, found, n)
        count[i] = end - n if end >= 0 else end
        n = max(end, n)
