"""When a search stops: at a limit of seconds or nodes, or where another thread asks it to."""

from __future__ import annotations

import threading
from typing import Any

from ...clock import CLOCK
from .result import Status


class StopFlag(threading.Event):
    """A flag that any thread can raise by ``set``; running trees look at it many times a second.

    A pickled flag becomes a fresh flag, so that work may be shipped to other processes.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return StopFlag, ()


class Limits:
    """Time and node limits of one search, counted from its creation; compiling is not counted.

    Parameters
    ----------
    time_limit : float, optional
        Seconds, at least 0; none by default.
    node_limit : int, optional
        At least 0; none by default.
    stop : StopFlag, optional
        Ends the search when it is raised.

    Raises
    ------
    ValueError
        A negative limit.

    Examples
    --------
    >>> from sparsecv.solvers.core.limits import Limits
    >>> Limits(node_limit=10).reached(10)
    <Status.NODE_LIMIT: 'node limit'>
    """

    def __init__(
        self,
        time_limit: float | None = None,
        node_limit: int | None = None,
        stop: StopFlag | None = None,
    ) -> None:
        if time_limit is not None and not time_limit >= 0.0:
            raise ValueError(f"time_limit must be a number of seconds >= 0; got {time_limit}")
        if node_limit is not None and node_limit < 0:
            raise ValueError(f"node_limit must be >= 0; got {node_limit}")
        self.started = CLOCK.now()
        self._deadline = None if time_limit is None else self.started + time_limit
        self.node_limit, self.stop = node_limit, stop

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the time that is left, which counts from the arrival in another process."""
        return Limits, (self.remaining(), self.node_limit, self.stop)

    def share(self, pieces: float) -> Limits:
        """The next of ``pieces`` equal pieces of the time that is left, without a node limit.

        pieces: How many equal pieces are still to come; a number below 1 counts as 1.
        """
        left = self.remaining()
        return Limits(None if left is None else left / max(pieces, 1.0), None, self.stop)

    def within(self, seconds: float | None = None, nodes: int | None = None) -> Limits:
        """Limits of a part of the search: its clock starts now, and it shares the stop flag.

        seconds: The part has at most so much of the time that remains.
        nodes: The part has at most so many nodes. Nodes that were searched before are not taken off
            the node limit: the caller counts the nodes of the part from 0.
        """
        times = [limit for limit in (self.remaining(), seconds) if limit is not None]
        counts = [limit for limit in (self.node_limit, nodes) if limit is not None]
        return Limits(min(times, default=None), min(counts, default=None), self.stop)

    def elapsed(self) -> float:
        """Seconds since the search began."""
        return CLOCK.now() - self.started

    def remaining(self) -> float | None:
        """Seconds left, not below 0; None without a time limit."""
        return None if self._deadline is None else max(0.0, self._deadline - CLOCK.now())

    def reached(self, nodes: int) -> Status | None:
        """The limit that has been reached after ``nodes`` nodes, or None."""
        if self.stop is not None and self.stop.is_set():
            return Status.INTERRUPTED
        if self._deadline is not None and CLOCK.now() >= self._deadline:
            return Status.TIME_LIMIT
        if self.node_limit is not None and nodes >= self.node_limit:
            return Status.NODE_LIMIT
        return None

    def affords(self, flops: float) -> bool:
        """Whether so many operations of dense linear algebra fit into what is left of the time.

        A busy machine does 1e9 of them in a second (measured on factorisations and eigenvalues).
        """
        left = self.remaining()
        return left is None or flops <= 1e9 * left

    def nodes_left(self, nodes: int, chunk: int) -> int:
        """How many nodes, at most ``chunk``, to search after ``nodes`` before the next look."""
        return chunk if self.node_limit is None else min(chunk, self.node_limit - nodes)
