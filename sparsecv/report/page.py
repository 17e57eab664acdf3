"""One self-contained HTML page, its style, tables and pictures: nothing comes from elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import file_faults
from ..plots.style import matplotlib
from .answer import answer
from .details import sections
from .outcome import Result
from .sections import Section, Table

# Colours of the page by their use, for light and for dark grounds. Text has a contrast of at least
# 4.5 to its ground in both, and lines of at least 3 (tests/report/test_report.py computes them).
LIGHT = {
    "ground": "#ffffff",
    "panel": "#f4f6f8",
    "text": "#1b1f24",
    "muted": "#57606a",
    "accent": "#005a8c",
    "line": "#d0d7de",
    "bar": "#0072b2",
}
DARK = {
    "ground": "#14181d",
    "panel": "#1f252c",
    "text": "#e6e9ec",
    "muted": "#a3acb5",
    "accent": "#7cc4f0",
    "line": "#3a424b",
    "bar": "#3f9bd4",
}


def _colours(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


CSS = f"""
.sparsecv {{ {_colours(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ .sparsecv {{ {_colours(DARK)} }} }}
@media print {{ .sparsecv {{ {_colours(LIGHT)} }} }}
.sparsecv {{ color-scheme: light dark; background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }}
.sparsecv * {{ box-sizing: border-box; }}
.sparsecv main {{ max-width: 56rem; margin: 0 auto; padding: 1rem; }}
.sparsecv h1 {{ font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }}
.sparsecv h2 {{ font-size: 1.15rem; margin: 2rem 0 .4rem; border-top: 1px solid var(--line);
  padding-top: 1rem; }}
.sparsecv p {{ margin: .4rem 0; max-width: 44rem; overflow-wrap: anywhere; }}
.sparsecv .muted {{ color: var(--muted); font-size: .9rem; }}
.sparsecv .cards {{ display: grid; gap: .7rem; margin: .8rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); }}
.sparsecv .card {{ background: var(--panel); border-radius: .5rem; padding: .7rem .9rem; }}
.sparsecv .card b {{ display: block; font-size: 1.3rem; color: var(--accent); }}
.sparsecv .scroll {{ overflow-x: auto; }}
.sparsecv table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0;
  background: transparent; color: inherit; font-size: .92rem; }}
.sparsecv th, .sparsecv td {{ padding: .2rem .7rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }}
.sparsecv th {{ color: var(--muted); font-weight: 600; }}
.sparsecv td {{ white-space: nowrap; }}
.sparsecv td.left {{ white-space: normal; min-width: 6rem; overflow-wrap: break-word; }}
.sparsecv td.left:last-child:not(:has(.bar)) {{ min-width: 18rem; }}
.sparsecv .left {{ text-align: left; }}
.sparsecv tr.chosen td {{ font-weight: 700; color: var(--accent); }}
.sparsecv .bar {{ display: block; height: .7em; margin-top: .4em; background: var(--bar);
  border-radius: 2px; }}
.sparsecv figure {{ margin: .5rem 0; }}
.sparsecv svg {{ width: 100%; max-width: 40rem; height: auto; color: var(--text); }}
.sparsecv details summary {{ cursor: pointer; color: var(--accent); }}
@media print {{
  .sparsecv {{ font-size: 11pt; }}
  .sparsecv main {{ max-width: none; padding: 0; }}
  .sparsecv figure, .sparsecv .card, .sparsecv tr {{ break-inside: avoid; }}
}}
"""


def whole_page(title: str, body: str) -> str:
    """The page with a title and a body of HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>body {{ margin: 0; }}{CSS}</style>\n</head>\n"
        f'<body class="sparsecv">\n<main>\n{body}\n</main>\n</body>\n</html>\n'
    )


def report(path: str | PathLike[str], found: Result) -> None:
    """Write a whole report as a page; InputError where the file cannot be written."""
    page = whole_page(found.title, body(found.title, sections(found, page=True)))
    with file_faults(f"cannot write {path}"):
        Path(path).write_text(page, encoding="utf-8")


def short(found: Result) -> str:
    """The beginning of a report with its style, to stand in another page such as a notebook."""
    beginning = body(found.title, answer(found))
    return f'<style>{CSS}</style><div class="sparsecv"><main>{beginning}</main></div>'


def body(title: str, sections: Iterable[Section]) -> str:
    """The body of a page: a heading, and all sections."""
    shown = [one for one in sections if one.facts or one.table or one.sentences]
    parts = [f"<h1>{escape(title)}</h1>", *map(_section, shown)]
    words = f"sparsecv {__version__}. ≈ marks an estimate that no search has proved."
    return "\n".join([*parts, _paragraph(words, "muted")])


def _paragraph(text: str, kind: str) -> str:
    """A paragraph of plain text; ``kind`` is its class."""
    return f'<p class="{kind}">{escape(text)}</p>'


def _section(section: Section) -> str:
    """One section of the page."""
    title = f"<h2>{escape(section.title)}</h2>" if section.title else ""
    parts = [title, _facts(section)]
    if section.picture is not None:
        parts.append(picture(*section.picture()))
    if section.table is not None:
        # A table of more rows shows this many of them around the chosen row, and all rows when it
        # is unfolded. The number is a choice.
        shown = section.table.around(24)
        parts.append(_table(shown))
        if section.table.length > shown.length:
            heading = f"All {section.table.length} {section.table.what}"
            every = _table(section.table)
            parts.append(f"<details><summary>{heading}</summary>{every}</details>")
    parts += [_paragraph(text, "muted") for text in section.sentences]
    return "<section>\n" + "\n".join(filter(None, parts)) + "\n</section>"


def _facts(section: Section) -> str:
    """Facts with a figure as boxes, and the others as lines."""
    boxes, lines = "", []
    for fact in section.facts:
        label, figure, meaning = map(escape, fact)
        if figure:
            words = f'{label}<b>{figure}</b><span class="muted">{meaning}</span>'
            boxes += f'<div class="card">{words}</div>'
        else:
            lines.append(f"<p>{f'<b>{label}</b> ' if label else ''}{meaning}</p>")
    return "\n".join([*([f'<div class="cards">{boxes}</div>'] if boxes else []), *lines])


def _table(table: Table) -> str:
    """A table; a bar is drawn, at most six times as long as the text is high."""
    sides = ["" if one.kind == "number" else ' class="left"' for one in table.columns]
    pairs = list(zip(table.columns, sides, strict=True))
    head = "".join(f"<th{side}>{escape(one.head)}</th>" for one, side in pairs)
    bar = '<span class="bar" style="width:{:.2f}em"></span>'
    drawn = [
        [bar.format(6.0 * max(share, 0.0)) for share in one.cells]
        if one.kind == "bar"
        else [escape(text) for text in one.texts]
        for one in table.columns
    ]
    lines = []
    for i, row in enumerate(zip(*drawn, strict=True)):
        cells = "".join(f"<td{s}>{text}</td>" for text, s in zip(row, sides, strict=True))
        kind = ' class="chosen"' if i == table.chosen else ""
        lines.append(f"<tr{kind}>{cells}</tr>")
    rows = "\n".join(lines)
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def picture(figure: Any, words: str) -> str:
    """A figure of matplotlib as inline SVG, whose black follows the colour of the page's text.

    words: What the picture shows, for those who do not see it.
    """
    text = io.StringIO()
    with matplotlib().rc_context({"svg.fonttype": "none", "svg.hashsalt": "sparsecv"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"#000000|#262626|\bblack\b", "currentColor", svg)
    svg = svg.replace("<text ", '<text fill="currentColor" ')
    label = f'role="img" aria-label="{escape(words, quote=True)}"'
    svg = svg.replace("<svg ", f"<svg {label} ", 1).replace("#d9d9d9", "var(--line)")
    return f'<figure>{svg}<figcaption class="muted">{escape(words)}</figcaption></figure>'
