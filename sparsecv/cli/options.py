"""Options the commands share, and the small things they all do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import InputError, file_faults

if TYPE_CHECKING:
    from rich.console import Console

    from ..design.model import FittedModel
    from ..design.prepare import Prepared
    from ..tables.rows import RowSource

DONE, GAP, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit statuses."""


def _data_sets() -> list[str]:
    from ..tables.datasets import list_datasets

    return [info.name for info in list_datasets() if info.available]


Data = Annotated[
    str,
    typer.Argument(
        metavar="data",
        help="A CSV, Parquet or .npy file, a data set's name, or - for CSV on standard input.",
        autocompletion=_data_sets,
    ),
]
Target = Annotated[str | None, typer.Option(help="Response column; default: the last one.")]
OneHot = Annotated[
    bool,
    typer.Option("--one-hot", help="Encode text columns as 0/1 columns, two levels as one."),
]
AllLevels = Annotated[
    bool, typer.Option("--all-levels", help="With --one-hot: a column for both of two levels.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out, or several, comma-separated; may be repeated."),
]
Weights = Annotated[
    str | None,
    typer.Option(help="Column of weights >= 0 of the squared errors; it is no feature."),
]
Groups = Annotated[
    str | None,
    typer.Option(help="Column of groups, whose rows are held out together; it is no feature."),
]
Encoding = Annotated[str, typer.Option(help="Of a text file, such as latin-1.")]
ProtocolName = Annotated[
    Literal["honest", "paper"],
    typer.Option(
        "--protocol",
        help="honest: folds refit the intercept, columns are scaled once by all rows; paper: "
        "y and columns are centred and scaled once.",
    ),
]
Scale = Annotated[
    Literal["unit-variance", "unit-norm", "none"], typer.Option(help="Scale of the columns.")
]
NoIntercept = Annotated[bool, typer.Option("--no-intercept", help="Fit through the origin.")]
BackendName = Annotated[
    str,
    typer.Option(
        help="Solver of single problems: auto, native, highs, gurobi, scip or mosek; also "
        "gurobi-conic, scip-conic."
    ),
]
TimeLimit = Annotated[
    str,
    typer.Option(
        help="Seconds for everything (0: estimates only), none, or auto: none up to 45 columns, 60 "
        "of proving beyond."
    ),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Write the results to this file; - is standard output."),
]
Save = Annotated[
    Path | None, typer.Option(help="Write the model to this file, for sparsecv predict.")
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", help="Address of a Dask scheduler, whose workers do the work."),
]
Jobs = Annotated[int, typer.Option(help="Threads; -1 uses every core.")]
Seed = Annotated[int, typer.Option(help="Of the folds, and of what else is drawn.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(help="Folder that keeps what is finished; a rerun goes on from it."),
]
WholeTables = Annotated[bool, typer.Option("--table", help="Print every table, to its last row.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")]


def read(
    data: str,
    target: str | None,
    one_hot: bool,
    all_levels: bool,
    drop: list[str] | None,
    encoding: str,
    quiet: bool,
    weights: str | None = None,
    groups: str | None = None,
) -> RowSource:
    """Open the table a command works on, and say what is noticed about its columns.

    data: A file, a data set's name, or "-".
    target: Response column.
    one_hot, all_levels: Encode text columns, without or with a column for every level.
    drop: Columns left out.
    quiet: Nothing is said.
    Raises InputError: A table or options that cannot be used.
    """
    from ..tables.datasets import resolve

    if all_levels and not one_hot:
        raise InputError("--all-levels goes with --one-hot")
    kind = "all" if all_levels else one_hot
    source = resolve(
        data,
        target=target,
        one_hot=kind,
        drop=drop or (),
        encoding=encoding,
        weights=weights,
        groups=groups,
    )
    for text in () if quiet else source.notes():
        note(text)
    return source


def prepared(
    source: RowSource,
    folds: str,
    layout: Any,
    bar: Any,
    seed: int = 0,
    jobs: int = 1,
    quiet: bool = True,
) -> Prepared:
    """Read a table and cut it into folds, telling the bar.

    folds: As in --folds.
    bar: As :func:`progress` yields it.
    quiet: The plan for a table larger than memory is not said.
    """
    from ..design.prepare import prepare

    def told(row: int, n: int) -> None:
        bar("reading rows", row, n)

    say = None if quiet else note
    return prepare(source, folds, layout, seed=seed, progress=told, n_jobs=jobs, announce=say)


def check_numbers(jobs: int, seed: int = 0) -> None:
    """Validate --jobs and --seed.

    Raises InputError: A number of threads that is 0 or below -1, a seed out of 0..2^32-1.
    """
    if jobs < -1 or jobs == 0:
        raise InputError(f"--jobs must be a number of threads or -1; got {jobs}")
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must lie in 0..2^32-1; got {seed}")


def as_limit(text: str) -> float | str | None:
    """Read --time-limit: "auto", None for none, or seconds.

    Raises InputError: Any other text, or a negative number.
    """
    word = text.strip().lower()
    if word in ("auto", "none"):
        return word if word == "auto" else None
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0.0:
        raise InputError(f"--time-limit must be seconds >= 0, auto or none; got {text!r}")
    return seconds


def announce_limit(p: int, limit: float | str | None) -> None:
    """Say up front that some trees may not end.

    p: Number of columns.
    """
    from ..cv.settings import PROVING
    from ..solvers.leaps.all_sizes import TREE_ONLY

    if p > TREE_ONLY and limit == "auto":
        note(
            f"{p} columns: what {PROVING:g} s of search do not prove is estimated and marked ≈ "
            "(--time-limit)"
        )


def as_protocol(name: str, scale: str, no_intercept: bool) -> Any:
    """Build the protocol that the options --protocol, --scale and --no-intercept name."""
    from ..design.design import Protocol

    return Protocol(name, scale, not no_intercept)


def names_in(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list of names."""
    return () if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def note(text: str) -> None:
    """Say something beside the results: on standard error."""
    print(f"note: {text}", file=sys.stderr, flush=True)


def open_console(quiet: bool, json_file: Path | None = None) -> Console:
    """Where the tables go: standard output, unless that is for JSON."""
    from rich.console import Console

    other = json_file is not None and str(json_file) == "-"
    return Console(quiet=quiet, highlight=False, emoji=False, stderr=other)


def check_file(option: str, path: Path | None) -> None:
    """Find out now, not after the search, that the file cannot be there.

    option: For the message.
    Raises InputError: It is a folder, or its folder does not exist.
    """
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise InputError(f"{option} {path}: not a file in an existing folder")


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a document to a file, or to standard output where the path is "-".

    document: Without NaN or infinite numbers.
    Raises InputError: The file cannot be written.
    """
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    with file_faults(f"--json {path}"):
        path.write_text(text, encoding="utf-8")


def save_model(path: Path, source: RowSource, model: FittedModel, tau: int, gamma: float) -> None:
    """Write a model that was fitted to a table."""
    from ..design.saved import SavedModel

    names, target, levels = source.feature_names, source.target_name, source.levels
    saved = SavedModel.of(model, names, target=target, tau=tau, gamma=gamma, levels=levels)
    saved.write(path)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr where that is a terminal; otherwise nothing.

    Yields: Takes a text, a number done and a total.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda text, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn()
    with Progress(*words, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(text: str, done: int, total: int) -> None:
            progress.update(task, description=text, completed=done, total=total)

        yield show
