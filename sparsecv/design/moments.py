"""Moments of the rows of [X y] of every fold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.threads import cached
from .design import Array, Design, Summary
from .folds import Index


@dataclass(frozen=True)
class Moments:
    """Count, mean (p + 1,) and scatter about the mean (p + 1, p + 1) of n rows of [X y].

    The mean is the sum of ``mean`` and ``tail``, shape (p + 1,), which has twice the digits: beside
    an offset of 1e8 a mean of 16 digits is off by more than columns of spread 1e-6 can bear.
    """

    n: int
    mean: Array
    scatter: Array
    tail: Array | float = 0.0

    @classmethod
    def of(cls, rows: Array) -> Moments:
        """Moments of rows of [X y], shape (n, p + 1), in memory."""
        constant = (rows == rows[0]).all(axis=0)
        # The mean of a constant column is exact, so that its scatter is 0.
        mean = np.where(constant, rows[0], rows.mean(axis=0))
        centred = rows - mean
        tail = centred.mean(axis=0)  # This is what rounding took off the mean.
        first = _first_equal_column(rows, mean)
        centred -= tail
        mean, tail = _sum(mean, tail)
        scatter = centred.T @ centred
        if (first < np.arange(first.size)).any():  # BLAS may round equal columns differently.
            scatter = scatter[np.ix_(first, first)]
        return cls(rows.shape[0], mean, scatter, tail)

    def merged(self, other: Moments) -> Moments:
        """Moments of both sets of rows together.

        The pairwise update of Chan, Golub & LeVeque, scatter + scatter' + δδᵀ·n·n'/(n + n') with
        the difference δ of the means: no raw squares are summed, so a large mean costs no digits.
        """
        if other.n == 0:
            return self
        if self.n == 0:
            return other
        n = self.n + other.n
        delta = self.to_mean_of(other)
        outer = np.outer(delta, delta) * (self.n * other.n / n)
        mean, lost = _sum(self.mean, delta * (other.n / n))
        mean, tail = _sum(mean, lost + self.tail)
        return Moments(n, mean, self.scatter + other.scatter + outer, tail)

    def to_mean_of(self, other: Moments) -> Array:
        """The mean of other rows less the mean of these rows, shape (p + 1,)."""
        return np.asarray((other.mean - self.mean) + (other.tail - self.tail))

    def about(self, centre: Moments | None, design: Design) -> tuple[Array, Array | None]:
        """Second moments of these rows about an origin, as a matrix M and a row r, in solved units.

        The sum of (x − origin)(x − origin)ᵀ over the rows x of the kept columns and y is M + rrᵀ.
        The sum M + rrᵀ is not formed: far from the origin rrᵀ would take all digits of M.

        centre: Moments of the rows whose mean is the origin; with None the origin is the design's
            shift.
        Returns M, shape (p + 1, p + 1), and r, shape (p + 1,); r is None where the mean of these
            rows is the origin.
        """
        keep = np.append(design.kept, self.mean.size - 1)
        if centre is None:
            tail = np.broadcast_to(self.tail, self.mean.shape)
            offset = (self.mean[keep] - design.shift) + tail[keep]
        else:
            offset = centre.to_mean_of(self)[keep]
        joint = self.scatter[np.ix_(keep, keep)] / np.outer(design.scale, design.scale)
        return joint, math.sqrt(self.n) * offset / design.scale if offset.any() else None


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum a + b, and what rounding took off the sum (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _first_equal_column(rows: Array, mean: Array) -> NDArray[np.intp]:
    """For every column the number of the first column that holds the same values.

    Only columns of equal means are compared.
    """
    first, known = np.arange(mean.size), dict[bytes, int]()
    _, group, count = np.unique(mean, return_inverse=True, return_counts=True)
    for j in np.flatnonzero(count[group.ravel()] > 1):
        first[j] = known.setdefault(
            (rows[:, j] + 0.0).tobytes(), int(j)
        )  # The sum turns −0 into 0.
    return first


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
        width = rows.shape[1]
        order = np.argsort(label, kind="stable")
        ends = np.searchsorted(label[order], np.arange(1, k))
        nothing = Moments(0, np.zeros(width), np.zeros((width, width)))
        each = np.split(rows[order], ends)
        folds = [Moments.of(some) if len(some) else nothing for some in each]
        low, high = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        return cls(folds, low, high)

    def merged(self, other: FoldMoments) -> FoldMoments:
        """Moments of the same folds over the rows of both operands."""
        both = zip(self.folds, other.folds, strict=True)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return FoldMoments([one.merged(two) for one, two in both], low, high)

    def joined(self, groups: Iterable[Iterable[int]]) -> FoldMoments:
        """Moments of unions of folds; ``groups`` has the numbers of the folds of every union."""
        unions = [reduce(Moments.merged, [self.folds[j] for j in group]) for group in groups]
        return FoldMoments(unions, self.low, self.high)

    def total(self) -> Moments:
        """Moments of all rows."""
        return reduce(Moments.merged, self.folds)

    @cached
    def _groups(self) -> tuple[int, list[Moments]]:
        """The size √K of groups of successive folds, of K, and the merged moments of every group.

        With the groups, leaving out one fold costs 2√K merges rather than K.
        """
        every = range(len(self.folds))
        size = max(1, math.isqrt(len(self.folds)))
        return size, self.joined([every[i : i + size] for i in every[::size]]).folds

    def without(self, j: int) -> Moments:
        """Moments of the rows outside fold j, merged afresh rather than subtracted."""
        size, groups = self._groups
        group, start = j // size, j // size * size
        same_group = self.folds[start:j] + self.folds[j + 1 : start + size]
        return reduce(Moments.merged, groups[:group] + groups[group + 1 :] + same_group)

    def summary(self) -> Summary:
        """The summary of all rows that :func:`sparsecv.design.design.make_design` takes."""
        total = self.total()
        scatter = np.diag(total.scatter).copy()
        return Summary(total.n, total.mean, scatter, self.low, self.high, float(total.n))
