"""Columns of text and Parquet files as numbers, which Arrow reads block by block."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError
from .arrays import as_floats, as_text, missing_rows
from .coding import Coding
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
from .dates import as_times, date_numbers, first_date
from .row_source import Column


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

    def cells(self, columns: Sequence[str]) -> Iterator[tuple[int, str, Any]]:
        """Read columns block by block: yield a block's first row, a column's name and its cells."""
        row = 0
        for batch in self.batches(columns, BLOCK_ROWS) if columns else ():
            yield from ((row, *column) for column in zip(columns, batch.columns, strict=True))
            row += len(batch)

    def texts(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """Yield the cells of some columns as text, row by row; a missing cell is an empty text."""
        for batch in self.batches(columns, BLOCK_ROWS):
            cells = [as_text(column).fill_null("").to_pylist() for column in batch.columns]
            yield from map(list, zip(*cells, strict=True))

    def unnamed_index(self) -> str | None:
        """The name of the first column if it is none and its cells count the rows, else None.

        Exported data frames have such a column, which counts from 0 or from 1. R and pandas write
        no name, and a file that pandas wrote and read again has the name "Unnamed: 0".
        """
        name = self.names[0]
        if name not in ("", "Unnamed: 0") or self.names.count(name) > 1:
            return None
        first = -1.0
        try:
            for row, _, cells in self.cells([name]):
                values = as_floats(pc.cast(cells, pa.float64()))
                first = values[0] if row == 0 else first
                counted = values == first + row + np.arange(len(values))
                if first not in (0.0, 1.0) or not counted.all():
                    return None
        except pa.ArrowException:
            return None
        return name if first >= 0.0 else None

    def select(self, columns: Sequence[str], **options: Any) -> "ArrowTable":
        """The named columns as numbers; the options are those of :class:`ArrowTable`."""
        return ArrowTable(self, columns, **options)

    def weights_or_groups(self, name: str, kept: slice | NDArray[np.bool_]) -> Column:
        """Read a column of weights or groups, in a pass over the file.

        kept: Which rows are in use.
        Raises InputError: The column is neither numeric nor text, or a cell of it is missing.
        """
        kind = pa.dictionary(pa.int32(), pa.string())
        try:
            blocks = [
                as_text(c).fill_null("").dictionary_encode() for _, _, c in self.cells([name])
            ]
        except pa.ArrowException:
            what = f"column {quoted(name)} is neither numeric nor text"
            raise InputError(f"{self.label}: {what}") from None
        coded = pa.chunked_array(blocks, kind).unify_dictionaries().combine_chunks()
        codes, words = np.from_dlpack(coded.indices)[kept], coded.dictionary.to_pylist()
        return Column(self.label, name, codes.astype(np.intp), words, self.decimal)


class Example(NamedTuple):
    """Cells of a text column that a message shows, the row of the first, and "dates" for dates."""

    cells: list[str]
    row: int
    kind: str | None


class ArrowTable:
    """Columns of a file as numbers, with 0/1 columns in place of text columns.

    columns: Names of the columns, in the order wanted.
    target: Name of the response, which must be numeric.
    one_hot: "" refuses columns of text and of dates. "all" makes one 0/1 column for every level of
        such a column. "two-level" does so, too, except that a column of two levels becomes the
        0/1 column of its second level.
    known: The levels and the dates of a fitted model, whose columns have no others.
    min_rows: Fewer rows are refused.
    dates: Whether columns of dates are replaced by numbers.
    unknown: With "zero" the 0/1 columns of a cell are 0 if the cell is none of the given levels.
    rows: Takes the cells that a model cannot use, in place of an error. They become infinite, and
        missing cells NaN.
    Raises InputError: Columns cannot be used, or rows are too few; the message names all columns.
    """

    def __init__(
        self,
        file: ArrowFile,
        columns: Sequence[str],
        target: str | None = None,
        one_hot: str = "",
        known: Coding | None = None,
        min_rows: int = 2,
        dates: bool = False,
        unknown: str = "error",
        rows: Faults | None = None,
    ) -> None:
        self._file, self.label, known = file, file.label, known or Coding()
        levels, first_dates = dict(known.levels), dict(known.dates)
        self._unknown, self._strict = unknown, rows is None
        self._faults = Faults(file.label) if rows is None else rows
        self._faults.missing_allowed = file.missing_allowed
        faults = Faults(file.label, target, file.missing_allowed, columns)
        text = file.inspect(columns, {*levels, *first_dates}.intersection(columns), faults)
        self.n = file.n
        check_rows(self.label, self.n, min_rows)
        new = [name for name in columns if name in text - levels.keys() - first_dates.keys()]
        if dates:
            first_dates = self._first_dates([name for name in new if name != target])
            new = [name for name in new if name not in first_dates]
        # Columns of a model's numbers that hold text in some rows.
        self.mixed = set() if self._strict else set(new)
        new = new if self._strict else []
        levels |= self._text(new, bool(one_hot), faults) if new else {}
        if faults and file.max_columns_at_once is None:
            # A pass over the other columns finds their missing and infinite values, too.
            for row, name, cells in file.cells([name for name in columns if name not in text]):
                faults.values(as_floats(cells), [name], row)
        faults.check()
        self.coding = Coding(list(columns), levels, first_dates, one_hot == "two-level")
        self.names, self._becomes = self.coding.features, self.coding.columns
        # In a saved model ``column=level`` names the level, also where the level has no 0/1 column.
        without = [f"{name}={level}" for name, level in self.coding.first_levels.items()]
        check_names(self.label, [*self.names, *without])
        self.in_memory = 8 * self.n * len(self.names) <= file.max_bytes_in_memory

    def parts(self) -> "list[ArrowTable]":
        """A table of the same columns for every file of a folder; empty for a single file."""
        found = [copy(self) for _ in self._file.files]
        for part, file in zip(found, self._file.files, strict=True):
            part._file, part.label, part.n = file, file.label, file.n
        return found

    def _text(self, columns: Sequence[str], encode: bool, faults: Faults) -> dict[str, list[str]]:
        """Read the sorted levels of text columns, and add what is wrong with them to ``faults``.

        encode: The columns become 0/1 columns, so text is no fault. More than ``MAX_LEVELS`` levels
            are one, and so is another level in every row.
        """
        levels: dict[str, dict[str, None]] = {name: {} for name in columns}
        # Of every column the first cells that are no numbers, or else the first ones.
        odd, first = dict[str, Example](), dict[str, Example]()
        for row, name, cells in self._file.cells(columns):
            faults.rows(name, "missing", row + missing_rows(cells))
            if name in odd and len(levels[name]) > MAX_LEVELS:
                continue
            dates = pa.types.is_temporal(cells.type)
            texts = as_text(cells)
            seen = pc.unique(texts).drop_null().to_pylist()
            levels[name].update(dict.fromkeys(seen))
            words = [cell for cell in seen if not is_number(cell.replace(self._file.decimal, "."))]
            for found, some in ((first, seen), (odd, words)):
                if some and name not in found:
                    at = row + texts.index(some[0]).as_py()
                    found[name] = Example(some[: faults.max_cells], at, "dates" if dates else None)
        for name, seen in levels.items():
            if not seen and self._file.missing_allowed:
                faults.add(name, f"column {quoted(name)} has no value")
            if not seen or faults.text(name, *(first | odd)[name], encode=encode):
                continue
            why = f"has more than {MAX_LEVELS} levels" if len(seen) > MAX_LEVELS else ""
            why = why or "has another value in every row" * (len(seen) == self.n)
            if why:
                what = f"text column {quoted(name)} {why} (for example {quoted(next(iter(seen)))})"
                faults.add(name, f"{what}, so it looks like an identifier")
        return {name: sorted(found) for name, found in levels.items()}

    def _first_dates(self, columns: Sequence[str]) -> dict[str, str]:
        """The first date of every column of dates, which the first cell of a column tells."""
        left, found = set(columns), dict[str, str]()
        for _, name, cells in self._file.cells(columns):
            if name in left and cells.null_count < len(cells):
                left.discard(name)
                if first := first_date(cells):
                    found[name] = first
            if not left:
                break
        return found

    def blocks(self, rows: int, columns: Sequence[str] | None = None) -> Iterator[FloatArray]:
        """Yield matrices of at most ``rows`` rows, stored by columns; missing values are NaN.

        columns: Some of the file's columns; by default all columns of the table.
        """
        columns = list(self._becomes) if columns is None else columns
        width, rows_before = sum(len(self._becomes[name]) for name in columns), 0
        for batch in self._file.batches(columns, rows):
            # Arrow stores columns, and a matrix that is stored by columns is filled fastest.
            block = np.empty((len(batch), width), order="F")
            at = 0
            for name, cells in zip(columns, batch.columns, strict=True):
                end = at + len(self._becomes[name])
                if name in self.coding.levels:
                    self._spread(block[:, at:end], name, cells, rows_before)
                elif name in self.coding.dates:
                    block[:, at:end] = self._date_numbers(name, cells, rows_before)
                elif name in self.mixed:
                    block[:, at] = self._numbers_among(name, cells, rows_before)
                else:
                    block[:, at] = as_floats(cells)
                at = end
            if self._strict:
                self._faults.check()
            rows_before += len(batch)
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

    def _spread(self, block: FloatArray, name: str, cells: Any, rows_before: int) -> None:
        """Write the 0/1 columns of a text column to the columns of a block.

        cells: The column's cells, one for every row of the block.
        rows_before: Number of the table's rows before the block.
        """
        levels = self.coding.levels[name]
        self._faults.rows(name, "missing", rows_before + missing_rows(cells))
        texts = as_text(cells)
        place = pc.index_in(texts, pa.array(levels, pa.string()))
        at = np.from_dlpack(place.fill_null(-1))
        first = len(levels) - block.shape[1]  # The level before the first one has no column.
        np.equal(at[:, None], np.arange(first, len(levels)), out=block, casting="unsafe")
        block[missing_rows(cells)] = np.nan
        other = pc.and_(place.is_null(), cells.is_valid())
        if self._unknown != "zero" and pc.any(other).as_py():
            rows = np.flatnonzero(other.to_numpy(zero_copy_only=False))
            block[rows] = np.inf
            words = pc.unique(texts.filter(other)).to_pylist()
            self._faults.unknown(name, words, rows_before + rows, levels)

    def _date_numbers(self, name: str, cells: Any, rows_before: int) -> FloatArray:
        """The numbers that stand for a column of dates, infinite where a cell is no date."""
        times, wrong = as_times(cells)
        found = date_numbers(times, self.coding.dates[name])
        found[wrong] = np.inf
        if wrong.size:
            cell = quoted(cells[int(wrong[0])].as_py())
            what = f"column {quoted(name)} holds dates, and {cell} is none"
            self._faults.at_rows(name, what, ["write dates like 2024-01-31"], rows_before + wrong)
        self._faults.rows(name, "missing", rows_before + missing_rows(cells))
        return found

    def _numbers_among(self, name: str, cells: Any, rows_before: int) -> FloatArray:
        """The cells of a column of numbers and text, infinite where they are text."""
        texts = as_text(cells).fill_null("nan").to_pylist()
        plain = [text.replace(self._file.decimal, ".") for text in texts]
        values = np.array([float(text) if is_number(text) else np.inf for text in plain])
        self._faults.rows(name, "missing", rows_before + np.flatnonzero(np.isnan(values)))
        self._faults.rows(name, "text", rows_before + np.flatnonzero(np.isinf(values)))
        return values
