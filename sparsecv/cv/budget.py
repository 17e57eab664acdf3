"""Wall time shared out among folds."""

from __future__ import annotations

import time
from collections.abc import Callable

Share = Callable[[float], "float | None"]


class Budget:
    """Wall time shared out among the pieces of work still to come."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.perf_counter() + seconds

    def share(self, pieces: float) -> float | None:
        """Seconds for the next of ``pieces`` equal pieces; None without a limit."""
        if self._end is None:
            return None
        return max(0.0, self._end - time.perf_counter()) / max(pieces, 1.0)


class Pace:
    """Seconds each fold may search, what it costs besides taken off."""

    def __init__(self, share: Share, folds: int, jobs: int) -> None:
        self._share, self._left, self._jobs = share, folds, jobs
        self._besides = 0.0

    def allowance(self) -> float | None:
        """Seconds for the next fold's search; 0 means none, None no limit."""
        limit = self._share(self._left / self._jobs)
        return None if limit is None else max(0.0, limit - self._besides)

    def finished(self, seconds: float, searching: float) -> None:
        """Learn from a fold that took ``seconds``, ``searching`` of them in its search."""
        self._left -= 1
        self._besides = max(0.9 * self._besides, seconds - searching)
