"""One self-contained HTML page of all sections, with their pictures."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from .._version import __version__
from ..errors import file_faults
from ..plots.style import matplotlib
from .screen import as_html
from .sections import Section

# A notebook shows so many pixels of a page at a time, and scrolls. The number is a choice.
HEIGHT_IN_NOTEBOOKS = 600


class Page(NamedTuple):
    """A page as HTML, which a notebook shows in a frame of its own.

    html: The whole text of the page, which loads no other file.
    """

    html: str

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file; InputError where the file cannot be written."""
        with file_faults(f"cannot write {path}"):
            Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<a page of {len(self.html):,} characters, which notebooks show>"

    def _repr_html_(self) -> str:
        """The page in a frame: its styles then leave the notebook's own alone."""
        how = f'width="100%" height="{HEIGHT_IN_NOTEBOOKS}" style="border: 0"'
        return f'<iframe srcdoc="{escape(self.html, quote=True)}" {how}></iframe>'


def page(title: str, sections: Iterable[Section]) -> Page:
    """Sections as one page, with their pictures; InputError where matplotlib is missing."""
    matplotlib()  # Raises the error before any section is made.
    parts = []
    for one in sections:
        parts.append(as_html(one))
        if one.picture is not None:
            parts.append(_drawn(*one.picture()))
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    text = "\n".join(parts)
    return Page(template.substitute(title=escape(title), sections=text, version=__version__))


def _drawn(figure: Any, description: str) -> str:
    """A figure of matplotlib as inline SVG, with its description below and for screen readers.

    Two pages of one result are equal: the SVG has no date, and names its parts by a fixed salt.
    """
    written = io.StringIO()
    with matplotlib().rc_context({"svg.fonttype": "none", "svg.hashsalt": "sparsecv"}):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    _, start, drawing = written.getvalue().partition("<svg ")  # What precedes is no part of HTML.
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.S)
    label = f'role="img" aria-label="{escape(description, quote=True)}" '
    svg = start + label + drawing
    return f"<figure>{svg}<figcaption>{escape(description)}</figcaption></figure>"
