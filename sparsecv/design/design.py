"""The affine map from raw columns to the columns that are solved, and back to the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ConstantColumnWarning, InputError, warn_caller
from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.constraints import UnitConstraints
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.rows import Rows
from ..solvers.core.threads import cached
from ..tables.table import joined

Array = NDArray[np.float64]

PROTOCOLS = ("honest", "paper")
SCALES = ("unit-variance", "unit-norm", "none")
EPS = float(np.finfo(np.float64).eps)
# A column whose squared spread (squared units of the column) is below this number is refused, as
# the squares would lose digits to underflow. Squares keep all digits from the smallest normal
# number divided by EPS on. The factor 100 is a reserve.
LEAST_SQUARED_SPREAD = 100.0 * float(np.finfo(np.float64).tiny) / EPS
# A column counts as constant where its spread is at most this share (1e-14) of its largest absolute
# value: rounding a mean, and differences from the mean, leaves such a spread to a constant column.
# Rounding leaves a few EPS; the factor 45 is a choice that makes the share a round number.
CONSTANT_SPREAD_SHARE = 45.0 * EPS


@dataclass(frozen=True)
class Protocol:
    """How data are centred and scaled.

    name: With "honest" every fold refits the intercept, and y keeps its units. With "paper" y and
        the columns are centred and scaled once, on all rows, and folds have no intercept.
    scale: What columns are divided by: with "unit-variance" their standard deviation (ddof = 0),
        with "unit-norm" their length about the mean, with "none" nothing.
    intercept: With False, which only "honest" allows, neither columns nor y are centred.
    """

    name: str = "honest"
    scale: str = "unit-variance"
    intercept: bool = True

    def __post_init__(self) -> None:
        if self.name not in PROTOCOLS:
            raise InputError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {self.name!r}")
        if self.scale not in SCALES:
            raise InputError(f"scale must be one of {', '.join(SCALES)}; got {self.scale!r}")
        if self.name == "paper" and not self.intercept:
            raise InputError("the paper protocol centres the data: it needs an intercept")

    @property
    def refit_intercept(self) -> bool:
        """Whether each fold centres its training rows by their own mean."""
        return self.intercept and self.name == "honest"


def centre(rows: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Subtract the mean of every column, in place; return the two parts that were subtracted.

    There is at least one row.

    A mean beside an offset of 1e8 is rounded by 1e-8. The second part is the mean of what is left
    after the first, so that columns of a much smaller spread are centred to all their digits. A
    constant column's value takes the place of its mean, as rounding would leave small numbers.

    rows, shape (n, m): Their means become 0.
    weights, shape (n,), optional: Weights of the rows in a weighted mean.
    """
    constant = (rows == rows[0]).all(axis=0)
    mean = np.average(rows, axis=0, weights=weights)
    mean[constant] = rows[0, constant]
    rows -= mean
    tail = np.average(rows, axis=0, weights=weights)
    tail[constant] = 0.0
    rows -= tail
    return mean, tail


@dataclass(frozen=True)
class Summary:
    """What a design is made from: moments and extremes of the columns of n rows of [X y].

    All arrays have shape (p + 1,), and their last entry belongs to the response. ``scatter`` is the
    sum of squares about the mean; ``low`` and ``high`` are the smallest and largest value.

    total: Sum of the rows' weights, which is n where rows have no weights.
    """

    n: int
    mean: Array
    scatter: Array
    low: Array
    high: Array
    total: float

    @classmethod
    def of(cls, X: Array, y: Array, weights: Array | None = None) -> Summary:
        """Summarise rows X (n, p), y (n,) in memory; rows of weight 0 do not count."""
        rows = joined(X, y)
        if weights is None:
            return cls.of_rows(rows)
        counted = weights > 0.0
        return cls.of_rows(rows[counted], weights[counted])

    @classmethod
    def of_rows(cls, rows: Array, weights: Array | None = None) -> Summary:
        """Summarise rows of [X y], at least one, whose weights are above 0."""
        n, mean = len(rows), np.average(rows, axis=0, weights=weights)
        squares = rows - mean
        squares -= np.average(squares, axis=0, weights=weights)
        np.square(squares, out=squares)
        scatter = squares.sum(axis=0) if weights is None else weights @ squares
        total = float(n if weights is None else weights.sum())
        return cls(n, mean, scatter, rows.min(axis=0), rows.max(axis=0), total)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Whether a column holds a single value, up to rounding."""
        spread = np.sqrt(self.scatter / self.total)
        rounding = CONSTANT_SPREAD_SHARE * self.largest
        return np.asarray((self.low == self.high) | (spread <= rounding))

    @property
    def largest(self) -> Array:
        """Largest absolute value of every column."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))

    def scale(self, protocol: Protocol) -> Array:
        """What a protocol divides the p columns and the response by, shape (p + 1,).

        Columns that are constant are divided by 1, and so is the response of "honest".
        """
        squares = self.scatter / self.total if protocol.scale == "unit-variance" else self.scatter
        divisors = np.ones(squares.size) if protocol.scale == "none" else np.sqrt(squares)
        divisors[:-1][self.constant[:-1]] = 1.0
        if protocol.name == "honest":
            divisors[-1] = 1.0
        return np.asarray(divisors)


@dataclass(frozen=True)
class Design:
    """The affine map from raw columns to the columns that are solved.

    p_raw: Number of columns before the constant ones were left out.
    kept, shape (p,): Raw columns that are solved.
    shift, scale, shape (p + 1,): The solved values of the kept columns and of the response, which
        comes last, are (raw − shift) / scale.
    mean, shape (p + 1,): Means of the kept raw columns and of the response.
    spread, shape (p + 1,): Their standard deviations.
    total: Number of rows, or the sum of their weights.
    asked: What is asked of the raw columns; None where nothing is.
    """

    protocol: Protocol
    p_raw: int
    kept: NDArray[np.intp]
    shift: Array
    scale: Array
    mean: Array
    spread: Array
    total: float
    asked: ResolvedRules | None = None

    @property
    def p(self) -> int:
        """Number of columns that are solved."""
        return int(self.kept.size)

    @cached
    def constraints(self) -> UnitConstraints:
        """What is asked of the solved columns: bounds on coefficients are in solved units."""
        if self.asked is None:
            return UnitConstraints.none(self.p)
        own = self.asked.constraints.restricted(self.kept)
        return own.scaled(self.scale[:-1] / self.y_scale)

    @property
    def n_units(self) -> int:
        """The number of units, columns and groups of columns, that may be in a model."""
        return int(np.sum(~self.constraints.exclude))

    @property
    def largest_size(self) -> int:
        """The largest size of a model: of columns and groups, or of coefficients (``counts``)."""
        return self.constraints.max_size

    @property
    def counts(self) -> str:
        """What a size counts, as a word: coefficients, where a group may count more than once."""
        return "coefficient" if self.constraints.weighted else "feature"

    @property
    def y_scale(self) -> float:
        """The raw response is this number times the solved response, plus ``y_shift``."""
        return float(self.scale[-1])

    @property
    def y_shift(self) -> float:
        """The raw response where the solved response is 0."""
        return float(self.shift[-1])

    @property
    def raw_spread(self) -> Array:
        """Standard deviations of all raw columns, shape (p_raw,); 0 for those left out."""
        found = np.zeros(self.p_raw)
        found[self.kept] = self.spread[:-1]
        return found

    def columns(self, X: Array) -> Array:
        """The kept columns of raw rows; X itself where all columns are kept."""
        return X if self.p == self.p_raw else X[:, self.kept]

    def apply(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Map raw rows, shape (n, p_raw) and (n,), to the solved units, shape (n, p) and (n,)."""
        solved = (self.columns(X) - self.shift[:-1]) / self.scale[:-1]
        return solved, (y - self.y_shift) / self.y_scale

    def problem(
        self, X: Array, y: Array, weights: Array | None = None, shared: bool = True
    ) -> SparseRidgeProblem:
        """The training problem of raw rows X (n, p_raw), y (n,), with placeholders for γ and τ.

        weights, shape (n,), optional: A row's squared error is multiplied by its weight >= 0, and
            some weight is above 0.
        shared: Whether problems at several γ or τ are made of it.
        """
        rows = np.column_stack([self.columns(X), y])
        if self.protocol.intercept:
            centre(rows, weights)
        rows /= self.scale
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        data = Rows(rows, shared=shared)
        return SparseRidgeProblem.from_rows(data, constraints=self.constraints)

    def coefficients(self, beta: Array, scale: Array | None = None) -> tuple[Array, float]:
        """Map coefficients of solved columns (p,) to coefficients of raw columns and an intercept.

        scale, shape (p + 1,): What the columns of β's problem were divided by, in its first p
            entries; by default ``scale`` of the design, which all rows decide.
        The first result has shape (p_raw,); columns that were left out have coefficient 0. Bounds
        hold in the units of the raw columns, where rounding would exceed them.
        """
        coef = np.zeros(self.p_raw)
        coef[self.kept] = beta * (self.y_scale / (self.scale if scale is None else scale)[:-1])
        if self.asked is not None:
            bounds = self.asked.constraints
            coef = np.clip(coef, bounds.lower, bounds.upper)
        if not self.protocol.intercept:
            return coef, 0.0
        return coef, float(self.mean[-1] - self.mean[:-1] @ coef[self.kept])


def make_design(
    summary: Summary,
    protocol: Protocol,
    names: Sequence[str],
    *,
    warn: bool = True,
    asked: ResolvedRules | None = None,
) -> Design:
    """Choose shifts and scales; columns that cannot matter are left out with a warning.

    With an intercept the constant columns cannot matter. Without an intercept a constant column can
    be selected in place of one: it is not divided, and only columns of zeros are left out.

    summary: Moments and extremes of all rows.
    names: Names of the raw columns, for messages.
    warn: False where the rows are a part of the data, in which a column may happen to be constant.
    asked: Constraints of the raw columns.
    Raises InputError: There are fewer than 2 rows, no column is left, values cannot be squared, the
        response is constant in the protocol "paper", or what is asked needs a column that is left
        out.
    """
    if summary.n < 2:
        raise InputError(f"at least 2 rows are needed; there is {summary.n} (n_samples = 1)")
    p, kept, constant = len(names), _varying(summary, protocol, names, warn), summary.constant
    # The arrays of the summary end with the response. Sums of n products of values are to stay
    # finite.
    wild = np.flatnonzero(~np.isfinite(summary.scatter * max(1.0, float(summary.n))))
    if wild.size:
        name = _called(names, int(wild[0]))
        raise InputError(f"{name} holds values too large to square: rescale it")
    if protocol.name == "paper" and constant[-1]:
        raise InputError("the response is constant: the paper protocol cannot scale it")
    if asked is not None and asked.constraints.plain:
        asked = None
    if asked is not None:
        # This is called for its error: perhaps every column that may enter a model is constant.
        asked.constraints.restricted(kept)
    solved = np.append(kept, p)  # The columns that are solved, and the response.
    return Design(
        protocol=protocol,
        p_raw=p,
        kept=kept,
        shift=summary.mean[solved] if protocol.intercept else np.zeros(solved.size),
        scale=summary.scale(protocol)[solved],
        mean=summary.mean[solved],
        spread=np.sqrt(summary.scatter / summary.total)[solved],
        total=summary.total,
        asked=asked,
    )


def _called(names: Sequence[str], column: int) -> str:
    """What messages call a column of [X y]."""
    return "the response" if column == len(names) else f"column {names[column]!r}"


def _varying(
    summary: Summary, protocol: Protocol, names: Sequence[str], warn: bool
) -> NDArray[np.intp]:
    """Numbers of the columns that can be selected; a warning names those that cannot.

    Another warning says that the response is constant, where each fold fits an intercept. Constant
    is a column of a single value up to rounding. A faint one varies by more than rounding and by so
    little that its squares lose digits.

    warn: Whether there are warnings.
    Raises InputError: A column is faint, or none can be selected.
    """
    p, constant = len(names), summary.constant
    spread = summary.high - summary.low if protocol.intercept else summary.largest
    with np.errstate(over="ignore", under="ignore"):
        faint = (spread > CONSTANT_SPREAD_SHARE * summary.largest) & (
            spread**2 < LEAST_SQUARED_SPREAD
        )
    if faint.any():
        name = _called(names, int(faint.argmax()))
        raise InputError(f"{name} holds values too small to square: rescale it")
    useless = constant if protocol.intercept else summary.largest == 0.0
    what = "constant" if protocol.intercept else "all-zero"
    dropped = np.flatnonzero(useless[:p])
    if dropped.size == p:
        raise InputError(f"every feature column is {what}: there is nothing to select from")
    if dropped.size and warn:
        listed = ", ".join(repr(names[c]) for c in dropped[:8])
        plural, more = "s" * (dropped.size > 1), ", …" * (dropped.size > 8)
        warn_caller(f"{what} column{plural} dropped: {listed}{more}", ConstantColumnWarning)
    if constant[-1] and protocol.refit_intercept and warn:
        text = f"the response is {summary.low[-1]:g} in every row: there is nothing to explain"
        warn_caller(text, ConstantColumnWarning)
    return np.flatnonzero(~useless[:p]).astype(np.intp)
