"""Reads the table of a command, and says on standard error what is being done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..clock import CLOCK
from ..errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ..cv.plan import RunPlan
    from ..cv.progress import Report
    from ..tables.marks import Reading
    from ..tables.table import Table

# Where standard error is no terminal, a command says what it does after this many seconds, and not
# more often than that. The number is a choice: shorter commands print results alone.
FIRST_LINE_SECONDS = 2.0


def read(data: str, given: dict[str, Any], report: Report) -> Table:
    """Open the table of a command, and print remarks on its columns unless --quiet.

    given: The values of all options of the command. Columns of --exclude are not read. Only names
        of levels, such as city=Oslo, and of columns that are in a product a:b remain in it.
    report: Takes what is being done, the number of units done and the number of all units.
    Raises InputError: The table or the options cannot be used.
    """
    from ..tables.dask_table import open_parquet
    from ..tables.datasets import locate
    from ..tables.sources import open_table

    report(f"reading {data}", 0, 1)
    place = Path(data).expanduser()
    roles: dict[str, Any] = {
        option: given.get(option) for option in ("target", "weights", "groups", "missing")
    }
    if place.is_dir() or ("*" in data and not place.exists()):
        others = {option: given.get(option) for option in ("factor", "decimal", "thousands", "na")}
        dropped = [name for text in given["exclude"] or () for name in names_in(text)]
        given["exclude"] = []
        return open_parquet(str(place), drop=dropped, **roles, **others)
    source, name = locate(data, reading(given))
    columns = source.names
    names = columns_in(given["exclude"], columns)
    factors = {part for column in columns if ":" in column for part in column.split(":")}
    given["exclude"] = [
        one for one in names if one in factors or (one not in columns and "=" in one)
    ]
    dropped = [one for one in names if one not in given["exclude"]]
    declared = columns_in(given["factor"], columns)
    table = open_table((source, name), drop=dropped, factors=declared, **roles)
    for text in () if given["quiet"] else table.notes():
        note(text)
    return table


def reading(given: dict[str, Any], saved: Reading | None = None) -> Reading:
    """How the options of a command read the text in a file.

    saved: How the table of a saved model was read; the options take its place one by one.
    """
    from ..tables.marks import AS_SHOWN

    options = ("encoding", "decimal", "thousands", "na")
    own: dict[str, Any] = {one: given[one] for one in options if given[one] is not None}
    if "na" in own:
        own["na"] = names_in(own["na"])
    found = saved or AS_SHOWN
    # A mark of the model's table that is now the other mark of the file is given up.
    if found.decimal == own.get("thousands"):
        found = found._replace(decimal=None)
    if found.thousands == own.get("decimal"):
        found = found._replace(thousands=None)
    return found._replace(**own)


def columns_in(texts: list[str] | None, columns: list[str]) -> list[str]:
    """The names in the values of an option; the name of a column may hold commas, or be empty.

    columns: Names of the table's columns. If one of them is empty, so may be a part of a value.
    """
    names = list[str]()
    for text in texts or ():
        if text in columns or not text:
            names.append(text)
        else:
            parts = [part.strip() for part in text.split(",")]
            names += [part for part in parts if part or "" in columns]
    return names


def as_limit(text: str | None) -> float | None:
    """The seconds of --time-limit, or None for no limit.

    text: The option's value, None where it is not given.
    Raises InputError: The text is another word than none, or a negative number.
    """
    from ..cv.settings import DEFAULT_SECONDS

    if text is None:
        return DEFAULT_SECONDS
    word = text.strip().lower()
    if word == "none":
        return None
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0.0:
        raise InputError(f"--time-limit must be seconds >= 0 or none; got {text!r}")
    return seconds


def announce_limit(plan: RunPlan, p: int, given: str | None) -> None:
    """Print, where one problem is proved after the other, that results may remain estimates.

    p: Number of columns.
    given: The value of --time-limit, None where it is not given.
    """
    from ..cv.settings import DEFAULT_SECONDS

    if not (plan.trees or plan.estimates_serve) and given is None:
        note(
            f"{p} columns: what {DEFAULT_SECONDS:g} s do not prove is estimated and marked ≈ "
            "(--time-limit)"
        )


def remarks(source: Table) -> Iterator[str]:
    """Yield sentences on the rows: their weights and groups, and which are left out."""
    from ..report.sections import counted

    named = {"weights": source.weights_name, "groups": source.groups_name}
    if roles := [f"{what} {name}" for what, name in named.items() if name is not None]:
        yield ", ".join(roles)
    if source.rows_left_out:
        lost = "their response is" if source.missing else "values are"
        were = "was" if source.rows_left_out == 1 else "were"
        rows = counted(source.rows_left_out, "row")
        yield f"{rows} {were} left out, as {lost} missing."
    if source.missing is not None:
        what = f"by the {source.missing} of each fold's training rows"
        yield f"Missing values were filled {what}, and for the model by that of all rows."


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


class Steps:
    """What a command is doing, and how many steps of the whole call are done and known.

    Each report of a phase counts steps of its own; here they are added up, so that both numbers
    only grow. How many steps a phase has is known once it begins.

    verbose: Whether the details of reports are shown.
    """

    def __init__(self, verbose: bool = False) -> None:
        self._verbose, self._started = verbose, CLOCK.all_seconds()
        self.words, self.done, self.total = "starting", 0, 0
        # The phase, what it has told last and at first, and the steps done before it.
        self._phase, self._last, self._first, self._before = "", 0, 0, 0

    def __call__(self, what: str, done: int, total: int, detail: str = "") -> None:
        """Take a report: of a phase so many steps are done, and so many there are in all.

        The phase is what stands before the first comma of ``what``. It begins anew where fewer
        steps are done than before; its steps then add to those of the phases before it.
        """
        phase = what.split(",")[0]
        if phase != self._phase or done < self._last:
            self._phase, self._first, self._before = phase, done, self.done
        self._last = done
        self.done = max(self.done, self._before + done - self._first)
        self.total = max(self.total, self._before + total - self._first)
        self.words = f"{what} ({detail})" if detail and self._verbose else what

    @property
    def line(self) -> str:
        """The seconds since the beginning, the phase, and the steps."""
        words = "compiling, once" if CLOCK.compiles else self.words
        return f"{self.seconds:.0f} s: {words}: {self.done} of {self.total} steps"

    @property
    def seconds(self) -> float:
        """Seconds since the beginning of the call."""
        return CLOCK.all_seconds() - self._started


@contextmanager
def progress(quiet: bool, steps: Steps) -> Iterator[None]:
    """Show steps on standard error: in a line that changes on a terminal, elsewhere in lines."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield
        return
    if not console.is_terminal:
        with _lines(steps):
            yield
        return
    from rich.live import Live
    from rich.text import Text

    def shown() -> Text:
        return Text(steps.line, no_wrap=True, overflow="ellipsis")

    with Live(console=console, get_renderable=shown, transient=True, redirect_stdout=False):
        yield


@contextmanager
def _lines(steps: Steps) -> Iterator[None]:
    """Print steps in lines, by a thread, so that a long unit of work is no silence."""
    ended = threading.Event()

    def speak() -> None:
        wait = FIRST_LINE_SECONDS
        while not ended.wait(wait):
            with suppress(OSError, ValueError):  # Standard error is closed or full.
                print(steps.line, file=sys.stderr, flush=True)
            # Between two of these lines lies this share of the seconds so far, so that a command of
            # an hour prints about sixty lines. The number is a choice.
            wait = max(FIRST_LINE_SECONDS, 0.1 * steps.seconds)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
