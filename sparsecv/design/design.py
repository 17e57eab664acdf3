"""From raw columns to the design the papers assume, and back to the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ConstantColumnWarning, InputError, warn_caller

Array = NDArray[np.float64]

PROTOCOLS = ("honest", "paper")
SCALES = ("unit-variance", "unit-norm", "none")
_LEAST_SQUARE = 1e-290  # squares below have lost digits to underflow


@dataclass(frozen=True)
class Protocol:
    """How data are centred and scaled.

    name: "honest": the intercept is refitted in every fold, y keeps its units. "paper": y and
        columns are centred and scaled once, on all rows, and folds have no intercept.
    scale: "unit-variance" (ddof = 0), "unit-norm" or "none".
    intercept: False: nothing is centred (honest only).
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
        """Whether each fold centres on its own training rows."""
        return self.intercept and self.name == "honest"


@dataclass(frozen=True)
class Summary:
    """First and second moments of n rows of [X y]; the last entry belongs to y.

    ``scatter`` is the sum of squares about the mean, ``low`` and ``high`` the extremes; ``total``
    is the sum of the rows' weights, n where they have none.
    """

    n: int
    mean: Array
    scatter: Array
    low: Array
    high: Array
    weight: float | None = None

    @classmethod
    def of(cls, X: Array, y: Array, weights: Array | None = None) -> Summary:
        """Summarise rows in memory; those of weight 0 do not count.

        X, y, shape (n, p) and (n,).
        weights, shape (n,), optional.
        """
        if weights is not None:
            used = weights > 0.0
            X, y, weights = X[used], y[used], weights[used]
        mean = np.append(np.average(X, axis=0, weights=weights), np.average(y, weights=weights))
        centred = np.column_stack([X - mean[:-1], y - mean[-1]])
        centred -= np.average(centred, axis=0, weights=weights)  # what rounding took off the mean
        squares = centred**2
        scatter = squares.sum(axis=0) if weights is None else weights @ squares
        low = np.append(X.min(axis=0), y.min())
        high = np.append(X.max(axis=0), y.max())
        total = None if weights is None else float(weights.sum())
        return cls(X.shape[0], mean, scatter, low, high, total)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.n) if self.weight is None else self.weight

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Columns that hold one value, up to rounding."""
        spread = np.sqrt(self.scatter / self.total)
        return np.asarray((self.low == self.high) | (spread <= 1e-14 * self.largest))

    @property
    def largest(self) -> Array:
        """Largest absolute value of every column."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))


@dataclass(frozen=True)
class Design:
    """The affine map from raw columns to the columns that are solved.

    p_raw: Columns before constant ones were left out.
    kept, shape (p,).
    x_shift, x_scale, shape (p,).
    y_shift, y_scale: Solved values are (raw − shift) / scale.
    x_mean, y_mean: Means of the kept raw columns and of y.
    """

    protocol: Protocol
    p_raw: int
    kept: NDArray[np.intp]
    x_shift: Array
    x_scale: Array
    y_shift: float
    y_scale: float
    x_mean: Array
    y_mean: float

    @property
    def p(self) -> int:
        """Columns that are solved."""
        return int(self.kept.size)

    def apply(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Map raw rows (n, p_raw), (n,) to the solved ones (n, p), (n,).

        X, y, shape (n, p_raw) and (n,).
        Returns X, y, shape (n, p) and (n,).
        """
        columns = X if self.kept.size == self.p_raw else X[:, self.kept]
        return (columns - self.x_shift) / self.x_scale, (y - self.y_shift) / self.y_scale

    def coefficients(self, beta: Array) -> tuple[Array, float]:
        """Map solved coefficients (p,) to raw ones (p_raw,) and the intercept.

        beta, shape (p,).
        Returns coef, shape (p_raw,): 0 for columns that were dropped.
        """
        coef = np.zeros(self.p_raw)
        coef[self.kept] = beta * (self.y_scale / self.x_scale)
        if not self.protocol.intercept:
            return coef, 0.0
        return coef, float(self.y_mean - self.x_mean @ coef[self.kept])


def weighted_rows(X: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Rows times the roots of their weights.

    X, y, shape (n, p) and (n,).
    weights, shape (n,).
    """
    root = np.sqrt(weights)
    return X * root[:, None], y * root


def make_design(
    summary: Summary, protocol: Protocol, names: Sequence[str], *, warn: bool = True
) -> Design:
    """Choose shifts and scales; columns that cannot matter are dropped with a warning.

    With an intercept those are the constant columns. Without one a constant column is a level
    that can be selected: it keeps its scale, and only columns of zeros are dropped.

    summary: Of all rows.
    names: One per raw column, for messages.
    warn: False where a part of the data is mapped: what it lacks the whole may have.
    Raises InputError: Fewer than 2 rows, no column left, values that cannot be squared, or (paper
        protocol) a constant response.
    """
    if summary.n < 2:
        raise InputError(f"at least 2 rows are needed; there is {summary.n} (n_samples = 1)")
    p, kept = len(names), _varying(summary, protocol, names, warn)
    mean, scatter = summary.mean, summary.scatter
    wild = np.flatnonzero(~np.isfinite(scatter * max(1.0, float(summary.n))))
    if wild.size:
        name = repr(names[wild[0]]) if wild[0] < p else "of the response"
        raise InputError(f"column {name} holds values too large to square: rescale it")
    rows = {"unit-variance": summary.total, "unit-norm": 1.0}.get(protocol.scale)
    scale = np.ones(p + 1) if rows is None else np.sqrt(scatter / rows)
    scale[:p][summary.constant[:p]] = 1.0
    if protocol.name == "paper":
        if summary.constant[p]:
            raise InputError("the response is constant: the paper protocol cannot scale it")
        y_scale = float(scale[p])
    else:
        y_scale = 1.0
    centre = mean if protocol.intercept else np.zeros(p + 1)
    return Design(
        protocol,
        p,
        kept,
        centre[kept],
        scale[kept],
        float(centre[p]),
        y_scale,
        mean[kept],
        float(mean[p]),
    )


def _varying(
    summary: Summary, protocol: Protocol, names: Sequence[str], warn: bool
) -> NDArray[np.intp]:
    """Columns that can be selected; those that cannot, and a constant response, are pointed out."""
    p, constant = len(names), summary.constant
    spread = summary.high - summary.low if protocol.intercept else summary.largest
    with np.errstate(over="ignore", under="ignore"):
        faint = (spread > 1e-14 * summary.largest) & (spread**2 < _LEAST_SQUARE)
    if faint.any():
        column = int(faint.argmax())
        name = f"column {names[column]!r}" if column < p else "the response"
        raise InputError(f"{name} holds values too small to square: rescale it")
    useless = constant if protocol.intercept else summary.largest == 0.0
    what = "constant" if protocol.intercept else "all-zero"
    dropped = np.flatnonzero(useless[:p])
    kept = np.flatnonzero(~useless[:p]).astype(np.intp)
    if kept.size == 0:
        raise InputError(f"every feature column is {what}: there is nothing to select from")
    said = []
    if dropped.size:
        listed = ", ".join(repr(names[c]) for c in dropped[:8])
        plural, more = "s" * (dropped.size > 1), ", …" * (dropped.size > 8)
        said.append(f"{what} column{plural} dropped: {listed}{more}")
    if constant[p] and protocol.intercept and protocol.name == "honest":
        least = summary.low[p]
        said.append(f"the response is {least:g} in every row: there is nothing to explain")
    for text in said if warn else []:
        warn_caller(text, ConstantColumnWarning)
    return kept
