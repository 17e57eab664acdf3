"""One clock for tests of limits, which moves with the work that a test counts and not with time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from .stand_ins import real, standing_in

# The units of work of a fit, as the table of stand-ins names them.
UNITS = "fold_unit", "split_unit", "averaged_coefficients"


class WorkClock:
    """A context in which the clock moves with looks at it and with units of work alone.

    by_look: The seconds that a look at the clock takes.
    units: The functions that are counted, as the table of stand-ins names them, and the seconds
        that a call takes.
    now: The time in seconds.
    begun: The name of every unit and the time at which it began.
    """

    def __init__(self, by_look: float = 0.0, units: Iterable[tuple[str, float]] = ()) -> None:
        self.now, self.begun = 0.0, list[tuple[str, float]]()
        self._by_look, self._units, self._context = by_look, tuple(units), ExitStack()

    @classmethod
    def of_a_fit(cls, by_unit: float = 1.0, by_look: float = 0.0) -> WorkClock:
        """A clock that every unit of work of a fit moves by so many seconds."""
        return cls(by_look, [(name, by_unit) for name in UNITS])

    def __enter__(self) -> WorkClock:
        changed = {name: self._counted(name, seconds) for name, seconds in self._units}
        self._context.enter_context(standing_in(clock_now=self._look, **changed))
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def _look(self) -> float:
        self.now += self._by_look
        return self.now

    def _counted(self, name: str, seconds: float) -> Callable[..., Any]:
        unit = real(name)

        def counted(*given: Any, **named: Any) -> Any:
            self.begun.append((name, self.now))
            self.now += seconds
            return unit(*given, **named)

        return counted
