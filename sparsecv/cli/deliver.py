"""Writes a result to all files that a command's options name, and then to the screen."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from .. import __version__
from ..design.fold_models import FoldModels
from ..design.prepare import Prepared, versions
from ..design.saved import SavedModel, named_fills
from ..report.details import sections
from ..report.document import document, plain
from ..report.page import page
from ..report.screen import show
from ..selection.result import Result
from ..tables.table import Table
from .console import Steps, progress
from .outputs import write_text


def deliver(
    asked: SimpleNamespace,
    console: Console,
    ready: Prepared,
    found: Result,
    more: dict[str, Any],
    draw: Callable[[], None],
    steps: Steps,
    *,
    note: str = "",
    intervals: FoldModels | None = None,
) -> None:
    """Write a result to the files that are named and to the screen, which cannot delay the files.

    more: Entries of the JSON document beside those of the sections.
    draw: Draws the picture of --plot.
    steps: Those of the call so far.
    note: What a user of the model should know, such as that Ctrl-C came; else empty.
    intervals: What a model file keeps for prediction intervals.
    """
    if asked.save is not None:
        own: Any = {"fills": named_fills(ready.names, ready.fills), "intervals": intervals}
        own |= {"note": note} | kept_facts(ready.source)
        SavedModel(found.model, ready.names, **own).write(asked.save)
    if asked.json_file is not None:
        write_json(asked.json_file, head(ready.source, found.design.p) | document(found) | more)
    with progress(asked.quiet, steps):
        steps("reports and pictures", 0, 1)
        as_page = asked.html is not None
        made = list(sections(found, peers=as_page)) if as_page or not asked.quiet else []
        if as_page:
            page(found.title, made).write(asked.html)
        if asked.plot is not None:
            draw()
    if note:
        console.print(f"[bold]interrupted[/]: {note}")
    show(console, made, "" if asked.table else "--table")


def kept_facts(source: Table) -> dict[str, Any]:
    """What a model file keeps of the table, by the names of its fields."""
    levels = dict(source.coding.levels)
    return {"target": source.target_name, "levels": levels, "reading": source.reading}


def write_json(path: Path | None, found: Mapping[str, Any]) -> None:
    """Write the entries of a document to the file of --json, where there is one."""
    if path is not None:
        text = json.dumps(plain(found), indent=1, allow_nan=False)
        write_text(path, text + "\n", "json")


def head(source: Table, p: int) -> dict[str, Any]:
    """The first entries of every document: versions of the program and its libraries, the table.

    p: Number of columns that are not constant.
    """
    return {
        "sparsecv": __version__,
        "dataset": source.name,
        "n": source.n,
        "p": p,
        "target": source.target_name,
        "weights": source.weights_name,
        "groups": source.groups_name,
        "missing": source.missing,
        "cpu_count": os.cpu_count(),
        "versions": versions(),
    }
