"""Checks of what users hand to the estimators: frames, numbers, names."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from ..cv.settings import checked_taus
from ..design.design import Array, Design
from ..errors import InputError, LoweredSizeWarning, warn_caller
from ..tables.rows_in_memory import RowSubset, refuse_dense


def na_as_nan(values: Any) -> Any:
    """An array or frame in which NaN stands for every ``pandas.NA`` among its objects.

    NumPy and scikit-learn cannot turn ``pandas.NA`` into a number.
    """
    pandas = sys.modules.get("pandas")  # Without pandas there is no pandas.NA.
    if pandas is None:
        return values
    if isinstance(values, pandas.DataFrame):
        columns = [j for j, kind in enumerate(values.dtypes) if str(kind) == "object"]
        values = values.copy(deep=False) if columns else values
        for j in columns:
            values.isetitem(j, na_as_nan(values.iloc[:, j].to_numpy()))
    elif str(getattr(values, "dtype", "")) == "object":
        values = np.array(values)
        values[pandas.isna(values)] = np.nan
    return values


def as_dense(X: Any) -> Array:
    """The rows of a sparse table as a dense one; a dense table comes back itself.

    Raises InputError: The dense table would take more than MAX_HELD_BYTES.
    """
    if not issparse(X):
        return np.asarray(X)
    refuse_dense(*X.shape)
    return np.asarray(X.toarray(order="C"))  # Sums then have the digits of the same dense table.


def stored_rows(X: Any) -> RowSubset:
    """The rows of a CSR or CSC table, whose parts become dense when they are read.

    The columns of a wide table are read one by one, and the rows of a long one.
    """
    n, p = X.shape
    found = (csc_array if n < p else csr_array)(X, dtype=np.float64)
    if not found.has_canonical_format:
        found = found.copy()  # The arrays may be the user's.
        found.sum_duplicates()
    return RowSubset(found, np.arange(n))


def fill_stored(X: Any, fills: Array) -> Any:
    """A copy of a CSR or CSC table in which ``fills``, shape (p,), take the place of NaN."""
    rows = X.tocsr(copy=True)
    rows.sum_duplicates()
    missing = np.isnan(rows.data)
    rows.data[missing] = fills[rows.indices[missing]]
    return rows


def refuse_text_response(values: Any, name: Any) -> None:
    """Raise an InputError that names the first of a response's values that is text and no number.

    name: The name of the response, or None.
    """
    what = "y" if name is None else f"y ({name})"
    for row, value in enumerate(values.ravel().tolist()):
        try:
            float(value)
        except ValueError:
            raise InputError(
                f"{what} holds {value!r} in row {row}: the response must be numbers"
            ) from None
        except TypeError:
            return  # scikit-learn's check says what such an object is.


def checked_weights(weights: Any, n: int) -> Array | None:
    """Row weights >= 0, at least two of them above 0; None where they are all 1.

    weights, shape (n,), or None.
    Returns, shape (n,), or None.
    Raises InputError: Another shape, values that are not finite and ≥ 0, or fewer than two above 0.
    """
    if weights is None:
        return None
    try:
        values = np.array(weights, dtype=np.float64)  # The estimator keeps this copy.
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers >= 0") from None
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise InputError(
            f"sample_weight.shape == {values.shape}, expected ({n},): one weight per row"
        )
    if not (np.isfinite(values).all() and (values >= 0.0).all()):
        raise InputError("sample_weight must be finite and >= 0: it holds NaN, inf or less")
    if np.count_nonzero(values) < 2:
        raise InputError("sample_weight must be above zero for at least 2 rows")
    return None if (values == 1.0).all() else values


def checked_tau(tau: Any, p: int, design: Design) -> int:
    """τ of a model, cut with a warning to the number of columns that vary.

    A size of which no model obeys the constraints is refused where it was asked for.

    tau: A whole number, or None for 10.
    Raises InputError: A tau outside 1..p.
    """
    constraints, varying = design.constraints, design.n_units
    if tau is None:
        return min(max(1, constraints.min_size, min(varying, 10)), varying)
    if np.ndim(tau) > 0:
        raise InputError(f"tau must be a whole number; got {tau!r}")
    size = int(checked_taus(tau, p)[0])
    if size > varying:  # as in a fold where a rare 0/1 column is constant
        what = "columns or groups can be in a model"
        what = f"of the {p} columns vary" if design.asked is None else what
        text = f"tau = {size}, but {varying} {what}: tau = {varying} is used"
        warn_caller(text, LoweredSizeWarning)
    size = min(size, varying)
    constraints.checked_size(size)
    return size
