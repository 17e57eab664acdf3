"""Checks of what users hand to the estimators: frames, numbers, names."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ..cv.settings import checked_taus
from ..design.design import Array, Design
from ..errors import InputError, LoweredSizeWarning, warn_caller
from ..tables.frames import na_as_nan

# A sparse table is refused if its dense copy would take more bytes than this: a choice.
MAX_DENSE_BYTES = 1_500_000_000


def as_dense(X: Any, advice: str) -> Array:
    """The rows of a sparse table of 64-bit numbers as a dense one.

    advice: What to do where the dense table would be too large, for the message.
    Raises InputError: The dense table would take more than MAX_DENSE_BYTES.
    """
    n, p = X.shape
    if (size := 8 * n * p) > MAX_DENSE_BYTES:
        raise InputError(
            f"X is sparse, and a dense copy of {n:,} rows and {p:,} columns takes {size / 1e9:.1f} "
            f"GB, above the limit of {MAX_DENSE_BYTES / 1e9:.1f} GB: {advice}"
        )
    # The order of the numbers in memory decides how sums are rounded. It is that of a usual array.
    return np.asarray(X.toarray(order="C"))


def refuse_text_response(values: Any, name: Any) -> None:
    """Refuse a response that has a text among its values which cannot be read as a number.

    values: An array of text or of Python objects.
    name: The name of the response for the message, or None.
    Raises InputError: It names the first such text and its row. Objects that are neither text nor
        numbers, such as lists, raise nothing: ``validate_data`` of scikit-learn, which is called
        next, has better words for them.
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
            return


def checked_weights(weights: Any, n: int) -> Array | None:
    """Row weights >= 0, at least two of them above 0; None where all weights are 1.

    weights: An array of shape (n,), or one number for all rows.
    n: Number of rows.
    Returns: A new array of shape (n,), or None.
    Raises InputError: Another shape, values that are not finite and ≥ 0, or fewer than two above 0.
    """
    try:
        values = np.array(weights, dtype=np.float64)  # A copy, which the user cannot change.
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


def checked_offset(offset: Any, n: int) -> Array:
    """Offsets of n rows as a new array of shape (n,).

    Raises InputError: They have another shape, or are no finite numbers.
    """
    try:
        values = np.array(na_as_nan(offset), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("offset must be numbers") from None
    if values.shape != (n,):
        raise InputError(f"offset.shape == {values.shape}, expected ({n},): one number per row")
    if not np.isfinite(values).all():
        raise InputError("offset must be finite: it holds NaN or inf")
    return values


def checked_count(value: Any, name: str) -> int:
    """Return a parameter that is a whole number >= 1; InputError for anything else."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number >= 1; got {value!r}")
    return int(value)


def checked_tau(tau: Any, design: Design) -> int:
    """τ of a model, at most the size of all columns that vary, counted as the design counts sizes.

    tau: A whole number from 0 to the number p of the table's columns of numbers. None stands for
        10, or for the size of all columns where that is less, but for no less than the least size
        that the constraints allow, and for at least 1.
    design: How the columns of the table were standardised; it has the constraints.
    Raises InputError: ``tau`` lies outside 0..p, or no model of this size obeys the constraints.
    Warns LoweredSizeWarning: All columns that vary are a smaller size than ``tau``, which is
        returned.
    """
    # A group of columns that enter together counts as one.
    constraints, varying = design.constraints, design.largest_size
    if tau is None:
        return max(1, constraints.min_size, min(varying, 10))
    if np.ndim(tau) > 0:
        raise InputError(f"tau must be a whole number; got {tau!r}")
    size = int(checked_taus(tau, design.p_raw, least=0)[0])
    if size > varying:  # For instance in a fold of the rows, where a rare 0/1 column is constant.
        what = f"of the {design.p_raw} columns vary"
        if design.asked is not None:
            what = "columns or groups can be in a model"
            if constraints.weighted:
                what = "coefficients can be in a model"
        text = f"tau = {size}, but {varying} {what}: tau = {varying} is used"
        warn_caller(text, LoweredSizeWarning)
    size = min(size, varying)
    constraints.checked_size(size)
    return size
