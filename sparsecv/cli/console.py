"""Reads the table of a command, and says on standard error what is being done.

``asked`` holds the values of all options of a command, under their names in ``options.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..report.progress import Steps, line_on_terminal, lines

if TYPE_CHECKING:
    from rich.console import Console

    from ..cv.executor import Report
    from ..cv.plan import RunPlan
    from ..tables.marks import Reading
    from ..tables.table import Table


def read(data: str, asked: SimpleNamespace, report: Report) -> tuple[Table, list[str]]:
    """Open the table of a command, and print remarks on its columns unless --quiet.

    Columns of --exclude are not read. The second value holds what else --exclude names: levels of
    factors, such as city=Oslo, which are columns only once the table is open.

    data: What the user writes for the table: a path, a data set's name, or - for standard input.
    report: Takes what is being done, the number of units done and the number of all units.
    Raises InputError: The table or the options cannot be used.
    """
    from ..tables.dask_table import open_parquet
    from ..tables.datasets import locate
    from ..tables.sources import table_of

    report(f"reading {data}", 0, 1)
    place = Path(data).expanduser()
    roles: dict[str, Any] = {
        option: getattr(asked, option)
        for option in ("target", "weights", "groups", "offset", "missing")
    }
    if place.is_dir() or ("*" in data and not place.exists()):
        rows = ("factor", "decimal", "thousands", "na", "names", "header")
        refused = {one: getattr(asked, one) for one in rows}
        dropped = [name for text in asked.exclude or () for name in names_in(text)]
        return open_parquet(str(place), drop=dropped, **roles, **refused), []
    source, name = locate(data, reading(asked))
    columns = source.names
    excluded = columns_in(asked.exclude, columns)
    # A name without = that is no column is refused by ``table_of``.
    levels = [one for one in excluded if one not in columns and "=" in one]
    dropped = [one for one in excluded if one not in levels]
    declared = columns_in(asked.factor, columns)
    table = table_of(source, name, drop=dropped, factors=declared, **roles)
    for text in () if asked.quiet else table.notes():
        note(text)
    return table, levels


def reading(asked: SimpleNamespace, saved: Reading | None = None) -> Reading:
    """How the options of a command read the text in a file.

    saved: How the table of a saved model was read; an option that is given replaces its part.
    """
    from ..tables.marks import AS_SHOWN
    from ..tables.text import read_names

    options = ("encoding", "decimal", "thousands", "na", "header")
    given: dict[str, Any] = {one: getattr(asked, one) for one in options}
    given = {option: value for option, value in given.items() if value is not None}
    if "na" in given:
        given["na"] = names_in(given["na"])
    if asked.names is not None:
        given["names"] = read_names(asked.names)
        given.setdefault("header", None)  # What a saved model says of it was said of other names.
    elif asked.header:
        given["names"] = ()
    read_as = saved or AS_SHOWN
    # One sign cannot be both marks. Where an option gives one mark the sign that the saved table
    # had for the other, the other mark of this file is not known, and the file has to show it.
    if read_as.decimal == given.get("thousands"):
        read_as = read_as._replace(decimal=None)
    if read_as.thousands == given.get("decimal"):
        read_as = read_as._replace(thousands=None)
    return read_as._replace(**given)


def columns_in(texts: list[str] | None, columns: list[str]) -> list[str]:
    """The names in the values of an option that may be repeated; a value is a name, or a,b.

    columns: Names of the table's columns. A value that is one of them is not divided at its commas.
        Where one of them is empty, an empty part of a value is its name.
    """
    names = list[str]()
    for text in texts or ():
        if text in columns or not text:
            names.append(text)
        else:
            parts = [part.strip() for part in text.split(",")]
            names += [part for part in parts if part or "" in columns]
    return names


def announce_limit(plan: RunPlan, n_features: int, asked: SimpleNamespace) -> None:
    """Print, also with --quiet, that the default time limit may leave estimates unproved.

    Nothing is printed where that is not to be expected, or no surprise: trees prove all sizes of
    the table at once, the rule averages estimates and needs no proof, or the user has named a
    limit.

    n_features: Number of columns, of which a group counts once.
    """
    from ..schedule import DEFAULT_SECONDS

    if plan.all_size_trees or plan.needs_no_proof or asked.time_limit is not None:
        return
    note(
        f"{n_features} columns: what {DEFAULT_SECONDS:g} s do not prove is estimated and marked ≈ "
        "(--time-limit)"
    )


def names_in(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def note(text: str) -> None:
    """Print a remark on standard error, where it is not mixed with results."""
    print(f"note: {text}", file=sys.stderr, flush=True)


def open_console(quiet: bool, json_file: Path | None = None) -> Console:
    """The console that tables are printed on; standard error where --json is standard output."""
    from rich.console import Console

    return Console(quiet=quiet, highlight=False, emoji=False, stderr=str(json_file) == "-")


@contextmanager
def progress(quiet: bool, steps: Steps) -> Iterator[None]:
    """Show steps on standard error while the block runs, unless ``quiet``.

    On a terminal that is one line that changes and goes away; elsewhere it is lines.
    """
    from rich.console import Console

    if quiet:
        yield
        return
    with line_on_terminal(steps) if Console(stderr=True).is_terminal else lines(steps):
        yield
