"""Options that several commands share, and the functions that carry the options out."""

from __future__ import annotations

import inspect
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer
from typer.models import OptionInfo

from ..errors import InputError, file_faults

if TYPE_CHECKING:
    from rich.console import Console

    from ..cv.progress import Report
    from ..design.fold_models import FoldModels
    from ..design.model import FittedModel
    from ..design.prepare import Standardised
    from ..tables.rows import RowSource


# Where standard error is no terminal, a command says what it does after this many seconds, and not
# more often than that. The number is a choice: shorter commands print results alone.
FIRST_LINE_SECONDS = 2.0
# Between two of these lines lies this share of the seconds so far, so that a command of an hour
# prints about sixty lines. The number is a choice.
LATER_LINES_SHARE = 0.1


class Exit(IntEnum):
    """Exit statuses; GAP means that a limit which the user named left something unproved."""

    DONE = 0
    GAP = 1
    BAD_INPUT = 2
    INTERRUPTED = 130


def _data_sets() -> list[str]:
    """Names of data sets for the shell's completion."""
    from ..tables.datasets import list_datasets

    return [info.name for info in list_datasets() if info.available]


def _checked_jobs(jobs: int) -> int:
    """Return the value of --jobs; raise an InputError where it is 0 or below -1."""
    if jobs < -1 or jobs == 0:
        raise InputError(f"--jobs must be a number of threads or -1; got {jobs}")
    return jobs


Data = Annotated[
    str,
    typer.Argument(
        metavar="data",
        help="A CSV, Parquet or .npy file, a data set's name, or - for CSV on standard input.",
        autocompletion=_data_sets,
    ),
]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file, such as latin-1.")]
ProtocolName = Annotated[
    Literal["honest", "paper"],
    typer.Option(
        "--protocol",
        help="honest: folds refit the intercept, columns are scaled by all rows, or by each fold's "
        "training rows where folds leave rows aside; paper: y and columns are centred and scaled "
        "once by all rows.",
    ),
]
Scale = Annotated[
    Literal["unit-variance", "unit-norm", "none"], typer.Option(help="Scale of the columns.")
]
NoIntercept = Annotated[bool, typer.Option("--no-intercept", help="Fit through the origin.")]
BackendName = Annotated[
    str,
    typer.Option(help="Solver of single problems: auto, native, highs, gurobi, scip or mosek."),
]
TimeLimit = Annotated[
    str,
    typer.Option(
        help="Seconds for everything (0: estimates only), none, or auto: 60 of proving "
        "once the estimates are there."
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write the results here; - is standard output.")
]
Save = Annotated[Path | None, typer.Option(help="Write the model here, for sparsecv predict.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a report here, as one HTML page.")]
Dask = Annotated[
    str | None, typer.Option("--dask", help="Address of a Dask scheduler, whose workers work.")
]
Jobs = Annotated[int, typer.Option(callback=_checked_jobs, help="Threads; -1 uses every core.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Seed of the folds, and of what else is drawn.")
]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Folder that keeps what is finished; a rerun goes on from it.")
]
WholeTables = Annotated[bool, typer.Option("--table", help="Print every table, to its last row.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")]


# The panels of ``--help``, with the parameters of commands that stand in each.
PANELS = {
    "Table": "target drop one_hot all_levels weights groups order missing encoding",
    "Folds": "folds repeats nested test seed",
    "Model": "tau gamma rule compare protocol scale no_intercept learner loss lambdas classify",
    "Search and proof": "method tol search_bounds mio_limit backend prove time_limit search solver",
    "Output": "json_file save plot html table quiet out coverage",
    "Machine": "jobs checkpoint dask",
    "Constraints on columns": "include exclude column_groups split_factors heredity positive "
    "bounds penalty_factors",
    "What else to find out": "size n_best criteria stepwise sql intervals",
}
Command = TypeVar("Command", bound=Any)
Options = dict[str, Any]  # Annotations by the names of the parameters.


def option(kind: Any, text: str, *names: str, **more: Any) -> Any:
    """The annotation of an option that a command takes among its ``**asking``."""
    return Annotated[kind, typer.Option(*names, help=text, **more)]


# Options that say how a table is read.
TABLE: Options = {
    "target": option(str | None, "Response column; default: the last one."),
    "one_hot": option(bool, "Encode text columns as 0/1 columns.", "--one-hot"),
    "all_levels": option(bool, "With --one-hot: a column for both of two levels.", "--all-levels"),
    "drop": option(list[str] | None, "Columns to leave out, comma-separated; may be repeated."),
    "weights": option(str | None, "Column of weights >= 0 of the squared errors."),
    "groups": option(str | None, "Column of groups, which folds keep together."),
    "order": option(
        str | None, "Column of times: folds train on earlier rows and hold out later ones."
    ),
    "missing": option(
        Literal["drop", "mean", "median"] | None,
        "Missing values: leave out their rows, or fill them with the mean or median of each "
        "fold's training rows.",
    ),
}


def of_table(**own: Any) -> Options:
    """The options of TABLE, some of which the command has in its own way, or (None) not at all."""
    found = {name: own.get(name, kind) for name, kind in TABLE.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def with_options(offered: Options, table: Options, before: str) -> Callable[[Command], Command]:
    """A decorator that puts options in the place of the ``**asking`` of a command.

    Without the option a flag is False, and any other value None.

    table: These options come before the parameter ``before``, and the others come last.
    """

    def decorate(command: Command) -> Command:
        hints, unset = get_type_hints(command, include_extras=True), {bool: False}
        both = inspect.Parameter.POSITIONAL_OR_KEYWORD

        def added(options: Options) -> list[inspect.Parameter]:
            kinds = [(name, kind, unset.get(kind.__origin__)) for name, kind in options.items()]
            return [inspect.Parameter(n, both, default=d, annotation=k) for n, k, d in kinds]

        every: list[inspect.Parameter] = []
        for name, one in inspect.signature(command).parameters.items():
            every += added(table) if name == before else []
            if one.kind is inspect.Parameter.VAR_KEYWORD:
                every += added(offered)
            else:
                every.append(one.replace(annotation=hints[name]))
        command.__signature__ = inspect.Signature(every)
        command.__annotations__ = {one.name: one.annotation for one in every}
        return command

    return decorate


def in_panels(command: Callable[..., None]) -> Callable[..., None]:
    """The command itself, whose options have the panels of ``--help`` that PANELS says."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names.split()}
    for name, kind in get_type_hints(command, include_extras=True).items():
        for option in getattr(kind, "__metadata__", ()):
            if isinstance(option, OptionInfo) and option.rich_help_panel is None:
                option.rich_help_panel = panel_of.get(name)
    return command


def read(
    data: str, quiet: bool, encoding: str, asking: dict[str, Any], report: Report
) -> RowSource:
    """Open the table of a command, and print remarks on its columns unless ``quiet``.

    asking: Of what the command was given, the options of TABLE are taken out.
    report: Takes what is being done, the number of units done and the number of all units.
    Raises InputError: The table or the options cannot be used.
    """
    from ..tables.datasets import resolve

    how = {name: asking.pop(name) for name in TABLE if name in asking}
    if how.pop("all_levels"):
        if not how["one_hot"]:
            raise InputError("--all-levels goes with --one-hot")
        how["one_hot"] = "all"
    report(f"reading {data}", 0, 1)
    source = resolve(data, encoding=encoding, **how | {"drop": how["drop"] or ()})
    for text in () if quiet else source.notes():
        note(text)
    return source


def as_limit(text: str) -> float | str | None:
    """The value of --time-limit: "auto", seconds, or None for no limit.

    Raises InputError: The text is another word or a negative number.
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
    """Print, for a table of many columns, that some results may remain estimates.

    p: Number of columns.
    limit: The value of --time-limit, as :func:`as_limit` returns the value.
    """
    from ..cv.settings import PROVING_SECONDS
    from ..solvers.core.plan import TREE_ONLY

    if p > TREE_ONLY and limit == "auto":
        note(
            f"{p} columns: what {PROVING_SECONDS:g} s of search do not prove is estimated and "
            "marked ≈ (--time-limit)"
        )


def names_in(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def note(text: str) -> None:
    """Print a remark on standard error, where it is not mixed with results."""
    print(f"note: {text}", file=sys.stderr, flush=True)


def open_console(quiet: bool, *files: Path | None) -> Console:
    """The console that tables are printed on; standard error where a file is standard output."""
    from rich.console import Console

    return Console(quiet=quiet, highlight=False, emoji=False, stderr="-" in map(str, files))


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


def check_pictures(plot: Path | None, html: Path | None, film: bool = False) -> None:
    """Refuse pictures that cannot be drawn; ``film``: the file of --plot may be a film."""
    from ..plots import curves, style

    if plot is not None:
        curves.check_writable(str(plot), film=film)
    elif html is not None:
        style.matplotlib()


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a document as JSON to a file, or to standard output where the path is "-".

    document: All numbers must be finite, because JSON has no others.
    Raises InputError: The file cannot be written.
    """
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    with file_faults(f"--json {path}"):
        path.write_text(text, encoding="utf-8")


def save_model(
    path: Path | None,
    ready: Standardised,
    model: FittedModel,
    tau: int,
    gamma: float,
    note: str = "",
    *,
    sql: Path | None = None,
    intervals: FoldModels | None = None,
) -> None:
    """Write a model of a table to the files of the options --save and --sql, where they are given.

    note: What a user of the file should know of the model.
    sql: Takes the model as one SQL expression; "-" is standard output.
    intervals: What the file keeps for prediction intervals.
    """
    if path is None and sql is None:
        return
    from ..design.saved import SavedModel
    from ..design.sql import sql_expression

    source = ready.source
    what: Any = {"tau": tau, "gamma": gamma, "fills": ready.fills, "note": note}
    what |= {"target": source.target_name, "levels": source.levels, "intervals": intervals}
    saved = SavedModel.of(model, source.feature_names, **what)
    if path is not None:
        saved.write(path)
    if sql is not None:
        text = sql_expression(saved) + "\n"
        if str(sql) == "-":
            sys.stdout.write(text)
            return
        with file_faults(f"--sql {sql}"):
            sql.write_text(text, encoding="utf-8")


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """Show on standard error what is being done: in a bar on a terminal, elsewhere in lines.

    Yields: A function of a text, the number of finished units and the number of all units, which
        changes what is shown.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda text, done, total: None
        return
    if not console.is_terminal:
        with _lines() as told:
            yield told
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn()
    shown: Any = {"console": console, "transient": True, "redirect_stdout": False}
    with Progress(*words, TimeElapsedColumn(), **shown) as progress:
        task = progress.add_task("", total=None)
        yield lambda text, done, total: progress.update(
            task, description=text, completed=done, total=total
        )


@contextmanager
def _lines() -> Iterator[Report]:
    """Print what is being done in lines, by a thread, so that a long unit of work is no silence.

    Yields: A function like that of :func:`progress`.
    """
    started, ended = time.perf_counter(), threading.Event()
    said = ["starting"]

    def told(text: str, done: int, total: int) -> None:
        said[0] = f"{text}: {done} of {total}"

    def speak() -> None:
        wait = FIRST_LINE_SECONDS
        while not ended.wait(wait):
            seconds = time.perf_counter() - started
            with suppress(OSError, ValueError):  # Standard error is closed or full.
                print(f"{seconds:.0f} s: {said[0]}", file=sys.stderr, flush=True)
            wait = max(FIRST_LINE_SECONDS, LATER_LINES_SHARE * seconds)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        ended.set()
        thread.join()
