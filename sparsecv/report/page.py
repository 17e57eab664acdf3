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
from typing import Any

from .. import __version__
from ..errors import file_faults
from ..plots.style import matplotlib
from .screen import as_html
from .sections import Section


def write_page(path: str | PathLike[str], title: str, sections: Iterable[Section]) -> None:
    """Write sections as a page; InputError where the file cannot be written."""
    matplotlib()
    parts = [as_html(one) + _drawn(one.picture) for one in sections]
    template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    page = template.substitute(title=escape(title), sections="\n".join(parts), version=__version__)
    with file_faults(f"cannot write {path}"):
        Path(path).write_text(page, encoding="utf-8")


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
