"""Columns that are no features: the weights of the rows, and the groups of the rows.

In every function ``label`` is the table's name in messages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .cells import Column, level_text
from .columns import FloatArray, quoted
from .faults import Faults


def _in_use(label: str, column: Column, kept: slice | NDArray[np.bool_]) -> Column:
    """A column of weights or groups with the rows in use alone.

    kept: Which rows are in use: a mask of shape (n,), or a slice.
    Raises InputError: The column holds neither numbers nor text, or a cell is missing.
    """
    if column.other:
        what = f"column {quoted(column.name)} is neither numeric nor text"
        raise InputError(f"{label}: {what}")
    column = column._replace(values=column.values[kept])
    faults = Faults(label)  # No --missing serves weights and groups.
    faults.missing(column.name, np.flatnonzero(column.missing))
    faults.check()
    return column


def weights_of(label: str, column: Column, kept: slice | NDArray[np.bool_]) -> FloatArray | None:
    """The numbers of a column as weights of the rows in use; None where all weights are 1.

    label: The table's name in messages.
    kept: Which rows are in use: a mask of shape (n,), or a slice.
    Raises InputError: A weight is no number, infinite or negative, or fewer than 2 weights are
        above 0.
    """
    own = _in_use(label, column, kept)
    values = own.as_numbers()
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    what = f"{label}: the weights in column {quoted(own.name)} must be"
    if wrong.any():
        row = int(wrong.argmax())
        cell = own.values[row] if own.words is None else own.cells[own.values[row]]
        shown = quoted(level_text(cell))
        raise InputError(f"{what} finite numbers >= 0, not {shown} (data row {row + 1})")
    if np.count_nonzero(values) < 2:
        raise InputError(f"{what} above 0 in at least 2 rows")
    return None if (values == 1.0).all() else values


def groups_of(label: str, column: Column, kept: slice | NDArray[np.bool_]) -> NDArray[np.intp]:
    """The number of every row's group, in the order of the groups' values or texts.

    The arguments are those of :func:`weights_of`. A cell that is missing, or neither number nor
    text, raises an InputError.
    """
    own = _in_use(label, column, kept)
    keys = own.as_numbers()
    if np.isinf(keys).any():  # A group is no number: all of them are texts.
        keys = np.array(own.words)[own.values]
    return np.asarray(np.unique(keys, return_inverse=True)[1].astype(np.intp))
