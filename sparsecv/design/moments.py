"""Moments of rows of [X y]: of blocks of rows, of unions of blocks, and of the folds of a table.

Moments are what a training problem needs of its rows: their number, weight, mean and scatter. Those
of a union follow from those of its parts, so that folds share what they have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..solvers.core.rows import Rows, triangle_of
from ..solvers.core.threads import cached
from .design import Array, Summary, centre
from .folds import Index

# LAPACK's QR factorisation of stacked triangles works on this many columns at a time. The value is
# measured: for 31 to 501 columns 8 to 64 take up to a quarter more time.
COLUMNS_AT_A_TIME = 32
# A block of rows has at least this many rows. Smaller blocks take longer to put together than their
# rows take: the moments of all 6497 rows of 12 numbers, each a fold, take 13.5 ms with blocks of 64
# rows, 4.8 ms with 256 and 3.3 ms with 1024, those of all rows but one .10, .14 and .23 ms
# (measured).
LEAST_ROWS_OF_A_BLOCK = 256
# A mean that is taken off rows, and their weights, round a number as often as this many rows of QR.
ROWS_OF_CENTRING = 3


@dataclass(frozen=True)
class Moments:
    """Weight, mean and scatter of n rows of [X y]; the scatter is known by a triangular factor.

    The mean is the sum of ``mean`` and ``tail``, shape (p + 1,) each, which has twice the digits:
    beside an offset of 1e8 a mean of 16 digits is off by more than columns of spread 1e-6 can bear.

    weight: The sum of the rows' weights, which is n where rows have no weights.
    triangle, shape (m, p + 1): Upper triangular R of at most p + 1 rows. RᵀR is the sum of
        w (x − mean)(x − mean)ᵀ over the rows x of weight w.
    height: A number of R has gone through QR factorisations of at most this many rows altogether,
        those that count for centring included, so that rounding has moved each column of R by at
        most ``height`` times the rounding unit, relative to the column's length.
    """

    n: int
    weight: float
    mean: Array
    tail: Array
    triangle: Array
    height: int

    @classmethod
    def of(cls, rows: Array, weights: Array | None = None) -> Moments:
        """Moments of rows of [X y], which are overwritten.

        rows, shape (n, p + 1)
        weights, shape (n,), optional: Above 0.
        """
        n, width = rows.shape
        if n == 0:
            return cls(0, 0.0, np.zeros(width), np.zeros(width), rows, 0)
        mean, tail = _sum(*centre(rows, weights))
        first = _first_equal_column([rows], mean)
        weight = float(n if weights is None else weights.sum())
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        triangle = _with_equal_columns(triangle_of(rows), first)
        return cls(n, weight, mean, tail, triangle, height=n + ROWS_OF_CENTRING)

    @classmethod
    def union(
        cls, parts: Iterable[Moments], rows: Array | None = None, weights: Array | None = None
    ) -> Moments:
        """Moments of several sets of rows together, and of single rows besides.

        The scatter about the common mean is that of the parts about their own means, and of one row
        √w (mean − common mean) for each part of weight w (Chan, Golub & LeVeque). QR factorises the
        triangles of the parts and these rows. No raw squares are summed, so that a large mean costs
        no digits.

        parts: At least one, unless there are rows. Sets without rows change nothing.
        rows, shape (m, p + 1): They are overwritten.
        weights, shape (m,), optional: Weights of these rows, above 0.
        """
        every = list(parts)
        filled = [part for part in every if part.n > 0]
        if rows is None or not len(rows):
            if len(filled) < 2:
                return (filled or every)[0]
        elif not filled:
            return cls.of(rows, weights)
        # Means and rows count from the mean of the heaviest set, beside which they are small and
        # keep their digits. From a light set far away, all heavy ones would lose digits.
        first = max(filled, key=lambda part: part.weight)
        if rows is not None and weights is not None and weights.max(initial=0.0) > first.weight:
            one = [int(np.argmax(weights))]
            first = cls.of(rows[one], weights[one])
            filled.append(first)
            rows, weights = np.delete(rows, one, axis=0), np.delete(weights, one)
        points = np.array([first.to_mean_of(part) for part in filled])
        weight = np.array([part.weight for part in filled])
        n = sum(part.n for part in filled)
        if rows is not None:
            rows -= first.mean
            rows -= first.tail
            points, n = np.vstack([points, rows]), n + len(rows)
            weight = np.append(weight, np.ones(len(rows)) if weights is None else weights)
        total = weight.sum()
        shift = (weight[:, None] * points).sum(axis=0) / total
        points -= shift
        points *= np.sqrt(weight)[:, None]
        mean, rounded_off = _sum(first.mean, shift)
        mean, tail = _sum(mean, rounded_off + first.tail)
        triangle, height = _stacked(points, [part.triangle for part in filled], mean)
        height += max(part.height for part in filled) + ROWS_OF_CENTRING
        return cls(n, float(total), mean, tail, triangle, height)

    def to_mean_of(self, other: Moments) -> Array:
        """The mean of other rows less the mean of these rows, shape (p + 1,)."""
        return np.asarray((other.mean - self.mean) + (other.tail - self.tail))

    def data(self, scale: Array) -> Rows:
        """What a problem holds of the rows, with columns divided by ``scale``, shape (p + 1,).

        The rows of the triangle stand for all n rows, and carry the rounding of their products.
        """
        return Rows(self.triangle / scale).stand_for(self.n, self.height)

    def about(self, origin: Array, tail: Array | float = 0.0) -> Moments:
        """These moments with the scatter about an origin in place of the mean.

        origin, shape (p + 1,), tail, the same shape or 0: Their sum is the origin.
        """
        offset = (self.mean - origin) + (self.tail - tail)
        if not offset.any():
            return self
        row = math.sqrt(self.weight) * offset[None, :]
        triangle, height = _stacked(row, [self.triangle], self.mean)
        return replace(self, triangle=triangle, height=self.height + height)


def _stacked(rows: Array, triangles: Sequence[Array], mean: Array) -> tuple[Array, int]:
    """The triangle R of rows and of upper triangular matrices on top of one another.

    triangles: At least one, with as many columns as the rows.
    mean: The means of the columns. Equal columns, which have equal means, are equal in every bit
        of R.
    Returns R, which is square, and how many rows its numbers have gone through.
    """
    first_of_equal = _first_equal_column([rows, *triangles], mean)
    top, *others = triangles
    width, height = rows.shape[1], 0
    triangle = np.zeros((width, width), order="F")
    triangle[: len(top)] = top
    # LAPACK takes one pile at a time: rows, with an upper triangular matrix below them. The rows
    # are in the first pile alone, which is made even where there is no second matrix.
    for below in others or [top[:0]]:
        pile = np.vstack([rows, below])
        at_a_time = min(COLUMNS_AT_A_TIME, width)
        triangle = sla.lapack.dtpqrt(len(below), at_a_time, triangle, pile, overwrite_a=1)[0]
        rows, height = rows[:0], height + 1 + len(pile)
    return _with_equal_columns(triangle, first_of_equal), height


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum a + b, and what rounding took off the sum (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _first_equal_column(parts: Sequence[Array], mean: Array) -> Index | None:
    """For every column the number of the first column that has the same values in all parts.

    Only columns of equal means are compared. The result is None where no two columns are equal.
    """
    in_order = np.sort(mean)
    if not (in_order[1:] == in_order[:-1]).any():
        return None
    first, known = np.arange(mean.size), dict[bytes, int]()
    _, group, count = np.unique(mean, return_inverse=True, return_counts=True)
    for j in np.flatnonzero(count[group.ravel()] > 1):
        # The sum turns −0 into 0.
        values = b"".join((part[:, j] + 0.0).tobytes() for part in parts)
        first[j] = known.setdefault(values, int(j))
    return first


def _with_equal_columns(triangle: Array, first: Index | None) -> Array:
    """A triangle whose equal columns are equal in every bit: BLAS may round them differently.

    first: What :func:`_first_equal_column` gives.
    """
    return np.ascontiguousarray(triangle if first is None else triangle[:, first])


class Unions:
    """Moments of unions of blocks of rows: of all but a few blocks by few steps.

    Runs of blocks from the first block on, and up to the last one, are united once, when they are
    first asked for, and kept.

    blocks: Moments of at least one block.
    """

    def __init__(self, blocks: Sequence[Moments]) -> None:
        self.blocks = blocks

    @cached
    def _from_first(self) -> list[Moments]:
        """Moments of the first 1, 2, … blocks."""
        return list(accumulate(self.blocks, _both))

    @cached
    def _to_last(self) -> list[Moments]:
        """Moments of the last 1, 2, … blocks."""
        return list(accumulate(reversed(self.blocks), _both))

    def parts(self, chosen: NDArray[np.bool_]) -> list[Moments]:
        """Moments of few sets of rows that make up the chosen blocks together.

        chosen: Whether each block is chosen.
        """
        if chosen.all():
            return [self._from_first[-1]]
        # How many blocks are chosen before the first that is not, and after the last that is not.
        before, after = int(np.argmin(chosen)), int(np.argmin(chosen[::-1]))
        between = np.flatnonzero(chosen[before : chosen.size - after]) + before
        found = [self._from_first[before - 1]] if before else []
        found += [self.blocks[block] for block in between.tolist()]
        return found + ([self._to_last[after - 1]] if after else [])


def _both(one: Moments, other: Moments) -> Moments:
    """Moments of two sets of rows together."""
    return Moments.union((one, other))


class RowMoments:
    """Moments of chosen rows of a table in memory, of which blocks of rows are reduced once.

    A block holds whole folds, and has at least p + 1 rows, and ``LEAST_ROWS_OF_A_BLOCK``, where
    there are as many. Rows of weight 0 are left out, but belong to blocks like others, so that
    blocks do not depend on weights.

    rows, shape (n, p + 1): Rows of [X y], which are not changed.
    weights, shape (n,), optional: At least 0.
    label, shape (n,), optional: The fold of every row; by default every row is a fold.
    """

    def __init__(self, rows: Array, weights: Array | None, label: Index | None) -> None:
        self._rows, self._weights, self._label = rows, weights, label

    @cached
    def _blocks(self) -> tuple[Index, Index]:
        """The numbers of all rows, fold after fold, and where among them every block starts."""
        n, width = self._rows.shape
        fold = np.arange(n) if self._label is None else self._label
        starts = list[int]()
        for start in np.flatnonzero(np.diff(np.sort(fold), prepend=-1)).tolist():
            if not starts or start - starts[-1] >= max(width, LEAST_ROWS_OF_A_BLOCK):
                starts.append(start)
        return np.argsort(fold, kind="stable"), np.array(starts, dtype=np.intp)

    def _of(self, numbers: Index, parts: Sequence[Moments] = ()) -> Moments:
        """Moments of single rows, which have these numbers, together with sets of other rows.

        Rows of weight 0 are left out.
        """
        weights = None
        if self._weights is not None:
            numbers = numbers[self._weights[numbers] > 0.0]
            weights = self._weights[numbers]
        if not parts:
            return Moments.of(self._rows[numbers], weights)
        return Moments.union(parts, self._rows[numbers], weights)

    @cached
    def _unions(self) -> Unions:
        """Unions of the blocks."""
        order, starts = self._blocks
        return Unions([self._of(block) for block in np.split(order, starts[1:])])

    def of(self, chosen: Index) -> Moments:
        """Moments of the chosen rows.

        They are functions of these rows and of the folds alone, so that no other row moves a bit: a
        block is used only where all its rows are chosen, those of weight 0 included. The other rows
        are taken one by one.

        chosen: Numbers of rows, at least one of a weight above 0.
        """
        order, starts = self._blocks
        inside = np.zeros(order.size, dtype=bool)
        inside[chosen] = True
        inside, sizes = inside[order], np.diff(starts, append=order.size)
        whole = np.add.reduceat(inside, starts, dtype=np.intp) == sizes
        if not whole.any():
            return self._of(order[inside])
        single = inside & ~np.repeat(whole, sizes)
        return self._of(order[single], self._unions.parts(whole))


@dataclass(frozen=True)
class FoldMoments:
    """Moments of the rows of every fold, and extremes (p + 1,) of every column over all rows."""

    folds: list[Moments]
    low: Array
    high: Array

    @classmethod
    def of(cls, rows: Array, label: Index, k: int) -> FoldMoments:
        """Moments of the k folds of rows of [X y], shape (n, p + 1), in memory.

        label, shape (n,): Fold of every row.
        """
        order = np.argsort(label, kind="stable")
        ends = np.searchsorted(label[order], np.arange(1, k))
        folds = [Moments.of(some) for some in np.split(rows[order], ends)]
        low, high = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        return cls(folds, low, high)

    def merged(self, other: FoldMoments) -> FoldMoments:
        """Moments of the same folds over the rows of both operands."""
        both = zip(self.folds, other.folds, strict=True)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return FoldMoments([Moments.union(pair) for pair in both], low, high)

    def joined(self, groups: Iterable[Iterable[int]]) -> FoldMoments:
        """Moments of unions of folds; ``groups`` has the numbers of the folds of every union."""
        unions = [Moments.union(self.folds[j] for j in group) for group in groups]
        return FoldMoments(unions, self.low, self.high)

    def of_columns(self, kept: Index) -> FoldMoments:
        """Moments of some of the columns, which ``kept`` names in increasing order."""
        if kept.size == self.low.size:
            return self
        folds = [
            replace(
                part,
                mean=part.mean[kept],
                tail=part.tail[kept],
                triangle=triangle_of(part.triangle[:, kept]),
                height=part.height + len(part.triangle),
            )
            for part in self.folds
        ]
        return FoldMoments(folds, self.low[kept], self.high[kept])

    @cached
    def _unions(self) -> Unions:
        """Unions of the folds."""
        return Unions(self.folds)

    def total(self) -> Moments:
        """Moments of all rows."""
        return Moments.union(self._unions.parts(np.ones(len(self.folds), dtype=bool)))

    def without(self, j: int) -> Moments:
        """Moments of the rows outside fold j, united afresh rather than subtracted."""
        return Moments.union(self._unions.parts(np.arange(len(self.folds)) != j))

    def summary(self) -> Summary:
        """The summary of all rows that :func:`sparsecv.design.design.make_design` takes."""
        total = self.total()
        scatter = np.square(total.triangle).sum(axis=0)
        return Summary(total.n, total.mean, scatter, self.low, self.high, float(total.n))
