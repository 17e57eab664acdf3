"""Files of columns: what all kinds of files have in common, and matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import (
    BLOCK_ROWS,
    PARQUET_SUFFIXES,
    WORKBOOK_SUFFIXES,
    FloatArray,
    quoted,
)
from .faults import Faults
from .weights import Column

TABLE_SUFFIXES = {".csv", ".tsv", ".txt", *PARQUET_SUFFIXES, *WORKBOOK_SUFFIXES, ".gz"}


class File(ABC):
    """A file whose columns are read by name, as record batches of Arrow.

    label: The file's name in messages.
    names: Names of all columns.
    n: Number of rows; known of a text file once :meth:`inspect` has read it.
    index: Names of columns that are no features unless a user names them.
    decimal: The decimal mark of numbers in text.
    """

    label: str
    names: list[str]
    n = 0
    index: Sequence[str] = ()
    decimal = "."
    # All rows of at most this many columns are read in one pass over a file that stores columns, as
    # Arrow needs 3 MB for every column that is read at the same time. None: a file that stores
    # rows, all of whose columns are read in one pass.
    max_columns_at_once: int | None = None

    @abstractmethod
    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows with the named columns, in this order."""

    @abstractmethod
    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """Count the rows, and return the names of the columns that hold text or no value.

        Columns that are neither numeric nor text are added to ``faults``.

        levels: Names of columns that are known to hold text.
        """

    def cells(self, columns: Sequence[str]) -> Iterator[tuple[int, str, Any]]:
        """Read columns block by block: yield a block's first row, a column's name and its cells."""
        row = 0
        for batch in self.batches(columns, BLOCK_ROWS) if columns else ():
            yield from ((row, *column) for column in zip(columns, batch.columns, strict=True))
            row += len(batch)

    def texts(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """Yield the cells of some columns as text, row by row; a missing cell is an empty text."""
        from .cells import as_text

        for batch in self.batches(columns, BLOCK_ROWS):
            cells = [as_text(column).fill_null("").to_pylist() for column in batch.columns]
            yield from map(list, zip(*cells, strict=True))

    def column(self, name: str, kept: slice | NDArray[np.bool_]) -> Column:
        """Read a column of weights, groups or times, in a pass over the file.

        kept: Which rows are in use.
        Raises InputError: The column is neither numeric nor text, or a cell of it is missing.
        """
        import pyarrow as pa

        from .cells import as_text

        kind = pa.dictionary(pa.int32(), pa.string())
        try:
            cells = [as_text(c).fill_null("").dictionary_encode() for _, _, c in self.cells([name])]
        except pa.ArrowException:
            what = f"column {quoted(name)} is neither numeric nor text"
            raise InputError(f"{self.label}: {what}") from None
        coded = pa.chunked_array(cells, kind).unify_dictionaries().combine_chunks()
        codes, words = np.from_dlpack(coded.indices)[kept], coded.dictionary.to_pylist()
        return Column(self.label, name, codes.astype(np.intp), words, self.decimal)

    def unnamed_index(self) -> str | None:
        """The name of the first column if it is none and its cells count the rows, else None.

        Exported data frames have such a column, which counts from 0 or from 1. R and pandas write
        no name, and a file that pandas wrote and read again has the name "Unnamed: 0".
        """
        name = self.names[0] if self.names else None
        if name not in ("", "Unnamed: 0") or self.names.count(name) > 1:
            return None
        import pyarrow as pa

        from .cells import as_floats

        first = 0.0
        try:
            for row, _, cells in self.cells([name]):
                values = as_floats(cells.cast(pa.float64()))
                first = values[0] if row == 0 else first
                counted = values == first + row + np.arange(len(values))
                if first not in (0.0, 1.0) or not counted.all():
                    return None
        except pa.ArrowException:
            return None
        return name


class Matrix(File):
    """A matrix of n rows, shape (n, columns)."""

    max_columns_at_once = 1 << 20

    def __init__(self, label: str, names: Sequence[str], matrix: FloatArray) -> None:
        self.label, self.names, self._matrix = label, list(names), matrix
        self.n = len(matrix)

    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """A matrix has no column of text."""
        return set()

    def values(self, columns: Sequence[str], rows: int) -> Iterator[FloatArray]:
        """Yield columns as blocks of at most ``rows`` rows."""
        at = [self.names.index(name) for name in columns]
        for start in range(0, self.n, rows):
            yield self._matrix[start : start + rows, at]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of numbers."""
        import pyarrow as pa

        # pyarrow.array would import pandas to look at arrays of NumPy.
        for block in self.values(columns, rows):
            arrays = [
                pa.Array.from_buffers(pa.float64(), cells.size, [None, pa.py_buffer(cells)])
                for cells in block.T.copy()
            ]
            yield pa.record_batch(arrays, list(columns))
