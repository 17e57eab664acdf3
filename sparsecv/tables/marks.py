"""Numbers in text: their decimal mark and their mark of thousands, which are those of a file.

In every function ``label`` is the file's name in messages.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from ..errors import InputError, warn_caller
from .columns import quoted

# Every mark of thousands that --thousands takes; the first two are also decimal marks.
THOUSANDS = (".", ",", " ", "'", "’", "_")
# Of a mark of thousands the characters that programs write in its place, which it replaces.
_SAME_MARK = {" ": str.maketrans("\u00a0\u202f\u2009", "   "), "'": str.maketrans("’", "'")}


class Reading(NamedTuple):
    """How the text in a file is read, as a user says or as a saved model remembers.

    encoding: Encoding of a text file, by a name that Python knows.
    decimal, thousands: Marks of numbers in text; by default the file shows what they are.
    na: Codes of missing values, besides an empty cell, NA and the like.
    header: Whether the first line holds the names of the columns; by default it does, and a table
        whose first line looks like a row is refused.
    names: Names of all columns, in place of those in the first line. With names and no ``header``
        there is no line of names. Columns of a file without names are x1, x2 and so on.
    usual: The decimal mark of a file whose numbers leave open which one it has, such as that of the
        table to which a saved model was fitted; with None such a file is refused.
    """

    encoding: str = "utf-8"
    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] = ()
    usual: str | None = None
    header: bool | None = None
    names: tuple[str, ...] = ()

    @property
    def has_header(self) -> bool:
        """Whether the first line is one of names, and no row."""
        return not self.names if self.header is None else self.header


# The file itself shows how its numbers are written.
AS_SHOWN = Reading()


def checked_encoding(name: Any) -> str:
    """Python's name of an encoding of text.

    name: What a user writes, such as "latin-1" or "UTF8".
    Raises ValueError: Python knows no encoding of this name that files of text can have.
    """
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=name)
        return codecs.lookup(name).name
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"Python knows no encoding of text {quoted(name)}") from None


class Marks(NamedTuple):
    """How numbers are written in a text.

    decimal: "." or ",".
    thousands: The mark between groups of three digits; empty if there is none.
    """

    decimal: str = "."
    thousands: str = ""

    def number(self, text: str) -> float | None:
        """The value of a text, or None where the text is no number that is written with the marks.

        The text has no blanks around it. A mark of thousands may be left out; where it is there, it
        stands before every three digits of the whole part, and the number has no exponent. With
        points as decimal marks and commas between thousands 1,234,567.5 and 1234567.5 are numbers;
        1,23 and 0,123 are none. The words inf and infinity, in any case of their letters, are
        numbers.
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
    return re.compile(rf"[-+]?({'|'.join(ways)})", re.IGNORECASE | re.ASCII)


def possible_marks(reading: Reading) -> list[Marks]:
    """The ways in which a file may write its numbers, after what the user says of its marks.

    There is one way where the user names a decimal mark, or a point or comma between thousands.
    Else there are two: first decimal points and then decimal commas, each with the other one
    between thousands unless the user names another mark.

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
    thousands = "'" if thousands == "’" else thousands  # ``Marks.number`` reads both as one.
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
    in_doubt: bool,
    known: str | None,
) -> Marks | None:
    """The marks of the numbers in a file; None where two ways are possible and no text needs one.

    A text such as 1,5 or 1.234,5 has one reading, and shows what the marks of the whole file are;
    3.102 has two, 3.102 and 3102.

    label: The file's name in messages.
    texts: Of every column of numbers its distinct texts, each with its first row, from 1.
    possible: One or two ways to write numbers. The first is the usual way, which is taken where no
        text shows the other.
    in_doubt: Whether a fraction in the usual way, such as 3.102, may be 3102 where nothing shows
        which it is.
    known: The decimal mark of a file that leaves open which one it has, None where that is unknown.
    Raises InputError: Texts show different marks, or leave open what the marks are.
    """
    if len(possible) == 1:
        return possible[0]
    one_reading = {marks: list[_Cell]() for marks in possible}
    two_readings = list[_Cell]()
    for name, cells in texts.items():
        for text, row in cells:
            values = {m: v for m in possible if (v := m.number(text)) is not None}
            if len(values) == 1:
                one_reading[next(iter(values))].append(_Cell(name, text, row))
            elif len(set(values.values())) == 2:  # A text such as 12 has one value in both ways.
                two_readings.append(_Cell(name, text, row))
    points, commas = sorted(possible, reverse=True)
    if one_reading[points] and one_reading[commas]:
        raise InputError(
            f"{label}: numbers have decimal commas and decimal points: "
            f"{one_reading[commas][0]} and {one_reading[points][0]}; write all numbers in one way, "
            "or leave a column out with --exclude"
        )
    shown = [marks for marks in possible if one_reading[marks]]
    # Where nothing is shown, 3.102 is a fraction if points are usual, and 3,102 is in doubt.
    doubtful = [cell for cell in two_readings if in_doubt or possible[0].decimal not in cell.text]
    if not shown and doubtful:
        cell = doubtful[0]
        if settled := [marks for marks in possible if marks.decimal == known]:
            what = f"{label}: {cell} is read as {settled[0].number(cell.text):.15g}, with the "
            what += "decimal mark of the model's table; --decimal names another"
            warn_caller(what, UserWarning)
            return settled[0]
        others = [other for other in two_readings if other.name != cell.name]
        also = f", as {others[0]}" if others else ""
        raise InputError(
            f"{label}: {cell} could be {points.number(cell.text):.15g} or "
            f"{commas.number(cell.text):.15g}{also}, and no other number of the file shows which; "
            "name the file's decimal mark with --decimal . or --decimal ,"
        )
    if not (shown or two_readings):
        return None
    marks = shown[0] if shown else possible[0]
    if marks.decimal == known:
        return marks
    _refuse_mixed(label, one_reading[marks], two_readings, marks)
    return marks


def _refuse_mixed(
    label: str, one_reading: list[_Cell], two_readings: list[_Cell], marks: Marks
) -> None:
    """Raise an InputError where a column holds 1.234 and 1,5, and no 1.234,5 says what 1.234 is.

    In this example commas are the decimal marks of the file, and 1.234 may be 1234 or a fraction
    that was written by another hand.

    one_reading, two_readings: The cells that are numbers in one and in two ways.
    marks: The marks of the file.
    """
    grouped = {cell.name for cell in one_reading if marks.thousands in cell.text}
    fractions = {cell.name: cell for cell in reversed(one_reading) if marks.decimal in cell.text}
    for cell in two_readings:
        if marks.thousands in cell.text and cell.name in fractions and cell.name not in grouped:
            fraction = fractions[cell.name]
            raise InputError(
                f"{label}: column {quoted(cell.name)} mixes decimal commas and decimal points: "
                f"{quoted(cell.text)} (data row {cell.row}) beside {quoted(fraction.text)} (data "
                f"row {fraction.row}); write all its numbers in one way, or pass --decimal "
                f"{marks.decimal} if the first is {marks.number(cell.text):.15g}"
            )
