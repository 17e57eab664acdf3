"""Columns of text and Parquet files as numbers, which Arrow reads block by block."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from .columns import (
    BLOCK_ROWS,
    MAX_LEVELS,
    Faults,
    FloatArray,
    check_names,
    check_rows,
    is_number,
    quoted,
    rows_changed,
)
from .rows import Column


class ArrowFile(ABC):
    """A text or Parquet file, whose columns are read by name.

    label: The file's name in messages.
    names: Names of all columns.
    n: Number of rows; known of a text file once :meth:`inspect` has read it.
    index: Names of columns that are no features unless a user names them.
    files: The files of a folder.
    decimal: The decimal mark of numbers in text.
    missing_allowed: Missing values are read as NaN, in place of an error.
    """

    label: str
    names: list[str]
    n = 0
    index: Sequence[str] = ()
    files: Sequence["ArrowFile"] = ()
    decimal = "."
    missing_allowed = False
    # A table of more bytes of numbers is read again whenever its rows are needed; others are kept
    # in memory. Parquet is never kept.
    max_bytes_in_memory = 0
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

    def unnamed_index(self) -> str | None:
        """The name of the first column if it is none and its cells count the rows, else None.

        Exported data frames have such a column, which counts from 0 or from 1. R and pandas write
        no name, and a file that pandas wrote and read again has the name "Unnamed: 0".
        """
        name = self.names[0]
        if name not in ("", "Unnamed: 0") or self.names.count(name) > 1:
            return None
        first, row = -1.0, 0
        try:
            for batch in self.batches([name], BLOCK_ROWS):
                cells = as_floats(pc.cast(batch.column(0), pa.float64()))
                first = float(cells[0]) if row == 0 and len(cells) else first
                if not (cells == first + row + np.arange(len(cells))).all():
                    return None
                row += len(cells)
        except pa.ArrowException:
            return None
        return name if first in (0.0, 1.0) else None

    def select(self, columns: Sequence[str], **options: Any) -> "ArrowTable":
        """The named columns as numbers; the options are those of :class:`ArrowTable`."""
        return ArrowTable(self, columns, **options)

    def weights_or_groups(self, name: str) -> Column:
        """Read a column of weights or groups, in a pass over the file.

        Raises InputError: The column is neither numeric nor text.
        """
        place: dict[str, int] = {}
        parts = [np.empty(0, dtype=np.intp)]
        try:
            for batch in self.batches([name], BLOCK_ROWS):
                coded = as_text(batch.column(0)).fill_null("").dictionary_encode()
                at = [place.setdefault(word, len(place)) for word in coded.dictionary.to_pylist()]
                parts.append(np.array(at, dtype=np.intp)[np.from_dlpack(coded.indices)])
        except pa.ArrowException:
            what = f"column {quoted(name)} is neither numeric nor text"
            raise InputError(f"{self.label}: {what}") from None
        return Column(self.label, name, np.concatenate(parts), list(place), self.decimal)


class ArrowTable:
    """Columns of a file as numbers, with 0/1 columns in place of text columns.

    columns: Names of the columns, in the order wanted.
    target: Name of the response, which must be numeric.
    one_hot: "" refuses columns of text and of dates. "all" makes one 0/1 column for every level of
        such a column. "two-level" does so, too, except that a column of two levels becomes the
        0/1 column of its second level.
    levels: The levels of text columns, where a fitted model prescribes them.
    min_rows: Fewer rows are refused.
    Raises InputError: Columns cannot be used, or rows are too few; the message names all columns.
    """

    def __init__(
        self,
        file: ArrowFile,
        columns: Sequence[str],
        target: str | None = None,
        one_hot: str = "",
        levels: Mapping[str, Sequence[str]] | None = None,
        min_rows: int = 2,
    ) -> None:
        self._file, self.label, self.levels = file, file.label, dict(levels or {})
        faults = Faults(file.label, target, file.missing_allowed)
        text = file.inspect(columns, self.levels, faults)
        self.n = file.n
        check_rows(self.label, self.n, min_rows)
        new = [name for name in columns if name in text and name not in self.levels]
        for name in new:
            self._describe(name, bool(one_hot), faults)
        if new:
            self.levels |= self._collect(new, faults)
        if faults:
            numeric = [name for name in columns if name not in text]
            self._note_values(numeric, faults)
            faults.check()
        # The columns of the table that each column of the file becomes, by their levels.
        self._widths: dict[str, Sequence[str]] = {}
        self.reference_levels: dict[str, str] = {}
        for name in columns:
            own = self.levels.get(name, [])
            if one_hot == "two-level" and len(own) == 2:
                self.reference_levels[name], own = own[0], own[1:]
            self._widths[name] = [f"{name}={level}" for level in own] or [name]
        self.names = [new for names in self._widths.values() for new in names]
        check_names(self.label, self.names)
        self.in_memory = 8 * self.n * len(self.names) <= file.max_bytes_in_memory

    def parts(self) -> "list[ArrowTable]":
        """A table of the same columns for every file of a folder; empty for a single file."""
        found = [copy(self) for _ in self._file.files]
        for part, file in zip(found, self._file.files, strict=True):
            part._file, part.label, part.n = file, file.label, file.n
        return found

    def _describe(self, name: str, encode: bool, faults: Faults) -> None:
        """Add a column of text to ``faults``, with cells that are no numbers where it has any.

        encode: The column becomes 0/1 columns, so text is no fault.
        """
        row, plain = 0, None
        for batch in self._file.batches([name], BLOCK_ROWS):
            kind = "dates" if pa.types.is_temporal(batch.column(0).type) else None
            cells = as_text(batch.column(0))
            present = cells.drop_null().to_pylist()
            odd = (cell for cell in present if not is_number(self._with_point(cell)))
            found = list(islice(odd, faults.max_cells))
            if found:
                at = row + cells.index(found[0]).as_py()
                faults.text(name, found, at, encode=encode, kind=kind)
                return
            if present and plain is None:
                plain = present[: faults.max_cells], row + cells.index(present[0]).as_py()
            row += len(cells)
        if plain is not None:
            faults.text(name, *plain, encode=encode)
        elif faults.missing_allowed:
            faults.add(name, f"column {quoted(name)} has no value")

    def _with_point(self, cell: str) -> str:
        """A cell of text with a decimal point, where numbers of the file have another mark."""
        return cell.replace(self._file.decimal, ".")

    def _collect(self, columns: Sequence[str], faults: Faults) -> dict[str, list[str]]:
        """Read the sorted levels of text columns; missing cells are faults.

        More than ``MAX_LEVELS`` levels are a fault of a column that has no other.
        """
        levels: dict[str, dict[str, None]] = {name: {} for name in columns}
        refused, row = faults.columns, 0
        for batch in self._file.batches(columns, BLOCK_ROWS):
            for name, cells in zip(columns, batch.columns, strict=True):
                missing = cells.is_null().to_numpy(zero_copy_only=False)
                faults.rows(name, "missing", row + np.flatnonzero(missing))
                if len(levels[name]) <= MAX_LEVELS:
                    seen = as_text(pc.unique(cells)).drop_null().to_pylist()
                    levels[name].update(dict.fromkeys(seen))
            row += len(batch)
        for name, found in levels.items():
            if name not in refused and (len(found) > MAX_LEVELS or len(found) == self.n):
                why = "has another value in every row"
                if len(found) > MAX_LEVELS:
                    why = f"has more than {MAX_LEVELS} levels"
                what = f"text column {quoted(name)} {why} (for example {quoted(next(iter(found)))})"
                faults.add(name, f"{what}, so it looks like an identifier")
        return {name: sorted(found) for name, found in levels.items()}

    def _note_values(self, columns: Sequence[str], faults: Faults) -> None:
        """Add missing and infinite numbers to faults of text, where a pass finds all of them."""
        if self._file.max_columns_at_once is not None:
            return
        row = 0
        for batch in self._file.batches(columns, BLOCK_ROWS):
            for name, cells in zip(columns, batch.columns, strict=True):
                faults.values(as_floats(cells), [name], row)
            row += len(batch)

    def blocks(self, rows: int, columns: Sequence[str] | None = None) -> Iterator[FloatArray]:
        """Yield matrices of at most ``rows`` rows, stored by columns; missing values are NaN.

        columns: Some of the file's columns; by default all columns of the table.
        """
        columns = list(self._widths) if columns is None else columns
        width, rows_before = sum(len(self._widths[name]) for name in columns), 0
        for batch in self._file.batches(columns, rows):
            # Arrow stores columns, and a matrix that is stored by columns is filled fastest.
            block = np.empty((len(batch), width), order="F")
            at = 0
            for name, cells in zip(columns, batch.columns, strict=True):
                end = at + len(self._widths[name])
                if name in self.levels:
                    self._spread(block[:, at:end], name, cells, rows_before)
                else:
                    block[:, at] = as_floats(cells)
                at = end
            rows_before += len(batch)
            yield block

    def load(self) -> FloatArray:
        """All rows, shape (n, columns), in C order; missing values are NaN.

        Raises InputError: The table has another number of rows than when it was opened.
        """
        found, at, columns = np.empty((self.n, len(self.names))), 0, list(self._widths)
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

    def _spread(self, block: FloatArray, name: str, cells: Any, rows_before: int) -> None:
        """Write the 0/1 columns of a text column to the columns of a block.

        cells: The column's cells, one for every row of the block.
        rows_before: Number of the table's rows before the block.
        """
        levels, faults = self.levels[name], Faults(self.label, None, self._file.missing_allowed)
        place = pc.index_in(as_text(cells), pa.array(levels, pa.string()))
        missing = cells.is_null().to_numpy(zero_copy_only=False)
        faults.rows(name, "missing", rows_before + np.flatnonzero(missing))
        faults.check()
        unknown = pc.and_(place.is_null(), cells.is_valid())
        if pc.any(unknown).as_py():
            row = int(unknown.index(True).as_py())
            raise InputError(
                f"{self.label}: column {quoted(name)}, data row {rows_before + row + 1}: "
                f"{quoted(cells[row].as_py())} is none of its levels, which are "
                f"{', '.join(map(quoted, levels))}"
            )
        at = np.from_dlpack(place.fill_null(-1))
        first = len(levels) - block.shape[1]  # The level before the first one has no column.
        np.equal(at[:, None], np.arange(first, len(levels)), out=block, casting="unsafe")
        block[at < 0] = np.nan


def as_text(cells: Any) -> Any:
    """The values of an Arrow array as strings without blanks around; missing values stay missing.

    Text files lose these blanks, too, so that a level has one name in every kind of table.
    """
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return pc.utf8_trim_whitespace(cells.cast(pa.string()))


def as_floats(cells: Any) -> FloatArray:
    """A numeric Arrow array of shape (m,) as float64; missing cells become NaN."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.float64())
    # Arrow's own conversion to NumPy imports pandas, so only arrays that need it are converted so.
    # NumPy converts to float64 because Arrow refuses large integers and, in older versions, 16-bit
    # floats.
    needed = cells.null_count or pa.types.is_boolean(cells.type)
    values = cells.to_numpy(zero_copy_only=False) if needed else np.from_dlpack(cells)
    return np.asarray(values.astype(np.float64, copy=False))
