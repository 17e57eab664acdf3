"""The parts of a result that are shown: facts, tables, sentences and pictures.

A list of sections is made once for a result. ``screen.py`` prints the list, and ``page.py`` puts
what is printed into a page, with the pictures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray


class Fact(NamedTuple):
    """One line of an answer: a label, a figure, which may be empty, and what it means."""

    label: str
    figure: str
    meaning: str = ""


class SectionColumn(NamedTuple):
    """A column of a table: its name, its cells, and what they are.

    cells: Texts, or numbers that :func:`number` writes. The cells of a "bar" are shares between 0
        and 1, which are drawn. Each cell of "names" is a sequence of names, of which a line shows
        as many as it has room for.
    kind: "number", "words", "bar" or "names".
    minor: Whether a screen that is too narrow for the table leaves this column out.
    """

    head: str
    cells: Sequence[Any] | NDArray[Any]
    kind: str = "number"
    minor: bool = False

    @property
    def texts(self) -> list[str]:
        """The cells as texts, with all names."""
        if self.kind == "names":
            return [listed(one) for one in self.cells]
        return [number(one) if isinstance(one, float) else str(one) for one in self.cells]


class SectionTable(NamedTuple):
    """A table with typed columns, all of the same length.

    chosen: Position of the row that is emphasised.
    what: What the rows are, in the plural.
    """

    columns: Sequence[SectionColumn]
    chosen: int | None = None
    what: str = "rows"

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(self.columns[0].cells)

    def around(self, most: int) -> SectionTable:
        """The table itself, or the ``most`` rows around the emphasised row or at the beginning."""
        centre = 0 if self.chosen is None else self.chosen
        start = max(0, min(centre - most // 2, self.length - most))
        columns = [one._replace(cells=one.cells[start : start + most]) for one in self.columns]
        chosen = None if self.chosen is None else self.chosen - start
        return self._replace(columns=columns, chosen=chosen)

    def filled(self) -> SectionTable:
        """The table without the columns whose cells are all empty."""
        return self._replace(columns=[one for one in self.columns if any(one.texts)])


class Section(NamedTuple):
    """A part of a result: a title, facts, a table, sentences and a picture.

    picture: Draws a figure of matplotlib, and gives its description; only a page shows it.
    long: Whether a screen shows the section only where every row of every table is asked for.
    explains: Whether it explains words, for which a screen may have no room.
    main: Whether it is the model itself, which a screen cuts after everything else.
    """

    title: str
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


def numbers(values: Iterable[float], exact: Iterable[bool]) -> list[str]:
    """Numbers as texts, after ≈ where they are not exact."""
    return [number(value, bool(known)) for value, known in zip(values, exact, strict=True)]


def percent(share: float, digits: int = 2) -> str:
    """A share in percent, with some significant digits; empty for NaN."""
    return "" if math.isnan(share) else f"{float(f'{100.0 * share:.{digits}g}'):,g} %"


def counted(count: int, what: str = "feature") -> str:
    """A number and a word, which gets an s unless the number is 1."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def listed(names: Sequence[str], characters: int | None = None) -> str:
    """Names with commas between: as many as fit into some characters, and how many more.

    A part of the first name is there where not even that name fits.
    """
    text = ", ".join(names)
    if characters is None or len(text) <= characters:
        return text
    for most in range(len(names) - 1, 0, -1):
        text = f"{', '.join(names[:most])} and {len(names) - most} more"
        if len(text) <= characters:
            return text
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return names[0][: max(characters - len(more) - 1, 1)] + "…" + more
