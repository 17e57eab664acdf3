"""Objectives in exact rational arithmetic, of the floating-point data as they are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Matrix = list[list[Fraction]]


def exact_moments(X: Array, y: Array) -> Matrix:
    """[[XᵀX, Xᵀy], [yᵀX, yᵀy]] without any rounding."""
    columns = [[Fraction(float(v)) for v in column] for column in np.column_stack([X, y]).T]
    m = len(columns)
    joint = [[Fraction(0)] * m for _ in range(m)]
    for i in range(m):
        for j in range(i + 1):
            joint[i][j] = joint[j][i] = sum(
                (a * b for a, b in zip(columns[i], columns[j], strict=True)), Fraction(0)
            )
    return joint


def as_exact(matrix: Array) -> Matrix:
    """The numbers of a matrix as fractions."""
    return [[Fraction(float(value)) for value in row] for row in matrix]


def exact_objective(joint: Matrix, gamma: float, support: Sequence[int]) -> Fraction:
    """f_S(γ): the last pivot of the elimination of the columns of S from the joint moments."""
    order = [*(int(i) for i in support), len(joint) - 1]
    M = [[joint[i][j] for j in order] for i in order]
    for a in range(len(order) - 1):
        M[a][a] += Fraction(gamma) / 2
    for a in range(len(order) - 1):
        for r in range(a + 1, len(order)):
            factor = M[r][a] / M[a][a]
            for c in range(a + 1, len(order)):
                M[r][c] -= factor * M[a][c]
    return M[-1][-1]
