"""Batches of units of work: what an estimate or a proof asks for and the engine runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..solvers.core.limits import Limits
from .ledger import Ledger
from .progress import Report
from .settings import Settings


class Batch(NamedTuple):
    """Units of work that differ by their tasks alone.

    rows: Rows of the ledger that the results change; the seconds are divided among these rows.
    unit: A function of a module, so that it can be pickled, called as
        ``unit(shared, *task, limits)``.
    shared: What all units need alike; it is sent once to every process.
    enter: Takes the number of a task and the result of its unit, and enters it into the ledger.
    allot: Takes the number of rounds of units still to come, and returns the next unit's limits.
    report: Takes the number of units done, 0 at first.
    keep: Whether the rows are saved in the checkpoint after every unit that returned a result.
    """

    rows: Sequence[int]
    unit: Callable[..., Any]
    shared: Any
    tasks: Sequence[tuple[Any, ...]]
    enter: Callable[[int, Any], None]
    allot: Callable[[float], Limits]
    report: Callable[[int], object] = lambda done: None
    keep: bool = False


# Solves the problems at the γ of one row of the ledger, once each of them has an answer.
# It takes the ledger, the row, the settings, limits and the report.
SolveAt = Callable[[Ledger, int, Settings, Limits, Report], Iterator[Batch]]
