"""Columns that are no features: the weights of the rows, their groups, and their offsets.

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
    """Such a column with the rows in use alone.

    kept: Which rows are in use: a mask of shape (n,), or a slice.
    Raises InputError: The column holds neither numbers nor text, or a cell is missing.
    """
    if column.other:
        what = f"column {quoted(column.name)} is neither numeric nor text"
        raise InputError(f"{label}: {what}")
    column = column._replace(values=column.values[kept])
    faults = Faults(label)  # No --missing serves these columns.
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
    what = f"{label}: the weights in column {quoted(own.name)} must be"
    _refuse_cell(f"{what} finite numbers >= 0", own, ~(np.isfinite(values) & (values >= 0.0)))
    if np.count_nonzero(values) < 2:
        raise InputError(f"{what} above 0 in at least 2 rows")
    return None if (values == 1.0).all() else values


def offset_of(label: str, column: Column, kept: slice | NDArray[np.bool_]) -> FloatArray:
    """The numbers of a column that are taken off the responses of the rows in use.

    The arguments are those of :func:`weights_of`.
    Raises InputError: A cell is missing, no number, or infinite.
    """
    own = _in_use(label, column, kept)
    values = own.as_numbers()
    what = f"{label}: the offsets in column {quoted(own.name)} must be finite numbers"
    _refuse_cell(what, own, ~np.isfinite(values))
    return values


def _refuse_cell(what: str, column: Column, wrong: NDArray[np.bool_]) -> None:
    """Raise an InputError that names the first cell of a column that is wrong, if one is.

    what: What the cells must be.
    wrong, shape (n,): Which cells are not.
    """
    if wrong.any():
        row = int(wrong.argmax())
        cell = column.values[row] if column.words is None else column.cells[column.values[row]]
        raise InputError(f"{what}, not {quoted(level_text(cell))} (data row {row + 1})")


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
