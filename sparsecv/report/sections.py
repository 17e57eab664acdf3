"""The parts of a result that are shown: facts, tables, sentences, pictures and JSON entries.

Three renderers show a list of sections: ``screen.py`` on a terminal, ``page.py`` as HTML, and
:func:`document` as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Fact(NamedTuple):
    """One line of an answer: a label, a figure, which may be empty, and what it means."""

    label: str
    figure: str
    meaning: str = ""


class Column(NamedTuple):
    """A column of a table: its name, its cells, and what they are.

    cells: Texts, or numbers that :func:`number` writes. The cells of a "bar" are shares between 0
        and 1, which are drawn.
    kind: "number", "words" or "bar".
    """

    head: str
    cells: Sequence[Any] | NDArray[Any]
    kind: str = "number"

    @property
    def texts(self) -> list[str]:
        """The cells as texts."""
        return [number(one) if isinstance(one, float) else str(one) for one in self.cells]


class Table(NamedTuple):
    """A table with typed columns, all of the same length.

    chosen: Position of the row that is emphasised.
    what: What the rows are, in the plural.
    """

    columns: Sequence[Column]
    chosen: int | None = None
    what: str = "rows"

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(self.columns[0].cells)

    def around(self, most: int) -> Table:
        """The table itself, or the ``most`` rows around the emphasised row or at the beginning."""
        centre = 0 if self.chosen is None else self.chosen
        start = max(0, min(centre - most // 2, self.length - most))
        columns = [one._replace(cells=one.cells[start : start + most]) for one in self.columns]
        return Table(columns, None if self.chosen is None else self.chosen - start, self.what)

    def filled(self) -> Table:
        """The table without the columns whose cells are all empty."""
        return self._replace(columns=[one for one in self.columns if any(one.texts)])


class Section(NamedTuple):
    """A part of a result: a title, facts, a table, sentences, a picture and entries.

    picture: Draws a figure of matplotlib, and gives its description; only a page shows it.
    entries: Gives what only the JSON document shows.
    """

    title: str
    facts: Sequence[Fact] = ()
    table: Table | None = None
    sentences: Sequence[str] = ()
    picture: Callable[[], tuple[Any, str]] | None = None
    entries: Callable[[], Mapping[str, Any]] | None = None


def document(sections: Iterable[Section]) -> dict[str, Any]:
    """The entries of all sections as one JSON document."""
    found: dict[str, Any] = {}
    for section in sections:
        if section.entries is not None:
            found |= section.entries()
    return dict(plain(found))


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, and null where a number is not finite."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Enum):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    return "" if math.isnan(share) else f"{100.0 * share:.{digits}g} %"


def counted(count: int, what: str = "feature") -> str:
    """A number and a word, which gets an s unless the number is 1."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names with commas between; of more than ``most``, the first ones and how many more."""
    shown = names[:most]
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return ", ".join(shown) + more
