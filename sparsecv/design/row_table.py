"""Rows of a table in memory: what is filled in, subtracted and divided before they are solved.

Solved rows are rows of [X y] once missing values are filled and the columns are centred and scaled:
what a training problem is made of, and what its coefficients are multiplied with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..solvers.core.constraints import UnitConstraints
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.rows import Rows
from ..solvers.core.threads import cached
from ..tables.table import joined
from .design import Array, Design, Summary, centre
from .folds import Index
from .missing import fill, fill_values
from .moments import RowMoments

# Other processes and fitted estimators do without these attributes of RowTable. The first is the
# user's arrays. The others are large, and are computed again where they are asked for.
NOT_KEPT = ("raw", "_full", "scatter_shares")


class Origin(NamedTuple):
    """What takes rows of [X y] to solved rows: fill, then centre, then scale.

    Fill and means come from training rows. So does the scale where a fold has one of its own;
    elsewhere it is that of all rows.

    scale, shape (p + 1,): Divisors of the columns, once they are filled and centred, and of y.
    fill, shape (p + 1,): What missing values are filled with; None where no value may be missing.
    means: Two arrays of shape (p + 1,), whose sum is the mean (``design.centre``); empty where the
        intercept is not refitted.
    """

    scale: Array
    fill: Array | None = None
    means: tuple[Array, ...] = ()

    def of_columns(self, columns: Index) -> Origin:
        """What takes these columns of rows of [X y], in this order, to solved rows."""
        fill_with = None if self.fill is None else self.fill[columns]
        means = tuple(mean[columns] for mean in self.means)
        return Origin(self.scale[columns], fill_with, means)

    def move(self, rows: Array) -> None:
        """Fill, centre and scale rows of [X y], shape (m, p + 1), in place."""
        if self.fill is not None:
            fill(rows, self.fill)
        for mean in self.means:
            rows -= mean
        rows /= self.scale


class RowTable:
    """Rows of [X y] in memory, in the units that a design gives them, and their weights.

    No function changes the rows. Training problems are made of any of them. The attribute ``given``
    holds the rows as they came, shape (n, p + 1), and ``scale`` what rows are divided by where a
    fold has no scale of its own, shape (p + 1,).

    X, y, shape (n, p) and (n,): Rows in solved units (``Design.apply``), up to their scale. They
        are not copied where they are all columns of one array, and may not change then.
    refit_intercept: Whether the means of its own rows are subtracted from every training problem.
    weights, shape (n,), optional: Weights >= 0 of the squared errors, in training and held out: a
        whole number counts as that many copies of a row that stay in one fold.
    design, optional: What columns are divided by once they are centred: ``design.scale``, which all
        rows decide, or what the rule of the design makes of training rows. None divides by 1.
    constraints: What is asked of the columns of X, in solved units.
    missing: "mean" where X may hold NaN: every training problem fills them from its own rows.

    Raises ValueError: A value is infinite, or is NaN where none may be missing.
    """

    raw: tuple[Array, Array] | None = None  # X and y in the user's units; None once released

    def __init__(
        self,
        X: Array,
        y: Array,
        refit_intercept: bool = False,
        weights: Array | None = None,
        design: Design | None = None,
        constraints: UnitConstraints | None = None,
        missing: str | None = None,
    ) -> None:
        # Training rows are centred from the rows as they came. A shift by the mean of all rows
        # would leave rounding errors of the held-out rows in the training rows.
        self.given = joined(X, y)
        self.missing = missing
        finite = ~np.isinf(X) if missing else np.isfinite(X)
        if not (finite.all() and np.isfinite(y).all()):
            raise ValueError("X and y must be finite: remove or impute NaN and infinite values")
        self.constraints = constraints or UnitConstraints.none(self.given.shape[1] - 1)
        self.refit_intercept, self.weights, self.design = refit_intercept, weights, design
        width = self.given.shape[1]
        self.scale = np.ones(width) if design is None else design.scale

    @classmethod
    def of(
        cls,
        design: Design,
        X: Array,
        y: Array,
        weights: Array | None = None,
        missing: str | None = None,
    ) -> RowTable:
        """The table of raw rows X (n, p_raw), y (n,), which are not changed.

        By the protocol "honest" every fold centres its rows by its own training rows. By "paper"
        all rows are centred and scaled here, once, and folds change nothing.
        """
        protocol, honest = design.protocol, design.protocol.name == "honest"
        made = cls(
            *((design.columns(X), y) if honest else design.apply(X, y)),
            refit_intercept=protocol.refit_intercept,
            weights=weights,
            design=design if honest and protocol.scale != "none" else None,
            constraints=design.constraints,
            missing=missing,
        )
        made.raw = X, y
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Another process gets the rows, and computes again what it needs besides."""
        return {name: value for name, value in vars(self).items() if name not in NOT_KEPT}

    def release(self) -> None:
        """Forget the user's arrays, and free the memory of what can be computed again."""
        for name in NOT_KEPT:
            vars(self).pop(name, None)

    @property
    def p(self) -> int:
        """Number of columns of X."""
        return int(self.given.shape[1]) - 1

    @property
    def n(self) -> int:
        """Number of rows of weight above 0."""
        return len(self.given) if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def every(self) -> Index:
        """The numbers of all rows, those of weight 0 included."""
        return np.arange(len(self.given))

    @property
    def row_weights(self) -> Array:
        """The weight of every row, shape (n,); 1 where rows have no weights."""
        return np.ones(len(self.given)) if self.weights is None else self.weights

    @property
    def weight(self) -> float:
        """The sum of the weights of all rows, which is their number where rows have no weights."""
        return float(self.row_weights.sum())

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

    def solved_rows(self) -> Array:
        """All solved rows, shape (n, p + 1), about the means of all rows; nobody may change them.

        They are divided by the scale of all rows, also where folds have scales of their own.
        """
        if not self.refit_intercept and self.missing is None and (self.scale == 1.0).all():
            return self.given
        return self._solved(self.every, own_scale=False)[0]

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

    def moved(self, numbers: Index, origin: Origin, columns: Index | None = None) -> Array:
        """A copy of the rows of these numbers in the solved units of an origin.

        columns: The columns of [X y] that are copied; all by default.
        """
        if columns is None:
            rows: Array = self.given[numbers]
        else:
            rows, origin = self.given[np.ix_(numbers, columns)], origin.of_columns(columns)
        origin.move(rows)
        return rows

    def weighted(self, solved: Array, numbers: Index | slice = slice(None)) -> Array:
        """Solved rows times the roots of their weights, so that squared errors are weighted.

        numbers: Places of the rows in the table.
        """
        if self.weights is None:
            return solved
        return solved * np.sqrt(self.weights[numbers])[:, None]

    def problem(
        self, train: Index, own_scale: bool, moments: RowMoments
    ) -> tuple[SparseRidgeProblem, Origin]:
        """The problem of training rows at no γ and τ yet, and what takes other rows to its units.

        train: Numbers of the rows; rows of weight 0 may be among them, and count as no rows. Some
            row has a weight above 0.
        own_scale: Whether columns are divided by the scale of these rows, and not of all rows.
        moments: Those of any rows of this table.
        """
        counted = train if self.weights is None else train[self.weights[train] > 0.0]
        own = self.missing is not None or own_scale
        # Many rows are reduced to moments, where no values are filled and no columns are scaled in
        # a way of their own.
        if Rows.are_long(counted.size, self.p + 1) and not own:
            data, origin = self._reduced(train, moments)
        else:
            rows, origin = self._solved(counted, own_scale)
            data = Rows(self.weighted(rows, counted), shared=True)
        constraints = self.constraints
        if constraints.bounded and own_scale:  # Bounds are in solved units.
            assert self.design is not None
            constraints = replace(self.design, scale=origin.scale).constraints
        return SparseRidgeProblem.from_rows(data, constraints=constraints), origin

    def _reduced(self, train: Index, moments: RowMoments) -> tuple[Rows, Origin]:
        """Many training rows as a triangle in solved units, and what takes other rows there.

        The arguments are as of :meth:`problem`.
        """
        reduced, origin = moments.of(train), Origin(self.scale)
        if self.refit_intercept:
            origin = origin._replace(means=(reduced.mean, reduced.tail))
        else:
            reduced = reduced.about(np.zeros(self.p + 1))
        return reduced.data(origin.scale), origin

    def full(self, moments: RowMoments) -> SparseRidgeProblem:
        """The problem of all rows at no γ and τ yet, which is made once.

        moments: Those of any rows of this table.
        """
        full: SparseRidgeProblem | None = vars(self).get("_full")
        if full is None:  # Another thread may forget it again at any time.
            full = vars(self).setdefault(
                "_full", self.problem(self.every, own_scale=False, moments=moments)[0]
            )
        return full

    def forget_full(self) -> None:
        """Free the memory of the problem of all rows, which is made again where it is needed."""
        vars(self).pop("_full", None)

    def content(self) -> Iterable[Array]:
        """The rows as they came, their divisors and their weights."""
        yield self.given
        yield self.scale
        if self.weights is not None:
            yield self.weights


def split_rows(rows: Array) -> tuple[Array, Array]:
    """X and y of rows of [X y], each in a contiguous array."""
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])
