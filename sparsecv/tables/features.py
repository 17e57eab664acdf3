"""Columns of files as numbers, the features of a fitted model, and columns beside predictions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from itertools import repeat
from typing import Any

import numpy as np

from ..errors import InputError
from .coding import Coding
from .columns import (
    BLOCK_ROWS,
    FloatArray,
    check_names,
    check_rows,
    is_number,
    quoted,
    quoted_names,
    rows_changed,
    similar_names,
    suggestion,
)
from .faults import Faults
from .files import File, Matrix


class Encoded:
    """Columns of a file as numbers, with 0/1 columns in place of text.

    file: A file that was inspected.
    coding: What the columns become.
    faults: Gets the cells that cannot be used. They become infinite, and missing cells NaN.
    unknown: With "zero" the 0/1 columns of a cell are 0 if the cell is none of the given levels.
    mixed: Columns of numbers that hold text in some rows; then all cells are checked. With None
        the cells of numeric columns are not checked.
    """

    def __init__(
        self,
        file: File,
        coding: Coding,
        faults: Faults,
        unknown: str = "error",
        mixed: Collection[str] | None = None,
    ) -> None:
        self._file, self.label, self.n, self.coding = file, file.label, file.n, coding
        self.faults, self._unknown, self._mixed = faults, unknown, mixed
        self.names, self._becomes = coding.features, coding.columns

    def blocks(self, rows: int, columns: Sequence[str] | None = None) -> Iterator[FloatArray]:
        """Yield matrices of at most ``rows`` rows; missing values are NaN.

        columns: Some of the file's columns; by default all columns of the table.
        """
        columns = list(self._becomes) if columns is None else columns
        if isinstance(self._file, Matrix):
            yield from self._file.values(columns, rows)
            return
        width, row = sum(len(self._becomes[name]) for name in columns), 0
        for batch in self._file.batches(columns, rows):
            # Arrow stores columns, and a matrix that is stored by columns is filled fastest.
            block = np.empty((len(batch), width), order="F")
            at = 0
            for name, cells in zip(columns, batch.columns, strict=True):
                end = at + len(self._becomes[name])
                if name in self.coding.levels:
                    self._write_levels(block[:, at:end], name, cells, row)
                else:
                    block[:, at] = self._numbers(name, cells, row)
                at = end
            row += len(batch)
            yield block

    def load(self) -> FloatArray:
        """All rows, shape (n, columns), in C order; missing values are NaN.

        Raises InputError: The table has another number of rows than when it was opened.
        """
        found, at, columns = np.empty((self.n, len(self.names))), 0, list(self._becomes)
        step = max(self._file.max_columns_at_once or len(columns), len(columns) // 32)
        for start in range(0, len(columns), step):
            row, end = 0, at
            for block in self.blocks(BLOCK_ROWS, columns[start : start + step]):
                end = at + block.shape[1]
                if row + len(block) > self.n:
                    raise rows_changed(self.label, self.n)
                found[row : row + len(block), at:end] = block
                row += len(block)
            if row != self.n:
                raise rows_changed(self.label, self.n)
            at = end
        return found

    def _write_levels(self, block: FloatArray, name: str, cells: Any, row: int) -> None:
        """Write the 0/1 columns of a text column to the columns of a block.

        cells: The column's cells, one for every row of the block.
        row: Number of the table's rows before the block.
        """
        import pyarrow as pa  # The import would slow down commands that read no text.
        import pyarrow.compute as pc

        from .cells import as_text, where

        levels = self.coding.levels[name]
        texts, missing = as_text(cells), where(cells.is_null())
        place = pc.index_in(texts, pa.array(levels, pa.string()))
        at = np.from_dlpack(place.fill_null(-1))
        first = len(levels) - block.shape[1]  # The level before the first one has no column.
        np.equal(at[:, None], np.arange(first, len(levels)), out=block, casting="unsafe")
        block[missing] = np.nan
        self.faults.missing(name, row + missing)
        other = pc.and_(place.is_null(), cells.is_valid())
        if self._unknown != "zero" and pc.any(other).as_py():
            rows, words = where(other), pc.unique(texts.filter(other)).to_pylist()
            block[rows] = np.inf
            what = (
                f"column {quoted(name)} holds {quoted_names(words, 3)}, which is none of its "
                f"levels: {quoted_names(levels)}"
            )
            zero = "pass unknown='zero' (--unknown zero), which gives such a row no level"
            self.faults.add(name, what, ["correct it", zero], row + rows)

    def _numbers(self, name: str, cells: Any, row: int) -> FloatArray:
        """The cells of a column of numbers, infinite where they are text."""
        from .cells import as_floats, as_text

        if self._mixed is None or name not in self._mixed:
            values = as_floats(cells)
            if self._mixed is not None:
                self.faults.values(values, [name], row)
            return values
        texts = as_text(cells).fill_null("nan").to_pylist()
        plain = [text.replace(self._file.decimal, ".") for text in texts]
        values = np.array([float(text) if is_number(text) else np.inf for text in plain])
        self.faults.missing(name, row + np.flatnonzero(np.isnan(values)))
        if len(rows := np.flatnonzero(np.isinf(values))):
            remedies = ["correct it", "remove the row"]
            self.faults.add(name, f"column {quoted(name)} holds text", remedies, row + rows)
        return values


class FeatureRows:
    """The features of a model in the rows of a table, read by the names of columns.

    file: The table; no response is needed.
    coding: The columns to read, with the levels of text columns.
    wanted: The features in the model's order: a column's name, or ``column=level``.
    fills: What missing values of a feature are filled with, by its name; with None they are faults.
    unknown: With "zero" a text that is no level has no level; with "error" it is a fault.
    missing_allowed: Missing values stay NaN where there are no fills, and are no fault.
    faults: The rows that cannot be used, once they have been read.
    Raises InputError: A column is missing or repeated, or holds what the model cannot use.
    """

    def __init__(
        self,
        file: File,
        coding: Coding,
        wanted: Sequence[str],
        fills: Mapping[str, float] | None = None,
        unknown: str = "error",
        missing_allowed: bool = False,
    ) -> None:
        columns, known = list(coding.names), set(coding.levels)
        _check_columns(file.label, file.names, columns)
        self.faults = Faults(file.label, None, missing_allowed or bool(fills), columns)
        text = file.inspect(columns, known.intersection(columns), self.faults)
        check_rows(file.label, file.n, 1)
        self.faults.check()
        self._encoded = Encoded(file, coding, self.faults, unknown, mixed=text - known)
        check_names(file.label, self._encoded.names)
        self.n = file.n
        self._place = [self._encoded.names.index(name) for name in wanted]
        self._fills = np.array([fills[name] for name in wanted]) if fills else None

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the features in blocks of shape (m, len(wanted)).

        Rows that cannot be used hold values that are not finite, and ``faults`` then names them.
        """
        for block in self._encoded.blocks(BLOCK_ROWS):
            X = np.ascontiguousarray(block[:, self._place])
            yield X if self._fills is None else np.where(np.isnan(X), self._fills, X)

    def load(self) -> FloatArray:
        """All rows, shape (n, len(wanted)).

        Raises InputError: Rows cannot be used; the message names their columns.
        """
        found = np.concatenate(list(self.blocks()))
        self.faults.check()
        return found


def texts_of(file: File, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of some columns as text, row by row; a missing cell is an empty text.

    Raises InputError: A column is unknown.
    """
    for name in columns:
        if name not in file.names:
            hint = suggestion(name, file.names)
            raise InputError(f"{file.label}: --id names {quoted(name)}, which is no column; {hint}")
    return copy(file).texts(columns) if columns else repeat([])


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
