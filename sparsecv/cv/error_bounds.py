"""Bounds on the CV error over an interval of γ, from the supports that can be best there.

With a fold's support fixed, the residual of held-out row i at t = γ/2 is
r_i(t) = y_i − Σ_m c_im/(d_m + t) (eq. 24, first paper). Here d_m ≥ 0 are the squared singular
values of the training rows on the support, and c_im the held-out row times the m-th right singular
vector, times (X'y)_m in that basis. Every term is monotone in t, so that the terms' ends bracket
r_i and its derivatives in the interval. All errors are sums of squared errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.rounding import SUM_SHARE
from ..solvers.kernels.compiled import kernel
from ..solvers.kernels.envelope import Fits, ridge_objective
from ..solvers.kernels.linalg import EPS, least_of_parabola

# Stands for an error of coefficients without any bound. It is finite, so that a held-out row of
# zeros keeps the prediction 0, and so large that its square exceeds any objective.
UNBOUNDED = 1e200


class CellData(NamedTuple):
    """What the cells of one size are bounded from.

    Fold j has the held-out rows i, as many for every fold; rows of zeros with the target 0, which
    change no error, fill up. Support c is that of one fold, and has its fit and its rows.
    """

    start: NDArray[np.int64]  # (folds + 1,): pieces of fold j are ``start[j]`` to ``start[j + 1]``
    ends: NDArray[np.float64]  # (pieces, 2): ends of pieces, in t = γ/2
    row: NDArray[np.int64]  # (pieces,): rows of ``fits``; −1 where any support may be best
    fits: Fits
    coef: NDArray[np.float64]  # (supports, rows, size): the numbers c_im
    length: NDArray[np.float64]  # (supports, rows): lengths of held-out rows, on the support
    targets: NDArray[np.float64]  # (folds, rows)
    lengths: NDArray[np.float64]  # (folds, 2): length of the fold's training y, and its square


@kernel(inner=True)
def coefficient_error(fits, length, c, low, high):
    """A bound on how far rounding moves the coefficients of a ridge fit for low ≤ t ≤ high.

    The ridge term is t‖β‖², with t = γ/2. The computed fit is exact for columns X + E and a
    response y + e with |E| and |e| at most a share ``fits.off`` of their lengths. The coefficients
    then differ by
    (X'X + t)⁻¹(E'r − X'(Eβ − e)), whose factors are bounded by the least singular value, the
    residual r and the coefficients β of the computed fit. ‖r‖² is at most the objective, which is
    largest at the largest t, and ‖β‖² is the derivative of the objective, largest at the least t.

    fits, c: Fits on several supports, and the number of the support that is meant.
    length: The length of the training y.
    low, high: Ends of the range of t, 0 ≤ low ≤ high.
    Returns: A bound on the length of the difference of the coefficients, at most UNBOUNDED.
    """
    reach = fits.reach
    objective, _ = ridge_objective(fits, c, high)
    _, slope = ridge_objective(fits, c, low)
    share = 2.0 * fits.off[c]
    off = share * reach[c, 0]
    least = max(reach[c, 1] - off, 0.0)
    shrunk = least * least + low
    if shrunk == 0.0:
        return UNBOUNDED
    # The largest s/(s² + t) for s ≥ least and t ≥ low.
    steep = least / shrunk if least * least > low else 0.5 / np.sqrt(low)
    wrong = off * np.sqrt(objective) / shrunk + steep * (off * np.sqrt(slope) + share * length)
    return min(wrong, UNBOUNDED)


@kernel(inner=True)
def bracket_row(coef, squares, c, i, low, high, sums):
    """Brackets of Σ_m c_im/(d_m + t)^k for low ≤ t ≤ high and k = 1, 2, 3.

    coef, squares: The numbers c_im of every support, shape (supports, rows, size), and d_m, shape
        (supports, size); those of support c and row i are taken.
    sums, shape (3, 2): Row k − 1 takes the lower and the upper end of the bracket for k. Their
        rounding is not taken off.
    Returns: Σ_m |c_im|/(d_m + low), from which the rounding of the sums is bounded.
    """
    size = 0.0
    for k in range(3):
        sums[k, 0] = sums[k, 1] = 0.0
    for m in range(squares.shape[1]):
        a, b, value = 1.0 / (squares[c, m] + low), 1.0 / (squares[c, m] + high), coef[c, i, m]
        size += abs(value) * a
        most, least = value, value
        for k in range(3):
            most *= a
            least *= b
            sums[k, 0] += least if value > 0.0 else most
            sums[k, 1] += most if value > 0.0 else least
    return size


@kernel(inner=True)
def least_square(low, high):
    """The least square of a number in [low, high]."""
    return 0.0 if low <= 0.0 <= high else min(low * low, high * high)


@kernel(inner=True)
def error_at(data, off, c, j, t):
    """An upper bound on Σ_i r_i(t)² of fold j with support c, rounding included.

    data: A :class:`CellData`; so in the functions below.
    off: What :func:`coefficient_error` says of support c in a range that holds t; so in the
        functions below.
    """
    coef, squares, targets, length = data.coef, data.fits.squares, data.targets, data.length
    total = 0.0
    for i in range(targets.shape[1]):
        residual, size = targets[j, i], 0.0
        for m in range(squares.shape[1]):
            part = coef[c, i, m] / (squares[c, m] + t)
            residual -= part
            size += abs(part)
        wrong = off * length[c, i] + SUM_SHARE * (size + abs(targets[j, i]))
        total += (abs(residual) + wrong) ** 2
    return total


@kernel(inner=True)
def lower_error(data, off, c, j, low, high, sums):
    """A lower bound on Σ_i r_i(t)² of fold j with support c for low ≤ t ≤ high.

    The rounding of the residuals is included, that of the sum is not.

    sums: Work space (3, 2).
    """
    total, targets = 0.0, data.targets
    for i in range(targets.shape[1]):
        size = bracket_row(data.coef, data.fits.squares, c, i, low, high, sums)
        wrong = off * data.length[c, i] + SUM_SHARE * (size + abs(targets[j, i]))
        total += least_square(
            targets[j, i] - sums[0, 1] - wrong, targets[j, i] - sums[0, 0] + wrong
        )
    return total


@kernel(inner=True)
def add_rows(data, off, c, j, cell, sums, total):
    """Add fold j with support c, the only one that can be best in a cell, to the totals.

    cell: Low and high end of t, and a number in between.
    sums: Work space (3, 2).
    total, shape (6,): Every row adds its r² in the middle to entry 0, its slope 2rr' there to entry
        1, a lower bound on (r²)'' in the cell to entry 2, and one on r² in the cell to entry 3.
        Entry 4 takes by how much rounding may raise the parabola that entries 0 to 2 make, and
        entry 5 an upper bound on r² in the middle.
    """
    coef, squares, targets, length = data.coef, data.fits.squares, data.targets, data.length
    low, high, middle = cell[0], cell[1], cell[2]
    width = max(high - middle, middle - low)
    for i in range(targets.shape[1]):
        size = bracket_row(coef, squares, c, i, low, high, sums)
        y = targets[j, i]
        residual, change = y, 0.0
        for m in range(squares.shape[1]):
            share = 1.0 / (squares[c, m] + middle)
            part = coef[c, i, m] * share
            residual -= part
            change += part * share
        wrong = off * length[c, i] + SUM_SHARE * (size + abs(y))
        least, most = y - sums[0, 1], y - sums[0, 0]
        far = max(abs(least), abs(most))
        # r' is Σ c/(d + t)², r'' is −2 Σ c/(d + t)³.
        a, b = -2.0 * sums[2, 1], -2.0 * sums[2, 0]
        # (r²)'' is 2(r'² + rr''). A product of two intervals is least at one of four corners.
        bend = 2.0 * (
            least_square(sums[1, 0], sums[1, 1])
            + min(min(least * a, least * b), min(most * a, most * b))
        )
        total[0] += residual * residual
        total[1] += 2.0 * residual * change
        total[2] += bend
        total[3] += least_square(least - wrong, most + wrong)
        # The exact r is within ``wrong`` of the computed one, and the three terms of the parabola
        # are off by their share SUM_SHARE at the ends of the cell.
        steep = max(abs(sums[1, 0]), abs(sums[1, 1]))
        total[4] += (2.0 * far + wrong) * wrong + SUM_SHARE * (
            far * far + 2.0 * far * steep * width + abs(bend) * width * width
        )
        total[5] += (abs(residual) + wrong) ** 2


@kernel
def bound_cell(cell, data, work, out):
    """Bound the sum of squared errors over a cell of t = γ/2 at one size.

    Where a fold has one support that can be best in the cell, a parabola below its error counts, or
    the least squares of its residuals. Where it has several, the least bound of any counts.

    cell: Low and high end of t, 0 ≤ low < high, and a number above 0 in between.
    data: The :class:`CellData` of the size.
    work: Work space (3, 2) and (6,).
    out, shape (5,): Takes a lower bound on the sum over all folds in the whole cell; an upper bound
        in the middle; the number of folds with several pieces, or with a piece in which any support
        may be best; the end of such a fold's piece inside the cell that is nearest to the middle,
        or 0; and what the lower bound of the other folds loses by rounding.
    """
    low, high, middle = cell[0], cell[1], cell[2]
    sums, total = work
    start, ends, row, fits, lengths = data.start, data.ends, data.row, data.fits, data.lengths
    fixed, upper, several, nearest = 0.0, 0.0, 0, 0.0
    for a in range(6):
        total[a] = 0.0
    for j in range(lengths.shape[0]):
        count, only = 0, -1
        for piece in range(start[j], start[j + 1]):
            if ends[piece, 0] < high and ends[piece, 1] > low:
                count, only = count + 1, piece
        if count == 1 and row[only] >= 0:
            c = row[only]
            off = coefficient_error(fits, lengths[j, 0], c, low, high)
            add_rows(data, off, c, j, cell, sums, total)
            continue
        several += 1
        least, most = np.inf, -1.0
        for piece in range(start[j], start[j + 1]):
            a, b, c = max(ends[piece, 0], low), min(ends[piece, 1], high), row[piece]
            if not (ends[piece, 0] < high and ends[piece, 1] > low):
                continue
            for e in range(2):
                end = ends[piece, e]
                if low < end < high and (
                    nearest == 0.0 or abs(np.log(end / middle)) < abs(np.log(nearest / middle))
                ):
                    nearest = end
            if c < 0:
                least, most = 0.0, np.inf
                continue
            off = coefficient_error(fits, lengths[j, 0], c, a, b)
            least = min(least, lower_error(data, off, c, j, a, b, sums))
            if a <= middle <= b:
                most = max(most, error_at(data, off, c, j, middle))
        fixed += least if count > 0 else 0.0
        upper += most if most >= 0.0 else np.inf
    share = max(SUM_SHARE, EPS * data.targets.size)
    total[4] *= share / SUM_SHARE
    parabola = least_of_parabola(total[0], total[1], 0.5 * total[2], low - middle, high - middle)
    out[0] = (fixed + max(total[3], parabola - total[4])) * (1.0 - share)
    out[1] = (upper + total[5]) * (1.0 + share)
    out[2], out[3], out[4] = several, nearest, total[4]
