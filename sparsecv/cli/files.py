"""Writes the files that a command names, and refuses files that cannot be written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError, file_faults

if TYPE_CHECKING:
    from ..design.fold_models import FoldModels
    from ..design.prepare import Prepared
    from ..plots.sections import Result
    from ..tables.row_source import RowSource


def check_files(**paths: Path | None) -> None:
    """Refuse files that cannot be written, before any work is done.

    paths: The files, by the names of the options that name them; two options name two files.
    Raises InputError: A path is a folder, its folder does not exist, or the file cannot be opened.
    """
    taken: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        with file_faults(f"--{option} {path}"):
            if path.is_dir() or not path.absolute().parent.is_dir():
                raise InputError(f"--{option} {path}: not a file in an existing folder")
            other = taken.setdefault(path.absolute(), option)
            if other != option:
                raise InputError(f"--{other} and --{option} name the same file {path}")
            known = path.exists()
            if str(path) == "-" or (known and not path.is_file()):
                continue  # Standard output, or a device or pipe, which is opened once.
            path.open("ab").close()
            if not known:
                path.unlink()


def check(asked: SimpleNamespace, film: bool = False) -> None:
    """Refuse what the options of a command name and cannot be written.

    film: The file of --plot may be a film.
    """
    from ..plots import curves, style

    plot = getattr(asked, "plot", None)
    if plot is not None:
        curves.check_writable(str(plot), film=film)
    elif getattr(asked, "html", None) is not None:
        style.matplotlib()
    names = ("json_file", "save", "html", "sql", "csv_file", "plot")
    paths = {name.removesuffix("_file"): getattr(asked, name, None) for name in names}
    check_files(**paths)


def write_text(path: Path, text: str, option: str) -> None:
    """Write a text to the file of an option, or to standard output where the path is "-".

    Raises InputError: The file cannot be written.
    """
    if str(path) == "-":
        sys.stdout.write(text)
        return
    with file_faults(f"--{option} {path}"):
        path.write_text(text, encoding="utf-8")


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a document, all of whose numbers must be finite, to the file of --json."""
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n", "json")


def write_page(path: Path | None, found: Result) -> None:
    """Write the page that the option --html asks for."""
    if path is None:
        return
    from ..plots.page import report

    report(path, found)


def kept_facts(source: RowSource) -> dict[str, Any]:
    """What a model file keeps of the table, by the names of its fields."""
    levels, dates = dict(source.coding.levels), dict(source.coding.dates)
    return {"target": source.target_name, "levels": levels, "dates": dates}


def save_model(
    asked: SimpleNamespace,
    ready: Prepared,
    found: Result,
    *,
    note: str = "",
    intervals: FoldModels | None = None,
) -> None:
    """Write a model to the files of the options --save and --sql, where they are given.

    note: What a user of the file should know of the model.
    intervals: What the file keeps for prediction intervals.
    """
    if asked.save is None and asked.sql is None:
        return
    from ..design.saved import SavedModel
    from ..design.sql import sql_expression

    source = ready.source
    saved = SavedModel.of(
        found.model,
        source.feature_names,
        found.gamma,
        fills=ready.fills,
        intervals=intervals,
        tau=found.tau,
        note=note,
        **kept_facts(source),
    )
    if asked.save is not None:
        saved.write(asked.save)
    if asked.sql is not None:
        write_text(asked.sql, sql_expression(saved) + "\n", "sql")
