"""Columns that are no features: the weights of the rows, their groups, and their offsets.

In every function ``label`` is the table's name in messages, and ``rows`` has the positions in the
table, from 0, of the rows in use: messages name the data rows of the table, from 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .cells import Column, level_text
from .columns import FloatArray, quoted
from .faults import Faults

Index = NDArray[np.intp]
# Whole numbers below this one are exact as 64-bit floats: 2 to the power of the bits of a mantissa.
LARGEST_WHOLE = 2.0**53


def _in_use(label: str, column: Column, rows: Index) -> Column:
    """Such a column with the rows in use alone.

    Raises InputError: The column holds neither numbers nor text, or a cell is missing.
    """
    if column.other:
        what = f"column {quoted(column.name)} is neither numeric nor text"
        raise InputError(f"{label}: {what}")
    column = column._replace(values=column.values[rows])
    faults = Faults(label)  # No --missing serves these columns.
    faults.missing(column.name, rows[column.missing])
    faults.check()
    return column


def weights_of(label: str, column: Column, rows: Index) -> FloatArray | None:
    """The numbers of a column as weights of the rows in use; None where all weights are 1.

    Raises InputError: A weight is no number, infinite or negative, or fewer than 2 weights are
        above 0.
    """
    own = _in_use(label, column, rows)
    values = own.as_numbers()
    what = f"{label}: the weights in column {quoted(own.name)} must be"
    _refuse_cell(f"{what} finite numbers >= 0", own, ~(np.isfinite(values) & (values >= 0.0)), rows)
    if np.count_nonzero(values) < 2:
        raise InputError(f"{what} above 0 in at least 2 rows")
    return None if (values == 1.0).all() else values


def offset_of(label: str, column: Column, rows: Index) -> FloatArray:
    """The numbers of a column that are taken off the responses of the rows in use.

    Raises InputError: A cell is missing, no number, or infinite.
    """
    own = _in_use(label, column, rows)
    values = own.as_numbers()
    what = f"{label}: the offsets in column {quoted(own.name)} must be finite numbers"
    _refuse_cell(what, own, ~np.isfinite(values), rows)
    return values


def _refuse_cell(what: str, column: Column, wrong: NDArray[np.bool_], rows: Index) -> None:
    """Raise an InputError that names the first cell of a column that is wrong, if one is.

    what: What the cells must be.
    column: The column with the rows in use alone.
    wrong, shape (n,): Which of these cells are not what they must be.
    """
    if wrong.any():
        row = int(wrong.argmax())
        cell = column.values[row] if column.words is None else column.cells[column.values[row]]
        raise InputError(f"{what}, not {quoted(level_text(cell))} (data row {rows[row] + 1})")


def groups_of(label: str, column: Column, rows: Index) -> NDArray[Any]:
    """The group of every row in use: a number, or a text where a group is no number.

    Raises InputError: A cell is missing, or neither number nor text.
    """
    own = _in_use(label, column, rows)
    numbers = own.as_numbers()
    if np.isinf(numbers).any():  # A group is no number: all of them are texts.
        return np.asarray(np.array(own.words)[own.values])
    whole = np.abs(numbers) < LARGEST_WHOLE
    whole &= numbers == np.rint(numbers)
    return numbers.astype(np.int64) if whole.all() else numbers
