"""Prints the sections of a result by rich: on a terminal, as text, or as the HTML of a page."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

from rich.bar import Bar
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .sections import Section, SectionColumn, SectionTable, counted, listed

# A limited screen shows at most this many lines. The number is a choice.
MAX_LINES = 60
# The most rows of a table that a limited screen tries, one number after the other, until all
# sections fit. The numbers are choices.
ROWS_OF_TABLES = (40, 30, 24, 20, 16, 13, 10, 8, 6, 4, 3, 2, 1)
# Before a table shows fewer rows than this, sentences below tables and explanations are left out.
# The number is a choice.
FEW_ROWS = 3
# A model of at most so many rows is cut after all other tables. The number is a choice.
ROWS_OF_A_MODEL = 10
# A column of names gets so many characters where its cells are longer; columns that matter less are
# left out for it. The number is a choice.
ROOM_FOR_NAMES = 24
# A page is so many characters wide. The number is a choice.
PAGE_WIDTH = 100


class _Extent(NamedTuple):
    """How much of a result is shown.

    rows: The most rows of every table but that of the model; None for all rows.
    model_rows: The most rows of the table of the model; None for all rows.
    """

    sections: list[Section]
    rows: int | None = None
    model_rows: int | None = None


def show(console: Console, sections: Iterable[Section], for_all: str = "") -> None:
    """Print sections within ``MAX_LINES``, or every table to its last row.

    for_all: What a user writes to see every row, such as "--table", which a table that is cut says;
        empty where every row is to be printed.
    """
    for extent in _extents(list(sections), for_all):
        parts = list[RenderableType]()
        for one in extent.sections:
            if one.table is not None:
                parts.append(Text(f"\n{one.title}", style="italic"))
            most = extent.model_rows if one.main else extent.rows
            parts += _body(one, console.width, most, for_all)
        if len(console.render_lines(Group(*parts), pad=False)) <= MAX_LINES:
            break
    console.print(Group(*parts))  # Where nothing fits, this is the shortest extent.


def _extents(sections: list[Section], for_all: str) -> Iterator[_Extent]:
    """Yield what may be shown, from the longest to the shortest; ``for_all`` is that of ``show``.

    First the other tables are cut down to FEW_ROWS. Then explanations, the sentences below them and
    their words that matter less are left out, then the table of the model is cut to
    ROWS_OF_A_MODEL. At last the others show less than FEW_ROWS, and then the model less than that.
    """
    if not for_all:
        yield _Extent(sections)
        return
    full = [one for one in sections if not one.long]
    short = [
        one._replace(sentences=(), table=one.table.without_words())
        if one.table and not one.main
        else one
        for one in full
        if not one.explains
    ]
    short.append(Section(sentences=[f"{for_all} also explains the tables."]))
    enough = [rows for rows in ROWS_OF_TABLES if rows >= FEW_ROWS]
    for some in (full, short):
        yield from (_Extent(some, rows) for rows in enough)
    long = [rows for rows in ROWS_OF_TABLES if rows >= ROWS_OF_A_MODEL]
    yield from (_Extent(short, FEW_ROWS, rows) for rows in long)
    fewer = [rows for rows in ROWS_OF_TABLES if rows < FEW_ROWS]
    yield from (_Extent(short, rows, ROWS_OF_A_MODEL) for rows in fewer)
    yield from (_Extent(short, fewer[-1], rows) for rows in ROWS_OF_TABLES[len(long) :])


def printed(sections: Iterable[Section], for_all: str = "") -> str:
    """What :func:`show` prints, without colours and without blanks at the ends of lines."""
    console = _recorder()
    show(console, sections, for_all)
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def as_html(section: Section) -> str:
    """A section as HTML: its title as a heading, and the rest as it is printed, in full.

    A long section is folded up below its title.
    """
    title, blocks = escape(section.title), ""
    for part in _body(section, PAGE_WIDTH):
        # Each part is a block of its own, as a page leaves room between blocks.
        console = _recorder(PAGE_WIDTH)
        console.print(part)
        blocks += console.export_html(inline_styles=True, code_format="<pre>{code}</pre>\n")
    if section.long:
        return f"<details><summary>{title}</summary>\n{blocks}</details>\n"
    return (f"<h2>{title}</h2>\n" if title else "") + blocks


def _recorder(width: int | None = None) -> Console:
    """A console that keeps what is printed on it, and shows nothing, not even in a notebook.

    width: Characters of a line; None for those of the terminal.
    """
    plain: Any = {"force_terminal": False, "force_jupyter": False, "highlight": False}
    return Console(record=True, file=io.StringIO(), width=width, emoji=False, **plain)


def _body(
    section: Section, width: int, most: int | None = None, for_all: str = ""
) -> Iterator[RenderableType]:
    """Yield what rich prints of a section below its title.

    width: Characters of a line.
    most: The largest number of rows of a table, None for all rows.
    for_all: As of :func:`show`; needed with ``most``.
    """
    if section.facts:
        yield _facts(section)
    if (table := section.table) is not None:
        shown = table if most is None else table.cut(most)
        yield from _table(shown, width)
        if shown.length < table.length:
            more = counted(table.length - shown.length, "more " + table.what.removesuffix("s"))
            yield Text(f"… {more}: {for_all} shows them")
    for text in section.sentences:
        yield Text(text)


def _facts(section: Section) -> Table:
    """The facts of a section as lines: the label, then the figure in bold, then its meaning."""
    lines = Table.grid(padding=(0, 1))
    # The longest label, "objective", has 9 characters: so the figures of all sections stand in one
    # column of the screen.
    lines.add_column(min_width=9, no_wrap=True)
    lines.add_column(overflow="fold")
    for label, figure, meaning in section.facts:
        text = Text(figure, style="bold")
        text.append((", " if figure and meaning else "") + meaning, style="not bold")
        lines.add_row(Text(label, style="bold"), text)
    return lines


def _table(table: SectionTable, width: int) -> Iterator[RenderableType]:
    """Yield a table that fits into ``width`` characters.

    With a column of names, the names are cut and columns that matter less are left out. Other
    tables are divided into parts that stand below one another.
    """
    table = table._replace(columns=[one.written for one in table.columns])
    if any(one.kind == "names" for one in table.columns):
        columns, missing = _fitted(table.columns, width)
        yield _part(columns, table.chosen)
        if missing:
            yield Text(f"A wider screen also shows: {listed(missing).removesuffix('.')}.")
        return
    for columns in _parts(table.columns, width):
        yield _part(columns, table.chosen)


def _fitted(columns: Sequence[SectionColumn], width: int) -> tuple[list[SectionColumn], list[str]]:
    """Columns that fit into the width with their names cut, and the heads of those left out.

    One of the columns is of kind "names", and gets the room that the others leave. Where that is
    too little, columns that are minor are left out, the last of them first.
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
    """Yield the columns of every part of a table, each of which begins with the first column.

    Only tables of numbers alone are divided: rich folds words and bars into the width.
    """
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
    """Columns side by side; numbers stand to the right, and bars are drawn.

    chosen: Position of the row that is emphasised; None for no row.
    """
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    drawn: list[list[Bar] | list[Text]] = []
    for column in columns:
        how: Any = {"justify": "right" if column.kind == "number" else "left", "overflow": "fold"}
        if column.kind in ("number", "names"):
            how["no_wrap"] = True
        if column.kind == "names":
            how["overflow"] = "ellipsis"
        if column.kind == "words":
            how["min_width"] = cell_len(column.head)  # A heading of one word is not broken.
        if column.kind == "bar":
            # The largest bar takes 12 characters, a choice, and no fewer than its heading.
            how["width"] = max(12, len(column.head))
            drawn.append([Bar(size=1.0, begin=0.0, end=share) for share in column.cells])
        else:
            drawn.append([Text(text) for text in column.texts])
        made.add_column(Text(column.head), **how)
    for i, row in enumerate(zip(*drawn, strict=True)):
        made.add_row(*row, style="bold green" if i == chosen else None)
    return made
