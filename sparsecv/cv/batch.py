"""Batches of units of work: what a strategy asks for and the engine runs."""

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


class Strategy:
    """How a surface is found; this class searches trees that answer every τ at once.

    Up to 45 columns the estimates come from such trees already, and are exact where a tree is
    small. Proofs of the rest follow the estimates.

    solver: How supports are found for the estimates, under the names of
        :func:`~sparsecv.solvers.paths.support_path`: "estimate" by small trees up to 45 columns,
        "heuristic" without a proof.
    gamma_by_gamma: Whether :meth:`solve_at` follows the estimates of every γ.
    proves: Whether proofs of the whole surface follow.
    """

    solver = "estimate"
    gamma_by_gamma = False

    def __init__(self, settings: Settings, p: int) -> None:
        self.settings, self.proves = settings, not self.gamma_by_gamma

    def solve_at(self, ledger: Ledger, g: int, limits: Limits, report: Report) -> Iterator[Batch]:
        """Solve the problems at the γ of row g, once every problem of the row has an answer.

        A subclass where ``gamma_by_gamma`` is true has batches of units here.
        """
        return iter(())
