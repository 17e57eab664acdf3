"""Batches of units of work: what a strategy asks for and the engine runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..solvers.core.limits import Limits
from ..solvers.leaps.all_sizes import TREE_ONLY
from .ledger import Ledger
from .progress import Tell
from .settings import Settings


class Batch(NamedTuple):
    """Units of work that differ by their tasks alone.

    rows: Rows of the ledger that the units' findings change; they share the seconds.
    unit: ``unit(shared, *task, limits)``, a function of a module that can be pickled.
    enter: Enters what a unit found into the ledger, given the number of its task.
    allot: Limits of the next unit, given how many rounds of units are still to come.
    tell: Called with the number of units done, 0 at first.
    keep: Save the rows after every unit that has found something.
    """

    rows: Sequence[int]
    unit: Callable[..., Any]
    shared: Any
    tasks: Sequence[tuple[Any, ...]]
    enter: Callable[[int, Any], None]
    allot: Callable[[float], Limits]
    tell: Callable[[int], object] = lambda done: None
    keep: bool = False


class Strategy:
    """How a surface is found: by trees that answer every τ at once, where no subclass says else.

    Up to 45 columns the estimates are such trees already, and exact; beyond, proofs follow.

    solver: How supports are found for the estimates: "auto" proves what trees reach.
    fills: Whether every γ is worked on alone as soon as it is estimated.
    proves: Whether proofs of the whole surface follow.
    """

    solver = "auto"
    fills = False

    def __init__(self, settings: Settings, p: int) -> None:
        self.settings, self.proves = settings, not self.fills and p > TREE_ONLY

    def fill(self, ledger: Ledger, g: int, limits: Limits, tell: Tell) -> Iterator[Batch]:
        """Work on one γ, which the estimates have given answers; only where ``fills``."""
        return iter(())
