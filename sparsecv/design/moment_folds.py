"""Training problems and held-out rows of every fold of a table of which only moments are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.rows import Rows
from .design import Array, Design
from .fold_data import FoldData, RowFolds, split_rows
from .folds import Folds, Index
from .moments import FoldMoments, Moments


class MomentFolds(FoldData):
    """Folds known by their moments alone: of any number of rows, in memory for k·(p + 1)² numbers.

    read: A function that returns the moments of the same rows in other folds, from another pass
        over the rows.
    """

    def __init__(
        self,
        moments: FoldMoments,
        design: Design,
        folds: Folds,
        read: Callable[[Folds], FoldMoments] | None = None,
    ) -> None:
        if folds.seed is not None:
            folds = folds.counted(np.array([part.n for part in moments.folds], dtype=np.intp))
        self.constraints = design.constraints
        self.folds, self.p, self._read = folds, design.p, read
        self._design, self._moments = design, moments
        self.refit_intercept = design.protocol.refit_intercept
        self.fold_weight, self.fold_of = folds.sizes.astype(np.float64), np.arange(folds.k)
        self.fold_rows = folds.sizes

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None}  # Another process reads no rows.

    def rows_for(self, what: str) -> RowFolds:
        """Refuse what needs single rows, of which only moments are known."""
        raise InputError(f"{what} the rows in memory: of this table only moments are known")

    @property
    def has_inner_folds(self) -> bool:
        """Whether a fold trains on at least two other folds, which then are its inner folds."""
        return self.folds.k > 2

    @property
    def redraws(self) -> bool:
        """Whether the rows are at hand for other folds: they would have to be read again."""
        return False

    def with_folds(self, folds: Folds) -> MomentFolds:
        """The same table in other folds, for which its rows are read again."""
        assert self._read is not None
        return MomentFolds(self._read(folds), self._design, folds, self._read)

    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> MomentFolds:
        """Two new folds: fold 0 is the union of the folds ``test``, fold 1 of the folds ``train``.

        Fold 0 thus trains on the rows of ``train`` and holds out the rows of ``test``.
        """
        moments = self._moments.joined((test, train))
        counts = np.array([part.n for part in moments.folds], dtype=np.intp)
        folds = Folds("custom", int(counts.sum()), counts, None)
        return MomentFolds(moments, self._design, folds)

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
        joint, row = self._moments.folds[j].about(means, self._design)
        return split_rows(Rows.of_gram(joint, row).rows)

    def _content(self) -> Iterable[Array]:
        yield self._design.scale
        for part in self._moments.folds:
            yield from (part.mean, np.asarray(part.tail), part.scatter)


def moment_problem(moments: Moments, means: Moments | None, design: Design) -> SparseRidgeProblem:
    """The problem of rows that are known by their moments, with placeholders for γ and τ.

    means: Moments whose mean is subtracted from the rows; with None the design's shift is.
    """
    joint, row = moments.about(means, design)
    G, b, yy = joint[:-1, :-1], joint[:-1, -1], float(joint[-1, -1])
    own = design.constraints
    tau = max(1, own.min_size)
    return SparseRidgeProblem.from_gram(G, b, yy, gamma=1.0, tau=tau, row=row, constraints=own)
