"""Prints the sections of a result on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.bar import Bar
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ..plots.sections import Column, Section, Table

# A table of more rows is cut to ROWS_AROUND rows around the choice, unless --table is given. Both
# numbers are choices.
MAX_TABLE_ROWS = 40
ROWS_AROUND = MAX_TABLE_ROWS // 2 + 1


def show(console: Console, sections: Iterable[Section], whole: bool = False) -> None:
    """Print sections; ``whole`` prints every table to its last row."""
    for section in sections:
        if section.facts:
            console.print(_facts(section))
        if section.table is not None:
            console.print()
            _print_table(console, section.title, section.table, whole)
        for text in section.sentences:
            console.print(Text(text, style="dim" if section.table is None else ""))


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


def _print_table(console: Console, title: str, table: Table, whole: bool) -> None:
    """Print a table, in as many parts as the console's width needs."""
    shown = table if whole or table.length <= MAX_TABLE_ROWS else table.around(ROWS_AROUND)
    console.print(Text(title, style="italic"))
    for columns in _parts(shown.columns, console.width):
        console.print(_part(columns, shown.chosen))
    if table.length > shown.length:
        more = f"… {table.length - shown.length} more {table.what}: --table shows them"
        console.print(Text(more, style="dim"))


def _parts(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Yield the columns of each part: all, or of numbers the first column and some others."""
    if any(one.kind != "number" for one in columns):
        yield list(columns)
        return
    widths = [3 + max(map(len, [one.head, *one.cells])) for one in columns]
    part, used = [columns[0]], widths[0] + 1
    for column, more in zip(columns[1:], widths[1:], strict=True):
        if used + more > width and len(part) > 1:
            yield part
            part, used = [columns[0]], widths[0] + 1
        part.append(column)
        used += more
    yield part


def _part(columns: Sequence[Column], chosen: int | None) -> RichTable:
    """Columns side by side; numbers stand to the right, and bars are drawn."""
    found, drawn = RichTable(), []
    for head, cells, kind in columns:
        number, bar = kind == "number", kind == "bar"
        how: Any = {"justify": "right" if number else "left", "no_wrap": number}
        # The largest bar takes this many characters.
        width = 12 if bar else None
        found.add_column(Text(head), overflow="fold", width=width, **how)
        drawn.append([Bar(1.0, 0.0, cell) if bar else Text(cell) for cell in cells])
    for i, row in enumerate(zip(*drawn, strict=True)):
        found.add_row(*row, style="bold green" if i == chosen else None)
    return found
