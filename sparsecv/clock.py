"""The one clock of the package, which stands still while kernels are compiled.

Every time limit and every number of seconds that a search reports is read from it, so that neither
counts the time of compiling. A command tells its user all seconds, those of compiling included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds of this process since some moment.

    seconds_compiling: Seconds that this process has spent compiling and loading kernels so far.
    compiles: Whether a thread of this process compiles a kernel that no file has.
    """

    def __init__(self) -> None:
        self.seconds_compiling, self.compiles = 0.0, False
        self._lock = threading.Lock()

    def all_seconds(self) -> float:
        """Seconds since some moment, those of compiling included."""
        return time.perf_counter()

    def now(self) -> float:
        """Seconds since some moment in which no kernel was compiled or loaded."""
        return self.all_seconds() - self.seconds_compiling

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Count the seconds spent inside as time of compiling."""
        began = self.all_seconds()
        try:
            yield
        finally:
            self.leave_out(self.all_seconds() - began)

    def leave_out(self, seconds: float) -> None:
        """Count seconds, such as those that another process has compiled, as time of compiling."""
        with self._lock:
            self.seconds_compiling += seconds


CLOCK = Clock()
