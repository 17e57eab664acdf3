"""Training problems and held-out rows of every fold: what folds give, and folds of rows in memory.

Solved rows are rows of [X y] once missing values are filled and the columns are centred and scaled:
what a training problem is made of, and what its coefficients are multiplied with. A fold derives
what it fills with and subtracts from its training rows alone, and does the same to the rows that
it holds out.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..solvers.branching.row_deletion import LeftOut
from ..solvers.core.constraints import UnitConstraints
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.rows import Rows, is_long, triangle_of
from ..solvers.core.threads import cached
from ..solvers.kernels.linalg import EPS
from ..tables.columns import joined
from .design import Array, Design, Summary, centre
from .folds import Folds, Index
from .missing import checked_fill, fill, fill_values
from .moments import RowMoments

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
# many bytes, or where a fold is not long (``rows.is_long``). Else they are reduced to a triangular
# factor, from which the errors of many models take less time. The factor of a shorter table costs
# more than it saves. The value is a choice.
MAX_BYTES_OF_UNREDUCED_ROWS = 1_000_000
# Attributes of RowFolds that belong to the division into folds, and are computed when they are
# first asked for. Other folds of the same rows compute their own.
OF_THESE_FOLDS = ("_origins", "_problems", "_held_out", "_moments", "deleted_rows")
# Attributes of RowFolds that other processes and fitted estimators do without: the user's arrays,
# and large arrays that are computed again where they are asked for.
NOT_KEPT = (
    "raw",
    "_full",
    "_problems",
    "_held_out",
    "_moments",
    "deleted_rows",
    "scatter_shares",
)


class Origin(NamedTuple):
    """What takes rows of [X y] to the solved rows of a fold: fill, then centre, then scale.

    Fill and means come from the fold's training rows. So does the scale where the fold has one of
    its own (``FoldData.scales_by_training_rows``); elsewhere it is that of all rows.

    scale, shape (p + 1,): Divisors of the columns, once they are filled and centred, and of y.
    fill, shape (p + 1,): What missing values are filled with; None where no value may be missing.
    means: Two arrays of shape (p + 1,), whose sum is the mean (``design.centre``); empty where the
        intercept is not refitted.
    """

    scale: Array
    fill: Array | None = None
    means: tuple[Array, ...] = ()

    def move(self, rows: Array) -> None:
        """Fill, centre and scale rows of [X y], in place."""
        if self.fill is not None:
            fill(rows, self.fill)
        for mean in self.means:
            rows -= mean
        rows /= self.scale


class DeletedRows(NamedTuple):
    """The leave-one-out folds as rows that are deleted from the problem of all rows.

    ``rows`` and ``targets`` are the solved rows, stretched so that deleting row i of them from the
    problem of all rows gives the training problem without row i of the table, intercept included.
    With r the residual of the deleted row, (factor i · r)² is the held-out squared error of row i
    of the table, times the row's weight.

    rows, targets, factor, shape (n, p), (n,) and (n,): One entry for every row of the table.
    row_of, shape (n,): The number of the row that each fold holds out.
    """

    rows: Array
    targets: Array
    factor: Array
    row_of: Index


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
    raw: X and y in the user's units, from which folds of other rows can be made; None where rows
        are not in memory, and once the data are released.
    deleted_rows: The leave-one-out folds as deleted rows; None where folds hold out several rows,
        where a fold fills missing values, where coefficients have bounds (fits without a row then
        do not follow from those with all rows), and where rows are not in memory.
    """

    folds: Folds
    p: int
    constraints: UnitConstraints
    fold_weight: Array
    fold_of: Index | None
    refit_intercept: bool
    scales_by_training_rows: bool = False
    raw: tuple[Array, Array] | None = None
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
        return self.n * EPS * self.full().yy / self.total

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
        """The problem of all rows, with placeholders for γ and τ."""

    @abstractmethod
    def training(self, j: int) -> SparseRidgeProblem:
        """The problem of the rows that fold j trains on, with placeholders for γ and τ."""

    def problem(self, j: int) -> SparseRidgeProblem:
        """The training problem of fold j; for j = k the problem of all rows."""
        return self.full() if j == self.folds.k else self.training(j)

    @abstractmethod
    def held_out(self, j: int) -> tuple[Array, Array]:
        """Rows H, shape (m, p), and targets t, shape (m,): fold j's squared error is ‖t − Hβ‖².

        The number m of rows may differ from the number of rows that the fold holds out.
        """

    @abstractmethod
    def count_partitions(self, most: int) -> int:
        """How many partitions of the rows into folds there are, of ``most`` that are wanted."""

    @abstractmethod
    def partition(self, number: int, seed: Any) -> FoldData:
        """The same table in another partition into as many folds.

        number: 1 for the second partition, 2 for the third, and so on.
        seed: The seed of these folds.
        """

    @abstractmethod
    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> FoldData:
        """The same table with a single fold 0 that trains on some units and holds out others.

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


class RowFolds(FoldData):
    """Folds of rows in memory.

    X, y, shape (n, p) and (n,): Rows in solved units (``Design.apply``), up to their scale. They
        are not copied where they are all columns of one array, and may not change then.
    folds: The division of these n rows into folds.
    refit_intercept: Whether every fold subtracts the means of its own training rows.
    weights, shape (n,), optional: Weights >= 0 of the squared errors, in training and held out: a
        whole number counts as that many copies of a row that stay in one fold.
    design, optional: What columns are divided by once they are centred: ``design.scale``, which all
        rows decide, as long as the training and held-out rows of every fold are all rows. Where
        they are not, as where folds are in order of time, each fold scales by its training rows:
        later rows would otherwise decide how strong the penalty is. None divides by 1.
    constraints: What is asked of the columns of X, in solved units.
    missing: "mean" where X may hold NaN: every fold fills them from its own training
        rows, in training and held out.

    Raises ValueError: A value is infinite, or is NaN where none may be missing.
    Raises InputError: All training rows of a fold have weight 0.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        folds: Folds,
        refit_intercept: bool,
        weights: Array | None = None,
        design: Design | None = None,
        constraints: UnitConstraints | None = None,
        missing: str | None = None,
    ) -> None:
        # Every fold is centred from the rows as they came. A shift by the mean of all rows would
        # leave rounding errors of the held-out rows in the training rows.
        self.given = joined(X, y)
        self.missing = checked_fill(missing)
        finite = ~np.isinf(X) if missing else np.isfinite(X)
        if not (finite.all() and np.isfinite(y).all()):
            raise ValueError("X and y must be finite: remove or impute NaN and infinite values")
        self.p = self.given.shape[1] - 1
        self.constraints = constraints or UnitConstraints.none(self.p)
        self.refit_intercept, self.weights, self.design = refit_intercept, weights, design
        self.scale = np.ones(self.p + 1) if design is None else design.scale
        self._set_folds(folds)

    @classmethod
    def of(
        cls,
        design: Design,
        X: Array,
        y: Array,
        folds: Folds,
        weights: Array | None = None,
        missing: str | None = None,
    ) -> RowFolds:
        """Folds of raw rows X (n, p_raw), y (n,), which are not changed.

        By the protocol "honest" every fold centres its rows by its own training rows. By "paper"
        all rows are centred and scaled here, once, and folds change nothing.
        """
        protocol, honest = design.protocol, design.protocol.name == "honest"
        made = cls(
            *((design.columns(X), y) if honest else design.apply(X, y)),
            folds=folds,
            refit_intercept=protocol.refit_intercept,
            weights=weights,
            design=design if honest and protocol.scale != "none" else None,
            constraints=design.constraints,
            missing=missing,
        )
        made.raw = X, y
        return made

    # rows in other folds

    def _set_folds(self, folds: Folds) -> None:
        """Set the folds of the rows, and what follows from the folds without any computation."""
        self.folds, self.fold_of, weights = folds, folds.label, self.row_weights
        self.scales_by_training_rows = self.design is not None and not folds.all_rows
        if folds.label is not None:
            sums = np.bincount(folds.label, weights, minlength=folds.k)
            self.fold_weight = sums.astype(np.float64)
        else:
            self.fold_weight = np.array([weights[test].sum() for _, test in folds.pairs])
        if self.weights is not None and folds.holds_out:
            self.folds.check_weights(self.weights > 0.0)

    def with_folds(self, folds: Folds) -> RowFolds:
        """The same rows in other folds; the rows and the problem of all rows are shared."""
        other = RowFolds.__new__(RowFolds)
        shared = {name: one for name, one in vars(self).items() if name not in OF_THESE_FOLDS}
        vars(other).update(shared)
        other._set_folds(folds)
        return other

    def count_partitions(self, most: int) -> int:
        """As many as are wanted where folds can be drawn again, else one."""
        return most if self.folds.redraws else 1

    def partition(self, number: int, seed: Any) -> RowFolds:
        """The same rows in folds that are drawn again."""
        return self.with_folds(self.folds.again(seed, number))

    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> RowFolds:
        """A single fold that trains on some rows and holds out others.

        It scales by its training rows only if these folds do, whatever rows it leaves aside.
        """
        sizes = np.array([test.size], dtype=np.intp)
        made = self.with_folds(Folds("custom", self.folds.n, sizes, None, [(train, test)]))
        made.scales_by_training_rows = self.scales_by_training_rows
        vars(made)["_moments"] = self._moments  # Blocks of these folds serve any rows.
        if same is not None:
            known = same.rows_for("a fold needs")
            vars(made).update(_problems=known._problems, _origins=known._origins)
        return made

    def without_each(self, parts: Sequence[Index]) -> RowFolds:
        """Folds whose training rows are all rows but one of these parts, and that hold out none.

        Every fold scales its columns by its training rows where a design says how: the rows of the
        part take no part in it.
        """
        every, none = np.arange(len(self.given)), np.empty(0, dtype=np.intp)
        pairs = [(np.setdiff1d(every, rows), none) for rows in parts]
        sizes = np.zeros(len(parts), dtype=np.intp)
        return self.with_folds(Folds("custom", every.size, sizes, None, pairs))

    def without(self, rows: Index) -> SparseRidgeProblem:
        """The problem of all rows but some, centred, scaled and filled by the rows that remain.

        A fit to a table that lacks these rows has this problem.
        """
        return self.without_each([rows]).training(0)

    def __getstate__(self) -> dict[str, Any]:
        """Another process gets the rows, and computes again what it needs besides."""
        return {name: value for name, value in vars(self).items() if name not in NOT_KEPT}

    def release(self) -> None:
        """Forget the user's arrays, and free the memory of what can be computed again."""
        for name in NOT_KEPT:
            vars(self).pop(name, None)

    # what is known of the rows

    def rows_for(self, what: str) -> RowFolds:
        """These folds, whose rows are in memory."""
        return self

    def unweighted_rows(self) -> Array | None:
        """All solved rows, shape (n, p + 1); None where rows have weights or values are missing."""
        plain = self.weights is None and self.missing is None
        return self.solved_rows() if plain else None

    @property
    def has_inner_folds(self) -> bool:
        """Whether training rows can be divided into folds: they can, whatever their number."""
        return True

    @property
    def n(self) -> int:
        """Number of rows of weight above 0."""
        return len(self.given) if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def row_weights(self) -> Array:
        """The weight of every row, shape (n,); 1 where rows have no weights."""
        return np.ones(len(self.given)) if self.weights is None else self.weights

    @property
    def weight(self) -> float:
        """The sum of the weights of all rows, which is their number where rows have no weights."""
        return float(self.row_weights.sum())

    def training_weight(self, j: int) -> float:
        """The sum of the weights of the rows that fold j trains on."""
        train, _ = self.folds.split(j)
        return float(self.row_weights[train].sum())

    @property
    def row_shares(self) -> Array:
        """The weight of every row as a share of all weights, shape (n,)."""
        return self.row_weights / self.weight

    @cached
    def scatter_shares(self) -> Array:
        """What each row adds to the scatter of a column about its mean, as a share, shape (n, p).

        The shares are 0 where columns are not scaled, and of columns of a single value. Values may
        not be missing.
        """
        columns = self.given[:, :-1].copy()
        if self.design is None:
            return np.zeros(columns.shape)
        centre(columns, self.row_weights)
        squares = self.row_weights[:, None] * columns**2
        total = squares.sum(axis=0)
        return np.asarray(squares / np.where(total > 0.0, total, 1.0))

    @property
    def tree_deletes_rows(self) -> bool:
        """Whether a tree can delete all leave-one-out rows, of which it needs more than p + 2."""
        return self._deletes_rows and self.folds.n > self.p + 2

    @property
    def _deletes_rows(self) -> bool:
        """Whether folds hold out single rows, and fits without a row follow from those with all."""
        single = self.folds.leave_one_out and self.missing is None
        return single and not self.constraints.bounded

    def covers(self, j: int) -> bool:
        """Whether fold j trains on every row that it does not hold out, as all rows have it."""
        same = self.missing is None and not self.scales_by_training_rows
        return same and self.folds.covers(j)

    # training problems

    def _solved(self, train: Index, own_scale: bool) -> tuple[Array, Origin]:
        """A copy of training rows in solved units, and what takes other rows to the same units.

        train: Numbers of the rows, from which fill, means and perhaps the scale are computed.
        own_scale: Whether columns are divided by the scale of these rows by the rule of ``design``.
            The design may then not be None, and the weights of the rows have to be above 0.
        """
        rows, origin = self.given[train], Origin(self.scale)
        weights = None if self.weights is None else self.weights[train]
        if self.missing is not None:
            values = fill_values(self.given, self.weights, train)
            fill(rows, values)
            origin = origin._replace(fill=values)
        if own_scale:
            assert self.design is not None
            scale = Summary.of_rows(rows, weights).scale(self.design.protocol)
            origin = origin._replace(scale=scale)
        if self.refit_intercept:
            origin = origin._replace(means=centre(rows, weights))
        rows /= origin.scale
        return rows, origin

    def solved_rows(self) -> Array:
        """All solved rows, shape (n, p + 1), about the means of all rows; nobody may change them.

        They are divided by the scale of all rows, also where folds have scales of their own.
        """
        if not self.refit_intercept and self.missing is None and (self.scale == 1.0).all():
            return self.given
        return self._solved(np.arange(len(self.given)), own_scale=False)[0]

    def _weighted(self, solved: Array, numbers: Index | slice = slice(None)) -> Array:
        """Solved rows times the roots of their weights, so that squared errors are weighted.

        numbers: Places of the rows in the table.
        """
        if self.weights is None:
            return solved
        return solved * np.sqrt(self.weights[numbers])[:, None]

    @cached
    def _moments(self) -> RowMoments:
        """Moments of any of the rows; what folds have in common is computed once."""
        return RowMoments(self.given, self.weights, self.folds.label)

    def _from_moments(self, n: int) -> bool:
        """Whether the problem of n training rows is made from moments, and not from its rows.

        Many rows are, where no fold fills values or scales columns in a way of its own.
        """
        own = self.missing is not None or self.scales_by_training_rows
        return is_long(n, self.p + 1) and not own

    def _reduced(self, train: Index) -> tuple[Rows, Origin]:
        """Many training rows as a triangle in solved units, and what takes other rows there.

        train: Numbers of the rows; rows of weight 0 may be among them.
        """
        moments, origin = self._moments.of(train), Origin(self.scale)
        if self.refit_intercept:
            origin = origin._replace(means=(moments.mean, moments.tail))
        else:
            moments = moments.about(np.zeros(self.p + 1))
        return moments.data(origin.scale), origin

    @cached
    def _full(self) -> SparseRidgeProblem:
        """The problem of all rows."""
        if self._from_moments(self.n):
            data, _ = self._reduced(np.arange(len(self.given)))
        else:
            data = Rows(self._weighted(self.solved_rows()), shared=True)
        problem = SparseRidgeProblem.from_rows(data, constraints=self.constraints)
        if self.weights is not None:  # Rows of weight 0 are among the rows, and count as none.
            problem.data.n = problem.n = self.n
        return problem

    def full(self) -> SparseRidgeProblem:
        """The problem of all rows, which are centred where an intercept is fitted."""
        return self._full

    @cached
    def _problems(self) -> dict[int, SparseRidgeProblem]:
        """The training problems that are kept, by the number of the fold."""
        return {}

    @cached
    def _origins(self) -> dict[int, Origin]:
        """The origins of the folds whose training problems have been made."""
        return {}

    @cached
    def _held_out(self) -> dict[int, tuple[Array, Array]]:
        """The held-out rows and targets that are kept, by the number of the fold."""
        return {}

    @property
    def _keeps_problems(self) -> bool:
        """Whether the training problems of all folds and that of all rows may be kept."""
        bytes_of_triangle = 8 * min(len(self.given), self.p + 1) * (self.p + 1)
        return (self.folds.k + 1) * bytes_of_triangle <= MAX_BYTES_OF_PROBLEMS

    def training(self, j: int) -> SparseRidgeProblem:
        """The rows that fold j trains on, about their own means where the intercept is refitted."""
        if j in self._problems:
            return self._problems[j]
        if not self._keeps_problems:
            vars(self).pop("_full", None)  # One problem is in memory at a time.
        problem = self._make(j)
        if self._keeps_problems:
            self._problems[j] = problem
        return problem

    def _make(self, j: int) -> SparseRidgeProblem:
        """Make the training problem of fold j, and enter what its rows were moved by."""
        train, _ = self.folds.split(j)
        counted = train if self.weights is None else train[self.weights[train] > 0.0]
        if self._from_moments(counted.size):
            data, origin = self._reduced(train)
        else:
            rows, origin = self._solved(counted, self.scales_by_training_rows)
            data = Rows(self._weighted(rows, counted), shared=True)
        self._origins[j] = origin
        constraints = self.constraints
        if constraints.bounded and self.scales_by_training_rows:  # Bounds are in solved units.
            assert self.design is not None
            constraints = replace(self.design, scale=origin.scale).constraints
        return SparseRidgeProblem.from_rows(data, constraints=constraints)

    def _origin(self, j: int) -> Origin:
        """What takes rows of [X y] to the solved rows of fold j."""
        derived = self.refit_intercept or self.missing is not None
        if not (derived or self.scales_by_training_rows):
            return Origin(self.scale)
        if j not in self._origins:
            self._make(j)
        return self._origins[j]

    def lengths(self, j: int) -> Array:
        """What fold j divides columns by, over what those of all rows are divided by, (p,)."""
        return np.asarray(self._origin(j).scale[:-1] / self.scale[:-1])

    # held-out rows

    def held_out(self, j: int) -> tuple[Array, Array]:
        """Held-out rows and targets, about the training means where the intercept is refitted.

        A row of weight 0 is a row of zeros. Many rows are reduced to the triangle of their QR
        factors, which gives the same squared error for every β. Short arrays are kept for the next
        call: nobody may change them.
        """
        if j in self._held_out:
            return self._held_out[j]
        _, test = self.folds.split(j)
        rows = self._weighted(self._moved(test, self._origin(j)), test)
        if is_long(*rows.shape) and rows.nbytes * self.folds.k > MAX_BYTES_OF_UNREDUCED_ROWS:
            rows = triangle_of(rows)
        found = split_rows(rows)
        if rows.nbytes * self.folds.k <= MAX_BYTES_OF_HELD_OUT_ROWS:
            self._held_out[j] = found
        return found

    def _moved(self, numbers: Index, origin: Origin) -> Array:
        """A copy of the rows of these numbers in the solved units of the origin's fold."""
        rows: Array = self.given[numbers]
        origin.move(rows)
        return rows

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
        rows = self._moved(test, origin)
        return coef, intercept, (rows[:, -1] - rows[:, :-1] @ beta) * design.y_scale

    # folds as rows that the problem of all rows lacks

    @cached
    def deleted_rows(self) -> DeletedRows | None:
        """The leave-one-out folds as deleted rows; None where folds cannot be such rows.

        With an intercept refitted in every fold, deleting row i of weight w from centred data of
        weight W is a down-date by √(W/(W − w)) times the centred row, which √w weights.
        """
        if not self._deletes_rows:
            return None
        assert self.folds.label is not None
        rows, weights = self._weighted(self.solved_rows()), self.row_weights
        factor = np.ones(len(rows))
        if self.refit_intercept:
            factor = np.sqrt(weights.sum() / (weights.sum() - weights))
            rows = factor[:, None] * rows
        return DeletedRows(*split_rows(rows), factor, np.argsort(self.folds.label, kind="stable"))

    def left_out(self, problem: SparseRidgeProblem) -> LeftOut | None:
        """The folds as rows left out of the problem of all rows.

        The result is None where the folds are no partition, or values are missing.

        With an intercept refitted in every fold, centring on the training means is a rank-one
        change: the sum s of fold j's centred rows is left out as one more row s/√(W − w), with the
        weight W of all rows and the weight w of the fold. A fold of a single row has that row
        scaled instead.

        problem: The problem of all rows at some γ.
        """
        if self.folds.label is None or self.missing is not None:
            return None
        n = len(self.given)
        if (deleted := self.deleted_rows) is not None:
            order, each = deleted.row_of, np.arange(n + 1, dtype=np.int64)
            return LeftOut.of(problem, deleted.rows[order], deleted.targets[order], each, n)
        solved, parts = self.solved_rows(), []
        weighted = self._weighted(solved)
        for j, weight in enumerate(self.fold_weight):
            held = self.folds.label == j
            part = weighted[held]
            if self.refit_intercept:
                total = self.row_weights[held] @ solved[held]
                part = np.vstack([part, total / np.sqrt(self.total - weight)])
            parts.append(part)
        start = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return LeftOut.of(problem, *split_rows(np.vstack(parts)), start, n)

    def _content(self) -> Iterable[Array]:
        """The rows as they came, their divisors and their weights."""
        yield self.given
        yield self.scale
        if self.weights is not None:
            yield self.weights


def split_rows(rows: Array) -> tuple[Array, Array]:
    """X and y of rows of [X y], each in a contiguous array."""
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])
