"""One self-contained HTML page of all sections, with their pictures."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from .. import __version__
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
    matplotlib()
    parts = [as_html(one) + _drawn(one.picture) for one in sections]
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    text = "\n".join(parts)
    return Page(template.substitute(title=escape(title), sections=text, version=__version__))


def _drawn(picture: Callable[[], tuple[Any, str]] | None) -> str:
    """A picture of a section as inline SVG, with its description; empty where there is none."""
    if picture is None:
        return ""
    figure, words = picture()
    text = io.StringIO()
    with matplotlib().rc_context({"svg.fonttype": "none", "svg.hashsalt": "sparsecv"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    label = f'<svg role="img" aria-label="{escape(words, quote=True)}" '
    svg = svg.replace("<svg ", label, 1)
    return f"\n<figure>{svg}<figcaption>{escape(words)}</figcaption></figure>"
