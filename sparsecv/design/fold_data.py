"""Training problems and held-out rows of every fold: what folds give, and folds of rows in memory.

A fold derives what it fills missing values with and subtracts from its training rows alone, and
does the same to the rows that it holds out.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..solvers.branching.row_deletion import LeftOut
from ..solvers.core.constraints import UnitConstraints
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.rounding import left_of_perfect_fits
from ..solvers.core.rows import Rows
from ..solvers.core.threads import cached
from ..solvers.leaps.deleted_rows import LEAST_ONE_MINUS_LEVERAGE
from .deleted_rows import DeletedRows, left_out_folds
from .design import Array, Design
from .folds import Folds, Index
from .moments import RowMoments
from .row_table import Origin, RowTable, split_rows

# The training problems of all folds and that of all rows are kept where their triangles take at
# most this many bytes together. Elsewhere one problem is kept at a time at most. A rule that
# averages over two partitions keeps twice as much. The value is measured: above it (300 × 10,000 in
# 5 folds) a fit that makes its problems again is as fast, and for leave-one-out on 442 × 10 it
# takes half as long again.
MAX_BYTES_OF_PROBLEMS = 64_000_000
# The held-out rows of all folds are kept where together they take at most this many bytes. The
# value is a choice.
MAX_BYTES_OF_HELD_OUT_ROWS = 8_000_000
# The held-out rows of a fold stay as they are where those of all folds together take at most this
# many bytes, or where a fold is not long (``Rows.are_long``). Else they are reduced to a triangular
# factor, from which the errors of many models take less time. The factor of a shorter table costs
# more than it saves. Where the rows of one fold take more than this and are not long, only columns
# that models have are made, which then may be long. The value is a choice.
MAX_BYTES_OF_UNREDUCED_ROWS = 1_000_000
# Attributes of RowFolds that other processes and fitted estimators do without, because they are
# computed where they are asked for.
COMPUTED = ("training_problems", "held_out_rows", "deleted_rows")


class FoldData(ABC):
    """Training problems and held-out rows of k folds, in the units of the solved columns.

    folds: Which rows each fold holds out and trains on, and how the folds were asked for.
    p: Number of columns that models choose from.
    constraints: What models must obey; sizes count units, which are columns or groups of columns.
    fold_weight, shape (k,): Number of rows that each fold holds out, or the sum of their weights.
    fold_of, or None: Fold of every unit that :meth:`one_fold` takes; a unit is a row, or a whole
        fold where rows are not in memory. None where folds share rows.
    refit_intercept: Whether every fold subtracts the means of its own training rows.
    scales_by_training_rows: Whether every fold divides its columns by the scale of its training
        rows, and not by that of all rows.
    deleted_rows: The leave-one-out folds as deleted rows; None where folds hold out several rows,
        where a fold fills missing values or holds out nearly all of the weight, where coefficients
        have bounds (fits without a row then do not follow from those with all rows), and where rows
        are not in memory.
    """

    folds: Folds
    p: int
    constraints: UnitConstraints
    fold_weight: Array
    fold_of: Index | None
    refit_intercept: bool
    scales_by_training_rows: bool = False
    deleted_rows: DeletedRows | None = None

    @abstractmethod
    def rows_for(self, what: str) -> RowFolds:
        """The same folds with their rows in memory, for what needs single rows.

        what: What needs the rows, as subject and verb of a message.
        Raises InputError: The rows are not in memory.
        """

    def unweighted_rows(self) -> Array | None:
        """All solved rows, shape (n, p + 1), each of which counts once.

        None where rows have weights, values may be missing, or rows are not in memory.
        """
        return None

    @property
    @abstractmethod
    def has_inner_folds(self) -> bool:
        """Whether the training rows of every fold can be divided into folds by :meth:`one_fold`."""

    @property
    def raw(self) -> tuple[Array, Array] | None:
        """X and y in the user's units, from which folds of other rows can be made.

        None where rows are not in memory, and once the data are released.
        """
        return None

    @property
    def n(self) -> int:
        """Number of rows of weight above 0; a row of weight 0 counts as no row."""
        return self.folds.n

    @property
    def weight(self) -> float:
        """The sum of the weights of all rows, which is their number where rows have no weights."""
        return self.total

    def training_weight(self, j: int) -> float:
        """The sum of the weights of the rows that fold j trains on."""
        return self.weight - float(self.fold_weight[j])

    @property
    def total(self) -> float:
        """The divisor of the CV error, whose numerator sums squared errors over all folds.

        This is the sum of ``fold_weight``. It differs from ``weight`` where some rows are never
        held out, or are held out by several folds.
        """
        return float(self.fold_weight.sum())

    @cached
    def rounding(self) -> float:
        """What rounding may leave of the CV error of a perfect fit: n·EPS of the mean of y²."""
        return left_of_perfect_fits(self.n, self.full().yy) / self.total

    @property
    def tree_deletes_rows(self) -> bool:
        """Whether a tree of all sizes can delete the rows of all leave-one-out folds.

        It needs more than p + 2 rows: with fewer rows fits interpolate, and deleting a row from an
        interpolating fit cancels all digits.
        """
        return False

    def left_out(self, problem: SparseRidgeProblem) -> LeftOut | None:
        """The folds as rows left out of the problem of all rows; None where they cannot be.

        problem: The problem of all rows at some γ.
        """
        return None

    def covers(self, j: int) -> bool:
        """Whether the solved training and held-out rows of fold j are the solved rows of all rows.

        Centring by the means of the training rows does not count as a difference.
        """
        return self.folds.covers(j)

    @abstractmethod
    def full(self) -> SparseRidgeProblem:
        """The problem of all rows, with placeholders for γ and τ.

        The caller replaces γ and τ in a copy. So it is with :meth:`training` and :meth:`problem`.
        """

    @abstractmethod
    def training(self, j: int) -> SparseRidgeProblem:
        """The problem of the rows that fold j trains on, with placeholders for γ and τ."""

    def problem(self, j: int) -> SparseRidgeProblem:
        """The training problem of fold j; for j = k the problem of all rows."""
        return self.full() if j == self.folds.k else self.training(j)

    @abstractmethod
    def held_out(self, j: int, columns: Index | None = None) -> tuple[Array, Array]:
        """Rows H, shape (m, p), and targets t, shape (m,): fold j's squared error is ‖t − Hβ‖².

        The number m of rows may differ from the number of rows that the fold holds out.

        columns, shape (c,): The columns of H that are made, where β is 0 at all others; by default
            all p. H has the shape (m, c) then.
        """

    @abstractmethod
    def count_partitions(self, most: int) -> int:
        """How many partitions of the rows into folds can be had, this one included.

        most: As many as are wanted, at least 1; no larger number is returned.
        """

    @abstractmethod
    def partition(self, number: int, seed: Any) -> FoldData:
        """The same table in another partition into as many folds.

        number: 1 for the second partition, 2 for the third, and so on.
        seed: The seed that these folds were drawn with.
        """

    @abstractmethod
    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> FoldData:
        """The same table with a single fold 0 that trains on some units and holds out others.

        train, test: Numbers of units (``fold_of``): of rows, or of folds where only moments of rows
            are known.
        same: What an earlier call returned for the same training units, whose training problem is
            then not made again.
        """

    def release(self) -> None:
        """Forget the user's arrays, and free the memory of what can be computed again."""
        return

    @abstractmethod
    def _content(self) -> Iterable[Array]:
        """Arrays that determine the data and the order of their rows."""

    def digest(self) -> bytes:
        """A hash of the data, by which a checkpoint of other data is recognised."""
        found = hashlib.sha256()
        for values in self._content():
            found.update(np.ascontiguousarray(values).data)
        return found.digest()


class TrainingProblems(NamedTuple):
    """What is kept of the training rows of folds.

    moments: Moments of any rows of the table; what folds have in common is computed once.
    problems: The training problems that are kept, by the number of the fold.
    origins: The origins of the folds whose training problems have been made, by the same numbers.
    """

    moments: RowMoments
    problems: dict[int, SparseRidgeProblem]
    origins: dict[int, Origin]


class RowFolds(FoldData):
    """Folds of rows in memory.

    rows: The table, which folds of other partitions of its rows share.
    folds: The division of its rows into folds.
    own_scale: Whether every fold scales columns by its training rows. By default folds do so where
        the table has a design, which says how columns are scaled, and the training and held-out
        rows of a fold are not all rows, as where folds are in order of time: later rows would
        otherwise decide how strong the penalty is.

    Raises InputError: All training rows of a fold have weight 0.
    """

    def __init__(self, rows: RowTable, folds: Folds, own_scale: bool | None = None) -> None:
        self.rows, self.folds, self.fold_of = rows, folds, folds.label
        self.p, self.constraints = rows.p, rows.constraints
        self.refit_intercept = rows.refit_intercept
        if own_scale is None:
            own_scale = rows.design is not None and not folds.all_rows
        self.scales_by_training_rows = own_scale
        weights = rows.row_weights
        if folds.label is not None:
            sums = np.bincount(folds.label, weights, minlength=folds.k)
            self.fold_weight = sums.astype(np.float64)
        else:
            self.fold_weight = np.array([weights[test].sum() for _, test in folds.pairs])
        if rows.weights is not None and folds.holds_out:
            folds.check_weights(rows.weights > 0.0)

    # folds of the same rows

    def count_partitions(self, most: int) -> int:
        """As many as are wanted where folds can be drawn again, else one."""
        return most if self.folds.redraws else 1

    def partition(self, number: int, seed: Any) -> RowFolds:
        """The same rows in folds that are drawn again."""
        return RowFolds(self.rows, self.folds.again(seed, number))

    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> RowFolds:
        """A single fold that trains on some rows and holds out others.

        It scales by its training rows only if these folds do, whatever rows it leaves aside.
        """
        folds = Folds("custom", self.folds.n, np.array([test.size]), None, [(train, test)])
        made = RowFolds(self.rows, folds, self.scales_by_training_rows)
        # Blocks of these folds serve any rows.
        known = TrainingProblems(self.training_problems.moments, {}, {})
        if same is not None:
            known = same.rows_for("a fold needs").training_problems
        vars(made)["training_problems"] = known
        return made

    def without_each(self, parts: Sequence[Index]) -> RowFolds:
        """Folds whose training rows are all rows but one of these parts, and that hold out none.

        Every fold scales its columns by its training rows where a design says how: the rows of the
        part take no part in it.
        """
        every, none = self.rows.every, np.empty(0, dtype=np.intp)
        pairs = [(np.setdiff1d(every, rows), none) for rows in parts]
        sizes = np.zeros(len(parts), dtype=np.intp)
        return RowFolds(self.rows, Folds("custom", every.size, sizes, None, pairs))

    def without(self, rows: Index) -> SparseRidgeProblem:
        """The problem of all rows but some, centred, scaled and filled by the rows that remain.

        A fit to a table that lacks these rows has this problem.
        """
        return self.without_each([rows]).training(0)

    def __getstate__(self) -> dict[str, Any]:
        """Another process gets the rows, and computes again what it needs besides."""
        return {name: value for name, value in vars(self).items() if name not in COMPUTED}

    def release(self) -> None:
        """Forget the user's arrays, and free the memory of what can be computed again."""
        self.rows.release()
        for name in COMPUTED:
            vars(self).pop(name, None)

    # what is known of the rows

    def rows_for(self, what: str) -> RowFolds:
        """These folds, whose rows are in memory."""
        return self

    @property
    def raw(self) -> tuple[Array, Array] | None:
        """X and y in the user's units; None once the data are released."""
        return self.rows.raw

    def unweighted_rows(self) -> Array | None:
        """All solved rows, shape (n, p + 1); None where rows have weights or values are missing."""
        plain = self.rows.weights is None and self.rows.missing is None
        return self.rows.solved_rows() if plain else None

    @property
    def has_inner_folds(self) -> bool:
        """Whether training rows can be divided into folds: they can, whatever their number."""
        return True

    @property
    def n(self) -> int:
        """Number of rows of weight above 0."""
        return self.rows.n

    @property
    def weight(self) -> float:
        """The sum of the weights of all rows, which is their number where rows have no weights."""
        return self.rows.weight

    def training_weight(self, j: int) -> float:
        """The sum of the weights of the rows that fold j trains on."""
        train, _ = self.folds.split(j)
        return float(self.rows.row_weights[train].sum())

    @property
    def tree_deletes_rows(self) -> bool:
        """Whether a tree can delete all leave-one-out rows, of which it needs more than p + 2."""
        return self._deletes_rows and self.folds.n > self.p + 2

    @property
    def _deletes_rows(self) -> bool:
        """Whether folds hold out single rows, and fits without a row follow from those with all."""
        single = self._subtracts_rows and self.folds.leave_one_out
        return single and not self.constraints.bounded

    @property
    def _subtracts_rows(self) -> bool:
        """Whether every fold's training problem is that of all rows less some rows.

        Where means are subtracted, the share of all weights that a fold trains on is one minus the
        leverage that its held-out rows have in the mean: a small share leaves few digits.
        """
        if self.folds.label is None or self.rows.missing is not None:
            return False
        left = 1.0 - float(self.fold_weight.max()) / self.weight
        return not self.refit_intercept or left > LEAST_ONE_MINUS_LEVERAGE

    def covers(self, j: int) -> bool:
        """Whether fold j trains on every row that it does not hold out, as all rows have it."""
        same = self.rows.missing is None and not self.scales_by_training_rows
        return same and self.folds.covers(j)

    # training problems

    @cached
    def training_problems(self) -> TrainingProblems:
        """What is kept of the training rows of these folds."""
        moments = RowMoments(self.rows.given, self.rows.weights, self.folds.label)
        return TrainingProblems(moments, {}, {})

    def full(self) -> SparseRidgeProblem:
        """The problem of all rows, which are centred where an intercept is fitted."""
        return self.rows.full(self.training_problems.moments)

    @property
    def _keeps_problems(self) -> bool:
        """Whether the training problems of all folds and that of all rows may be kept."""
        bytes_of_triangle = 8 * min(len(self.rows.given), self.p + 1) * (self.p + 1)
        return (self.folds.k + 1) * bytes_of_triangle <= MAX_BYTES_OF_PROBLEMS

    def training(self, j: int) -> SparseRidgeProblem:
        """The rows that fold j trains on, about their own means where the intercept is refitted."""
        known = self.training_problems.problems
        if j in known:
            return known[j]
        if not self._keeps_problems:
            self.rows.forget_full()  # One problem is in memory at a time.
        problem = self._make(j)
        if self._keeps_problems:
            known[j] = problem
        return problem

    def _make(self, j: int) -> SparseRidgeProblem:
        """Make the training problem of fold j, and keep what takes other rows to its units."""
        train, _ = self.folds.split(j)
        own, known = self.scales_by_training_rows, self.training_problems
        problem, known.origins[j] = self.rows.problem(train, own, known.moments)
        return problem

    def _origin(self, j: int) -> Origin:
        """What takes rows of [X y] to the solved units of fold j's training problem."""
        derived = self.refit_intercept or self.rows.missing is not None
        if not (derived or self.scales_by_training_rows):
            return Origin(self.rows.scale)
        if j not in self.training_problems.origins:
            self._make(j)
        return self.training_problems.origins[j]

    def lengths(self, j: int) -> Array:
        """What fold j divides the columns of X by, as a share of what all rows do, shape (p,)."""
        return np.asarray(self._origin(j).scale[:-1] / self.rows.scale[:-1])

    # held-out rows

    @cached
    def held_out_rows(self) -> dict[int, tuple[Array, Array]]:
        """The held-out rows and targets that are kept, by the number of the fold."""
        return {}

    def held_out(self, j: int, columns: Index | None = None) -> tuple[Array, Array]:
        """Held-out rows and targets, about the training means where the intercept is refitted.

        A row of weight 0 is a row of zeros. Many rows are reduced to the triangle of their QR
        factors, which gives the same squared error for every β. Short arrays are kept for the next
        call: nobody may change them. Of a fold of large rows the columns that are asked for are
        made alone, and not kept: which rows are made so follows from their number alone.
        """
        _, test = self.folds.split(j)
        if columns is not None:
            size = 8 * test.size * (self.p + 1)
            if Rows.are_long(test.size, self.p + 1) or size <= MAX_BYTES_OF_UNREDUCED_ROWS:
                rows, targets = self.held_out(j)
                return rows[:, columns], targets
            columns = np.append(columns, self.p)
        elif j in self.held_out_rows:
            return self.held_out_rows[j]
        rows = self.rows.weighted(self.rows.moved(test, self._origin(j), columns), test)
        large = columns is not None or rows.nbytes * self.folds.k > MAX_BYTES_OF_UNREDUCED_ROWS
        if large:
            rows = Rows(rows, shared=True).rows
        found = split_rows(rows)
        if columns is None and rows.nbytes * self.folds.k <= MAX_BYTES_OF_HELD_OUT_ROWS:
            self.held_out_rows[j] = found
        return found

    def raw_model(self, design: Design, j: int, beta: Array) -> tuple[Array, float, Array]:
        """Map a model of fold j's training problem to the units of the table.

        design: What the rows were made with.
        beta, shape (p,): Coefficients of the problem's columns.
        Returns: Coefficients of raw columns, shape (p_raw,), the intercept, and the errors y − ŷ of
            the model on the rows that fold j holds out, in the units of the table's response.
        """
        origin = self._origin(j)
        # By the protocol "paper" the rows are scaled already, by the design.
        scale = None if design.protocol.name == "paper" else origin.scale
        coef, intercept = design.coefficients(beta, scale)
        if self.refit_intercept:
            means = (mean[-1] - mean[:-1] @ coef[design.kept] for mean in origin.means)
            intercept = float(sum(means))
        _, test = self.folds.split(j)
        rows = self.rows.moved(test, origin)
        return coef, intercept, (rows[:, -1] - rows[:, :-1] @ beta) * design.y_scale

    def raw_fills(self, design: Design, j: int) -> Array | None:
        """What fold j fills missing values of raw columns with, shape (p_raw,); None for nothing.

        design: What the rows were made with.
        """
        origin = self._origin(j)
        if origin.fill is None:
            return None
        found, own = np.zeros(design.p_raw), origin.fill[:-1]
        # By the protocol "paper" the rows are scaled before they are filled.
        if design.protocol.name == "paper":
            own = own * design.scale[:-1] + design.shift[:-1]
        found[design.kept] = own
        return found

    # folds as rows that the problem of all rows lacks

    @cached
    def deleted_rows(self) -> DeletedRows | None:
        """The leave-one-out folds as deleted rows; None where folds cannot be such rows."""
        if not self._deletes_rows:
            return None
        assert self.folds.label is not None
        return DeletedRows.of(self.rows, self.folds.label)

    def left_out(self, problem: SparseRidgeProblem) -> LeftOut | None:
        """The folds as rows left out of the problem of all rows at some γ.

        The result is None where the folds are no partition, values are missing, or a fold holds out
        nearly all of the weight.
        """
        if not self._subtracts_rows:
            return None
        if self.deleted_rows is not None:
            return self.deleted_rows.left_out(problem)
        return left_out_folds(self.rows, self.folds, problem)

    def _content(self) -> Iterable[Array]:
        """The rows as they came, their divisors and their weights."""
        return self.rows.content()
