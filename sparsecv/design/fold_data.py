"""Training problems and held-out rows of every fold, from rows in memory or from moments."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..solvers.branching.row_deletion import LeftOut
from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.constraints import Constraints
from ..solvers.core.penalty import PenaltyStep
from ..solvers.core.problem import (
    MAX_ROWS_PER_COLUMN_UNREDUCED,
    SparseRidgeProblem,
    gram_root,
)
from ..solvers.relaxation.gram import GramForm
from .design import Array, Design, SolvedRules, centre
from .folds import Folds, HashedFolds, Index
from .moments import FoldMoments, Moments

# The training problems of all k folds of a RowFolds are kept in memory if together they take at
# most this many bytes, counted as 8 k min(n, p + 1) (p + 1) with n rows and p columns; otherwise
# none is kept, and each is made again whenever it is asked for. Doubled, the value would let a run
# hold twice the memory, and keep the problems of twice as many folds.
CACHE_BYTES = 256_000_000


class FoldData(ABC):
    """Training problems and held-out rows of k folds, in the units of the solved columns.

    p: Number of columns that models choose from.
    constraints: What models must obey; sizes count units of columns.
    plain: Whether nothing is asked of the columns, and all are penalised.
    fold_weight, shape (k,): Number of rows of every fold, or the sum of their weights.
    fold_of, or None: Fold of every unit that :meth:`one_fold` takes; a unit is a row, or a whole
        fold where rows are not in memory. None where folds share rows.
    """

    folds: Folds
    p: int
    constraints: Constraints
    plain: bool
    fold_weight: Array
    fold_of: Index | None

    @property
    def total(self) -> float:
        """Sum of ``fold_weight``: the CV error is the sum of squared errors divided by it."""
        return float(self.fold_weight.sum())

    @abstractmethod
    def full(self) -> SparseRidgeProblem:
        """The problem of all rows, with placeholders for γ and τ."""

    @abstractmethod
    def training(self, j: int) -> SparseRidgeProblem:
        """The problem of the rows outside fold j, with placeholders for γ and τ."""

    @abstractmethod
    def held_out(self, j: int) -> tuple[Array, Array]:
        """Rows H, shape (m, p), and targets t, shape (m,): fold j's squared error is ‖t − Hβ‖².

        The number m of rows may differ from the number of rows that the fold holds out.
        """

    @abstractmethod
    def with_folds(self, folds: Folds) -> FoldData:
        """The same table in other folds."""

    @abstractmethod
    def one_fold(self, train: Index, test: Index) -> FoldData:
        """The same table with a single fold 0 that trains on some units and holds out others."""

    @abstractmethod
    def _content(self) -> Iterable[Array]:
        """Arrays that determine the data and the order of their rows."""

    def digest(self) -> bytes:
        """A hash of the data, by which a checkpoint of other data is recognised."""
        found = hashlib.sha256()
        for values in self._content():
            found.update(np.ascontiguousarray(values).tobytes())
        return found.digest()


class RowFolds(FoldData):
    """Folds of rows in memory.

    X, y, shape (n, p) and (n,): Rows in solved units (``Design.apply``), up to ``scale``.
    refit_intercept: Whether every fold subtracts the means of its own training rows.
    weights, shape (n,), optional: Weights >= 0 of the squared errors, in training and held out: a
        whole number counts as that many copies of a row that stay in one fold.
    scale, shape (p,), optional: Divisors of the columns once they are centred; only where the
        intercept is refitted.
    rules: What is asked of the columns of X.
    """

    # X and y in the user's units; None where the folds were not made by `of`.
    raw: tuple[Array, Array] | None = None

    def __init__(
        self,
        X: Array,
        y: Array,
        folds: Folds,
        refit_intercept: bool,
        weights: Array | None = None,
        scale: Array | None = None,
        rules: SolvedRules | None = None,
    ) -> None:
        # Every fold is centred from the rows as they came. A shift by the mean of all rows would
        # leave rounding errors of the held-out rows in the training rows.
        self._given = np.column_stack([X, y])
        if not np.isfinite(self._given).all():
            raise ValueError("X and y must be finite: remove or impute NaN and infinite values")
        width = self._given.shape[1] - 1
        self.rules = rules or SolvedRules(Constraints.none(width), np.empty(0, dtype=np.intp))
        self.constraints, self.p = self.rules.constraints, width - self.rules.free.size
        self.plain = self.constraints.plain and self.p == width
        self.refit_intercept, self.weights = refit_intercept, weights
        self._scale = np.append(np.ones(width) if scale is None else scale, 1.0)
        self._lay_out(folds)

    @classmethod
    def of(
        cls, design: Design, X: Array, y: Array, folds: Folds, weights: Array | None = None
    ) -> RowFolds:
        """Folds of raw rows X (n, p_raw), y (n,), which are not changed.

        Every fold is centred on its own training rows where the design's protocol says so.
        """
        if design.protocol.refit_intercept:
            scale, columns = design.scale[:-1], design.columns(X)
            made = cls(columns, y, folds, True, weights, scale, design.rules)
        else:
            made = cls(*design.apply(X, y), folds, False, weights, rules=design.rules)
        made.raw = X, y
        return made

    @property
    def asked(self) -> ResolvedRules | None:
        """What is asked of the columns X; None where nothing is."""
        if self.plain:
            return None
        factors = np.ones(self.X.shape[1])
        factors[self.rules.free] = 0.0
        return ResolvedRules(np.flatnonzero(factors), self.constraints, factors)

    def _lay_out(self, folds: Folds) -> None:
        """Take other folds, of which nothing is computed yet."""
        self.folds, self.fold_of, counts = folds, folds.label, self._counts
        if folds.label is not None:
            sums = np.bincount(folds.label, counts, minlength=folds.k)
            self.fold_weight = sums.astype(np.float64)
        else:
            self.fold_weight = np.array([counts[test].sum() for _, test in folds.pairs])
        # The means of a fold's training rows, in the two parts that `centre` returns.
        self._means: dict[int, tuple[Array, ...]] = {}
        # What projects the columns that are not penalised out of the rows of a fold.
        self._steps: dict[int, PenaltyStep | None] = {}
        self._problems: dict[int, SparseRidgeProblem] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process gets the rows, and makes again what is derived from the rows."""
        derived = {"raw", "_solved", "_full", "deleted_rows"}
        kept = {name: value for name, value in self.__dict__.items() if name not in derived}
        return kept | {"_problems": {}}

    def with_folds(self, folds: Folds) -> RowFolds:
        """The same rows in other folds."""
        other = RowFolds.__new__(RowFolds)
        other.__dict__.update(self.__dict__)  # Both objects share the arrays.
        other._lay_out(folds)
        return other

    def one_fold(self, train: Index, test: Index) -> RowFolds:
        """A single fold that trains on some rows and holds out others."""
        sizes = np.array([test.size], dtype=np.intp)
        return self.with_folds(Folds("custom", self.folds.n, sizes, None, [(train, test)]))

    @property
    def _counts(self) -> Array:
        """The weight of every row, which is 1 where rows have no weights."""
        return np.ones(len(self._given)) if self.weights is None else self.weights

    @cached_property
    def _solved(self) -> Array:
        """All rows of [X y] in solved units, about the means of all rows, shape (n, p + 1)."""
        if not self.refit_intercept:
            return self._given
        rows = self._given.copy()
        centre(rows, self.weights)
        rows /= self._scale
        return rows

    @property
    def X(self) -> Array:
        """All columns in solved units, shape (n, p)."""
        return self._solved[:, :-1]

    @property
    def y(self) -> Array:
        """The response in solved units, shape (n,)."""
        return self._solved[:, -1]

    def _weighted(self, rows: Array, numbers: NDArray[np.intp] | slice = slice(None)) -> Array:
        """Rows times the roots of their weights; ``numbers`` are their places in the table."""
        return rows if self.weights is None else rows * np.sqrt(self.weights[numbers])[:, None]

    @cached_property
    def _full(self) -> SparseRidgeProblem:
        rows = self._weighted(self._solved)
        step = self.rules.step(rows)
        return self._reduced(rows if step is None else step.apply(rows), step)

    def _reduced(self, rows: Array, step: PenaltyStep | None) -> SparseRidgeProblem:
        """The problem of rows of [X y]; many rows are reduced to the triangle of their QR factors.

        step: What the rows were projected by.
        """
        made = SparseRidgeProblem.from_rows(rows, constraints=self.constraints, step=step)
        long = len(rows) > MAX_ROWS_PER_COLUMN_UNREDUCED * self.p
        return made.compressed() if long else made

    def full(self) -> SparseRidgeProblem:
        """The problem of all rows, which are centred where an intercept is fitted."""
        return self._full

    def _training_rows(self, j: int) -> Array:
        """Weighted rows of [X y] outside fold j, in solved units.

        Unpenalised columns are projected out. The means that were subtracted, and the projection,
        are kept for the held-out rows.
        """
        train, _ = self.folds.split(j)
        if self.weights is not None:
            train = train[self.weights[train] > 0.0]
        rows = self._given[train]
        if self.refit_intercept:
            constant = rows.min(axis=0) == rows.max(axis=0)
            weights = None if self.weights is None else self.weights[train]
            self._means[j] = centre(rows, weights)
            rows[:, constant] = 0.0  # Rounding would leave small numbers there.
            rows /= self._scale
        rows = self._weighted(rows, train)
        self._steps[j] = step = self.rules.step(rows)
        return rows if step is None else step.apply(rows)

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j, about their own means where the intercept is refitted."""
        if j in self._problems:
            return self._problems[j]
        rows = self._training_rows(j)
        problem = self._reduced(rows, self._steps[j])
        if 8 * min(len(self._given), self.p + 1) * (self.p + 1) * self.folds.k <= CACHE_BYTES:
            self._problems[j] = problem
        return problem

    def held_out(self, j: int) -> tuple[Array, Array]:
        """Held-out rows and targets, about the training means where the intercept is refitted.

        A row of weight 0 is a row of zeros.
        """
        _, test = self.folds.split(j)
        rows = self._given[test]
        if (self.refit_intercept or self.rules.free.size) and j not in self._steps:
            self._training_rows(j)
        if self.refit_intercept:
            for mean in self._means[j]:
                rows -= mean
            rows /= self._scale
        rows, step = self._weighted(rows, test), self._steps.get(j)
        return _split(rows if step is None else step.apply(rows))

    def _content(self) -> Iterable[Array]:
        return (self._solved,) if self.weights is None else (self._solved, self.weights)

    @cached_property
    def deleted_rows(self) -> tuple[Array, Array, Array]:
        """Rows (n, p), targets (n,) and factors (n,), for the leave-one-out folds.

        Deleting row i of these rows and targets from the full problem gives the training problem
        without row i of the table, and √(row i's weighted held-out error) = factor i times the
        residual of the deleted row. With an intercept refitted in every fold, deleting row i of
        weight w from centred data of weight W is a down-date by √(wW/(W − w)) times the centred
        row.
        """
        rows, counts = self._weighted(self._solved), self._counts
        if not self.refit_intercept:
            return *_split(rows), np.ones(len(rows))
        factor = np.sqrt(counts.sum() / (counts.sum() - counts))
        return *_split(factor[:, None] * rows), factor

    @property
    def row_of(self) -> Index:
        """The row that every leave-one-out fold holds out, shape (n,)."""
        assert self.folds.label is not None
        return np.argsort(self.folds.label, kind="stable")

    def left_out(self, gram: GramForm) -> LeftOut | None:
        """The folds as rows left out of the full problem; None where folds are not a partition.

        With an intercept refitted in every fold, centring on the training means is a rank-one
        change: the sum s of fold j's centred rows is left out as one more row s/√(W − w), with the
        weight W of all rows and the weight w of the fold. A fold of a single row has that row
        scaled instead.

        gram: The Gram form of the full problem.
        """
        if self.folds.label is None:
            return None
        n = len(self._given)
        if self.folds.leave_one_out:
            order = self.row_of
            rows, targets, _ = self.deleted_rows
            return LeftOut(gram, rows[order], targets[order], np.arange(n + 1, dtype=np.int64), n)
        weighted, parts = self._weighted(self._solved), []
        for j, weight in enumerate(self.fold_weight):
            held = self.folds.label == j
            part = weighted[held]
            if self.refit_intercept:
                total = self._counts[held] @ self._solved[held]
                part = np.vstack([part, total / np.sqrt(self.total - weight)])
            parts.append(part)
        start = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return LeftOut(gram, *_split(np.vstack(parts)), start, n)


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
        if isinstance(folds, HashedFolds):
            folds = folds.counted(np.array([part.n for part in moments.folds], dtype=np.intp))
        if design.rules is not None and design.rules.free.size:
            raise InputError(
                "a penalty factor of 0 needs the rows in memory, and this table is read in parts: "
                "give the column a small factor and include it"
            )
        self.constraints = _constraints(design)
        self.folds, self.p, self._read = folds, design.p, read
        self.plain = self.constraints.plain
        self._design, self._moments = design, moments
        self._refit_intercept = design.protocol.refit_intercept
        self.fold_weight, self.fold_of = folds.sizes.astype(np.float64), np.arange(folds.k)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None}  # Another process reads no rows.

    def with_folds(self, folds: Folds) -> MomentFolds:
        """The same table in other folds, for which its rows are read again."""
        assert self._read is not None
        return MomentFolds(self._read(folds), self._design, folds, self._read)

    def one_fold(self, train: Index, test: Index) -> MomentFolds:
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
        return moment_problem(rest, rest if self._refit_intercept else None, self._design)

    def held_out(self, j: int) -> tuple[Array, Array]:
        """At most p + 2 rows and targets that give fold j's squared error for every β."""
        means = self._moments.without(j) if self._refit_intercept else None
        joint, row = self._moments.folds[j].about(means, self._design)
        root, _ = gram_root(joint)
        return _split(root if row is None else np.vstack([row, root]))

    def _content(self) -> Iterable[Array]:
        for part in self._moments.folds:
            yield from (part.mean, np.asarray(part.tail), part.scatter)


def moment_problem(moments: Moments, means: Moments | None, design: Design) -> SparseRidgeProblem:
    """The problem of rows that are known by their moments, with placeholders for γ and τ.

    means: Moments whose mean is subtracted from the rows; with None the design's shift is.
    """
    joint, row = moments.about(means, design)
    G, b, yy = joint[:-1, :-1], joint[:-1, -1], float(joint[-1, -1])
    own = _constraints(design)
    tau = max(1, own.min_size)
    return SparseRidgeProblem.from_gram(G, b, yy, gamma=1.0, tau=tau, row=row, constraints=own)


def _constraints(design: Design) -> Constraints:
    """The constraints of the solved columns of a design."""
    return Constraints.none(design.p) if design.rules is None else design.rules.constraints


def _split(rows: Array) -> tuple[Array, Array]:
    """X and y of rows of [X y], each in a contiguous array."""
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])
