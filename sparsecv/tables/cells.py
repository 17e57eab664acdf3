"""The cells of a column: numbers, or words with the positions of the rows among them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .columns import MISSING, FloatArray
from .marks import Marks

# A column of text whose cells are numbers but for at most so many distinct texts may hold numbers
# and codes of missing values. The number is a choice.
MAX_CODES = 5
# A number that is written without an exponent or a leading zero: 1.50 is the level 1.5 and 2. the
# level 2, while 01, which may be a code, stays as it is.
_PLAIN = re.compile(r"[-+]?(0|[1-9][0-9]*)\.[0-9]*")


class Column(NamedTuple):
    """A column of a table.

    It is a column of numbers, or of words, which may be texts or numbers that name levels.

    name: The column's name.
    values, shape (n,): Numbers, NaN where a cell is missing. In a column of words the positions,
        from 0, of the rows' cells among ``cells``, -1 where a cell is missing.
    words: For each of ``cells`` its level, as :func:`level_text` writes it, so that two cells may
        have one word; None for a column of numbers.
    cells: The distinct cells of a column of words, as the table holds them.
    declared: Whether a user or the type of the column says that the column is a factor.
    other: What the column holds that is neither number nor word: dates, periods, durations, times
        of day, or the name of a type.
    marks: How the table writes numbers in text.
    """

    name: str
    values: NDArray[Any]
    words: Sequence[str] | None = None
    cells: Sequence[Any] = ()
    declared: bool = False
    other: str = ""
    marks: Marks = Marks()

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        return np.asarray(np.isnan(self.values) if self.words is None else self.values < 0)

    def row(self, place: int) -> int:
        """The first row of the cell at a position among ``cells``, numbered from 1."""
        return int((self.values == place).argmax()) + 1

    def texts(self) -> list[tuple[str, int]]:
        """The distinct cells that are text, without blanks around them, each with its first row.

        Rows are numbered from 1. The column is one of words.
        """
        rows = np.flatnonzero(self.values >= 0)
        first = np.full(len(self.cells), len(self.values))
        np.minimum.at(first, self.values[rows], rows)
        pairs = zip(self.cells, first.tolist(), strict=True)
        return [(cell.strip(), row + 1) for cell, row in pairs if isinstance(cell, str)]

    def number(self, place: int) -> float | None:
        """The value of the cell at a position among ``cells``, None where the cell is no number."""
        cell = self.cells[place]
        if not isinstance(cell, str):
            return float(cell) if isinstance(cell, (Real, Decimal)) else None
        return self.marks.number(cell.strip())

    def as_numbers(self) -> FloatArray:
        """The numbers of all rows, shape (n,): NaN for missing cells, infinite for other texts.

        In a column of numbers it is the array itself, to which nobody may write.
        """
        if self.words is None:
            return self.values
        known = [self.number(place) for place in range(len(self.cells))]
        values = np.array([*(np.inf if one is None else one for one in known), np.nan])
        return np.asarray(values[self.values])  # The position -1 is that of NaN.

    def under(self, marks: Marks) -> Column:
        """The column of a table of text, whose numbers have the given marks.

        It is one of numbers if all its cells are numbers, or True and False; a declared factor
        stays one. With decimal commas 1,5 is the level 1.5.
        """
        if self.words is None or self.other:
            return self
        words = self.words
        if marks.decimal == ",":
            pairs = zip(self.cells, words, strict=True)
            words = [level_text(_point(cell)) if "," in word else word for cell, word in pairs]
        column = self._replace(words=words, marks=marks)
        if column.declared:
            return column
        if {"True", "False"}.issuperset(words):
            found = np.array([*(float(word == "True") for word in words), np.nan])
            return Column(self.name, found[self.values])  # The position -1 is that of NaN.
        if all(column.number(place) is not None for place in range(len(self.cells))):
            return Column(self.name, column.as_numbers())
        return column


def _point(cell: str) -> str:
    """A text, with a decimal point in place of its comma where it is a number."""
    text = cell.strip()
    return text.replace(",", ".") if Marks(",").number(text) is not None else text


def level_text(cell: Any) -> str:
    """The canonical text of a cell of a factor, the same in every kind of table.

    A number has no exponent, no zeros at its end and no point without digits behind it: 1, 1.0,
    "1", "1." and "1.00" are "1", 1e-05 and "0.00001" are "0.00001", and −0 is "0". True, "true" and
    "TRUE" are "True". Text loses the blanks around it. Text with an exponent, a leading zero or no
    digit before the point, such as "1E5", "01" and ".5", is no number here, and a plus sign stays.
    """
    if isinstance(cell, (float, np.floating)) and np.isfinite(cell):
        cell = np.format_float_positional(cell, trim="-")
    text = str(cell).strip()
    if text.lower() in ("true", "false"):
        return text.capitalize()
    if _PLAIN.fullmatch(text):
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "+0") else text


def in_order(levels: Collection[str]) -> list[str]:
    """Levels in order: by their values where all of them are numbers, else by their texts."""
    values = {level: Marks().number(level) for level in levels}
    if None in values.values():
        return sorted(levels)
    return sorted(levels, key=lambda level: (values[level] or 0.0, level))


def column_of(
    name: str, series: Any, *, declared: bool = False, text: bool = False, na: Collection[str] = ()
) -> Column:
    """A column of numbers or of words, or one that cannot be used, from a column of a data frame.

    series: A Series of narwhals.
    declared: The column is a factor, also where its cells are numbers. Dates, times, durations,
        complex numbers and nested cells cannot be used all the same.
    text: The column comes from a file of text, where NA and the like are missing values.
    na: Codes that are missing values, too: numbers of equal value, and texts of the same level.
    """
    import narwhals as nw

    values, dtype = np.asarray(series.to_numpy()), series.dtype
    missing = np.asarray(series.is_null().to_numpy())
    declared = declared or isinstance(dtype, (nw.Categorical, nw.Enum))
    if dtype.is_temporal() or values.dtype.kind in "mM":
        other = "times of day" if dtype == nw.Time else "dates"
        other = "durations" if dtype == nw.Duration or values.dtype.kind == "m" else other
        return unusable(name, series.to_list(), other)
    if values.ndim > 1 or values.dtype.kind == "c":
        return unusable(name, list(values), str(dtype).lower())
    if declared and missing.any() and values.dtype.kind != "O" and not dtype.is_float():
        # As an array whole numbers beside a missing cell are floats, which lose digits, and a
        # missing cell among the levels of Arrow is another level.
        values = np.array(series.to_list(), dtype=object)
    is_numeric = dtype.is_numeric() or dtype == nw.Boolean or values.dtype.kind in "biuf"
    if is_numeric and not declared:
        return column_of_numbers(name, _as_floats(values, missing), na=na)
    return _column_of_cells(name, values, missing, str(dtype).lower(), declared, text, na)


def column_of_numbers(
    name: str, values: FloatArray, *, declared: bool = False, na: Collection[str] = ()
) -> Column:
    """A column of an array of numbers, NaN where they are missing.

    declared: The column is a factor, whose levels the numbers are.
    na: Codes that are missing values, too.
    """
    codes = [value for code in na if (value := Marks().number(code)) is not None]
    numbers = np.where(np.isin(values, codes), np.nan, values) if codes else values
    if not declared:
        return Column(name, numbers)
    known = ~np.isnan(numbers)
    cells, place = np.unique(numbers[known], return_inverse=True)
    places = np.full(len(numbers), -1)
    places[known] = place
    return Column(name, places, [level_text(one) for one in cells], cells.tolist(), declared=True)


def unusable(name: str, values: Sequence[Any], other: str) -> Column:
    """A column that holds something other than numbers and words, with its cells as texts.

    values: The cells, of which pandas says how they are written and which ones are missing.
    other: What they are, in the plural, or the name of a type.
    """
    import pandas as pd

    series = pd.Series(values, dtype=None if len(values) else object)
    codes, cells = pd.factorize(series.astype(str).where(series.notna()))
    return Column(name, codes, list(cells), list(cells), other=other)


def _as_floats(values: NDArray[Any], missing: NDArray[np.bool_]) -> FloatArray:
    """Numbers as 64-bit floats, NaN where they are missing."""
    if values.dtype.kind == "O":
        values = values.copy()
        values[missing] = np.nan
    return np.asarray(values.astype(np.float64, copy=False))


def _column_of_cells(
    name: str,
    values: NDArray[Any],
    missing: NDArray[np.bool_],
    dtype: str,
    declared: bool,
    text: bool,
    na: Collection[str],
) -> Column:
    """A column of Python objects, or of a factor.

    Dates and the like, and objects without a hash, give a column that is unusable. Otherwise a
    declared factor gives words, and so does text, alone or with numbers; numbers alone give a
    column of numbers. Whatever else there is gives words with ``dtype`` as what the column holds.

    values, shape (n,): The cells.
    missing: Which cells of an array of objects are missing. In any other array these are NaN.
    dtype: The name of the column's type, for messages.
    declared, text, na: Those of :func:`column_of`.
    """
    import pandas as pd

    if values.dtype.kind == "O":
        values = values.copy()
        values[missing] = None
    try:
        codes, distinct = pd.factorize(values)  # A missing cell has the position -1.
    except TypeError:  # Lists and the like have no hash.
        return unusable(name, list(values), dtype)
    cells = list(distinct) if values.dtype.kind == "O" else distinct.tolist()
    kinds = {date: "dates", pd.Period: "periods", timedelta: "durations", time: "times of day"}
    for cell in cells:
        for kind, other in kinds.items():
            if isinstance(cell, kind):
                texts = [str(one).strip().lower() for one in values]
                pairs = zip(values, texts, strict=True)
                return unusable(name, [None if t in MISSING else one for one, t in pairs], other)
    words, absent = [level_text(cell) for cell in cells], {level_text(code) for code in na}
    kept = [
        k
        for k, (cell, word) in enumerate(zip(cells, words, strict=True))
        if not (word in absent or (text and isinstance(cell, str) and word.lower() in MISSING))
    ]
    places = np.full(len(cells) + 1, -1)  # The last one is that of missing cells, which stays -1.
    places[kept] = np.arange(len(kept))
    cells, words = [cells[k] for k in kept], [words[k] for k in kept]
    column = Column(name, places[codes], words, cells, declared)
    usable = all(isinstance(cell, (str, Real, Decimal)) for cell in cells)
    if declared or (usable and any(isinstance(cell, str) for cell in cells)):
        return column
    return Column(name, column.as_numbers()) if usable else column._replace(other=dtype)
