"""A table before its columns have uses: what a file, a data frame or a data set gives to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InputError
from .cells import Column, column_of, column_of_numbers
from .columns import FloatArray, quoted, suggestion
from .marks import AS_SHOWN, Reading

# Files are read in pieces of about this many cells, some 20 MB of text or 8 MB of numbers. Small
# pieces take longer, and large ones take memory. The number is a choice.
CELLS_AT_A_TIME = 1_000_000


class Cells(NamedTuple):
    """Some columns of a table.

    n: The number of rows.
    columns: The columns by name.
    decimal: The decimal mark that numbers in text show; None where no text shows one.
    """

    n: int
    columns: dict[str, Column]
    decimal: str | None = None


@dataclass(frozen=True)
class Source:
    """A table whose columns are read by name.

    label: The table's name in messages.
    names: Names of all columns.
    read: Takes names of columns, and names of those that are factors whatever their cells are.
        Returns the columns. It raises an InputError where the table cannot be read.
    index: Names of columns that are no features unless a user names them.
    reading: How the text in the table is read.
    in_lines: Whether the names are those of a first line, which may be a row by mistake.
    notes: What a user should know of how the table was read.
    """

    label: str
    names: list[str]
    read: Callable[[Sequence[str], Collection[str]], Cells]
    index: Sequence[str] = ()
    reading: Reading = AS_SHOWN
    in_lines: bool = False
    notes: Sequence[str] = ()

    def texts(self, columns: Sequence[str]) -> list[list[str]]:
        """The cells of some columns as text, row by row; a missing cell is an empty text.

        The result is empty without columns. Every column is read as a factor, whose cells are kept
        as they are written, without the blanks around them. Codes of missing values are empty
        texts, and so are NA and the like in files of text.

        columns: The names that --id of ``sparsecv predict`` gives. A name may occur twice; the
            texts stand in this order.
        Raises InputError: A column is unknown, or the table cannot be read.
        """
        for name in columns:
            if name not in self.names:
                hint = suggestion(name, self.names)
                raise InputError(
                    f"{self.label}: --id names {quoted(name)}, which is no column; {hint}"
                )
        if not columns:
            return []
        own, distinct = {}, list(dict.fromkeys(columns))
        for name, column in self.read(distinct, columns).columns.items():
            # A missing cell has the position -1, which is that of the empty text.
            texts = [*(str(cell).strip() for cell in column.cells), ""]
            own[name] = [texts[place] for place in column.values]
        return list(map(list, zip(*(own[name] for name in columns), strict=True)))


def source_of_frame(label: str, frame: Any, reading: Reading = AS_SHOWN) -> Source:
    """A source of the columns of a data frame of narwhals, whose types say which are factors.

    Names of columns that are no texts, such as numbers, are written as texts. Of several columns
    of one name the first is read.
    """
    places = {str(name): name for name in reversed(frame.columns)}

    def read(columns: Sequence[str], factors: Collection[str]) -> Cells:
        found = dict[str, Column]()
        for name in columns:
            series = frame.get_column(places[name])
            found[name] = column_of(name, series, declared=name in factors, na=reading.na)
        return Cells(len(frame), found)

    return Source(label, [str(name) for name in frame.columns], read, reading=reading)


def source_of_arrays(label: str, columns: Mapping[str, FloatArray], reading: Reading) -> Source:
    """A source of columns of numbers in memory, at least one, each an array of shape (n,).

    reading: Numbers that are among its codes ``na`` are missing values, as NaN is.
    """

    def read(names: Sequence[str], factors: Collection[str]) -> Cells:
        n, found = len(next(iter(columns.values()))), dict[str, Column]()
        for name in names:
            declared, values = name in factors, columns[name]
            found[name] = column_of_numbers(name, values, declared=declared, na=reading.na)
        return Cells(n, found)

    return Source(label, list(columns), read, reading=reading)
