"""Training problems and held-out rows of every fold of a table of which only moments are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..solvers.core.problem import SparseRidgeProblem
from .design import Array, Design
from .fold_data import FoldData, RowFolds, split_rows
from .folds import Folds, Index
from .moments import FoldMoments, Moments


class MomentFolds(FoldData):
    """Folds known by their moments alone: of any number of rows, in memory for k·(p + 1)² numbers.

    partitions: The moments of every partition of the rows into folds.
    number: The number of the partition whose folds these are, counted from 0.
    """

    def __init__(self, partitions: Sequence[FoldMoments], design: Design, number: int = 0) -> None:
        moments = partitions[number]
        sizes = np.array([part.n for part in moments.folds], dtype=np.intp)
        self.folds = Folds("kfold", int(sizes.sum()), sizes, None)
        self.constraints, self.p = design.constraints, design.p
        self._design, self._moments, self._partitions = design, moments, partitions
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
        """The folds of another partition that the rows were reduced to."""
        return MomentFolds(self._partitions, self._design, number)

    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> MomentFolds:
        """Two new folds: fold 0 is the union of the folds ``test``, fold 1 of the folds ``train``.

        Fold 0 thus trains on the rows of ``train`` and holds out the rows of ``test``.
        """
        return MomentFolds([self._moments.joined((test, train))], self._design)

    def full(self) -> SparseRidgeProblem:
        """The problem of all rows."""
        return moment_problem(self._moments.total(), None, self._design)

    def training(self, j: int) -> SparseRidgeProblem:
        """The problem of the rows outside fold j."""
        rest = self._moments.without(j)
        return moment_problem(rest, rest if self.refit_intercept else None, self._design)

    def held_out(self, j: int) -> tuple[Array, Array]:
        """At most p + 2 rows and targets that give fold j's squared error for every β."""
        means = self._moments.without(j) if self.refit_intercept else None
        return split_rows(moment_problem(self._moments.folds[j], means, self._design).data.rows)

    def _content(self) -> Iterable[Array]:
        yield self._design.scale
        for part in self._moments.folds:
            yield from (part.mean, np.asarray(part.tail), part.scatter)


def moment_problem(moments: Moments, means: Moments | None, design: Design) -> SparseRidgeProblem:
    """The problem of rows that are known by their moments, with placeholders for γ and τ.

    means: Moments whose mean is subtracted from the rows; with None the design's shift is.
    """
    # In solved units the moments of [X y] are ``joint`` plus those of one more row, where there is
    # one. It stays apart, as a long row would take digits of the others.
    joint, row = moments.about(means, design)
    G, b, yy = joint[:-1, :-1], joint[:-1, -1], float(joint[-1, -1])
    own = design.constraints
    tau = max(1, own.min_size)
    return SparseRidgeProblem.from_gram(G, b, yy, gamma=1.0, tau=tau, row=row, constraints=own)
