"""The parts of a result that are shown: facts, tables, sentences and pictures.

A list of sections is made once for a result. ``screen.py`` prints the list, and ``page.py`` puts
what is printed into a page, with the pictures. Texts and numbers are written here in one way for
all sections.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from ..cv.results import rounded_bound
from ..design.features import cut_name

# Where room is limited, a name takes at most so many characters, less than a line of a screen
# beside a label. The number is a choice.
LONGEST_NAME = 60


class Fact(NamedTuple):
    """One line above a table, such as "CV error  0.52 ± 0.03, mean squared held-out error".

    label: The word at the beginning of the line; empty where the line goes on with the one above.
    figure: What is printed in bold, mostly a number; empty where the meaning says all.
    meaning: What the figure means.
    """

    label: str = ""
    figure: str = ""
    meaning: str = ""


class SectionColumn(NamedTuple):
    """A column of a table.

    head: The name above the column.
    cells: Of kind "number" and "words" texts, or numbers that :func:`number` writes. A "bar" is
        drawn from a share between 0 and 1. A cell of "names" is a sequence of names, of which a
        line shows as many as it has room for. "changes" has such cells, too, and a line shows how
        they differ from those of the line above it.
    minor: Whether a screen that is too narrow for the table leaves this column out.
    """

    head: str
    cells: Sequence[Any] | NDArray[Any]
    kind: Literal["number", "words", "bar", "names", "changes"] = "number"
    minor: bool = False

    @property
    def texts(self) -> list[str]:
        """The cells as texts, with all names."""
        if self.kind in ("names", "changes"):
            return [listed(names) for names in self.written.cells]
        return [number(cell) if isinstance(cell, float) else str(cell) for cell in self.cells]

    @property
    def written(self) -> SectionColumn:
        """The column itself, but for one of changes the column of the names that come and go."""
        if self.kind != "changes":
            return self
        cells = [changes(before, now) for before, now in pairwise([(), *self.cells])]
        return self._replace(cells=cells, kind="names")


class SectionTable(NamedTuple):
    """A table of columns that all have the same number of cells.

    chosen: Position of the row of the chosen model, which is emphasised; None for no such row.
    what: What the rows are, in the plural.
    kept: Positions of rows that a table of fewer rows has besides the chosen row, if it has room.
    """

    columns: Sequence[SectionColumn]
    chosen: int | None = None
    what: str = "rows"
    kept: Sequence[int] = ()

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(self.columns[0].cells)

    def cut(self, most: int) -> SectionTable:
        """The table with about ``most`` rows, which a line below it counts the others of.

        The chosen row and those kept are never left out, and more than one row is: the line that
        counts a single row would take its place.
        """
        least = len({self.chosen, *self.kept} - {None}) if self.kept else 0
        return self if self.length <= most + 1 else self.around(max(most, least))

    def around(self, most: int) -> SectionTable:
        """The table with at most ``most`` rows: the chosen, those kept, and those around it."""
        if self.length <= most:
            return self
        centre = 0 if self.chosen is None else self.chosen
        start = max(0, min(centre - most // 2, self.length - most))
        window = sorted(range(start, start + most), key=lambda row: abs(row - centre))
        first = [centre, *self.kept] if self.kept else []
        rows = sorted(list(dict.fromkeys([*first, *window]))[:most])
        columns = [
            one._replace(cells=[one.cells[row] for row in rows])  # The kind of the cells stays.
            for one in self.columns
        ]
        chosen = None if self.chosen is None else rows.index(self.chosen)
        kept = [rows.index(row) for row in self.kept if row in rows]
        return self._replace(columns=columns, chosen=chosen, kept=kept)

    def without_words(self) -> SectionTable:
        """The table without the columns of words that matter less."""
        kept = [one for one in self.columns if one.kind != "words" or not one.minor]
        return self._replace(columns=kept)

    def filled(self) -> SectionTable:
        """The table without the columns whose cells are all empty."""
        return self._replace(columns=[one for one in self.columns if any(one.texts)])


class Section(NamedTuple):
    """A part of a result. Its facts stand above its table, and its sentences below.

    title: The heading; a screen prints it only above a table, and it may be empty.
    picture: Draws a figure of matplotlib, and returns it with its description; only a page shows
        it.
    long: Whether a screen shows the section only where every row of every table is asked for, and
        a page folds it up.
    explains: Whether it explains words. Such a section is the first that a full screen leaves out.
    main: Whether it is the model itself, whose table a full screen cuts last.
    """

    title: str = ""
    facts: Sequence[Fact] = ()
    table: SectionTable | None = None
    sentences: Sequence[str] = ()
    picture: Callable[[], tuple[Any, str]] | None = None
    long: bool = False
    explains: bool = False
    main: bool = False


def number(value: float, exact: bool = True) -> str:
    """A number with six significant digits, after ≈ where it is an estimate; empty for NaN."""
    if math.isnan(value):
        return ""
    return ("" if exact else "≈") + f"{value + 0.0:.6g}"  # The sum turns −0 into 0.


def with_error(text: str, std_error: float, mark: str = "") -> str:
    """A number and its standard error, with a mark behind; the number alone where that is NaN."""
    return text if math.isnan(std_error) else f"{text} ± {number(std_error)}{mark}"


def numbers(values: Iterable[float], exact: Iterable[bool]) -> list[str]:
    """Numbers as texts, each after ≈ where its entry of ``exact`` is false."""
    return [number(value, known) for value, known in zip(values, exact, strict=True)]


def percent(share: float, digits: int = 2) -> str:
    """A share of 1 as percent, with so many significant digits; empty for NaN."""
    return "" if math.isnan(share) else f"{float(f'{100.0 * share:.{digits}g}'):,g} %"


def percent_bound(share: float, *, up: bool) -> str:
    """A bound on a share of 1 as percent, rounded up or down to two digits, so that it holds."""
    return f"{float(rounded_bound(100.0 * share, up=up, digits=2)):,g} %"


def counted(count: int, what: str = "feature") -> str:
    """A number and a word, which gets an s unless the number is 1."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def changes(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """The names that came in, each after a plus, and those that went out, each after a minus."""
    came = [f"+{name}" for name in now if name not in before]
    return came + [f"−{name}" for name in before if name not in now]


def listed(names: Sequence[str], characters: int | None = None) -> str:
    """Names with commas between: as many as fit into some characters, and how many more.

    No name takes more than LONGEST_NAME. Where not even the first name fits, its middle is left
    out. A text of one name is never longer than ``characters``, for which None sets no limit.
    """
    if characters is None:
        return ", ".join(names)
    names = [cut_name(name, LONGEST_NAME) for name in names]
    text = ", ".join(names)
    if len(text) <= characters:
        return text
    for most in range(len(names) - 1, 0, -1):
        text = f"{', '.join(names[:most])} and {len(names) - most} more"
        if len(text) <= characters:
            return text
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return cut_name(names[0], characters - len(more)) + more


def p_value_text(low: float, high: float) -> str:
    """The p-value that lies between two numbers: one number where they differ by rounding alone.

    It is empty for NaN, the p-value of a column that the others determine.
    """
    if math.isnan(low):
        return ""
    if math.isclose(low, high, rel_tol=1e-6):
        return f"{high:.3g}"
    return f"{rounded_bound(low, up=False, digits=3)} to {rounded_bound(high, up=True, digits=3)}"


def interval_text(low: float, high: float) -> str:
    """An interval, in words where an end is infinite; empty for NaN."""
    if math.isnan(low):
        return ""
    if math.isinf(low):
        return "every number" if math.isinf(high) else f"every number up to {number(high)}"
    if math.isinf(high):
        return f"every number from {number(low)}"
    return f"{number(low)} to {number(high)}"
