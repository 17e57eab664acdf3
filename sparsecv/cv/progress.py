"""Units of work, and reports of what is being done, the units done and the time left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Protocol

from ..solvers.core.limits import Limits
from ..solvers.core.result import Status


class OutOfTime(Exception):
    """Work was left out because its time was up; what needs its result cannot be had."""


class Report(Protocol):
    """A function that is told what is being done."""

    def __call__(self, what: str, done: int, total: int, detail: str = "") -> None:
        """Take what is being done, the number of units done and the number of all units.

        what: The phase in words of a user, and after a comma what else a user may want to know.
        detail: For those who follow the search: γ, sizes, gaps.
        """


def silent(what: str, done: int, total: int, detail: str = "") -> None:
    """Report no progress."""


@dataclass
class Batch:
    """Units of work that differ by their tasks alone.

    rows: Rows of the ledger that the results change; the seconds are divided among these rows.
    unit: A function of a module, so that it can be pickled, called as
        ``unit(shared, *task, limits)``. The result None is that of a unit that had no time.
    shared: What all units need alike; it is sent once to every process.
    enter: Takes the number of a task and the result of its unit, enters it into the ledger, and
        returns how the unit has ended.
    allot: Takes the number of rounds of units still to come, and returns the next unit's limits.
    report: Takes the number of units done, 0 at first, and the number of all units.
    keep: Whether the rows are saved in the checkpoint after every unit that returned a result.
    all_or_none: Whether no further unit gets time once a unit has reached a limit.
    """

    rows: Sequence[int]
    unit: Callable[..., Any]
    shared: Any
    tasks: Sequence[tuple[Any, ...]]
    enter: Callable[[int, Any], Status]
    allot: Callable[[float], Limits]
    report: Callable[[int, int], object] = lambda done, total: None
    keep: bool = False
    all_or_none: bool = False


# A function that does one unit of work, which may run in another thread or process.
Unit = Callable[..., Any]
# The arguments of every call of such a function, besides what all calls share and the limits.
Tasks = Sequence[tuple[Any, ...]]
# Runs units of work as ``Study.run`` does: (text for progress reports, function, what all calls
# share, tasks) → results in the order of the tasks, None of a unit that was left out.
RunUnits = Callable[[str, Unit, Any, Tasks], list[Any]]
# A function that runs the units of a batch, enters their results into the ledger, and returns how
# the units have ended, in any order.
Run = Callable[[Batch], list[Status]]


class Late(Enum):
    """What becomes of a unit of work whose limits are reached before it begins.

    DONE: It is done even so, because nothing at all is known without it.
    AFTER_GRACE: It is done unless the grace of the run is over, too (:attr:`Limits.overdue`). An
        answer cannot do without it, and there is an answer of another kind.
    LEFT_OUT: It is left out.
    """

    DONE = "done"
    AFTER_GRACE = "left out after the grace"
    LEFT_OUT = "left out"

    def unit(self, unit: Callable[..., Any]) -> Callable[..., Any]:
        """The unit of work that returns None, and does nothing, where it is left out."""
        return unit if self is Late.DONE else partial(_in_time, self, unit)

    def leaves_out(self, limits: Limits) -> bool:
        """Whether a unit of work that would begin now, with these limits, is left out."""
        if self is Late.AFTER_GRACE:
            return limits.overdue
        return self is Late.LEFT_OUT and limits.reached(0) is not None


def all_done(results: list[Any]) -> list[Any]:
    """The results of units of work, where none is left out.

    Raises OutOfTime: One is left out.
    """
    if any(one is None for one in results):
        raise OutOfTime
    return results


def _in_time(late: Late, unit: Callable[..., Any], *arguments: Any) -> Any:
    """What a unit of work returns; None where it is left out.

    late: What becomes of the unit where it is late.
    arguments: Those of the unit, of which its limits are the last.
    """
    return None if late.leaves_out(arguments[-1]) else unit(*arguments)


class TimedReport:
    """Adds the time that is left of a stage to reports, once the stage has run for a second.

    A stage is a sequence of reports with the same total and a number of units done that does not
    fall. Its clock begins at its first report, at which no unit is done. The time left is that of
    the units left at the mean time of the units done, and at most the time that the limits of the
    run leave.

    report: Takes the reports with the added time.
    limits: Limits of the whole run.
    """

    def __init__(self, report: Report, limits: Limits) -> None:
        self._report, self._limits = report, limits
        self._done, self._total, self._clock = 0, -1, Limits()

    def __call__(self, what: str, done: int, total: int, detail: str = "") -> None:
        if total != self._total or done < self._done:
            self._clock = Limits()
        self._done, self._total = done, total
        spent, most = self._clock.elapsed(), self._limits.remaining()
        # A stage reports the time left once it has run for a second. A shorter stage ends before
        # its line is read.
        if spent >= 1.0 and 0 < done < total:
            rest = spent / done * (total - done)
            what += f", about {rest if most is None else min(rest, most):.0f} s left"
        self._report(what, done, total, detail)
