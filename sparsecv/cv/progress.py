"""What a run says of its progress: what is done, the units done, how long the rest takes."""

from __future__ import annotations

from collections.abc import Callable

from ..solvers.core.limits import Limits

Tell = Callable[[str, int, int], None]
QUICK = 1.0  # seconds of work, up to which nothing is said of the time


class Pace:
    """Adds the time left of a stage to what is told.

    A stage is a run of calls with the same total and a number done that does not fall; the rest is
    taken to go on as fast as what is done.

    tell: Takes what is being done, the units done and units in all.
    limits: Of the whole run: no longer than they leave.
    """

    def __init__(self, tell: Tell, limits: Limits) -> None:
        self._tell, self._limits = tell, limits
        self._done, self._total, self._clock = 0, -1, Limits()

    def __call__(self, what: str, done: int, total: int) -> None:
        if total != self._total or done < self._done:
            self._clock = Limits()
        self._done, self._total = done, total
        spent, most = self._clock.elapsed(), self._limits.remaining()
        if spent >= QUICK and 0 < done < total:
            rest = spent / done * (total - done)
            what += f", about {rest if most is None else min(rest, most):.0f} s left"
        self._tell(what, done, total)
