"""When a search stops: at a limit of seconds or nodes, or where another thread asks it to."""

from __future__ import annotations

import threading
from typing import Any

from ...clock import CLOCK
from ...schedule import GRACE_SECONDS, GRACE_SHARE
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
    latest : float, optional
        The time of the clock from which on work that an answer cannot do without is given up, too.
        By default it follows from ``time_limit``; the parts of a run have that of the whole run.

    Raises
    ------
    ValueError
        A negative limit, or a time limit that is not a number.

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
        latest: float | None = None,
    ) -> None:
        if time_limit is not None and not time_limit >= 0.0:
            raise ValueError(f"time_limit must be a number of seconds >= 0; got {time_limit}")
        if node_limit is not None and node_limit < 0:
            raise ValueError(f"node_limit must be >= 0; got {node_limit}")
        self.started = CLOCK.now()
        self._deadline = None if time_limit is None else self.started + time_limit
        if latest is None and self._deadline is not None:
            latest = self._deadline + max(GRACE_SHARE * (time_limit or 0.0), GRACE_SECONDS)
        self._latest = latest
        self.node_limit, self.stop = node_limit, stop

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the time that is left, which counts from the arrival in another process."""
        latest = None if self._latest is None else self._latest - CLOCK.now()
        return _arrived, (self.remaining(), self.node_limit, self.stop, latest)

    def share(self, pieces: float) -> Limits:
        """The next of ``pieces`` equal pieces of the time that is left, without a node limit.

        pieces: How many equal pieces are still to come; a number below 1 counts as 1.
        """
        left = self.remaining()
        seconds = None if left is None else left / max(pieces, 1.0)
        return Limits(seconds, None, self.stop, self._latest)

    def within(self, seconds: float | None = None, nodes: int | None = None) -> Limits:
        """Limits of a part of the search: its clock starts now, and it shares the stop flag.

        seconds: The part has at most so much of the time that remains.
        nodes: The part has at most so many nodes. Nodes that were searched before are not taken off
            the node limit: :meth:`after` does that where the part counts its nodes from 0.
        """
        times = [limit for limit in (self.remaining(), seconds) if limit is not None]
        counts = [limit for limit in (self.node_limit, nodes) if limit is not None]
        most = min(counts, default=None)
        return Limits(min(times, default=None), most, self.stop, self._latest)

    def after(self, nodes: int) -> Limits:
        """The same limits of a part that counts its nodes from 0, after so many nodes of others."""
        if self.node_limit is None or nodes == 0:
            return self
        return self.within(nodes=max(self.node_limit - nodes, 0))

    def elapsed(self) -> float:
        """Seconds since the search began."""
        return CLOCK.now() - self.started

    def remaining(self) -> float | None:
        """Seconds left, not below 0; None without a time limit."""
        return None if self._deadline is None else max(0.0, self._deadline - CLOCK.now())

    def longer(self, seconds: float) -> Limits:
        """Limits of so many seconds more, which end with the grace of the whole run at the latest.

        Nothing changes where there is no time limit.
        """
        left = self.remaining()
        if left is None or self._latest is None:
            return self
        most = max(0.0, self._latest - CLOCK.now())
        return Limits(min(left + seconds, most), self.node_limit, self.stop, self._latest)

    @property
    def overdue(self) -> bool:
        """Whether the time of the whole run is over, and the grace after it."""
        return self._latest is not None and CLOCK.now() >= self._latest

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
        """How many nodes, at most ``chunk``, to search after ``nodes`` before the next look.

        The number is below 0 after more nodes than the limit allows.
        """
        return chunk if self.node_limit is None else min(chunk, self.node_limit - nodes)


def _arrived(
    time_limit: float | None, node_limit: int | None, stop: StopFlag | None, latest: float | None
) -> Limits:
    """Limits that another process has sent, with the seconds until work is given up."""
    at = None if latest is None else CLOCK.now() + latest
    return Limits(time_limit, node_limit, stop, at)
