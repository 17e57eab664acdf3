"""Numbers in text: their decimal mark and their mark of thousands, which are those of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from ..errors import InputError, warn_caller
from .columns import quoted

# Every mark of thousands that --thousands takes; the first two are also decimal marks.
THOUSANDS = (".", ",", " ", "'", "’", "_")
# Characters that programs write in place of a mark of thousands.
_SAME_MARK = {" ": str.maketrans("\u00a0\u202f\u2009", "   "), "'": str.maketrans("’", "'")}


class Reading(NamedTuple):
    """How the text in a file is read, as a user says or as a saved model remembers.

    encoding: Encoding of a text file, by a name that Python knows.
    decimal, thousands: Marks of numbers in text; by default the file shows what they are.
    na: Codes of missing values, besides an empty cell, NA and the like.
    usual: The decimal mark of a file that leaves open which one it has; None: it is refused.
    """

    encoding: str = "utf-8"
    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] = ()
    usual: str | None = None


# The file itself shows how its numbers are written.
AS_SHOWN = Reading()


class Marks(NamedTuple):
    """How numbers are written in a text.

    decimal: "." or ",".
    thousands: The mark between groups of three digits; empty if there is none.
    """

    decimal: str = "."
    thousands: str = ""

    def number(self, text: str) -> float | None:
        """The value of a text, or None where the text is no number that is written with the marks.

        Groups of thousands are complete: 1,234,567 is a number, and 1,23 or 0,123 is none.
        """
        plain = text.translate(_SAME_MARK.get(self.thousands, {}))
        if not _pattern(self).fullmatch(plain):
            return None
        digits = plain.replace(self.thousands, "") if self.thousands else plain
        return float(digits.replace(self.decimal, "."))


@cache
def _pattern(marks: Marks) -> re.Pattern[str]:
    """The pattern of the numbers that are written with some marks."""
    point, group = re.escape(marks.decimal), re.escape(marks.thousands)
    ways = [rf"([0-9]+({point}[0-9]*)?|{point}[0-9]+)(e[-+]?[0-9]+)?", "inf(inity)?"]
    if group:
        ways.append(rf"[1-9][0-9]{{0,2}}({group}[0-9]{{3}})+({point}[0-9]*)?")
    return re.compile(rf"[-+]?({'|'.join(ways)})", re.IGNORECASE)


def possible_marks(reading: Reading) -> list[Marks]:
    """The ways in which a file may write its numbers, after what the user says of its marks.

    Raises InputError: A mark is none that numbers have, or both are the same.
    """
    decimal, thousands = reading.decimal, reading.thousands
    if decimal not in (None, ".", ","):
        raise InputError(f"--decimal must be a point or a comma; got {decimal!r}")
    if thousands not in (None, *THOUSANDS):
        known = " ".join(map(repr, THOUSANDS))
        raise InputError(f"--thousands must be one of {known}; got {thousands!r}")
    if decimal == thousands and decimal is not None:
        raise InputError(f"--decimal and --thousands cannot both be {decimal!r}")
    thousands = "'" if thousands == "’" else thousands
    every = [
        Marks(point, other if thousands is None else thousands)
        for point, other in ((".", ","), (",", "."))
        if decimal in (None, point)
    ]
    return [marks for marks in every if marks.decimal != marks.thousands]


class _Cell(NamedTuple):
    """A number in a text column: the column's name, the text, and the data row, from 1."""

    name: str
    text: str
    row: int

    def __str__(self) -> str:
        return f"{quoted(self.text)} in column {quoted(self.name)} (data row {self.row})"


def marks_of(
    label: str,
    texts: Mapping[str, Iterable[tuple[str, int]]],
    possible: list[Marks],
    usual: Marks,
    in_doubt: bool,
    known: str | None,
) -> Marks | None:
    """The marks of the numbers in a file; None where no number needs them.

    A text such as 1,5 or 1.234,5 has one reading, and shows what the marks of the whole file are;
    3.102 has two, 3.102 and 3102.

    label: The file's name in messages.
    texts: Of every column of numbers its distinct texts, each with its first row, from 1.
    possible: One or two ways to write numbers.
    usual: The way that is taken where no text shows another one.
    in_doubt: Whether a fraction in the usual way, such as 3.102, may be 3102 where nothing shows
        which it is.
    known: The decimal mark of a file that leaves open which one it has, None where that is unknown.
    Raises InputError: Texts show different marks, or leave open what the marks are.
    """
    if len(possible) == 1:
        return possible[0]
    one_reading = {marks: list[_Cell]() for marks in possible}
    open_cells = list[_Cell]()
    for name, cells in texts.items():
        for text, row in cells:
            values = {m: v for m in possible if (v := m.number(text)) is not None}
            if len(values) == 1:
                one_reading[next(iter(values))].append(_Cell(name, text, row))
            elif len(set(values.values())) == 2:
                open_cells.append(_Cell(name, text, row))
    shown = [marks for marks in possible if one_reading[marks]]
    if len(shown) == 2:
        comma, point = sorted(shown)[0], sorted(shown)[1]
        raise InputError(
            f"{label}: numbers have decimal commas and decimal points: "
            f"{one_reading[comma][0]} and {one_reading[point][0]}; write all numbers in one way, "
            "or leave a column out with --exclude"
        )
    doubtful = [cell for cell in open_cells if in_doubt or usual.decimal not in cell.text]
    if not shown and doubtful:
        if settled := [marks for marks in possible if marks.decimal == known]:
            value = settled[0].number(doubtful[0].text)
            what = f"{label}: {doubtful[0]} is read as {value:.15g}, with the decimal mark of the "
            warn_caller(f"{what}model's table; --decimal names another", UserWarning)
            return settled[0]
        cell = doubtful[0]
        first, second = (marks.number(cell.text) for marks in possible)
        others = [other for other in open_cells if other.name != cell.name]
        also = f", as {others[0]}" if others else ""
        raise InputError(
            f"{label}: {cell} could be {first:.15g} or {second:.15g}{also}, and no other number of "
            "the file shows which; name the file's decimal mark with --decimal . or --decimal ,"
        )
    if not (shown or open_cells):
        return None
    marks = shown[0] if shown else usual
    if marks.decimal == known:
        return marks
    for grouped, fraction in _mixed(one_reading[marks], open_cells, marks):
        raise InputError(
            f"{label}: column {quoted(grouped.name)} mixes decimal commas and decimal points: "
            f"{quoted(grouped.text)} (data row {grouped.row}) beside {quoted(fraction.text)} (data "
            f"row {fraction.row}); write all its numbers in one way, or pass --decimal "
            f"{marks.decimal} if the first is {marks.number(grouped.text):.15g}"
        )
    return marks


def _mixed(
    decimals: list[_Cell], open_cells: list[_Cell], marks: Marks
) -> Iterator[tuple[_Cell, _Cell]]:
    """Yield 1.234 and 1,5 where a column holds both and shows nowhere that 1.234 is 1234.

    A number such as 1.234,5 shows it.
    """
    grouped = {cell.name for cell in decimals if marks.thousands in cell.text}
    first = {cell.name: cell for cell in reversed(decimals) if marks.decimal in cell.text}
    for cell in open_cells:
        if marks.thousands in cell.text and cell.name in first and cell.name not in grouped:
            yield cell, first[cell.name]
