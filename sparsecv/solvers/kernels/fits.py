"""Ridge fits on many supports S by Householder's QR of [√ridge·I 0; X_S y], compiled.

Columns of X are rows of the array ``columns_of``, so that every inner loop runs along memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel
from .linalg import Array

# Where the columns of a support, brought to length 1, may have a singular value below this number,
# the support is fitted by ``core.subset_fit.ridge_fit``, which alone decides which columns depend
# on each other. Rounding moves the predictions of other fits by about 1e-16 over this number, 1e-10
# of their length, whichever supports are fitted from the same factor. The value is a choice.
LEAST_SINGULAR_VALUE_OF_QUICK_FITS = 1e-6


class FitRoom(NamedTuple):
    """Work space for fits of at most ``most`` columns."""

    R: Array  # (most + 1, most + 1), the triangle of the fit
    work: Array  # (most + 1, rows), the columns that are reflected
    order: NDArray[np.int64]  # (3, most), as :func:`nested_order` uses it


@kernel(inner=True, reorder=True)
def ridge_triangle(R, columns_of, columns, m, ridge, triangular, work, least_value):
    """Write to ``R`` the R with RᵀR = [[X_SᵀX_S + ridge I, X_Sᵀy], [yᵀX_S, yᵀy]].

    Row c of √ridge·I is 0 but for its entry in column c until column c has its turn, when the entry
    becomes the head of the column to reflect. No more of √ridge·I is stored, and |R_cc| ≥ √ridge.

    R: (m + 1, m + 1) at least. The first m diagonal entries are negative or 0, the last is ≥ 0.
    columns_of: (p + 1, rows), the columns of X and then y.
    columns, m: The first m entries are the columns S, in any order.
    ridge: γ/2 ≥ 0.
    triangular: Whether entries of column c of X beyond row c are 0.
    work: Work space (m + 1, rows), for X_S and y.
    least_value: The least singular value that [√ridge·I; X_S] may have once its columns are brought
        to length 1; with 0 singular values are not tested.
    Returns: False where a singular value may lie below ``least_value``, and where nothing is left
        of a column and the ridge is 0. In the second case R ends with a 0 on its diagonal.
    """
    y, rows, last = columns_of.shape[0] - 1, columns_of.shape[1], 0
    least, total = np.sqrt(ridge), 0.0
    for c in range(m):
        square = 0.0
        for a in range(rows):
            work[c, a] = columns_of[columns[c], a]
            square += work[c, a] * work[c, a]
        total += square
    for a in range(rows):
        work[m, a] = columns_of[y, a]
    fine = True
    for c in range(m):
        last = min(max(last, columns[c] + 1), rows) if triangular else rows
        norm = ridge
        for a in range(last):
            norm += work[c, a] * work[c, a]
        norm = np.sqrt(norm)
        if norm == 0.0:  # nothing is left of the column, and there is no ridge
            R[c, c] = 0.0
            return False
        fine = fine and not np.isnan(norm)
        # The reflection is I − v vᵀ·scale with v = (head, work[c]); column c becomes −norm.
        head = least + norm
        scale = 1.0 / (norm * head)
        for q in range(c + 1, m + 1):
            dot = 0.0
            for a in range(last):
                dot += work[c, a] * work[q, a]
            dot *= scale
            R[c, q] = -dot * head
            for a in range(last):
                work[q, a] -= dot * work[c, a]
        R[c, c] = -max(norm, least)
    loss = 0.0
    for a in range(rows):
        loss += work[m, a] * work[m, a]
    R[m, m] = np.sqrt(loss)
    for c in range(1, m + 1):
        for a in range(c):
            R[c, a] = 0.0
    # No singular value is smaller than √ridge over the length of the longest column.
    return fine and (ridge >= least_value**2 * (total + ridge) or independent(R, m, least_value))


@kernel(inner=True)
def independent(R, m, least_value):
    """Whether the first m columns of R, brought to length 1, are surely far from dependent.

    With the columns at length 1, 1/‖R⁻¹‖ bounds every singular value from below in the Frobenius
    norm, and m over the product of the diagonal bounds ‖R⁻¹‖ from above: every minor of R is at
    most 1 (Hadamard), so that no entry of R⁻¹ exceeds one over that product. R⁻¹ is computed only
    where the product does not suffice.

    R, shape (m + 1, m + 1) at least: Upper triangular. Row m is work space up to the diagonal, and
        0 there on return.
    Returns: False where a singular value may lie below ``least_value``.
    """
    volume, total = 1.0, 0.0
    for c in range(m):
        square = 0.0
        for a in range(c + 1):
            square += R[a, c] * R[a, c]
        volume *= np.abs(R[c, c]) / np.sqrt(square) if square > 0.0 else 0.0
    if volume == 0.0 or volume >= m * least_value:
        return volume > 0.0
    for i in range(m):  # row i of R⁻¹, times the length of column i
        square = 0.0
        for a in range(i + 1):
            square += R[a, i] * R[a, i]
        for c in range(i, m):
            R[m, c] = 0.0
        R[m, i] = np.sqrt(square)
        for c in range(i, m):
            entry = R[m, c] / R[c, c]
            total += entry * entry
            for q in range(c + 1, m):
                R[m, q] -= entry * R[c, q]
    for c in range(m):
        R[m, c] = 0.0
    return total * least_value**2 <= 1.0


@kernel(inner=True)
def bring_first(row, m, order, left):
    """Reorder ``order[0, :left]`` so that the columns among the first m of ``row`` come first.

    Columns that come first, and the others, keep their order among themselves.
    ``order[1]`` is overwritten. Returns: How many columns came first.
    """
    hits, others = 0, 0
    for a in range(left):
        column, wanted = order[0, a], False
        for q in range(m):
            wanted = wanted or row[q] == column
        if wanted:
            order[0, hits] = column
            hits += 1
        else:
            order[1, others] = column
            others += 1
    for a in range(others):
        order[0, hits + a] = order[1, a]
    return hits


@kernel(inner=True)
def nested_order(supports, c, order):
    """Order the columns of support c so that supports c − 1, c − 2, … are beginnings of that order.

    A triangular factor of support c then has the factors of these supports as its leading parts.
    Equal supports have one factor: where units count more than once in a size, several sizes that
    follow each other have the same support.

    supports: (c + 1, most) or longer, one support in each row, ended by −1.
    order: (3, most): ``order[0]`` gets the ordered columns and ``order[2, r]`` the number of
        columns of support c − r; ``order[1]`` is work space.
    Returns: How many supports, c among them, have their factor in that of support c.
    """
    for r in range(min(c + 1, order.shape[1])):
        row, m = supports[c - r], 0
        while m < row.shape[0] and row[m] >= 0:
            if r == 0:
                order[0, m] = row[m]
            m += 1
        if r > 0 and (m == 0 or m > order[2, r - 1]):
            return r
        if r > 0 and m == order[2, r - 1]:
            for q in range(m):
                if row[q] != supports[c - r + 1, q]:
                    return r
        elif r > 0 and bring_first(row, m, order, order[2, r - 1]) < m:
            return r
        order[2, r] = m
    return max(min(c + 1, order.shape[1]), 1)


@kernel
def ridge_fits(columns_of, ridge, triangular, supports, coef, objective, room, least_value):
    """Ridge fits on every row of ``supports`` (c, most), whose columns are ended by −1.

    columns_of, triangular, least_value: As :func:`ridge_triangle` takes them.
    coef, objective: Take the coefficients (c, most), in the order of ``supports``, and
        ‖y − Xβ‖² + ridge·‖β‖² (c,), which is NaN where :func:`ridge_triangle` returns False.
    room: A ``FitRoom``; of a single row with a fit ``room.R`` keeps the factor.
    Returns: The number of rows without a fit. Their coefficients are not written, and nor are
        entries of ``coef`` beyond a row's columns.
    """
    R, work, order = room.R, room.work, room.order
    c, failed = supports.shape[0] - 1, 0
    while c >= 0:
        rows, size = nested_order(supports, c, order), order[2, 0]
        if not ridge_triangle(R, columns_of, order[0], size, ridge, triangular, work, least_value):
            objective[c] = np.nan
            failed += 1
            c -= 1
            continue
        loss = R[size, size] ** 2
        for r in range(rows):
            m, row = order[2, r], c - r
            if r > 0:  # add what the columns that this row lacks explain
                for a in range(m, order[2, r - 1]):
                    loss += R[a, size] ** 2
            objective[row] = loss
            for i in range(m):  # a column's place in its row is the number of smaller columns
                order[1, i] = 0
                for q in range(m):
                    order[1, i] += order[0, q] < order[0, i]
            for i in range(m - 1, -1, -1):
                total = R[i, size]
                for q in range(i + 1, m):
                    total -= R[i, q] * coef[row, order[1, q]]
                coef[row, order[1, i]] = total / R[i, i]
        c -= rows
    return failed
