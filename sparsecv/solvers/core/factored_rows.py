"""The table [X y] of a problem, and what is computed from it once for every γ and size."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..kernels.linalg import EPS
from .independence import (
    DEPENDENT_SHARE,
    MAX_DEPENDENT_COLUMNS,
    Independence,
    independence,
)
from .threads import cached

Array = NDArray[np.float64]
# A table of [X y] with more rows per column of X than this is held as the triangle of its QR
# factorisation; for shorter tables the triangle costs more than it saves (measured).
MAX_ROWS_PER_COLUMN = 4
# Searches replace γ if √(γ/2) is below this share of the longest column's length: QR factorisation
# loses 1e-15 of the length, so that three digits of the share are left.
ZERO_SHARE = 1e-12
# The same share where columns are dependent up to rounding, times σ^(2/3), σ the number
# :attr:`Independence.least`. The working γ adds up to γ/σ² of yᵀy to the objective f, some 1e-13,
# and rounding of dependent columns takes up to 1e-14/√γ of f, some 1e-7.
ZERO_SHARE_OF_DEPENDENT = 3e-7


class Rows:
    """The rows of [X y], or of a long table a triangular factor.

    rows, shape (m, p + 1): Of more than ``MAX_ROWS_PER_COLUMN`` p rows the triangle is held.
    given: For a problem made from Gram matrices, with columns scaled to length 1: the largest error
        of rootᵀroot, root the matrix root taken; a lower bound on the least eigenvalue; and the
        squared lengths of the columns.

    ``zero_share`` is the share of the longest length below which √(γ/2) is replaced in searches.

    ``before`` holds the lengths of the columns and y before unpenalised columns were projected out;
    None where there were none.

    ``lost`` bounds the error of a product of two columns of the factor, relative to the product of
    their lengths: Householder's QR of m rows moves each column by at most m·u of its length, u the
    rounding unit (Higham 2002, Theorem 19.4, with a constant of 1).
    """

    def __init__(self, rows: Array, given: tuple[float, float, Array] | None = None) -> None:
        long = rows.shape[0] > max(MAX_ROWS_PER_COLUMN * (rows.shape[1] - 1), rows.shape[1])
        self.rows, self.given = triangle_of(rows) if long else rows, given
        self.before: Array | None = None
        self.zero_share = ZERO_SHARE
        # The same columns with another response, whose decompositions of X serve here too.
        self.other: Rows | None = None
        self.at_unit_length: tuple[Array, Rows] | None = None  # with the lengths before
        self.lost = 2.0 * rows.shape[0] * EPS if rows.shape[0] > rows.shape[1] else 0.0

    @cached
    def triangle(self) -> Array:
        """A factor with at most as many rows as columns."""
        return self.rows if self.rows.shape[0] <= self.rows.shape[1] else triangle_of(self.rows)

    @cached
    def active(self) -> NDArray[np.intp]:
        """The columns of X that are not zero; column 0 where every column or y is zero."""
        used: NDArray[np.bool_] = np.asarray(self.rows.any(axis=0))
        found = np.flatnonzero(used[:-1])
        return found if found.size and used[-1] else np.zeros(1, dtype=np.intp)

    @cached
    def columns(self) -> tuple[Array, bool]:
        """The columns of ``triangle``, one per row, and whether all below the diagonal is 0."""
        return np.ascontiguousarray(self.triangle.T), not np.tril(self.triangle, -1).any()

    @cached
    def singular(self) -> tuple[Array, Array, Array]:
        """The thin singular value decomposition of X, which every γ shares.

        Singular values keep the digits of a small γ that XXᵀ + γ/2 I would bury.
        """
        U, s, Vt = sla.svd(self.triangle[:, :-1], full_matrices=False)
        return U, s, Vt

    @cached
    def independence(self) -> Independence:
        """How independent the columns of X are that are not 0, once brought to length 1."""
        if self.other is not None:
            return self.other.independence
        X = self.triangle[:, :-1]
        lengths = np.linalg.norm(X, axis=0)
        found = independence(X[:, lengths > 0.0] / lengths[lengths > 0.0])
        if self.given is None:
            return found
        # The matrix root is off, and of a singular matrix nothing is known.
        least = math.sqrt(max(found.least**2 - X.shape[1] * self.given[0], 0.0))
        return found._replace(least=least if found.full else 0.0)

    def scaled(self, lengths: Array) -> Rows:
        """The rows with columns divided by ``lengths`` (p,), for searches at a tiny γ.

        Where columns are dependent, the working γ is the one that leaves bounds the most digits.
        """
        share, p = ZERO_SHARE, lengths.size
        some = p <= MAX_DEPENDENT_COLUMNS and not self.independence.full
        if some and self.independence.least > 0.0:
            share = ZERO_SHARE_OF_DEPENDENT * self.independence.least ** (2.0 / 3.0)
        if (lengths == 1.0).all() and share == self.zero_share:
            return self
        rows, given, whole = self.triangle.copy(), self.given, np.append(lengths, 1.0)
        rows /= whole
        if given is not None:
            given = (*given[:2], given[2] / whole**2)
        scaled = Rows(rows, given)
        scaled.lost, scaled.zero_share = self.lost, share
        if self.other is not None:
            if self.other.at_unit_length is None:
                self.other.at_unit_length = lengths, self.other.scaled(lengths)
            scaled.other = self.other.at_unit_length[1]
        if "independence" in vars(self):
            scaled.independence = self.independence
        if self.before is not None:
            scaled.before = self.before / whole
        return scaled

    @cached
    def squares(self) -> Array:
        """Squared lengths of the columns of X, shape (p,)."""
        return np.asarray(np.einsum("ij,ij->j", self.rows, self.rows)[:-1])

    @cached
    def longest(self) -> float:
        """Length of the longest column of X; 1 where every column is zero."""
        return float(np.sqrt(self.squares.max(initial=0.0))) or 1.0

    @property
    def dependent_share(self) -> float:
        """The share of the largest singular value, columns at length 1, up to which values are 0.

        A singular value of a matrix root is the root of an eigenvalue, which is off by at most p
        times the error of a product.
        """
        if self.given is None:
            return DEPENDENT_SHARE
        return max(DEPENDENT_SHARE, math.sqrt(self.rows.shape[1] * self.given[0]))

    @cached
    def pivots(self) -> tuple[Array, Array]:
        """Squared lengths of the columns of X, before and after projecting out earlier columns."""
        if self.other is not None:
            return self.other.pivots
        X = self.triangle[:, :-1]
        left = np.zeros(X.shape[1])
        diagonal = triangle_of(X).diagonal()
        left[: diagonal.size] = diagonal**2
        return np.einsum("ij,ij->j", X, X), left


def gram_root(joint: Array) -> tuple[Array, tuple[float, float, Array]]:
    """A square matrix with rootᵀ·root = ``joint``, and what :class:`Rows` keeps as ``given``.

    Raises ValueError: ``joint``, a symmetric matrix, is clearly not positive semidefinite.
    """
    # Columns are scaled to length 1, so that short columns keep their digits beside long columns.
    squares = np.maximum(np.diag(joint), 0.0)
    scale = np.sqrt(np.where(squares == 0.0, 1.0, squares))
    values, vectors = np.linalg.eigh(joint / scale / scale[:, None])
    m = joint.shape[0]
    if values[0] < -1e-8 * m:
        raise ValueError("[[G, b], [bᵀ, yy]] is not positive semidefinite")
    unit = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    unit[:, squares == 0.0] = 0.0  # Rounding has left small numbers here.
    off = float(np.abs(unit.T @ unit - joint / scale / scale[:, None]).max()) + 8.0 * m * EPS
    return unit * scale, (off, float(values[0]) - 8.0 * m * m * EPS, squares)


def triangle_of_blocks(blocks: Iterable[Array]) -> tuple[Array, int, int]:
    """The triangle of rows that come in blocks; the number of rows, and of rows factored in all."""
    factor: Array | None = None
    n = factored = 0
    for block in blocks:
        rows = block if factor is None else np.vstack([factor, block])
        factor, n, factored = triangle_of(rows), n + len(block), factored + len(rows)
    assert factor is not None
    return factor, n, factored


def triangle_of(M: Array) -> Array:
    """R of the QR factorisation, at most square."""
    return np.asarray(np.linalg.qr(M, mode="r"))
