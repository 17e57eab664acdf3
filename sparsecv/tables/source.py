"""A table before its columns have uses: what a file, a data frame or a data set gives to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InputError
from .cells import Column, column_of, column_of_numbers
from .columns import FloatArray, quoted, suggestion


@dataclass(frozen=True)
class Source:
    """A table whose columns are read by name.

    label: The table's name in messages.
    names: Names of all columns.
    read: Takes names of columns, and names of those that are factors whatever their cells are.
        Returns the number of rows, and the columns by name. It raises an InputError where the table
        cannot be read.
    index: Names of columns that are no features unless a user names them.
    release: Returns memory that reading has taken to the system, once the columns are not used any
        more. Arrow would keep the memory for later, twice that of the table.
    """

    label: str
    names: list[str]
    read: Callable[[Sequence[str], Collection[str]], tuple[int, dict[str, Column]]]
    index: Sequence[str] = ()
    release: Callable[[], None] = lambda: None

    def texts(self, columns: Sequence[str]) -> list[list[str]]:
        """The cells of some columns as text, row by row; a missing cell is an empty text.

        Raises InputError: A column is unknown.
        """
        for name in columns:
            if name not in self.names:
                hint = suggestion(name, self.names)
                raise InputError(
                    f"{self.label}: --id names {quoted(name)}, which is no column; {hint}"
                )
        if not columns:
            return []
        _, found = self.read(list(dict.fromkeys(columns)), columns)
        own = {}
        for name, column in found.items():
            words = [*(str(cell).strip() for cell in column.cells), ""]
            own[name] = [words[place] for place in column.values]
        return list(map(list, zip(*(own[name] for name in columns), strict=True)))


class Reading(NamedTuple):
    """What a user says of the text in a file.

    encoding: Encoding of a text file, by a name that Python knows.
    decimal, thousands: Marks of numbers in text; by default the file shows what they are.
    na: Codes of missing values, besides an empty cell, NA and the like.
    """

    encoding: str = "utf-8"
    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] = ()


# The file itself shows how its numbers are written.
AS_SHOWN = Reading()


def source_of_frame(
    label: str, frame: Any, index: Sequence[str] = (), na: Collection[str] = ()
) -> Source:
    """A data frame as narwhals sees it; the types of its columns say which are factors."""
    places = {str(name): name for name in reversed(frame.columns)}

    def read(columns: Sequence[str], factors: Collection[str]) -> tuple[int, dict[str, Column]]:
        found = {
            name: column_of(name, frame.get_column(places[name]), declared=name in factors, na=na)
            for name in columns
        }
        return len(frame), found

    return Source(label, [str(name) for name in frame.columns], read, index)


def source_of_arrays(
    label: str, columns: Mapping[str, FloatArray], na: Collection[str] = ()
) -> Source:
    """Columns of numbers in memory, each an array of shape (n,)."""

    def read(names: Sequence[str], factors: Collection[str]) -> tuple[int, dict[str, Column]]:
        n = len(next(iter(columns.values())))
        return n, {
            name: column_of_numbers(name, columns[name], name in factors, na) for name in names
        }

    return Source(label, list(columns), read)
