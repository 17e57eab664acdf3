"""Objectives of supports along lines of responses, with bounds on their rounding."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.rows import DEPENDENT_SHARE
from ..kernels.linalg import EPS, Array

# Two supports count as one model where their columns span the same space but for angles of this
# size, or where their columns, at length 1, differ by no more. The value is a choice: rounding a
# table moves angles by some 1e-16, and angles of real differences are above 1e-6.
SAME_ANGLE = 1e-10


class Lines:
    """Objectives of supports for the responses y + vδ of several vectors δ.

    X, y, shape (r, p) and (r,): A table, or a factor of [X y].
    directions, shape (d, r): The vectors δ.
    ridge: γ/2. With a ridge the table gets the rows √ridge I, where responses are 0.
    """

    def __init__(self, X: Array, y: Array, directions: Array, ridge: float) -> None:
        self.ridge, (r, p) = ridge, X.shape
        rows = np.vstack([X, math.sqrt(ridge) * np.eye(p)[: p if ridge > 0.0 else 0]])
        lengths = np.linalg.norm(rows, axis=0)
        self.X = rows / np.where(lengths > 0.0, lengths, 1.0)  # Columns of length 1.
        self.responses = np.zeros((len(rows), 1 + len(directions)))
        self.responses[:r] = np.vstack([y, directions]).T
        # The first of the columns of a table without ridge rows that are equal, or opposite.
        unit = X / np.where(lengths > 0.0, np.linalg.norm(X, axis=0), 1.0)
        self.alike = np.arange(p)
        for a in range(p - 1, -1, -1):
            sign = np.copysign(1.0, unit[:, a] @ unit)
            near = np.linalg.norm(unit - unit[:, [a]] * sign, axis=0) <= SAME_ANGLE
            self.alike[near & (np.arange(p) >= a)] = a

    def basis(self, columns: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Singular vectors of supports (k, s), but for singular values that count as 0.

        Returns: Left vectors, shape (k, rows, s), zeros beyond the rank; one over the singular
            values, shape (k, s); right vectors, shape (k, s, s).
        """
        U, values, Vt = np.linalg.svd(self.X[:, columns].transpose(1, 0, 2), full_matrices=False)
        kept = values > DEPENDENT_SHARE * values[:, :1]
        return U * kept[:, None, :], kept / np.where(kept, values, 1.0), Vt

    def of(self, columns: NDArray[np.intp]) -> tuple[Array, Array]:
        """Polynomials of the objectives of supports (k, s), and of what they are off by at most.

        A fit is exact for columns and responses that rounding has moved by some tens of units u of
        their lengths, so that the root of an objective f is off by δ = 64u·(|y| + Σ ℓ_j|β_j|), and
        f by 2√f·δ + δ², at most a share e of f and δ²(1 + 1/e); e is 1e-12, a choice.

        Returns: Two arrays of shape (k, d, 3), with the coefficient of v² first.
        """
        left = np.repeat(self.responses[None], len(columns), axis=0)
        spread = np.zeros((len(columns), left.shape[2]))
        if columns.shape[1] > 0:
            U, inverse, Vt = self.basis(columns)
            inside = inverse[:, :, None] * (U.transpose(0, 2, 1) @ left)
            spread = np.abs(Vt.transpose(0, 2, 1) @ inside).sum(axis=1)
            for _ in range(2):  # The second step restores the digits that the first step has lost.
                left -= U @ (U.transpose(0, 2, 1) @ left)
        off = 32.0 * EPS * (np.linalg.norm(self.responses, axis=0) + spread)
        y, moved = left[:, :, :1], left[:, :, 1:]
        squares = (np.square(moved), 2.0 * y * moved, np.repeat(np.square(y), moved.shape[2], 2))
        value = np.stack([part.sum(axis=1) for part in squares], axis=2)
        share = 1e-12
        error = share * value  # (off_y + |v| off_δ)² is at most twice the sum of the squares.
        error[:, :, 0] += 2.0 * (1.0 + 1.0 / share) * off[:, 1:] ** 2
        error[:, :, 2] += 2.0 * (1.0 + 1.0 / share) * off[:, :1] ** 2
        return value, error

    def same(self, support: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the supports (k, s) have the same objective as another support at every v."""
        if self.ridge > 0.0 or min(support.size, columns.shape[1]) == 0:
            alike = np.sort(self.alike[columns], axis=1)
            equal = alike.shape[1] == support.size and alike == np.sort(self.alike[support])
            return np.asarray(np.ones(len(columns), dtype=bool) & np.all(equal, axis=-1))
        own, U = self.basis(support[None])[0][0], self.basis(columns)[0]
        outside = own - U @ (U.transpose(0, 2, 1) @ own)
        ranks = [np.count_nonzero(basis.any(axis=-2), axis=-1) for basis in (own, U)]
        apart = np.linalg.norm(outside, axis=(1, 2))
        return np.asarray((ranks[0] == ranks[1]) & (apart <= SAME_ANGLE))


def union(intervals: Array) -> Array:
    """The union of open intervals (k, 2), as increasing intervals that do not overlap."""
    some = intervals[intervals[:, 0] < intervals[:, 1]]
    some = some[np.argsort(some[:, 0], kind="stable")]
    reach = np.maximum.accumulate(some[:, 1])
    first = np.append(True, some[1:, 0] > reach[:-1])[: len(some)]
    return np.column_stack([some[first, 0], reach[np.append(first[1:], True)[: len(some)]]])


def complement(intervals: Array) -> Array:
    """What the union of intervals (k, 2) leaves of the line."""
    taken = union(intervals)
    ends = np.column_stack([np.append(-np.inf, taken[:, 1]), np.append(taken[:, 0], np.inf)])
    return np.asarray(ends[ends[:, 0] < ends[:, 1]])
