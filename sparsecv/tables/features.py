"""Columns of files as numbers, the features of a fitted model, and columns beside predictions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .coding import Coding
from .columns import (
    FloatArray,
    check_names,
    check_rows,
    is_number,
    quoted,
    quoted_names,
    similar_names,
    suggestion,
)
from .faults import Faults
from .files import File

# At least this many columns are read at a time, or a thirty-second of all of them, so that beside
# the matrix only a part of the table is in memory. The number is a choice.
COLUMNS_AT_A_TIME = 8


def encoded(
    file: File,
    coding: Coding,
    faults: Faults,
    unknown: str = "error",
    mixed: Collection[str] | None = None,
) -> FloatArray:
    """Columns of a file as numbers, shape (n, columns), with 0/1 columns in place of text.

    file: A file that was inspected.
    coding: What the columns become.
    faults: Gets the cells that cannot be used. They become infinite, and missing cells NaN.
    unknown: With "zero" the 0/1 columns of a cell are 0 if the cell is none of the given levels.
    mixed: Columns of numbers that hold text in some rows; then all cells are checked. With None
        the cells of numeric columns are not checked.
    Raises InputError: The file cannot be read, or has another number of rows than before.
    """
    places = coding.places
    found = np.empty((file.n, len(coding.features)))
    step = max(COLUMNS_AT_A_TIME, len(places) // 32)
    for start in range(0, len(places), step):
        some = places[start : start + step]
        table = file.load([name for name, _ in some])
        for name, own in some:
            cells = table.pop(name)
            if name in coding.levels:
                block = found[:, own[0] : own[-1] + 1]
                _write_levels(block, name, coding.levels[name], cells, faults, unknown)
            elif mixed is not None and name in mixed:
                found[:, own[0]] = _numbers_in_text(name, cells, file.decimal, faults)
            else:
                values = _as_floats(cells)
                if mixed is not None:
                    faults.values(values, [name])
                found[:, own[0]] = values
    return found


def _as_floats(cells: Any) -> FloatArray:
    """A column of numbers as an array of NumPy."""
    if isinstance(cells, np.ndarray):
        return cells
    from .cells import as_floats  # The import of pyarrow would slow down other commands.

    return as_floats(cells)


def _write_levels(
    block: FloatArray,
    name: str,
    levels: Sequence[str],
    cells: Any,
    faults: Faults,
    unknown: str,
) -> None:
    """Write the 0/1 columns of a text column to the columns of a block."""
    import pyarrow as pa  # The import would slow down commands that read no text.
    import pyarrow.compute as pc

    from .cells import as_text, where

    texts = as_text(cells)
    missing = where(texts.is_null())
    place = pc.index_in(texts, pa.array(levels, pa.string()))
    at = np.from_dlpack(place.fill_null(-1))
    first = len(levels) - block.shape[1]  # The level before the first one has no column.
    np.equal(at[:, None], np.arange(first, len(levels)), out=block, casting="unsafe")
    block[missing] = np.nan
    faults.missing(name, missing)
    other = pc.and_(place.is_null(), texts.is_valid())
    if unknown != "zero" and pc.any(other).as_py():
        rows, words = where(other), pc.unique(texts.filter(other)).to_pylist()
        block[rows] = np.inf
        what = (
            f"column {quoted(name)} holds {quoted_names(words, 3)}, which is none of its "
            f"levels: {quoted_names(levels)}"
        )
        zero = "pass unknown='zero' (--unknown zero), which gives such a row no level"
        faults.add(name, what, ["correct it", zero], rows)


def _numbers_in_text(name: str, cells: Any, decimal: str, faults: Faults) -> FloatArray:
    """The cells of a column of numbers, infinite where they are text."""
    from .cells import as_text

    texts = as_text(cells).fill_null("nan").to_pylist()
    plain = [text.replace(decimal, ".") for text in texts]
    values = np.array([float(text) if is_number(text) else np.inf for text in plain])
    faults.missing(name, np.flatnonzero(np.isnan(values)))
    if len(rows := np.flatnonzero(np.isinf(values))):
        remedies = ["correct it", "remove the row"]
        faults.add(name, f"column {quoted(name)} holds text", remedies, rows)
    return values


def features(
    file: File,
    coding: Coding,
    wanted: Sequence[str],
    faults: Faults,
    fills: Mapping[str, float] | None = None,
    unknown: str = "error",
) -> FloatArray:
    """The features of a model in the rows of a table, shape (n, len(wanted)).

    file: The table; no response is needed.
    coding: The columns to read, with the levels of text columns.
    wanted: The features in the model's order: a column's name, or ``column=level``.
    faults: Gets the rows that cannot be used, which hold values that are not finite.
    fills: What missing values of a feature are filled with, by its name.
    unknown: With "zero" a text that is no level has no level; with "error" it is a fault.
    Raises InputError: A column is missing or repeated, or holds what the model cannot use.
    """
    columns, known = list(coding.names), set(coding.levels)
    _check_columns(file.label, file.names, columns)
    text = file.inspect(columns, known.intersection(columns), faults)
    check_rows(file.label, file.n, 1)
    faults.check()
    names = coding.features
    check_names(file.label, names)
    every = encoded(file, coding, faults, unknown, mixed=text - known)
    X = every[:, [names.index(name) for name in wanted]]
    return np.where(np.isnan(X), [fills[name] for name in wanted], X) if fills else X


def texts_of(file: File, columns: Sequence[str]) -> list[list[str]]:
    """The cells of some columns as text, row by row; a missing cell is an empty text.

    Raises InputError: A column is unknown.
    """
    for name in columns:
        if name not in file.names:
            hint = suggestion(name, file.names)
            raise InputError(f"{file.label}: --id names {quoted(name)}, which is no column; {hint}")
    if not columns:
        return []
    from .cells import as_text

    cells = file.load(list(dict.fromkeys(columns)))
    texts = {name: as_text(one).fill_null("").to_pylist() for name, one in cells.items()}
    return list(map(list, zip(*(texts[name] for name in columns), strict=True)))


def _check_columns(label: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise an InputError where ``columns`` are not among a table's ``names``, or stand twice."""
    missing = [name for name in columns if name not in names]
    if missing:
        close = dict.fromkeys(other for name in missing for other in similar_names(name, names))
        hint = f"; it has {quoted_names(close)}" if close else ""
        columns_missing = f"column{'s' * (len(missing) > 1)} {quoted_names(missing)}"
        needed = f"the model needs {columns_missing}, which the table does not have"
        raise InputError(f"{label}: {needed}{hint}")
    check_names(label, [name for name in names if name in columns])
