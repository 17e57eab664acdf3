"""Text and Parquet files as rows of numbers, read block by block through Arrow."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ..errors import InputError
from .column_errors import MAX_LEVELS, Faults
from .columns import FloatArray, check_names, check_rows, select_columns, shown
from .parquet import ParquetFile, ParquetFolder, as_text
from .rows import ArraySource, Part, RowSource
from .text import KEPT_BYTES, TextFile, as_numpy

_LEVEL_ROWS = 65536


class ArrowTable:
    """Columns of a file as numbers, text columns spread over their levels.

    columns: Those in use.
    target: The one of them that is neither encoded nor dropped.
    one_hot: What to do with columns of text and dates: "" refuses them; "all" makes one 0/1 column
        per level; "two-level" leaves out the first of two levels.
    levels: Levels of columns of text that were encoded before.
    least: Rows the file must have.
    Raises InputError: In one line, every column that cannot be used.
    """

    def __init__(
        self,
        file: TextFile | ParquetFile,
        columns: Sequence[str],
        target: str | None = None,
        one_hot: str = "",
        levels: Mapping[str, Sequence[str]] | None = None,
        least: int = 2,
    ) -> None:
        self._file, self.columns, self.label = file, list(columns), file.label
        known, faults = levels or {}, Faults(file.label, target)
        self.n, text = file.inspect(self.columns, bool(one_hot), set(known), faults)
        check_rows(self.label, self.n, least)
        faults.check()
        found = [name for name in self.columns if name in text and name not in known]
        self.levels = {name: list(known[name]) for name in known}
        if found:
            self.levels |= self._collect(found, faults)
            faults.check()
        self.names: list[str] = []
        self.left_out: dict[str, str] = {}
        for name in self.columns:
            own = self.levels.get(name, [])
            if one_hot == "two-level" and len(own) == 2:
                self.left_out[name], own = own[0], own[1:]
            self.names += [f"{name}={level}" for level in own] or [name]
        check_names(self.label, self.names)

    def _collect(self, columns: Sequence[str], faults: Faults) -> dict[str, list[str]]:
        """The sorted levels of text columns; few strings are ever held."""
        levels: dict[str, dict[str, None]] = {name: {} for name in columns}
        row = 0
        for batch in self._file.batches(columns, _LEVEL_ROWS):
            for name, cells in zip(columns, batch.columns, strict=True):
                found = levels[name]
                missing = cells.is_null().to_numpy(zero_copy_only=False)
                faults.rows(name, "missing", row + np.flatnonzero(missing))
                if len(found) <= MAX_LEVELS:
                    seen = as_text(pc.unique(cells)).to_pylist()
                    found.update(dict.fromkeys(level for level in seen if level is not None))
            row += len(batch)
        for name, found in levels.items():
            if len(found) > MAX_LEVELS:
                faults.identifier(name, next(iter(found)), f"has more than {MAX_LEVELS} levels")
            elif len(found) == self.n:
                faults.identifier(name, next(iter(found)), "has another value in every row")
        return {name: sorted(found) for name, found in levels.items()}

    def blocks(self, rows: int) -> Iterator[FloatArray]:
        """Yield matrices of at most ``rows`` rows, stored by columns; missing values are NaN.

        Yields, shape (at most rows, columns).
        """
        kept, self._file.kept = self._file.kept, []
        if kept:  # what was read to look at the columns, once
            for block in kept:
                yield from (block[start : start + rows] for start in range(0, len(block), rows))
            return
        done = 0
        for batch in self._file.batches(self.columns, rows):
            # Arrow holds columns, so filling in column order is what runs at full speed.
            block = np.zeros((len(batch), len(self.names)), order="F")
            at = 0
            for name, cells in zip(self.columns, batch.columns, strict=True):
                if name in self.levels:
                    at += self._spread(block[:, at:], name, cells, done)
                else:
                    block[:, at] = self._file.floats(name, cells)
                    at += 1
            done += len(batch)
            yield block

    def _spread(self, block: FloatArray, name: str, cells: Any, done: int) -> int:
        """Write the 0/1 columns of one text column; return how many."""
        levels = [level for level in self.levels[name] if level != self.left_out.get(name)]
        places = {level: place for place, level in enumerate(levels)}
        if name in self.left_out:
            places[self.left_out[name]] = -1
        coded = as_text(cells).dictionary_encode()
        words = coded.dictionary.to_pylist()
        place = np.array([places.get(word, -2) for word in words] or [-2])
        at = place[as_numpy(coded.indices.fill_null(0))] if len(cells) else place[:0]
        if (at == -2).any():
            row = int((at == -2).argmax())
            raise InputError(
                f"{self.label}: column {shown(name)}, data row {done + row + 1}: "
                f"{shown(cells[row].as_py())} is none of its levels, which are "
                f"{', '.join(map(shown, self.levels[name]))}"
            )
        rows = np.flatnonzero(at >= 0)
        block[rows, at[rows]] = 1.0
        return len(levels)


class ArrowSource(RowSource):
    """A text or Parquet file with a response, read when asked for.

    name: Label for output.
    Raises InputError: A column cannot be used.
    """

    def __init__(
        self,
        file: TextFile | ParquetFile,
        name: str,
        *,
        target: str | None = None,
        one_hot: str = "",
        drop: Sequence[str] = (),
    ) -> None:
        self.name, self._file_label = name, file.label
        index = [column for column in getattr(file, "index", []) if column != target]
        selection = select_columns(file.label, file.names, target, (*drop, *index))
        self.target_name = file.names[selection.target]
        columns = [file.names[position] for position in selection.features]
        self.divisible = isinstance(file, ParquetFolder)
        self._table = ArrowTable(file, [*columns, self.target_name], self.target_name, one_hot)
        self.n = self._table.n
        self.feature_names = self._table.names[:-1]
        self.levels = self._table.levels
        self.left_out = self._table.left_out

    @property
    def _label(self) -> str:
        return self._file_label

    def parts(self) -> list[Part]:
        """One part per file of a folder; see :meth:`RowSource.parts`."""
        file = self._table._file
        if not isinstance(file, ParquetFolder):  # a part itself, among others
            return super().parts()
        found, start = [], 0
        for one in file.files:
            part = copy(self)
            part._table = copy(self._table)
            part._file_label = part._table.label = one.label
            part._table._file, part.n = one, one.n
            part.weights = part.groups = None
            found.append(Part(start, part))
            start += one.n
        return found

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for block in self._table.blocks(rows):
            yield np.ascontiguousarray(block[:, :-1]), block[:, -1].copy()


def open_arrow(file: TextFile | ParquetFile, name: str, **options: Any) -> RowSource:
    """An :class:`ArrowSource`; of text that is not large, its rows in memory.

    name: Of the table, for messages.
    """
    source = ArrowSource(file, name, **options)
    if isinstance(file, ParquetFile) or 8 * source.n * (source.p + 1) > KEPT_BYTES:
        return source
    X, y = source.load()
    held = ArraySource(X, y, source.feature_names, source.target_name, name)
    held.levels, held.left_out = source.levels, source.left_out
    return held
