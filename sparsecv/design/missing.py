"""Missing values, which are filled by the mean of a column's training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # Predictions by a file do without what the design imports.
    from .design import Array


def fill_values(
    columns: Array,
    weights: Array | None = None,
    rows: NDArray[np.intp] | slice = slice(None),
) -> Array:
    """The mean of every column over the rows that have a value, shape (m,).

    A column without a value gets 0: it is constant then, and no model can use it.

    columns, shape (n, m): Missing values are NaN.
    weights, shape (n,), optional: A whole number counts as that many copies of a row.
    rows: The rows that count; all by default.
    """
    found = np.zeros(columns.shape[1])
    weights = None if weights is None else weights[rows]
    for j in range(columns.shape[1]):
        column = columns[rows, j]
        known = ~np.isnan(column) if weights is None else ~np.isnan(column) & (weights > 0.0)
        values, counts = column[known], None if weights is None else weights[known]
        if values.size:
            found[j] = np.average(values, weights=counts)
    return found


def fill(rows: Array, values: Array) -> None:
    """Put values, shape (m,), in place of the missing values of rows, shape (n, m)."""
    holes = np.isnan(rows)
    rows[holes] = np.broadcast_to(values, rows.shape)[holes]


def filled(rows: Array, values: Array, order: Literal["C", "K"] = "C") -> Array:
    """A copy of rows, shape (n, m), with values, shape (m,), in place of missing values.

    order: "K" keeps the layout of the rows in memory, which decides how sums are rounded.
    """
    found = np.array(rows, order=order)
    fill(found, values)
    return found
