"""What the site adds to Sphinx: links between theorems and functions, one style of pictures."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE / "theory.md"
THEOREMS = "## Theorems and their functions"
OBJECT = re.compile(r"`(sparsecv(?:\.\w+)+)`")


@cache
def rows() -> list[tuple[str, str, tuple[str, ...]]]:
    """The lines of the page's tables: the text, its number there, and the objects named."""
    found, text = [], ""
    for line in PAGE.read_text(encoding="utf-8").split(THEOREMS)[1].splitlines():
        if line.startswith("### "):
            text = line[4:]
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] not in ("number", "---"):
            found.append((text, cells[0].lstrip("| "), tuple(OBJECT.findall(cells[2]))))
    return found


def resolved(path: str) -> Any:
    """The object of a dotted path; AttributeError or ImportError where there is none."""
    from importlib import import_module

    parts = path.split(".")
    found: Any = import_module(parts[0])
    for at, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            import_module(".".join(parts[:at]))
        found = getattr(found, part)
    return found


@cache
def numbers() -> dict[str, list[str]]:
    """What each object stands for, by the place where the object is defined."""
    found = defaultdict(list)
    for text, number, paths in rows():
        for path in paths:
            one = resolved(path)
            home = f"{getattr(one, '__module__', path)}.{getattr(one, '__qualname__', '')}"
            found[home].append(f"{number} of *{text[: text.rfind('[') - 1]}*")
    return dict(found)


def add_theorems(app: Any, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """Say at the end of an object's page which theorems and equations the object stands for."""
    home = f"{getattr(one, '__module__', '')}.{getattr(one, '__qualname__', '')}"
    if home in numbers():
        lines += ["", ".. rubric:: In the papers", ""]
        lines += [f"{'; '.join(numbers()[home])} (:doc:`all theorems </theory>`)", ""]


def link_objects(app: Any, page: str, source: list[str]) -> None:
    """Turn the objects that the page of theorems names into links to their pages."""
    if page == "theory":
        text = OBJECT.sub(r"{py:obj}`~\1`", source[0])
        source[0] = text.replace("~sparsecv.bounds.", "~sparsecv.cv.bounds.")


def escape_bars(app: Any, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """Let |x| in a docstring mean an absolute value: reStructuredText would substitute a name."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[at] = "``".join(parts)


def plain_warnings(settings: dict[str, Any], script: str) -> None:
    """Show the words of warnings in a script's output, without paths of the building machine."""

    def words(message: Any, category: type[Warning], *place: Any) -> str:
        return f"{category.__name__}: {message}\n"

    warnings.formatwarning = words


def picture_style(settings: dict[str, Any], script: str) -> None:
    """Give the pictures of a script of the gallery the style of the package's own pictures."""
    from matplotlib import pyplot

    from sparsecv.plots.style import BLUE, GREEN, PURPLE, STYLE, VERMILION

    pyplot.rcParams.update(STYLE)
    colours = [BLUE, VERMILION, GREEN, PURPLE, "#56B4E9", "#E69F00", "#000000"]
    own = {"figure.figsize": (7.0, 4.2), "figure.constrained_layout.use": True, "figure.dpi": 110}
    pyplot.rcParams.update({**own, "axes.prop_cycle": pyplot.cycler("color", colours)})
