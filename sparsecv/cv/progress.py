"""Reports of a run's progress: what is being done, the units done, and the time left."""

from __future__ import annotations

from collections.abc import Callable

from ..solvers.core.limits import Limits

# A function that takes what is being done, the number of units done and the number of all units.
Report = Callable[[str, int, int], None]


class TimedReport:
    """Adds the time that is left of a stage to reports.

    A stage is a sequence of reports with the same total and a number of units done that does not
    fall. The time left is that of the units left at the mean time of the units done, and at most
    the time that the limits of the run leave.

    report: Takes the reports with the added time.
    limits: Limits of the whole run.
    """

    def __init__(self, report: Report, limits: Limits) -> None:
        self._report, self._limits = report, limits
        self._done, self._total, self._clock = 0, -1, Limits()

    def __call__(self, what: str, done: int, total: int) -> None:
        if total != self._total or done < self._done:
            self._clock = Limits()
        self._done, self._total = done, total
        spent, most = self._clock.elapsed(), self._limits.remaining()
        # A stage reports the time left once it has run for this many seconds.
        if spent >= 1.0 and 0 < done < total:
            rest = spent / done * (total - done)
            what += f", about {rest if most is None else min(rest, most):.0f} s left"
        self._report(what, done, total)
