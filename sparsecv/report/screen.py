"""Prints the sections of a result on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.bar import Bar
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from .sections import Column, Section

# A table of more rows is cut to ROWS_AROUND rows around the choice, unless --table is given. Both
# numbers are choices.
MAX_TABLE_ROWS = 40
ROWS_AROUND = MAX_TABLE_ROWS // 2 + 1


def show(console: Console, sections: Iterable[Section], whole: bool = False) -> None:
    """Print sections; ``whole`` prints every table to its last row."""
    for section in sections:
        if section.facts:
            console.print(_facts(section))
        if (table := section.table) is not None:
            cut = not whole and table.length > MAX_TABLE_ROWS
            shown = table.around(ROWS_AROUND) if cut else table
            console.print()
            console.print(Text(section.title, style="italic"))
            for columns in _parts(shown.columns, console.width):
                console.print(_part(columns, shown.chosen))
            if cut:
                more = f"… {table.length - shown.length} more {table.what}: --table shows them"
                console.print(Text(more, style="dim"))
        for text in section.sentences:
            console.print(Text(text, style="dim" if table is None else ""))


def _facts(section: Section) -> RichTable:
    """Facts as lines of a label, a figure and its meaning."""
    lines = RichTable.grid(padding=(0, 1))
    # Labels of facts take this many characters, so that the facts of all sections stand in one
    # line.
    lines.add_column(min_width=9, no_wrap=True)
    lines.add_column(overflow="fold")
    for label, figure, meaning in section.facts:
        text = Text(figure, style="bold")
        text.append((", " if figure and meaning else "") + meaning, style="not bold")
        lines.add_row(Text(label, style="bold"), text)
    return lines


def _parts(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Yield the columns of each part: all, or of numbers the first column and some others."""
    first, *others = columns
    if any(one.kind != "number" for one in columns):
        yield list(columns)
        return
    part: list[Column] = []
    left = free = width - _width(first) - 1
    for column in others:
        left -= _width(column)
        if left < 0 and part:
            yield [first, *part]
            part, left = [], free - _width(column)
        part.append(column)
    yield [first, *part]


def _width(column: Column) -> int:
    """Number of characters that a column takes, its border included."""
    return 3 + max(map(len, [column.head, *column.texts]))


def _part(columns: Sequence[Column], chosen: int | None) -> RichTable:
    """Columns side by side; numbers stand to the right, and bars are drawn."""
    found = RichTable()
    drawn: list[list[Bar] | list[Text]] = []
    for column in columns:
        number, bar = column.kind == "number", column.kind == "bar"
        how: Any = {"justify": "right" if number else "left", "no_wrap": number}
        # The largest bar takes this many characters.
        width = 12 if bar else None
        found.add_column(Text(column.head), overflow="fold", width=width, **how)
        if bar:
            drawn.append([Bar(1.0, 0.0, cell) for cell in column.cells])
        else:
            drawn.append([Text(text) for text in column.texts])
    for i, row in enumerate(zip(*drawn, strict=True)):
        found.add_row(*row, style="bold green" if i == chosen else None)
    return found
