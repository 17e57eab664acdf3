"""Training problems and held-out rows of every fold, from rows in memory."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..solvers.branching.row_deletion import LeftOut
from ..solvers.core.column_rules import ResolvedRules
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

# The training problems of all folds and that of all rows are kept where together they take at most
# this many bytes. Elsewhere one problem is kept at a time at most. A rule that averages over two
# partitions keeps twice as much. The value is measured: above it (300 × 10,000 in 5 folds) a fit
# that makes its problems again is as fast, and for leave-one-out on 442 × 10 it takes half as long
# again.
MAX_BYTES_OF_PROBLEMS = 64_000_000
# The held-out rows of all folds are kept where together they take at most this many bytes. The
# value is a choice.
MAX_BYTES_OF_HELD_OUT_ROWS = 8_000_000
# The held-out rows of a fold stay as they are where those of all folds together take at most this
# many bytes, or where a fold is not long (``rows.is_long``). Else they are reduced to a triangular
# factor, from which the errors of many models take less time. The factor of a shorter table costs
# more than it saves. The value is a choice.
MAX_BYTES_OF_UNREDUCED_ROWS = 1_000_000


class Origin(NamedTuple):
    """What takes rows of [X y] to the solved rows of a fold.

    All comes from the fold's training rows, but for a scale of all rows
    (``RowFolds.scales_by_training_rows``).

    scale, shape (p + 1,): Divisors of the columns, once they are filled and centred, and of y.
    fill, shape (p + 1,): What missing values are filled with; None without missing values.
    means, shape (p + 1,) each: Means in two parts; empty where the intercept is not refitted.
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
    """The leave-one-out folds as rows that are deleted from the full problem.

    Deleting row i of these rows and targets from the full problem gives the training problem
    without row i of the table, and √(row i's weighted held-out error) = factor i times the residual
    of the deleted row.

    rows, targets, factor, shape (n, p), (n,) and (n,): One entry for every row of the table.
    row_of, shape (n,): The row that every fold holds out.
    """

    rows: Array
    targets: Array
    factor: Array
    row_of: Index


class FoldData(ABC):
    """Training problems and held-out rows of k folds, in the units of the solved columns.

    p: Number of columns that models choose from.
    constraints: What models must obey; sizes count units of columns.
    fold_weight, shape (k,): Number of rows of every fold, or the sum of their weights.
    fold_of, or None: Fold of every unit that :meth:`one_fold` takes; a unit is a row, or a whole
        fold where rows are not in memory. None where folds share rows.
    refit_intercept: Whether every fold subtracts the means of its own training rows.
    raw: X and y in the user's units, from which folds of other rows can be made; None where rows
        are not in memory, and once the data are released.
    deleted_rows: The leave-one-out folds as deleted rows; None where ``deletes_rows`` is false.
    """

    raw: tuple[Array, Array] | None = None
    deleted_rows: DeletedRows | None = None
    folds: Folds
    p: int
    constraints: UnitConstraints
    fold_weight: Array
    fold_of: Index | None
    refit_intercept: bool

    @abstractmethod
    def rows_for(self, what: str) -> RowFolds:
        """The same folds with their rows in memory, for what needs single rows.

        what: What needs the rows, as subject and verb of a message.
        Raises InputError: The rows are not in memory.
        """

    @property
    def unweighted_rows(self) -> tuple[Array, Array] | None:
        """X and y in solved units, without weights or missing values; None where there are none."""
        return None

    @property
    @abstractmethod
    def has_inner_folds(self) -> bool:
        """Whether the training rows of every fold can be divided into folds by :meth:`one_fold`."""

    @property
    def n_units(self) -> int:
        """Number of columns, or groups of columns that count once, that models choose from."""
        return self.constraints.n_units

    @property
    def plain(self) -> bool:
        """Whether nothing is asked of the columns."""
        return self.constraints.plain

    @property
    def total(self) -> float:
        """Sum of ``fold_weight``: the CV error is the sum of squared errors divided by it."""
        return float(self.fold_weight.sum())

    @property
    def n(self) -> int:
        """Number of rows of weight above 0; a row of weight 0 counts as no row."""
        return self.folds.n

    @cached
    def rounding(self) -> float:
        """What rounding may leave of the CV error of a perfect fit: n·EPS of the mean of y²."""
        return self.n * EPS * self.full().yy / self.total

    @property
    def weight(self) -> float:
        """The sum of the weights of all rows, which is their number where rows have no weights."""
        return self.total

    def training_weight(self, j: int) -> float:
        """The sum of the weights of the rows that fold j trains on."""
        return self.weight - float(self.fold_weight[j])

    @property
    def scales_by_training_rows(self) -> bool:
        """Whether every fold scales its columns by its training rows alone."""
        return False

    @property
    def deletes_rows(self) -> bool:
        """Whether the folds are rows in memory that leave out one row each, and change no other."""
        return False

    @property
    def tree_deletes_rows(self) -> bool:
        """Whether a tree of all sizes can delete the rows of all leave-one-out folds.

        It needs more than p + 2 rows: with fewer rows fits interpolate, and deleting a row from an
        interpolating fit cancels all digits. The tree serves no bounds on coefficients.
        """
        return self.deletes_rows and self.folds.n > self.p + 2

    def left_out(self, problem: SparseRidgeProblem) -> LeftOut | None:
        """The folds as rows left out of the full problem at some γ; None where they cannot be."""
        return None

    def covers(self, j: int) -> bool:
        """Whether the training and held-out rows of fold j are the rows of the full problem."""
        return self.folds.covers(j)

    @abstractmethod
    def full(self) -> SparseRidgeProblem:
        """The problem of all rows, with placeholders for γ and τ."""

    @abstractmethod
    def training(self, j: int) -> SparseRidgeProblem:
        """The problem of the rows outside fold j, with placeholders for γ and τ."""

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

        same: The result for the same training units and others held out, or None.
        """

    def release(self) -> None:
        """Drop what can be computed again, to free its memory."""
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

    X, y, shape (n, p) and (n,): Rows in solved units (``Design.apply``), up to ``scale``. They are
        not copied where they are all columns of one array, and may not change then.
    refit_intercept: Whether every fold subtracts the means of its own training rows.
    weights, shape (n,), optional: Weights >= 0 of the squared errors, in training and held out: a
        whole number counts as that many copies of a row that stay in one fold.
    scale, shape (p,), optional: Divisors of the columns once they are centred, but for folds that
        have divisors of their own (:attr:`scales_by_training_rows`).
    constraints: What is asked of the columns of X, in solved units.
    missing: "mean" where X may hold NaN: every fold fills them from its own training
        rows, in training and held out.
    """

    # The design of the rows, by which some folds scale their columns; None where no fold does.
    design: Design | None = None

    def __init__(
        self,
        X: Array,
        y: Array,
        folds: Folds,
        refit_intercept: bool,
        weights: Array | None = None,
        scale: Array | None = None,
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
        self.refit_intercept, self.weights = refit_intercept, weights
        self._scale = np.append(np.ones(self.p) if scale is None else scale, 1.0)
        self._lay_out(folds)

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

        Every fold is centred on its own training rows where the design's protocol says so.
        """
        protocol, asked = design.protocol, design.constraints
        if protocol.name == "honest":
            scale, columns, refit = design.scale[:-1], design.columns(X), protocol.refit_intercept
            made = cls(columns, y, folds, refit, weights, scale, asked, missing)
            made.design = None if protocol.scale == "none" else design
        else:
            rows = design.apply(X, y)
            made = cls(*rows, folds, False, weights, constraints=asked, missing=missing)
        made.raw = X, y
        return made

    def rows_for(self, what: str) -> RowFolds:
        """These folds, whose rows are in memory."""
        return self

    @property
    def unweighted_rows(self) -> tuple[Array, Array] | None:
        """X and y in solved units; None where rows have weights or values are missing."""
        if self.weights is not None or self.missing is not None:
            return None
        return self.X, self.y

    @property
    def has_inner_folds(self) -> bool:
        """Whether training rows can be divided into folds: they can, whatever their number."""
        return True

    @property
    def asked(self) -> ResolvedRules | None:
        """What is asked of the columns X; None where nothing is."""
        return None if self.plain else ResolvedRules(self.constraints)

    def _lay_out(self, folds: Folds) -> None:
        """Take other folds, of which nothing is computed yet."""
        self.folds, self.fold_of, counts = folds, folds.label, self._counts
        if folds.label is not None:
            sums = np.bincount(folds.label, counts, minlength=folds.k)
            self.fold_weight = sums.astype(np.float64)
        else:
            self.fold_weight = np.array([counts[test].sum() for _, test in folds.pairs])
        if self.weights is not None and folds.holds_out:
            self.folds.check_weights(self.weights > 0.0)
        self._origins: dict[int, Origin] = {}
        self._problems: dict[int, SparseRidgeProblem] = {}
        self._held_out: dict[int, tuple[Array, Array]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process gets the rows, and makes again what is derived from the rows."""
        derived = {"raw", "_solved", "_full", "_moments", "deleted_rows"}
        kept = {name: value for name, value in self.__dict__.items() if name not in derived}
        return kept | {"_problems": {}, "_held_out": {}}

    def count_partitions(self, most: int) -> int:
        """As many as are wanted where folds can be drawn again, else one."""
        return most if self.folds.redraws else 1

    def partition(self, number: int, seed: Any) -> RowFolds:
        """The same rows in folds that are drawn again."""
        return self.with_folds(self.folds.again(seed, number))

    def with_folds(self, folds: Folds) -> RowFolds:
        """The same rows in other folds."""
        other = RowFolds.__new__(RowFolds)
        other.__dict__.update(self.__dict__)  # Both objects share the arrays.
        for name in ("deleted_rows", "_moments"):
            other.__dict__.pop(name, None)
        other._lay_out(folds)
        return other

    def one_fold(self, train: Index, test: Index, same: FoldData | None = None) -> RowFolds:
        """A single fold that trains on some rows and holds out others.

        The scale of its columns is that of all rows where these folds have that scale.
        """
        sizes = np.array([test.size], dtype=np.intp)
        made = self.with_folds(Folds("custom", self.folds.n, sizes, None, [(train, test)]))
        made.design = self.design if self.scales_by_training_rows else None
        vars(made)["_moments"] = self._moments
        if same is not None:
            known = same.rows_for("a fold needs")
            made._problems, made._origins = known._problems, known._origins
        return made

    @property
    def n(self) -> int:
        """Number of rows of weight above 0."""
        return len(self.given) if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def weight(self) -> float:
        """The sum of the weights of all rows, which is their number where rows have no weights."""
        return float(self._counts.sum())

    def training_weight(self, j: int) -> float:
        """The sum of the weights of the rows that fold j trains on."""
        train, _ = self.folds.split(j)
        return float(self._counts[train].sum())

    @property
    def _counts(self) -> Array:
        """The weight of every row, which is 1 where rows have no weights."""
        return np.ones(len(self.given)) if self.weights is None else self.weights

    @property
    def deletes_rows(self) -> bool:
        """Whether the folds leave one row out each, and train on the other rows as they are.

        Fits without a row follow from those with all rows where coefficients have no bounds.
        """
        single = self.folds.leave_one_out and self.missing is None
        return single and not self.constraints.bounded

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing."""
        return self.missing is not None and bool(np.isnan(self.given).any())

    def covers(self, j: int) -> bool:
        """Whether fold j trains on every row that it does not hold out, as all rows have it."""
        same = self.missing is None and not self.scales_by_training_rows
        return same and self.folds.covers(j)

    @property
    def scales_by_training_rows(self) -> bool:
        """Whether every fold divides its columns by the scale of its training rows, not of all.

        Folds do where the training and held-out rows of some fold are not all rows, as where folds
        are in order of time: later rows would otherwise decide how strong the penalty is.
        """
        return self.design is not None and not self.folds.all_rows

    def _move_training(
        self, rows: Array, numbers: Index | slice, by_training_rows: bool = False
    ) -> Origin:
        """Fill, centre and scale training rows in place, from these rows alone but for a scale.

        rows: A copy of the training rows of [X y].
        numbers: Their places in the table.
        by_training_rows: Whether the scale is that of these rows, whose weights then are above 0.
        Returns: What does the same to other rows.
        """
        origin = Origin(self._scale)
        weights = None if self.weights is None else self.weights[numbers]
        if self.missing is not None:
            values = fill_values(self.given, self.weights, numbers)
            fill(rows, values)
            origin = origin._replace(fill=values)
        if by_training_rows:
            assert self.design is not None
            own = Summary.of_rows(rows, weights).scale(self.design.protocol)
            origin = origin._replace(scale=own)
        if self.refit_intercept:
            origin = origin._replace(means=centre(rows, weights))
        rows /= origin.scale
        return origin

    def _moved(self, numbers: Index, origin: Origin) -> Array:
        """Rows of [X y] about the means of training rows, in solved units."""
        rows: Array = self.given[numbers]
        origin.move(rows)
        return rows

    @cached
    def _solved(self) -> Array:
        """All rows of [X y] in solved units, about the means of all rows, shape (n, p + 1)."""
        if not self.refit_intercept and self.missing is None and (self._scale == 1.0).all():
            return self.given
        rows: Array = self.given.copy()
        self._move_training(rows, slice(None))
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

    @cached
    def _full(self) -> SparseRidgeProblem:
        if self._reduces(self.n):
            return self._problem_of(*self._reduced(np.arange(len(self.given))))
        data = Rows(self._weighted(self._solved), shared=True)
        problem = self._problem_of(data, Origin(self._scale))
        if len(data.rows) < len(self.given):  # The problem has a triangle of its own.
            vars(self).pop("_solved", None)
        if self.weights is not None:  # A row of weight 0 is a row of zeros here.
            problem.data.n = problem.n = self.n
        return problem

    @cached
    def _moments(self) -> RowMoments:
        """Moments of any of the rows; what folds have in common is computed once."""
        return RowMoments(self.given, self.weights, self.folds.label)

    def _reduces(self, n: int) -> bool:
        """Whether the problem of n training rows is made from moments, and not from its rows.

        Many rows are, where no fold fills values or scales columns in a way of its own.
        """
        own = self.missing is not None or self.scales_by_training_rows
        return is_long(n, self.p + 1) and not own

    def _reduced(self, numbers: Index) -> tuple[Rows, Origin]:
        """The table of many training rows, which have these numbers, and what moves other rows.

        Rows of weight 0 are among the numbers.
        """
        moments, origin = self._moments.of(numbers), Origin(self._scale)
        if self.refit_intercept:
            origin = origin._replace(means=(moments.mean, moments.tail))
        else:
            moments = moments.about(np.zeros(self.p + 1))
        return moments.data(origin.scale), origin

    def _problem_of(self, data: Rows, origin: Origin) -> SparseRidgeProblem:
        """The problem of a table in solved units, which its origin has made."""
        constraints = self.constraints
        if constraints.bounded and origin.scale is not self._scale:  # Bounds are in solved units.
            assert self.design is not None
            constraints = replace(self.design, scale=origin.scale).constraints
        return SparseRidgeProblem.from_rows(data, constraints=constraints)

    def full(self) -> SparseRidgeProblem:
        """The problem of all rows, which are centred where an intercept is fitted."""
        return self._full

    def _made(self, j: int) -> SparseRidgeProblem:
        """Make the training problem of fold j, and keep the origin of its rows."""
        every, _ = self.folds.split(j)
        train = every if self.weights is None else every[self.weights[every] > 0.0]
        if self._reduces(train.size):
            data, origin = self._reduced(every)
        else:
            rows = self.given[train]
            origin = self._move_training(rows, train, self.scales_by_training_rows)
            data = Rows(self._weighted(rows, train), shared=True)
        self._origins[j] = origin
        return self._problem_of(data, origin)

    def training(self, j: int) -> SparseRidgeProblem:
        """Rows outside fold j, about their own means where the intercept is refitted."""
        if j in self._problems:
            return self._problems[j]
        if not self._keeps_problems:
            self._drop_full()  # Its rows are a table of their own.
        problem = self._made(j)
        if self._keeps_problems:
            self._problems[j] = problem
        return problem

    def without(self, rows: Index) -> SparseRidgeProblem:
        """The problem of all rows but some, centred, scaled and filled by the rows that are left.

        A fit to a table that lacks these rows has this problem.
        """
        return self.without_each([rows])._made(0)

    def without_each(self, parts: Sequence[Index]) -> RowFolds:
        """Folds whose problems are those of all rows but one of these parts."""
        every, none = np.arange(len(self.given)), np.empty(0, dtype=np.intp)
        # Folds that train on some rows, and hold out none, scale columns by their training rows.
        pairs = [(np.setdiff1d(every, rows), none) for rows in parts]
        sizes = np.zeros(len(parts), dtype=np.intp)
        return self.with_folds(Folds("custom", every.size, sizes, None, pairs))

    def lengths(self, j: int) -> Array:
        """What fold j divides columns by, over what those of all rows are divided by, (p,)."""
        return np.asarray(self._origin(j).scale[:-1] / self._scale[:-1])

    @cached
    def scatter_shares(self) -> Array:
        """What each row adds to the scatter of a column about its mean, as a share, shape (n, p).

        The shares are 0 where columns are not scaled, and of columns of a single value. Values may
        not be missing.
        """
        columns = self.given[:, :-1].copy()
        if self.design is None:
            return np.zeros(columns.shape)
        centre(columns, self._counts)
        squares = self._counts[:, None] * columns**2
        total = squares.sum(axis=0)
        return np.asarray(squares / np.where(total > 0.0, total, 1.0))

    @property
    def row_shares(self) -> Array:
        """The weight of every row as a share of all weights, shape (n,)."""
        return self._counts / self.weight

    def _drop_full(self) -> None:
        """Drop the problem of all rows, which can be made again."""
        for name in ("_full", "_solved"):
            self.__dict__.pop(name, None)

    @property
    def _keeps_problems(self) -> bool:
        """Whether the training problems of all folds and that of all rows may be kept."""
        size = 8 * min(len(self.given), self.p + 1) * (self.p + 1)
        return (self.folds.k + 1) * size <= MAX_BYTES_OF_PROBLEMS

    def held_out(self, j: int) -> tuple[Array, Array]:
        """Held-out rows and targets, about the training means where the intercept is refitted.

        A row of weight 0 is a row of zeros. Many rows are reduced to the triangle of their QR
        factors, which gives the same squared error for every β. Short arrays are kept for the next
        call: nobody may change them.
        """
        if j in self._held_out:
            return self._held_out[j]
        _, test = self.folds.split(j)
        origin = self._origin(j)
        rows = self._weighted(self._moved(test, origin), test)
        if is_long(*rows.shape) and rows.nbytes * self.folds.k > MAX_BYTES_OF_UNREDUCED_ROWS:
            rows = triangle_of(rows)
        found = split_rows(rows)
        if rows.nbytes * self.folds.k <= MAX_BYTES_OF_HELD_OUT_ROWS:
            self._held_out[j] = found
        return found

    def _origin(self, j: int) -> Origin:
        """What takes rows of [X y] to the solved rows of fold j."""
        derived = self.refit_intercept or self.missing is not None
        if not (derived or self.scales_by_training_rows):
            return Origin(self._scale)
        if j not in self._origins:
            self._made(j)
        return self._origins[j]

    def raw_model(self, design: Design, j: int, beta: Array) -> tuple[Array, float, Array]:
        """Map a model of fold j's training problem to the units of the table.

        design: What the rows were made with.
        beta, shape (p,): Coefficients of the problem's columns.
        Returns: Coefficients of raw columns, shape (p_raw,), the intercept, and the errors of the
            model on the rows that fold j holds out.
        """
        origin = self._origin(j)
        scale = None if design.protocol.name == "paper" else origin.scale
        coef, intercept = design.coefficients(beta, scale)
        if self.refit_intercept:
            means = (mean[-1] - mean[:-1] @ coef[design.kept] for mean in origin.means)
            intercept = float(sum(means))
        _, test = self.folds.split(j)
        rows = self._moved(test, origin)
        return coef, intercept, (rows[:, -1] - rows[:, :-1] @ beta) * design.y_scale

    def release(self) -> None:
        """Forget the user's arrays, and drop what can be computed again from the rows."""
        self._problems.clear()
        self._held_out.clear()
        if not self._keeps_problems:
            self._drop_full()
        for name in ("raw", "_solved", "_moments", "deleted_rows"):
            self.__dict__.pop(name, None)

    def _content(self) -> Iterable[Array]:
        yield self.given
        yield self._scale
        if self.weights is not None:
            yield self.weights

    @cached
    def deleted_rows(self) -> DeletedRows | None:
        """The leave-one-out folds as deleted rows; None where folds hold out other rows.

        With an intercept refitted in every fold, deleting row i of weight w from centred data of
        weight W is a down-date by √(wW/(W − w)) times the centred row.
        """
        if not self.deletes_rows:
            return None
        assert self.folds.label is not None
        rows, counts = self._weighted(self._solved), self._counts
        factor = np.ones(len(rows))
        if self.refit_intercept:
            factor = np.sqrt(counts.sum() / (counts.sum() - counts))
            rows = factor[:, None] * rows
        return DeletedRows(*split_rows(rows), factor, np.argsort(self.folds.label, kind="stable"))

    def left_out(self, problem: SparseRidgeProblem) -> LeftOut | None:
        """The folds as rows left out of the full problem at some γ.

        There are none where the folds are no partition, or values are missing.

        With an intercept refitted in every fold, centring on the training means is a rank-one
        change: the sum s of fold j's centred rows is left out as one more row s/√(W − w), with the
        weight W of all rows and the weight w of the fold. A fold of a single row has that row
        scaled instead.
        """
        if self.folds.label is None or self.missing is not None:
            return None
        n = len(self.given)
        if (deleted := self.deleted_rows) is not None:
            order, each = deleted.row_of, np.arange(n + 1, dtype=np.int64)
            return LeftOut.of(problem, deleted.rows[order], deleted.targets[order], each, n)
        weighted, parts = self._weighted(self._solved), []
        for j, weight in enumerate(self.fold_weight):
            held = self.folds.label == j
            part = weighted[held]
            if self.refit_intercept:
                total = self._counts[held] @ self._solved[held]
                part = np.vstack([part, total / np.sqrt(self.total - weight)])
            parts.append(part)
        start = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return LeftOut.of(problem, *split_rows(np.vstack(parts)), start, n)


def split_rows(rows: Array) -> tuple[Array, Array]:
    """X and y of rows of [X y], each in a contiguous array."""
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])
