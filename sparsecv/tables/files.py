"""Files of columns: what all kinds of files have in common, and columns that are arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import PARQUET_SUFFIXES, WORKBOOK_SUFFIXES, quoted, rows_changed
from .faults import Faults
from .weights import Column

TABLE_SUFFIXES = {".csv", ".tsv", ".txt", *PARQUET_SUFFIXES, *WORKBOOK_SUFFIXES, ".gz"}


class File(ABC):
    """A file whose columns are read by name.

    label: The file's name in messages.
    names: Names of all columns.
    n: Number of rows; known of a text file once :meth:`inspect` has read it.
    index: Names of columns that are no features unless a user names them.
    decimal: The decimal mark of numbers in text.
    stores_rows: Whether :meth:`inspect` reads the cells of all columns that it is given.
    """

    label: str
    names: list[str]
    n = 0
    index: Sequence[str] = ()
    decimal = "."
    stores_rows = False

    @abstractmethod
    def load(self, columns: Sequence[str]) -> dict[str, Any]:
        """All cells of the named columns, each an array of Arrow, or of numbers of NumPy.

        Raises InputError: The file cannot be read, or has another number of rows than before.
        """

    @abstractmethod
    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """Count the rows, and return the names of the columns that hold text or no value.

        Columns that are neither numeric nor text are added to ``faults``.

        levels: Names of columns that are known to hold text.
        """

    def column(self, name: str, kept: slice | NDArray[np.bool_]) -> Column:
        """Read a column of weights or groups.

        kept: Which rows are in use.
        Raises InputError: The column is neither numeric nor text, or a cell of it is missing.
        """
        import pyarrow as pa

        from .cells import as_text

        try:
            coded = as_text(self.load([name])[name]).fill_null("").dictionary_encode()
        except pa.ArrowException:
            what = f"column {quoted(name)} is neither numeric nor text"
            raise InputError(f"{self.label}: {what}") from None
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

        try:
            values = as_floats(self.load([name])[name].cast(pa.float64()))
        except pa.ArrowException:
            return None
        first = values[0] if values.size else 0.0
        counted = values == first + np.arange(values.size)
        return name if first in (0.0, 1.0) and counted.all() else None


class ColumnFile(File):
    """Columns that are read whole: those of a Parquet file, a data frame or a built-in data set.

    kinds: What columns hold: "number", "text", or a type that is neither.
    read: Returns the cells of the named columns.
    """

    def __init__(
        self,
        label: str,
        names: Sequence[str],
        n: int,
        kinds: Mapping[str, str],
        read: Callable[[Sequence[str]], dict[str, Any]],
    ) -> None:
        self.label, self.names, self.n = label, list(names), n
        self._kinds, self._read = kinds, read

    def load(self, columns: Sequence[str]) -> dict[str, Any]:
        """All cells of the named columns; see :meth:`File.load`."""
        found = self._read(columns)
        if any(len(cells) != self.n for cells in found.values()):
            raise rows_changed(self.label, self.n)
        return found

    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """Find text by the columns' types; see :meth:`File.inspect`."""
        text = set(levels)
        for name in columns:
            kind = self._kinds[name]
            if kind == "text":
                text.add(name)
            elif name in text or kind == "number":
                continue
            elif name == faults.target:
                what = f"the target column {quoted(name)} is not numeric: it has type {kind}"
                faults.add(name, what, ["name a numeric column with --target"])
            else:
                what = f"column {quoted(name)} has type {kind}, neither numeric nor text"
                faults.add(name, what)
        return text
