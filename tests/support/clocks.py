"""One clock for tests of limits, which moves with the work that a test counts and not with time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any
from unittest import mock

from sparsecv.selection import averaging

from .inside import CLOCK, estimate, inner_folds, projection

# The units of work of a fit: module and function.
UNITS = (
    (estimate, "fold_unit"),
    (inner_folds, "_inner_errors"),
    (projection, "project_fold"),
    (averaging, "averaged_coefficients"),
)


class WorkClock:
    """A context in which the clock moves with looks at it and with units of work alone.

    by_look: The seconds that a look at the clock takes.
    units: The functions that are counted: module, name, and the seconds that a call takes.
    now: The time in seconds.
    begun: The name of every unit and the time at which it began.
    """

    def __init__(self, by_look: float = 0.0, units: Iterable[tuple[Any, str, float]] = ()) -> None:
        self.now, self.begun = 0.0, list[tuple[str, float]]()
        self._by_look, self._units, self._context = by_look, tuple(units), ExitStack()

    @classmethod
    def of_a_fit(cls, by_unit: float = 1.0, by_look: float = 0.0) -> WorkClock:
        """A clock that every unit of work of a fit moves by so many seconds."""
        return cls(by_look, [(module, name, by_unit) for module, name in UNITS])

    def __enter__(self) -> WorkClock:
        changed = [
            (module, name, self._counted(module, name, s)) for module, name, s in self._units
        ]
        for owner, name, new in [(CLOCK, "now", self._look), *changed]:
            self._context.enter_context(mock.patch.object(owner, name, new))
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def _look(self) -> float:
        self.now += self._by_look
        return self.now

    def _counted(self, module: Any, name: str, seconds: float) -> Callable[..., Any]:
        unit = getattr(module, name)

        def counted(*given: Any, **named: Any) -> Any:
            self.begun.append((name, self.now))
            self.now += seconds
            return unit(*given, **named)

        return counted
