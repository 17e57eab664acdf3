"""What a call is doing, in one line that changes: of commands, and of calls in Python."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..clock import CLOCK

if TYPE_CHECKING:
    from ..cv.executor import Report

# A call in Python, and a command whose standard error is no terminal, say what they do after this
# many seconds, and such a command not more often than that. The number is a choice: shorter calls
# show results alone.
FIRST_LINE_SECONDS = 2.0
# Between two lines in a file or a pipe lies this share of the seconds so far, so that a command of
# an hour prints about sixty lines. The number is a choice.
LINE_SHARE = 0.1
# A line in a notebook is written anew after this many seconds. The number is a choice: every line
# is a message to the browser.
NOTEBOOK_SECONDS = 0.5


class Steps:
    """What a call is doing, and how many steps of the whole call are done and known.

    Each report of a phase counts steps of its own; here they are added up, so that both numbers
    only grow. How many steps a phase has is known once it begins.

    verbose: Whether the details of reports are shown.
    """

    def __init__(self, verbose: bool = False) -> None:
        self._verbose, self._started = verbose, CLOCK.all_seconds()
        self.words, self.done, self.total = "starting", 0, 0
        # The phase that reports now, the number of its steps in its first and its last report, and
        # the steps of all phases before it.
        self._phase, self._first, self._last, self._before = "", 0, 0, 0

    def __call__(self, what: str, done: int, total: int, detail: str = "") -> None:
        """Take a report: of a phase so many steps are done, and so many there are in all.

        The phase is what stands before the first comma of ``what``. It begins anew where fewer
        steps are done than before; its steps then add to those of the phases before it. A phase
        that goes on where an earlier call ended counts its steps from its first report.

        detail: More words, which are shown with --verbose.
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
def line_on_terminal(steps: Steps, after: float = 0.0) -> Iterator[None]:
    """Show steps on standard error, a terminal, while the block runs; then the line goes away.

    after: The line is shown after so many seconds.
    """
    ended, shown = threading.Event(), list[Any]()

    def show() -> None:
        """Begin to show the line after ``after`` seconds, unless the block has ended by then."""
        if ended.wait(after):
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        def line() -> Text:
            return Text(steps.line, no_wrap=True, overflow="ellipsis")

        console = Console(stderr=True)
        live = Live(console=console, get_renderable=line, transient=True, redirect_stdout=False)
        live.start()
        shown.append(live)

    # A short call in Python does not wait until the library of the line is imported.
    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for live in shown:
            live.stop()


@contextmanager
def lines(steps: Steps) -> Iterator[None]:
    """Print steps in lines on standard error, a file or a pipe, while the block runs."""

    def say(line: str) -> None:
        with suppress(OSError, ValueError):  # Standard error is closed or full.
            print(line, file=sys.stderr, flush=True)

    with _speaking(steps, say, lambda: max(FIRST_LINE_SECONDS, LINE_SHARE * steps.seconds)):
        yield


@contextmanager
def _line_in_notebook(steps: Steps) -> Iterator[None]:
    """Show steps below the cell of a notebook while the block runs; then the line is empty."""
    display = import_module("IPython.display").display
    shown = list[Any]()

    def say(line: str) -> None:
        text = {"text/plain": line}
        if shown:
            shown[0].update(text, raw=True)
        else:
            shown.append(display(text, raw=True, display_id=True))

    with _speaking(steps, say, lambda: NOTEBOOK_SECONDS if shown else FIRST_LINE_SECONDS):
        yield
    if shown:
        say("")


@contextmanager
def _speaking(
    steps: Steps, say: Callable[[str], None], pause: Callable[[], float]
) -> Iterator[None]:
    """Say the line of the steps again and again while the block runs.

    A thread says it, as a long unit of work reports nothing until it ends.

    pause: How many seconds pass until the next line.
    """
    ended = threading.Event()

    def speak() -> None:
        while not ended.wait(pause()):
            say(steps.line)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# What takes the reports of the call in Python that this thread is in; None outside of calls.
_listener: ContextVar[Report | None] = ContextVar("_listener", default=None)


def tell(what: str, done: int, total: int, detail: str = "") -> None:
    """Report to the call in Python that this thread is in; parameters as of ``Report``."""
    if (listener := _listener.get()) is not None:
        listener(what, done, total, detail)


@contextmanager
def telling(what: str, verbose: int | None = None) -> Iterator[None]:
    """Show what a call in Python does while the block runs.

    Calls inside the block, and reports to :func:`tell`, are shown in its line.

    what: What the call does, in words.
    verbose: None shows one line on a terminal or in a notebook, once the call has taken
        FIRST_LINE_SECONDS, and nothing elsewhere: not in other threads and processes, nor where
        standard error is a file or a pipe. 0 shows nothing, and 1 prints every report.
    """
    if verbose is None and _listener.get() is not None:
        tell(what, 0, 1)
        yield
        return
    steps = Steps()
    listener: Report = steps
    if verbose is not None:
        listener = _printed if verbose else _silent
    before = _listener.set(listener)
    try:
        with _display(steps) if verbose is None else nullcontext():
            tell(what, 0, 1)
            yield
    finally:
        _listener.reset(before)


def _display(steps: Steps) -> Any:
    """The block that shows the steps of a call in Python where somebody can see them."""
    processes = sys.modules.get("multiprocessing")  # A worker of joblib has loaded it.
    worker = processes is not None and processes.parent_process() is not None
    if worker or threading.current_thread() is not threading.main_thread():
        return nullcontext()
    known = sys.modules.get("IPython")
    shell = None if known is None else known.get_ipython()
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return _line_in_notebook(steps)
    if sys.stderr is None or sys.stderr.closed or not sys.stderr.isatty():
        return nullcontext()
    return line_on_terminal(steps, FIRST_LINE_SECONDS)


def _printed(what: str, done: int, total: int, detail: str = "") -> None:
    """Print a report."""
    print(f"{what}: {done} of {total}{detail and f' ({detail})'}")


def _silent(what: str, done: int, total: int, detail: str = "") -> None:
    """Show nothing of a report."""
