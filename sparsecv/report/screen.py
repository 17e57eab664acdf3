"""Prints the sections of a result by rich: on a terminal, as text, or as the HTML of a page."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from rich.bar import Bar
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .sections import Section, SectionColumn, SectionTable, counted, listed

# All sections take at most so many lines of the screen, unless every row is asked for. Tables show
# the rows around the choice: of these numbers of rows the largest with which all sections fit, but
# sentences below tables are left out rather than that tables show fewer than FEW_ROWS. The table of
# the model is cut once the others show FEW_ROWS. The numbers are choices.
MAX_LINES = 60
ROWS_OF_TABLES = (40, 30, 24, 20, 16, 13, 10, 8, 6, 4, 3, 2, 1)
FEW_ROWS = 3
# A column of names gets so many characters where its cells are longer; columns that matter less are
# left out for it. The number is a choice.
ROOM_FOR_NAMES = 24
# A page is so many characters wide. The number is a choice.
PAGE_WIDTH = 100


def show(console: Console, sections: Iterable[Section], for_all: str = "") -> None:
    """Print sections within ``MAX_LINES``, or every table to its last row.

    for_all: What a user writes to see every row, such as "--table", which a table that is cut says;
        empty where every row is to be printed.
    """
    made = list(sections)
    # Sections, the most rows of a table, and the most rows of the table of the model.
    tries: list[tuple[list[Section], int | None, int | None]] = [(made, None, None)]
    if for_all:
        full = [one for one in made if not one.long]
        short = [
            one._replace(sentences=()) if one.table and not one.main else one
            for one in full
            if not one.explains
        ]
        short.append(Section("", sentences=[f"{for_all} also explains the tables."]))
        enough = [rows for rows in ROWS_OF_TABLES if rows >= FEW_ROWS]
        tries = [(some, rows, None) for some in (full, short) for rows in enough]
        tries += [(short, FEW_ROWS, rows) for rows in enough]
        tries += [(short, rows, rows) for rows in ROWS_OF_TABLES if rows < FEW_ROWS]
    for some, rows, of_model in tries:
        parts = list[RenderableType]()
        for one in some:
            parts += _titled(one, console.width, of_model if one.main else rows, for_all)
        if len(console.render_lines(Group(*parts), pad=False)) <= MAX_LINES:
            break
    console.print(Group(*parts))


def printed(sections: Iterable[Section], for_all: str = "") -> str:
    """What :func:`show` prints, without colours and without blanks at the ends of lines."""
    console = _recorder(None)
    show(console, sections, for_all)
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def as_html(section: Section) -> str:
    """A section as HTML: its title as a heading, and the rest as it is printed, in full.

    A long section is folded up below its title.
    """
    found = ""
    for part in _body(section, PAGE_WIDTH, None, ""):
        console = _recorder(PAGE_WIDTH)
        console.print(part)
        found += console.export_html(inline_styles=True, code_format="<pre>{code}</pre>\n")
    title = f"<h2>{escape(section.title)}</h2>\n" if section.title else ""
    if section.long:
        return f"<details><summary>{escape(section.title)}</summary>\n{found}</details>\n"
    return title + found


def _recorder(width: int | None) -> Console:
    """A console that keeps what is printed, wherever Python runs; None for the terminal's width."""
    plain: Any = {"force_terminal": False, "force_jupyter": False, "highlight": False}
    return Console(record=True, file=io.StringIO(), width=width, emoji=False, **plain)


def _titled(
    section: Section, width: int, most: int | None, for_all: str
) -> Iterator[RenderableType]:
    """Yield the title of a section with a table, and then what else it has."""
    if section.table is not None:
        yield Text(f"\n{section.title}", style="italic")
    yield from _body(section, width, most, for_all)


def _body(section: Section, width: int, most: int | None, for_all: str) -> Iterator[RenderableType]:
    """Yield what rich prints of a section below its title.

    most: The largest number of rows of a table, None for all rows.
    for_all: As of :func:`show`.
    """
    if section.facts:
        yield _facts(section)
    if (table := section.table) is not None:
        shown = table if most is None else table.around(most)
        yield from _table(shown, width)
        if shown.length < table.length:
            more = counted(table.length - shown.length, "more " + table.what.removesuffix("s"))
            yield Text(f"… {more}: {for_all} shows them")
    for text in section.sentences:
        yield Text(text)


def _facts(section: Section) -> Table:
    """Facts as lines of a label, a figure and its meaning."""
    lines = Table.grid(padding=(0, 1))
    # Labels of facts take this many characters, so that the facts of all sections stand in one
    # line.
    lines.add_column(min_width=9, no_wrap=True)
    lines.add_column(overflow="fold")
    for label, figure, meaning in section.facts:
        text = Text(figure, style="bold")
        text.append((", " if figure and meaning else "") + meaning, style="not bold")
        lines.add_row(Text(label, style="bold"), text)
    return lines


def _table(table: SectionTable, width: int) -> Iterator[RenderableType]:
    """Yield a table in as many parts as its numbers need, and the columns there is no room for."""
    if any(one.kind == "names" for one in table.columns):
        columns, missing = _fitted(table.columns, width)
        yield _part(columns, table.chosen)
        if missing:
            yield Text(f"A wider screen also shows: {listed(missing)}.")
        return
    for columns in _parts(table.columns, width):
        yield _part(columns, table.chosen)


def _fitted(columns: Sequence[SectionColumn], width: int) -> tuple[list[SectionColumn], list[str]]:
    """Columns that fit into the width with their names cut, and the heads of those left out.

    One of the columns is of names, and gets the room that the others leave. Where that is too
    little, columns that matter less are left out, the last of them first.
    """
    kept, missing = list(columns), list[str]()
    needed = min(ROOM_FOR_NAMES, *(_width(one) for one in kept if one.kind == "names"))
    while True:
        free = width - sum(_width(one) for one in kept if one.kind != "names")
        minor = [i for i, one in enumerate(kept) if one.minor]
        if free >= needed or not minor:
            break
        missing.insert(0, kept.pop(minor[-1]).head)
    room = max(free, needed)
    for i, one in enumerate(kept):
        if one.kind == "names":
            kept[i] = one._replace(cells=[[listed(names, room)] for names in one.cells])
    return kept, missing


def _parts(columns: Sequence[SectionColumn], width: int) -> Iterator[list[SectionColumn]]:
    """Yield the columns of each part: all, or of numbers the first column and some others."""
    first, *others = columns
    if any(one.kind != "number" for one in columns):
        yield list(columns)
        return
    part: list[SectionColumn] = []
    left = free = width - _width(first)
    for column in others:
        left -= _width(column)
        if left < 0 and part:
            yield [first, *part]
            part, left = [], free - _width(column)
        part.append(column)
    yield [first, *part]


def _width(column: SectionColumn) -> int:
    """Number of characters that a column takes, with the two blanks behind it."""
    return 2 + max(map(cell_len, [column.head, *column.texts]))


def _part(columns: Sequence[SectionColumn], chosen: int | None) -> Table:
    """Columns side by side; numbers stand to the right, and bars are drawn."""
    found = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    drawn: list[list[Bar] | list[Text]] = []
    for column in columns:
        number, bar = column.kind == "number", column.kind == "bar"
        how: Any = {"justify": "right" if number else "left", "overflow": "fold"}
        if column.kind == "names":
            how["overflow"] = "ellipsis"
        # The largest bar takes this many characters, and no fewer than its heading.
        how["width"] = max(12, len(column.head)) if bar else None
        found.add_column(Text(column.head), no_wrap=column.kind in ("number", "names"), **how)
        if bar:
            drawn.append([Bar(1.0, 0.0, cell) for cell in column.cells])
        else:
            drawn.append([Text(text) for text in column.texts])
    for i, row in enumerate(zip(*drawn, strict=True)):
        found.add_row(*row, style="bold green" if i == chosen else None)
    return found
