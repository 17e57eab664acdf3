"""Per-fold moments of [X y] in one pass over the rows, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.limits import Limits
from ..solvers.core.threads import one_blas_thread
from ..solvers.executor import run_units
from ..tables.rows import RowSource, as_source
from .design import Array, Design, Summary
from .folds import Folds

# Rows are read in blocks of about so many bytes (but at least 1024 rows). Twice the value would
# double the memory of a reader and halve the number of blocks.
BLOCK_BYTES = 16_000_000


@dataclass(frozen=True)
class Moments:
    """Count, mean (p+1,) and scatter about the mean (p+1, p+1) of some rows of [X y].

    The mean is ``mean`` + ``tail``, which has twice the digits: beside an offset of 1e8 a mean of
    16 digits is off by more than columns of spread 1e-6 can bear.
    """

    n: int
    mean: Array
    scatter: Array
    tail: Array | float = 0.0

    @classmethod
    def of(cls, rows: Array) -> Moments:
        """Moments of rows in memory.

        rows, shape (m, p + 1).
        """
        constant = (rows == rows[0]).all(axis=0)
        # The mean of a constant column is exact, so that its scatter is 0.
        mean = np.where(constant, rows[0], rows.mean(axis=0))
        centred = rows - mean
        tail = centred.mean(axis=0)  # This is what rounding took off the mean.
        same = _first_equal(rows, mean)
        centred -= tail
        mean, tail = _sum(mean, tail)
        scatter = centred.T @ centred
        if (same < np.arange(same.size)).any():  # BLAS may round equal columns differently.
            scatter = scatter[np.ix_(same, same)]
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
        delta = self.apart(other)
        outer = np.outer(delta, delta) * (self.n * other.n / n)
        mean, lost = _sum(self.mean, delta * (other.n / n))
        mean, tail = _sum(mean, lost + self.tail)
        return Moments(n, mean, self.scatter + other.scatter + outer, tail)

    def apart(self, other: Moments) -> Array:
        """The other mean less this mean, shape (p + 1,)."""
        return np.asarray((other.mean - self.mean) + (other.tail - self.tail))

    def about(self, centre: Moments | None, design: Design) -> tuple[Array, Array | None]:
        """Second moments about the mean of other rows, as a matrix and a row, in solved units.

        The second moments are the matrix plus the outer product of the row. Their sum is not
        formed: far from the centre the row would take all digits of the matrix.

        centre: The rows whose mean is the origin; None: the design's shift is the origin.
        Returns matrix, shape (p + 1, p + 1).
        Returns row, shape (p + 1,), or None where the mean of the rows is the origin.
        """
        keep = np.append(design.kept, self.mean.size - 1)
        if centre is None:
            tail = np.broadcast_to(self.tail, self.mean.shape)
            offset = (self.mean[keep] - design.shift) + tail[keep]
        else:
            offset = centre.apart(self)[keep]
        joint = self.scatter[np.ix_(keep, keep)] / np.outer(design.scale, design.scale)
        return joint, math.sqrt(self.n) * offset / design.scale if offset.any() else None


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum a + b, and what rounding took off the sum (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _first_equal(rows: Array, mean: Array) -> NDArray[np.intp]:
    """For every column the first column that holds the same values; equal ones have equal means."""
    same, first = np.arange(mean.size), dict[bytes, int]()
    _, group, count = np.unique(mean, return_inverse=True, return_counts=True)
    for j in np.flatnonzero(count[group.ravel()] > 1):
        same[j] = first.setdefault((rows[:, j] + 0.0).tobytes(), int(j))  # The sum turns −0 into 0.
    return same


@dataclass(frozen=True)
class FoldMoments:
    """Moments of every fold, and the extremes of every column over all rows."""

    folds: list[Moments]
    low: Array
    high: Array

    def merged(self, other: FoldMoments) -> FoldMoments:
        """Moments of the same folds over both sets of rows."""
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

    @property
    def _run(self) -> int:
        """The number of folds whose moments are also kept merged: about √K of K folds."""
        return max(1, math.isqrt(len(self.folds)))

    @cached_property
    def _runs(self) -> list[Moments]:
        """Totals of runs of folds, so that leaving one fold out costs 2√K merges, not K."""
        every = range(len(self.folds))
        return self.joined([every[i : i + self._run] for i in every[:: self._run]]).folds

    def without(self, j: int) -> Moments:
        """Rows outside fold j, merged afresh rather than subtracted: nothing cancels."""
        start = j // self._run * self._run
        others = [part for i, part in enumerate(self._runs) if i != j // self._run]
        beside = self.folds[start:j] + self.folds[j + 1 : start + self._run]
        return reduce(Moments.merged, others + beside)

    def summary(self) -> Summary:
        """What :func:`sparsecv.design.design.make_design` needs of all rows."""
        total = self.total()
        scatter = np.diag(total.scatter).copy()
        return Summary(total.n, total.mean, scatter, self.low, self.high, float(total.n))


def fold_moments(
    source: RowSource,
    folds: Folds,
    progress: Callable[[int, int], None] | None = None,
    n_jobs: int | None = None,
) -> FoldMoments:
    """Read the rows once and gather each fold's moments.

    A table in parts is read by units of work, wherever they run, and their moments are merged in
    a tree that depends on the number of parts alone.

    folds: A partition of the rows.
    progress: Called with rows read and rows in all.
    n_jobs: Threads over parts, as in joblib.
    """
    tell = progress or (lambda *_: None)
    parts = source.parts()
    if len(parts) == 1:
        return _read(folds, 0, source, lambda read: tell(read, source.n))
    tree, read = _MergeTree(len(parts)), 0
    ends = [*(part.start for part in parts[1:]), source.n]
    tasks = [(part.start, end, part.rows) for part, end in zip(parts, ends, strict=True)]
    with one_blas_thread():
        for index, found in run_units(_part, folds, tasks, n_jobs, allot=lambda _: Limits()):
            tree.add(index, found)
            read += sum(part.n for part in found.folds)
            tell(read, source.n)
    return tree.root()


def _part(folds: Folds, start: int, stop: int, rows: Any, _: Limits) -> FoldMoments:
    """The unit of work of one part of a table."""
    source = as_source(rows, start)
    if source.n != stop - start:
        raise source.changed(stop - start)
    return _read(folds, start, source, lambda read: None)


def _read(folds: Folds, start: int, source: RowSource, tell: Callable[[int], None]) -> FoldMoments:
    """Moments of a source's rows, block by block; its first row is row ``start`` of the table."""
    p, k = source.p, folds.k
    found = [Moments(0, np.zeros(p + 1), np.zeros((p + 1, p + 1)))] * k
    low, high = np.full(p + 1, np.inf), np.full(p + 1, -np.inf)
    done = 0
    for X, y in source.blocks(max(1024, BLOCK_BYTES // (8 * (p + 1)))):
        block = np.column_stack([X, y])
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        fold = folds.of_rows(start + done, start + done + y.size)
        order = np.argsort(fold, kind="stable")
        ends = np.searchsorted(fold[order], np.arange(1, k))
        for j, rows in enumerate(np.split(block[order], ends)):
            if len(rows):
                found[j] = found[j].merged(Moments.of(rows))
        done += y.size
        tell(done)
    return FoldMoments(found, low, high)


class _MergeTree:
    """Merges parts pairwise as they come; which with which depends on their number alone.

    In a list of all parts each would wait for the last: here only about log₂ of their number wait.
    """

    def __init__(self, count: int) -> None:
        self.widths = [count]  # the number of nodes on every level, from the leaves to the root
        while self.widths[-1] > 1:
            self.widths.append((self.widths[-1] + 1) // 2)
        self.waiting: dict[tuple[int, int], FoldMoments] = {}

    def add(self, index: int, found: FoldMoments) -> None:
        """Take the moments of part ``index``, and merge what can be merged."""
        level = 0
        while level + 1 < len(self.widths):
            sibling = index ^ 1
            if sibling < self.widths[level]:
                if (level, sibling) not in self.waiting:
                    break
                other = self.waiting.pop((level, sibling))
                found = other.merged(found) if sibling < index else found.merged(other)
            level, index = level + 1, index // 2
        self.waiting[level, index] = found

    def root(self) -> FoldMoments:
        """The moments of all parts together."""
        return self.waiting[len(self.widths) - 1, 0]
