"""Writes a result to all files that a command's options name, and then to the screen."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .._version import __version__
from ..design.fold_models import FoldModels
from ..design.prepare import versions
from ..design.saved import SavedModel, named_fills
from ..errors import file_faults
from ..report.audit import PROOF_SUFFIX, Audit, no_audit, proof_of
from ..report.audit_sections import audit_sections, refused_section
from ..report.details import sections
from ..report.document import document, plain
from ..report.page import page
from ..report.progress import Steps
from ..report.screen import show
from ..selection.result import Result
from ..solvers.core.limits import Limits
from .console import open_console, progress


def deliver(
    result: Result,
    asked: SimpleNamespace,
    steps: Steps,
    entries: dict[str, Any],
    draw: Callable[[], None],
    interrupted: str = "",
    audit: Audit | None = None,
    intervals: FoldModels | None = None,
) -> None:
    """Write a result to the files that are named, and then to the screen.

    The screen comes last, so that files are there even where nobody reads it to its end.

    asked: The values of all options of the command.
    steps: Those of the call so far.
    entries: Entries of the JSON document beside those of every result.
    draw: Draws the picture of --plot.
    interrupted: What a user of the model should know where Ctrl-C came; else empty.
    audit: The audit, where it was asked for: it stands above the result on a page, and alone on the
        screen unless --table asks for all.
    intervals: What a model file keeps for prediction intervals.
    """
    beside = None if asked.html is None else asked.html.with_suffix(PROOF_SUFFIX)
    if audit is not None and (file := asked.certificate or beside) is not None:
        study, seconds = result.study, result.ended.remaining
        limits = Limits(seconds) if study is None else study.plan.limits
        if (proof := proof_of(audit, result, limits)) is not None:
            audit.save_proof(proof, file)
    source, names = result.table.source, result.table.names
    if asked.save is not None:
        own: Any = {"target": source.target_name, "levels": dict(source.coding.levels)}
        own |= {"fills": named_fills(names, result.table.fills), "reading": source.reading}
        own |= {"offset": source.offset_name, "counts": f"{result.design.counts}s"}
        saved = SavedModel(result.model, names, note=interrupted, intervals=intervals, **own)
        saved.write(asked.save)
    if audit is not None:
        entries = entries | {"audit": audit.entries()}
    refused = no_audit(result) if asked.audit and not interrupted else ""
    if refused:
        entries = entries | {"audit": None}
    if asked.json_file is not None:
        _write_json(asked.json_file, _head(result) | document(result) | entries)
    with progress(asked.quiet, steps):
        steps("reports and pictures", 0, 1)
        # Lasso and ridge take time: they are fitted for a page, and are then on the screen, too.
        on_page = asked.html is not None
        made = list(sections(result, peers=on_page)) if on_page or not asked.quiet else []
        top = [] if audit is None else list(audit_sections(audit))
        if refused:
            made.append(refused_section(refused))
        if on_page:
            page(result.title, [*top, *made]).write(asked.html)
        if asked.plot is not None:
            draw()
    console = open_console(asked.quiet, asked.json_file)
    if interrupted:
        console.print(f"[bold]interrupted[/]: {interrupted}")
    made = top if top and not asked.table else [*top, *made]
    show(console, made, for_all="" if asked.table else "--table")


def _write_json(path: Path, entries: dict[str, Any]) -> None:
    """Write a document to the file of --json, or to standard output where the path is "-".

    Raises InputError: The file cannot be written.
    """
    text = json.dumps(plain(entries), indent=1, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    with file_faults(f"--json {path}"):
        path.write_text(text, encoding="utf-8")


def _head(result: Result) -> dict[str, Any]:
    """The first entries of every document: versions of the program and its libraries, the table.

    "p" is the number of columns that are not constant.
    """
    source = result.table.source
    return {
        "sparsecv": __version__,
        "dataset": source.name,
        "n": source.n,
        "p": result.design.p,
        "target": source.target_name,
        "weights": source.weights_name,
        "groups": source.groups_name,
        "offset": source.offset_name,
        "missing": source.missing,
        "cpu_count": os.cpu_count(),
        "versions": versions(),
    }
