"""Training problems and held-out rows of every fold of a table of which only moments are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..solvers.core.problem import SparseRidgeProblem
from .design import Array, Design
from .fold_data import FoldData, RowFolds
from .folds import Folds, Index
from .moments import FoldMoments, Moments
from .row_table import split_rows


class MomentFolds(FoldData):
    """Folds known by their moments alone: of any number of rows, in memory for k·(p + 1)² numbers.

    partitions: The moments of every partition of the rows into folds.
    number: The number of the partition whose folds these are, counted from 0.
    """

    def __init__(self, partitions: Sequence[FoldMoments], design: Design, number: int = 0) -> None:
        kept = np.append(design.kept, partitions[number].low.size - 1)
        moments = partitions[number].of_columns(kept)
        sizes = np.array([part.n for part in moments.folds], dtype=np.intp)
        self.folds = Folds("kfold", int(sizes.sum()), sizes, None)
        self.constraints, self.p = design.constraints, design.p
        self._design, self._moments = design, moments
        self._partitions, self._number = partitions, number
        self.refit_intercept = design.protocol.refit_intercept
        self.fold_weight, self.fold_of = sizes.astype(np.float64), np.arange(sizes.size)

    def rows_for(self, what: str) -> RowFolds:
        """Refuse what needs single rows, of which only moments are known."""
        raise InputError(f"{what} the rows in memory: of this table only moments are known")

    @property
    def has_inner_folds(self) -> bool:
        """Whether a fold trains on at least two other folds, which then are its inner folds."""
        return self.folds.k > 2

    def count_partitions(self, most: int) -> int:
        """At most as many partitions as the rows were reduced to."""
        return min(most, len(self._partitions))

    def partition(self, number: int, seed: Any) -> MomentFolds:
        """The folds of another partition that the rows were reduced to, whatever the seed."""
        return MomentFolds(self._partitions, self._design, number)

    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> MomentFolds:
        """Two new folds: fold 0 is the union of the folds ``test``, fold 1 of the folds ``train``.

        Fold 0 thus trains on the rows of ``train`` and holds out the rows of ``test``. Its problem
        is made anew, whatever ``same`` is.
        """
        return MomentFolds([self._partitions[self._number].joined((test, train))], self._design)

    def full(self) -> SparseRidgeProblem:
        """The problem of all rows."""
        return self._problem(self._moments.total())

    def training(self, j: int) -> SparseRidgeProblem:
        """The problem of the rows outside fold j."""
        return self._problem(self._moments.without(j))

    def _problem(self, moments: Moments) -> SparseRidgeProblem:
        """The problem of rows that are known by their moments, with placeholders for γ and τ."""
        data = self._about(moments, moments).data(self._design.scale)
        return SparseRidgeProblem.from_rows(data, constraints=self.constraints)

    def _about(self, moments: Moments, training: Moments) -> Moments:
        """Moments about what is subtracted from the rows that they are of.

        training: Moments of the rows whose mean is subtracted where folds refit the intercept;
            elsewhere the design's shift is.
        """
        if self.refit_intercept:
            return moments.about(training.mean, training.tail)
        return moments.about(self._design.shift)

    def held_out(self, j: int, columns: Index | None = None) -> tuple[Array, Array]:
        """At most p + 1 rows and targets that give fold j's squared error for every β."""
        held = self._about(self._moments.folds[j], self._moments.without(j))
        rows, targets = split_rows(held.data(self._design.scale).rows)
        return (rows if columns is None else rows[:, columns]), targets

    def _content(self) -> Iterable[Array]:
        yield self._design.scale
        for part in self._moments.folds:
            yield from (part.mean, part.tail, part.triangle)
