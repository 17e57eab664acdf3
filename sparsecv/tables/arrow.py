"""Text and Parquet files as columns of numbers, read block by block through Arrow."""

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
from .columns import BLOCK_ROWS, FloatArray, check_names, check_rows, shown
from .weights_groups import Column


class Contents(NamedTuple):
    """What a first look at a file has found.

    n: Number of rows.
    text: Columns that hold text.
    faults: What is wrong with the columns.
    kept: All numbers, in blocks stored by columns, if the look has read and kept the numbers.
    """

    n: int
    text: set[str]
    faults: Faults
    kept: Sequence[FloatArray] = ()


class ArrowFile(ABC):
    """A text or Parquet file, whose columns are asked for by name.

    path: The file, or the folder of Parquet files.
    label: What messages call the file.
    n: Number of rows, of a Parquet file.
    index: Columns that are used only where a user names them.
    files: The files of a folder.
    """

    path: Path
    label: str
    names: list[str]
    n: int
    index: Sequence[str] = ()
    files: Sequence["ArrowFile"] = ()
    decimal = "."
    kept_bytes = 0  # Tables whose numbers take no more bytes are held in memory.

    @abstractmethod
    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows, the columns in the order asked for."""

    @abstractmethod
    def inspect(
        self, columns: Sequence[str], target: str | None, encode: bool, levels: Collection[str]
    ) -> Contents:
        """Count the rows, find the columns that hold text, and see what is wrong.

        target: The response, which can be neither encoded nor dropped.
        encode: Text columns are going to be encoded; otherwise text is a fault.
        levels: Columns that are known to hold text.
        """

    @abstractmethod
    def floats(self, name: str, cells: Any) -> FloatArray:
        """Cells of a numeric column as float64, shape (m,); nulls become NaN."""

    def select(self, columns: Sequence[str], **options: Any) -> "ArrowTable":
        """Some columns as numbers; the options are those of :class:`ArrowTable`."""
        return ArrowTable(self, columns, **options)

    def words(self, name: str) -> Column:
        """A column of weights or groups, read in a pass of its own.

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
            what = f"column {shown(name)} is neither numeric nor text"
            raise InputError(f"{self.label}: {what}") from None
        return Column(self.label, name, np.concatenate(parts), list(place), self.decimal)


class ArrowTable:
    """Columns of a file as numbers, with 0/1 columns in place of text columns.

    target: The column that is neither encoded nor dropped.
    one_hot: What to do with columns of text and dates: "" refuses them; "all" makes one 0/1 column
        per level; "two-level" leaves out the first of two levels.
    levels: Levels of text columns, where a model was fitted on them before.
    least: Number of rows that are needed.
    Raises InputError: One line names every column that cannot be used.
    """

    def __init__(
        self,
        file: ArrowFile,
        columns: Sequence[str],
        target: str | None = None,
        one_hot: str = "",
        levels: Mapping[str, Sequence[str]] | None = None,
        least: int = 2,
    ) -> None:
        self._file, self._columns, self.label = file, list(columns), file.label
        self.levels = dict(levels or {})
        found = file.inspect(self._columns, target, bool(one_hot), self.levels)
        self.n, text, faults, self._kept = found
        check_rows(self.label, self.n, least)
        faults.check()
        new = [name for name in self._columns if name in text and name not in self.levels]
        self.levels |= self._collect(new, faults) if new else {}
        faults.check()
        self.names: list[str] = []
        self.left_out: dict[str, str] = {}
        for name in self._columns:
            own = self.levels.get(name, [])
            if one_hot == "two-level" and len(own) == 2:
                self.left_out[name], own = own[0], own[1:]
            self.names += [f"{name}={level}" for level in own] or [name]
        check_names(self.label, self.names)
        self.held = 8 * self.n * len(self.names) <= file.kept_bytes

    def parts(self) -> "list[ArrowTable]":
        """The same columns of every file of a folder; none where the table is no folder."""
        found = [copy(self) for _ in self._file.files]
        for part, file in zip(found, self._file.files, strict=True):
            part._file, part.label, part.n = file, file.label, file.n
        return found

    def _collect(self, columns: Sequence[str], faults: Faults) -> dict[str, list[str]]:
        """The sorted levels of text columns; few strings are ever held."""
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
                what = f"text column {shown(name)} {why} (for example {shown(next(iter(found)))})"
                faults.add(name, f"{what}, so it looks like an identifier")
        return {name: sorted(found) for name, found in levels.items()}

    def blocks(self, rows: int) -> Iterator[FloatArray]:
        """Yield matrices of at most ``rows`` rows, stored by columns; missing values are NaN."""
        for block in self._kept:
            yield from (block[start : start + rows] for start in range(0, len(block), rows))
        if self._kept:
            return
        done = 0
        for batch in self._file.batches(self._columns, rows):
            # Arrow holds columns, so filling in column order is what runs at full speed.
            block = np.zeros((len(batch), len(self.names)), order="F")
            at = 0
            for name, cells in zip(self._columns, batch.columns, strict=True):
                if name in self.levels:
                    at += self._spread(block[:, at:], name, cells, done)
                else:
                    block[:, at] = self._file.floats(name, cells)
                    at += 1
            done += len(batch)
            yield block

    def _spread(self, block: FloatArray, name: str, cells: Any, done: int) -> int:
        """Write the 0/1 columns of a text column, and return how many they are.

        done: Rows that stand before these cells.
        """
        every, left_out = self.levels[name], self.left_out.get(name)
        levels = [level for level in every if level != left_out]
        known = [*levels, left_out] if name in self.left_out else levels
        place = pc.index_in(as_text(cells), pa.array(known, pa.string()))
        if place.null_count:
            row = int(place.is_null().index(True).as_py())
            raise InputError(
                f"{self.label}: column {shown(name)}, data row {done + row + 1}: "
                f"{shown(cells[row].as_py())} is none of its levels, which are "
                f"{', '.join(map(shown, every))}"
            )
        at = as_numpy(place)
        rows = np.flatnonzero(at < len(levels))
        block[rows, at[rows]] = 1.0
        return len(levels)


def as_text(cells: Any) -> Any:
    """The values of an Arrow array as strings, nulls kept."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return cells.cast(pa.string())


def as_numpy(cells: Any) -> Any:
    """An Arrow array of shape (m,) as NumPy's; nulls become NaN.

    Arrow's own conversion imports pandas, and is left to arrays that need it.
    """
    if cells.null_count or pa.types.is_boolean(cells.type):
        return cells.to_numpy(zero_copy_only=False)
    return np.from_dlpack(cells)
