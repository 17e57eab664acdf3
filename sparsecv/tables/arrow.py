"""Columns of text and Parquet files as numbers, which Arrow reads block by block."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from .column_errors import MAX_LEVELS, Faults
from .columns import BLOCK_ROWS, FloatArray, check_names, check_rows, quoted, rows_changed
from .weights_groups import Column

# The first column of an exported data frame has one of these names where the frame's index has
# none: R and pandas write the first, and a file that pandas wrote and read again has the second.
UNNAMED = ("", "Unnamed: 0")


class Contents(NamedTuple):
    """What :meth:`ArrowFile.inspect` finds out about some columns of a file.

    n: Number of rows.
    text: Names of the columns that hold text.
    faults: Faults of the columns.
    blocks: All numbers of the columns, if the inspection has read them and they fit in memory.
    """

    n: int
    text: set[str]
    faults: Faults
    blocks: Sequence[FloatArray] = ()


class ArrowFile(ABC):
    """A text or Parquet file, whose columns are read by name.

    path: The file, or the folder of Parquet files.
    label: The file's name in messages.
    names: Names of all columns.
    n: Number of rows; known of a Parquet file alone.
    index: Names of columns that are no features unless a user names them.
    files: The files of a folder.
    decimal: The decimal mark of numbers in text.
    missing_allowed: Missing values are read as NaN, in place of an error.
    """

    path: Path
    label: str
    names: list[str]
    n: int
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
    def inspect(
        self, columns: Sequence[str], target: str | None, encode: bool, levels: Collection[str]
    ) -> Contents:
        """Count the rows, find the columns that hold text, and collect the columns' faults.

        target: Name of the response, where text is always a fault.
        encode: Text columns become 0/1 columns; otherwise text is a fault.
        levels: Names of columns that are known to hold text.
        """

    @abstractmethod
    def floats(self, name: str, cells: Any) -> FloatArray:
        """The m cells of a numeric column as float64, shape (m,); missing cells become NaN."""

    def unnamed_index(self) -> str | None:
        """The name of the first column if it is none and its cells count the rows, else None.

        Exported data frames have such a column, which counts from 0 or from 1.
        """
        name = self.names[0]
        if name not in UNNAMED or self.names.count(name) > 1:
            return None
        first, row = -1.0, 0
        try:
            for batch in self.batches([name], BLOCK_ROWS):
                cells = as_numpy(pc.cast(batch.column(0), pa.float64()))
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
                parts.append(np.array(at, dtype=np.intp)[as_numpy(coded.indices)])
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
        self._file, self._columns, self.label = file, list(columns), file.label
        self.levels = dict(levels or {})
        found = file.inspect(self._columns, target, bool(one_hot), self.levels)
        self.n, text, faults, self._blocks = found
        check_rows(self.label, self.n, min_rows)
        faults.check()
        new = [name for name in self._columns if name in text and name not in self.levels]
        self.levels |= self._collect(new, faults) if new else {}
        faults.check()
        self.names: list[str] = []
        self.reference_levels: dict[str, str] = {}
        for name in self._columns:
            own = self.levels.get(name, [])
            if one_hot == "two-level" and len(own) == 2:
                self.reference_levels[name], own = own[0], own[1:]
            self.names += [f"{name}={level}" for level in own] or [name]
        check_names(self.label, self.names)
        self.in_memory = 8 * self.n * len(self.names) <= file.max_bytes_in_memory

    def parts(self) -> "list[ArrowTable]":
        """A table of the same columns for every file of a folder; empty for a single file."""
        found = [copy(self) for _ in self._file.files]
        for part, file in zip(found, self._file.files, strict=True):
            part._file, part.label, part.n = file, file.label, file.n
        return found

    def _collect(self, columns: Sequence[str], faults: Faults) -> dict[str, list[str]]:
        """Read the sorted levels of text columns; more than ``MAX_LEVELS`` levels are a fault."""
        levels: dict[str, dict[str, None]] = {name: {} for name in columns}
        row = 0
        for batch in self._file.batches(columns, BLOCK_ROWS):
            for name, cells in zip(columns, batch.columns, strict=True):
                missing = cells.is_null().to_numpy(zero_copy_only=False)
                faults.rows(name, "missing", row + np.flatnonzero(missing))
                if len(levels[name]) <= MAX_LEVELS:
                    seen = as_text(pc.unique(cells)).drop_null().to_pylist()
                    levels[name].update(dict.fromkeys(seen))
            row += len(batch)
        for name, found in levels.items():
            if len(found) > MAX_LEVELS or len(found) == self.n:
                why = "has another value in every row"
                if len(found) > MAX_LEVELS:
                    why = f"has more than {MAX_LEVELS} levels"
                what = f"text column {quoted(name)} {why} (for example {quoted(next(iter(found)))})"
                faults.add(name, f"{what}, so it looks like an identifier")
        return {name: sorted(found) for name, found in levels.items()}

    def blocks(self, rows: int) -> Iterator[FloatArray]:
        """Yield matrices of at most ``rows`` rows, stored by columns; missing values are NaN."""
        for block in self._blocks:
            yield from (block[start : start + rows] for start in range(0, len(block), rows))
        if self._blocks:
            return
        rows_before = 0
        for batch in self._file.batches(self._columns, rows):
            # Arrow stores columns, and a matrix that is stored by columns is filled fastest.
            block = np.zeros((len(batch), len(self.names)), order="F")
            at = 0
            for name, cells in zip(self._columns, batch.columns, strict=True):
                if name in self.levels:
                    at += self._spread(block[:, at:], name, cells, rows_before)
                else:
                    block[:, at] = self._file.floats(name, cells)
                    at += 1
            rows_before += len(batch)
            yield block

    def load(self) -> FloatArray:
        """All rows, shape (n, columns), in C order; missing values are NaN.

        Raises InputError: The table has another number of rows than when it was opened.
        """
        found, at = np.empty((self.n, len(self.names))), 0
        step = max(self._file.max_columns_at_once or 0, len(self._columns) // 32, 1)
        if self._file.max_columns_at_once is None:
            step = len(self._columns)
        for start in range(0, len(self._columns), step):
            part, row = copy(self), 0
            part._columns = self._columns[start : start + step]
            part.names = self.names[at : at + sum(map(self._width, part._columns))]
            for block in part.blocks(BLOCK_ROWS):
                if row + len(block) > self.n:
                    raise rows_changed(self.label, self.n)
                found[row : row + len(block), at : at + len(part.names)] = block
                row += len(block)
            if row != self.n:
                raise rows_changed(self.label, self.n)
            at += len(part.names)
        return found

    def _width(self, name: str) -> int:
        """The number of columns that a column of the file becomes: 1, or those of its levels."""
        if name not in self.levels:
            return 1
        return len(self.levels[name]) - (name in self.reference_levels)

    def _spread(self, block: FloatArray, name: str, cells: Any, rows_before: int) -> int:
        """Write the 0/1 columns of a text column to a block, and return their number.

        cells: The column's cells, one for every row of the block.
        rows_before: Number of the table's rows before the block.
        """
        every, reference_levels = self.levels[name], self.reference_levels.get(name)
        levels = [level for level in every if level != reference_levels]
        known = [*levels, reference_levels] if name in self.reference_levels else levels
        place = pc.index_in(as_text(cells), pa.array(known, pa.string()))
        known_missing = self._file.missing_allowed
        unknown = pc.and_(place.is_null(), cells.is_valid()) if known_missing else place.is_null()
        if pc.any(unknown).as_py():
            row = int(unknown.index(True).as_py())
            raise InputError(
                f"{self.label}: column {quoted(name)}, data row {rows_before + row + 1}: "
                f"{quoted(cells[row].as_py())} is none of its levels, which are "
                f"{', '.join(map(quoted, every))}"
            )
        at = as_numpy(place.fill_null(len(known)))
        rows = np.flatnonzero(at < len(levels))
        block[rows, at[rows]] = 1.0
        block[at == len(known), : len(levels)] = np.nan
        return len(levels)


def as_text(cells: Any) -> Any:
    """The values of an Arrow array as strings without blanks around; missing values stay missing.

    Text files lose these blanks, too, so that a level has one name in every kind of table.
    """
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return pc.utf8_trim_whitespace(cells.cast(pa.string()))


def as_numpy(cells: Any) -> Any:
    """An Arrow array of shape (m,) as a NumPy array; missing values become NaN.

    Arrow's own conversion imports pandas, so only arrays that need it are converted by Arrow.
    """
    if cells.null_count or pa.types.is_boolean(cells.type):
        return cells.to_numpy(zero_copy_only=False)
    return np.from_dlpack(cells)
