"""Ridge fits on many supports by Householder's QR of [√ridge·I 0; X_S y], compiled.

Columns are kept as rows of a transposed array, so that every inner loop runs along memory.
"""

from __future__ import annotations

import numpy as np

from .compiled import kernel
from .linalg import add, dot, factor_row


@kernel(inner=True, reorder=True)
def ridge_triangle(R, columns_of, columns, m, ridge, triangular, work, eps):  # type: ignore[no-untyped-def]
    """R with RᵀR = [[X_SᵀX_S + ridge I, X_Sᵀy], [yᵀX_S, yᵀy]] in the first m + 1 rows of ``R``.

    ``columns_of`` (p + 1, rows) holds the columns of X and then y; where ``triangular``, entries of
    column c beyond row c are 0. False where rounding loses the ridge beside dependent columns.
    """
    y, rows, last = columns_of.shape[0] - 1, columns_of.shape[1], 0
    least, total = np.sqrt(ridge), 0.0
    for c in range(m):
        square = 0.0
        for a in range(rows):
            work[c, a] = columns_of[columns[c], a]
            square += work[c, a] * work[c, a]
        R[c, 0] = square  # until the pivot is known; below the diagonal but for c = 0
        total += square
    for a in range(rows):
        work[m, a] = columns_of[y, a]
    if ridge >= total:  # X would be buried below the penalty
        return _cholesky(R, work, m, rows, ridge)
    fine = True
    for c in range(m):
        last = min(max(last, columns[c] + 1), rows) if triangular else rows
        square, norm = R[c, 0], ridge
        for a in range(last):
            norm += work[c, a] * work[c, a]
        norm = np.sqrt(norm)
        fine = fine and norm >= max(32.0 * eps * np.sqrt(square), 0.5 * least)
        # the reflection is I − v vᵀ·scale with v = (head, work[c]); column c becomes −norm
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
    return fine


@kernel(inner=True)
def _cholesky(R, work, m, rows, ridge):  # type: ignore[no-untyped-def]
    """The same from the Gram matrix of the rows of ``work``."""
    for c in range(m + 1):
        for a in range(c + 1):
            R[c, a] = dot(work[a], work[c], rows)
        if c < m:
            R[c, c] += ridge
        left = factor_row(R, c, 0.0)
        if c < m and not left > 0.0:
            return False
    for c in range(m + 1):
        for a in range(c):
            R[a, c], R[c, a] = R[c, a], 0.0
    return True


@kernel(inner=True)
def nested_order(supports, c, order):  # type: ignore[no-untyped-def]
    """Columns of row c of ``supports`` in an order whose beginnings are rows above it as well.

    ``order[0]`` takes the columns and ``order[2]`` how many each of the rows has, the last one
    first. Returns the columns of row c and how many rows there are. Columns of a row must increase
    and be ended by −1.
    """
    size = 0
    while size < supports.shape[1] and supports[c, size] >= 0:
        order[0, size] = supports[c, size]
        size += 1
    order[2, 0], rows, left = size, 1, size
    while rows <= c and rows < order.shape[1]:
        m, a, above = 0, 0, c - rows
        while m < left and supports[above, m] >= 0:  # is it among the first ``left``?
            while a < left and order[0, a] < supports[above, m]:
                a += 1
            if a == left or order[0, a] != supports[above, m]:
                return size, rows
            m += 1
        if m == left or m == 0:
            return size, rows
        move_first(supports, above, m, left, order)
        order[2, rows], left = m, m
        rows += 1
    return size, rows


@kernel(inner=True)
def move_first(supports, row, m, left, order):  # type: ignore[no-untyped-def]
    """Let the m columns of a row come first of the first ``left``."""
    q, other = 0, m
    for a in range(left):
        if q < m and order[0, a] == supports[row, q]:
            q += 1
        else:
            order[1, other] = order[0, a]
            other += 1
    for a in range(m):
        order[0, a] = supports[row, a]
    for a in range(m, left):
        order[0, a] = order[1, a]


@kernel
def ridge_fits(  # type: ignore[no-untyped-def]
    columns_of, ridge, triangular, supports, coef, objective, room, eps
):
    """Fit every row of ``supports``, ended by −1; index of the first that cannot be fitted, or −1.

    coef: In the order of the supports. Rows that each hold the row above share a factor.
    room: Work space R (most + 1, most + 1), work (most + 1, rows) and order (3, most).
    """
    R, work, order = room
    c = supports.shape[0] - 1
    while c >= 0:
        size, rows = nested_order(supports, c, order)
        if not ridge_triangle(R, columns_of, order[0], size, ridge, triangular, work, eps):
            return c
        loss = R[size, size] ** 2
        for r in range(rows):
            m, row = order[2, r], c - r
            if r > 0:  # what the columns that this row lacks explain
                for a in range(m, order[2, r - 1]):
                    loss += R[a, size] ** 2
            objective[row] = loss
            for i in range(m):  # the place of a column in its row: how many columns are smaller
                order[1, i] = 0
                for q in range(m):
                    order[1, i] += order[0, q] < order[0, i]
            for i in range(m - 1, -1, -1):
                total = R[i, size]
                for q in range(i + 1, m):
                    total -= R[i, q] * coef[row, order[1, q]]
                coef[row, order[1, i]] = total / R[i, i]
        c -= rows
    return -1


@kernel(inner=True)
def add_fit(columns_of, supports, coef, c, target):  # type: ignore[no-untyped-def]
    """Add the predictions of fit c on rows whose columns are ``columns_of``."""
    for i in range(supports.shape[1]):
        if supports[c, i] < 0:
            break
        add(target, columns_of[supports[c, i]], coef[c, i], target.shape[0])


@kernel
def predict(columns_of, supports, coef, predicted):  # type: ignore[no-untyped-def]
    """Predictions (c, rows) of fits on rows whose columns are ``columns_of`` (p, rows)."""
    for c in range(supports.shape[0]):
        for a in range(columns_of.shape[1]):
            predicted[c, a] = 0.0
        add_fit(columns_of, supports, coef, c, predicted[c])


@kernel
def squared_errors(columns_of, targets, supports, coef, error, residual):  # type: ignore[no-untyped-def]
    """Σ (target − prediction)² of every fit."""
    for c in range(supports.shape[0]):
        for a in range(targets.shape[0]):
            residual[a] = -targets[a]
        add_fit(columns_of, supports, coef, c, residual)
        error[c] = dot(residual, residual, targets.shape[0])
