"""The models of all folds with their held-out residuals, and the prediction intervals they give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Array = NDArray[np.float64]
# A rank that rounding leaves above a whole number by no more than this counts as that number.
WHOLE_TOLERANCE = 1e-9


def checked_coverage(coverage: Any) -> float:
    """A coverage, once it is known to be a number between 0 and 1.

    Raises InputError: It is none.
    """
    known = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not (known and 0.0 < coverage < 1.0):
        raise InputError(f"coverage must be a number between 0 and 1; got {coverage!r}")
    return float(coverage)


@dataclass(frozen=True)
class FoldModels:
    """The models of k folds in raw units, and what they leave on the n rows that they held out.

    columns, shape (m,): Numbers of the raw columns that some fold's model uses.
    coef, shape (k, m), intercept, shape (k,): The models, a row for each; a coefficient is 0 where
        a model does not use the column.
    fold, shape (n,): The fold that held out each row.
    residual, shape (n,): Absolute error of that fold's model on the row.
    fills, shape (k, m): What each fold fills missing values of ``columns`` with; None where values
        may not be missing.
    """

    columns: NDArray[np.intp]
    coef: Array
    intercept: Array
    fold: NDArray[np.intp]
    residual: Array
    fills: Array | None = None

    def interval(self, X: Array, coverage: float) -> Array:
        """Lower and upper ends, shape (r, 2), at rows X (r, m) of ``columns``.

        Where values may be missing, they are NaN, and every model fills them in its own way.

        With α = 1 − coverage, R_i the residual of row i and μ_i the model that held it out, these
        are the ⌊α(n+1)⌋-th least of μ_i(x) − R_i and the ⌈(1−α)(n+1)⌉-th least of μ_i(x) + R_i
        (jackknife+ and CV+, Barber, Candès, Ramdas and Tibshirani 2021). An end is infinite where n
        is below 1/α − 1, too few rows for the coverage.
        """
        n = self.residual.size
        rank = math.ceil(coverage * (n + 1) - WHOLE_TOLERANCE)
        ends = np.full((len(X), 2), (-np.inf, np.inf))
        if rank > n:
            return ends
        # Intervals are computed for so many rows at a time that their (rows × held-out rows)
        # numbers take at most this many numbers, 32 MB.
        step = max(1, 4_000_000 // n)
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            every = self._predictions(X[rows])[:, self.fold]
            ends[rows, 0] = np.partition(every - self.residual, n - rank, axis=1)[:, n - rank]
            ends[rows, 1] = np.partition(every + self.residual, rank - 1, axis=1)[:, rank - 1]
        return ends

    def _predictions(self, X: Array) -> Array:
        """The predictions of all models, shape (r, k), at rows X (r, m)."""
        holes = np.isnan(X)
        if self.fills is None or not holes.any():
            return np.asarray(X @ self.coef.T + self.intercept)
        known = np.where(holes, 0.0, X) @ self.coef.T + self.intercept
        return np.asarray(known + holes @ (self.coef * self.fills).T)

    def document(self, features: list[str]) -> dict[str, Any]:
        """The values that a model file keeps; ``features`` are the names of all raw columns."""
        return {
            "features": [features[c] for c in self.columns],
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
            "fold": self.fold.tolist(),
            "residual": self.residual.tolist(),
            "fills": None if self.fills is None else self.fills.tolist(),
        }

    @classmethod
    def of_document(cls, kept: Any, features: list[str]) -> FoldModels:
        """The models that a file keeps.

        Raises ValueError, KeyError, TypeError: The values are not those that :meth:`document` made.
        """
        columns = np.array([features.index(name) for name in kept["features"]], dtype=np.intp)
        coef, intercept, residual = (
            np.asarray(kept[name], dtype=np.float64) for name in ("coef", "intercept", "residual")
        )
        fold = np.asarray(kept["fold"])
        own = kept.get("fills")  # Files of earlier versions have none.
        fills = None if own is None else np.asarray(own, dtype=np.float64)
        k = intercept.size
        right = (
            intercept.shape == (k,)
            and coef.shape == (k, columns.size)
            and residual.shape == fold.shape == (residual.size,)
            and fold.dtype.kind == "i"
            and np.isin(fold, np.arange(k)).all()
            and all(np.isfinite(v).all() for v in (coef, intercept, residual))
            and (residual >= 0.0).all()
            and (fills is None or (fills.shape == coef.shape and np.isfinite(fills).all()))
        )
        if not right:
            raise ValueError("these are no models of folds")
        return cls(columns, coef, intercept, fold.astype(np.intp), residual, fills)
