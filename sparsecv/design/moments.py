"""Per-fold moments of [X y] in one pass over the rows, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from ..tables.sources import RowSource
from .design import Array, Design, Summary

BLOCK_BYTES = 16_000_000


@dataclass(frozen=True)
class Moments:
    """Count, mean (p+1,) and scatter about the mean (p+1, p+1) of some rows of [X y]."""

    n: int
    mean: Array
    scatter: Array

    def merged(self, other: Moments) -> Moments:
        """Moments of both sets of rows together.

        The pairwise update of Chan, Golub & LeVeque: no sums of raw squares, so a large mean costs
        no digits.

        Parameters
        ----------
        other : Moments

        Returns
        -------
        Moments
        """
        if other.n == 0:
            return self
        if self.n == 0:
            return other
        n = self.n + other.n
        delta = other.mean - self.mean
        outer = np.outer(delta, delta) * (self.n * other.n / n)
        mean = self.mean + delta * (other.n / n)
        return Moments(n, mean, self.scatter + other.scatter + outer)

    def about(self, centre: Array | None, design: Design) -> Array:
        """Second moments about ``centre`` in solved units; None: about the design's own shift.

        Parameters
        ----------
        centre : array, shape (p_raw + 1,), or None
            Raw means, the response last.
        design : Design

        Returns
        -------
        ndarray, shape (p + 1, p + 1)
        """
        shift = np.append(design.x_shift, design.y_shift)
        scale = np.append(design.x_scale, design.y_scale)
        keep = np.append(design.kept, self.mean.size - 1)
        offset = self.mean[keep] - (shift if centre is None else centre[keep])
        joint = self.scatter[np.ix_(keep, keep)] + self.n * np.outer(offset, offset)
        return np.asarray(joint / np.outer(scale, scale))


@dataclass(frozen=True)
class FoldMoments:
    """Moments of every fold, and the extremes of every column over all rows."""

    folds: list[Moments]
    low: Array
    high: Array

    def fold(self, j: int) -> Moments:
        """Rows of fold j.

        Parameters
        ----------
        j : int

        Returns
        -------
        Moments
        """
        return self.folds[j]

    def total(self) -> Moments:
        """All rows.

        Returns
        -------
        Moments
        """
        return reduce(Moments.merged, self.folds)

    @cached_property
    def _groups(self) -> list[Moments]:
        """Totals of about √K runs of folds, so that leaving one out costs 2√K merges, not K."""
        run = self._run
        starts = range(0, len(self.folds), run)
        return [reduce(Moments.merged, self.folds[i : i + run]) for i in starts]

    @property
    def _run(self) -> int:
        return max(1, math.isqrt(len(self.folds)))

    def without(self, j: int) -> Moments:
        """Rows outside fold j, merged afresh rather than subtracted: nothing cancels.

        Parameters
        ----------
        j : int

        Returns
        -------
        Moments
        """
        run = self._run
        group, start = j // run, j // run * run
        others = [part for i, part in enumerate(self._groups) if i != group]
        beside = [self.folds[i] for i in range(start, min(start + run, len(self.folds))) if i != j]
        return reduce(Moments.merged, others + beside)

    def summary(self) -> Summary:
        """What :func:`sparsecv.design.design.make_design` needs of all rows.

        Returns
        -------
        Summary
        """
        total = self.total()
        return Summary(total.n, total.mean, np.diag(total.scatter).copy(), self.low, self.high)


def fold_moments(
    source: RowSource,
    label: NDArray[np.intp],
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> FoldMoments:
    """Read the rows once and gather each fold's moments.

    Parameters
    ----------
    source : RowSource
        n rows, p features.
    label : ndarray of int, shape (n,)
        Fold of every row, 0..k−1.
    k : int
        Number of folds.
    progress : callable, optional
        Called with rows read and rows in all.

    Returns
    -------
    FoldMoments
    """
    p = source.p
    empty = Moments(0, np.zeros(p + 1), np.zeros((p + 1, p + 1)))
    folds = [empty] * k
    low, high = np.full(p + 1, np.inf), np.full(p + 1, -np.inf)
    start = 0
    rows = max(1024, BLOCK_BYTES // (8 * (p + 1)))
    for X, y in source.blocks(rows):
        block = np.column_stack([X, y])
        low = np.minimum(low, block.min(axis=0))
        high = np.maximum(high, block.max(axis=0))
        here = label[start : start + y.size]
        order = np.argsort(here, kind="stable")
        block = block[order]
        ends = np.searchsorted(here[order], np.arange(k + 1))
        for j in range(k):
            part = block[ends[j] : ends[j + 1]]
            if part.shape[0]:
                mean = part.mean(axis=0)
                part = part - mean
                folds[j] = folds[j].merged(Moments(part.shape[0], mean, part.T @ part))
        start += y.size
        if progress is not None:
            progress(start, source.n)
    return FoldMoments(folds, low, high)
