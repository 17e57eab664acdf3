"""Options the commands share, and the small things they all do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..errors import InputError

DONE, GAP, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""

Data = Annotated[str, typer.Argument(help="A CSV, Parquet or .npy file, or a data set's name.")]
Target = Annotated[str | None, typer.Option(help="Response column; default: the last one.")]
OneHot = Annotated[bool, typer.Option("--one-hot", help="Encode text columns as 0/1 columns.")]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, comma-separated.")]
ProtocolName = Annotated[str, typer.Option("--protocol", help="honest or paper.")]
Scale = Annotated[str, typer.Option(help="unit-variance, unit-norm or none.")]
NoIntercept = Annotated[bool, typer.Option("--no-intercept", help="Fit through the origin.")]
BackendName = Annotated[
    str,
    typer.Option(
        help="Solver of single problems: auto, native, highs, gurobi, scip or mosek; also "
        "gurobi-conic, gurobi-perspective, gurobi-big-m, gurobi-indicator, scip-conic."
    ),
]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds for everything.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write the results to this file.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")]


def check_jobs(jobs: int) -> None:
    if jobs < -1 or jobs == 0:
        raise InputError(f"--jobs must be a number of threads or -1; got {jobs}")


def as_protocol(name: str, scale: str, no_intercept: bool) -> Any:
    from ..design.design import Protocol

    return Protocol(name, scale, not no_intercept)


def names_in(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr, flush=True)


def open_console(quiet: bool) -> Console:
    return Console(quiet=quiet, highlight=False, emoji=False)


def check_json(path: Path | None) -> None:
    """Find out now, not after the search, that the file cannot be there."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise InputError(f"--json {path}: not a file in an existing folder")


def write_json(path: Path, document: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--json {path}: {error.strerror}") from None


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr where that is a terminal; otherwise nothing."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda text, done, total: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(text: str, done: int, total: int) -> None:
            progress.update(task, description=text, completed=done, total=total)

        yield show
