"""When to stop: wall time, nodes, or somebody else's wish."""

from __future__ import annotations

import threading
import time
from typing import Any

from ..kernels.compiled import seconds_compiling
from .result import Status

FLOPS = 1e9  # a second, of factorisations and eigenvalue problems on a busy machine


def _now() -> float:
    """Seconds of a clock that stands still while kernels are compiled."""
    return time.perf_counter() - seconds_compiling()


class StopFlag:
    """A flag any thread can raise; running trees look at it many times a second.

    Pickles to a fresh flag, so that work may be shipped to other processes.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask every search that holds this flag to stop."""
        self._event.set()

    def is_set(self) -> bool:
        """Whether the flag has been raised.

        Returns
        -------
        bool
        """
        return self._event.is_set()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._event = threading.Event()


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
    >>> from sparsecv.solvers import Limits
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
        self.started = _now()
        self._deadline = None if time_limit is None else self.started + time_limit
        self.node_limit, self.stop = node_limit, stop

    def __getstate__(self) -> dict[str, Any]:
        return {"left": self.remaining(), "nodes": self.node_limit, "stop": self.stop}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In another process, whose clock is another: what was left, from now."""
        Limits.__init__(self, state["left"], state["nodes"], state["stop"])

    def share(self, pieces: float) -> Limits:
        """Limits of the next of ``pieces`` equal pieces of what is left of the time.

        Parameters
        ----------
        pieces : float
            How many equal pieces are still to come; below 1 it counts as 1.

        Returns
        -------
        Limits
            Without a node limit.
        """
        left = self.remaining()
        return Limits(None if left is None else left / max(pieces, 1.0), None, self.stop)

    def within(self, seconds: float | None = None, nodes: int | None = None) -> Limits:
        """What is left of these limits, at most so many seconds from now and so many nodes.

        The nodes searched so far are not taken off the node limit, and their number and the
        seconds that have passed begin again at 0.
        """
        times = [limit for limit in (self.remaining(), seconds) if limit is not None]
        counts = [limit for limit in (self.node_limit, nodes) if limit is not None]
        return Limits(min(times, default=None), min(counts, default=None), self.stop)

    def elapsed(self) -> float:
        """Seconds since the search began.

        Returns
        -------
        float
        """
        return _now() - self.started

    def remaining(self) -> float | None:
        """Seconds left, not below 0; None without a time limit.

        Returns
        -------
        float or None
        """
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - _now())

    def reached(self, nodes: int) -> Status | None:
        """Return the limit that has been reached after ``nodes`` nodes, or None.

        Parameters
        ----------
        nodes : int

        Returns
        -------
        Status or None
        """
        if self.stop is not None and self.stop.is_set():
            return Status.INTERRUPTED
        if self._deadline is not None and _now() >= self._deadline:
            return Status.TIME_LIMIT
        if self.node_limit is not None and nodes >= self.node_limit:
            return Status.NODE_LIMIT
        return None

    def affords(self, flops: float) -> bool:
        """Whether so many operations of dense linear algebra fit into what is left of the time.

        Parameters
        ----------
        flops : float

        Returns
        -------
        bool
        """
        left = self.remaining()
        return left is None or flops <= FLOPS * left

    def nodes_left(self, nodes: int, chunk: int) -> int:
        """Return how many nodes to run before looking at the clock again.

        Parameters
        ----------
        nodes, chunk : int
            Nodes run so far, and how many to run at most.

        Returns
        -------
        int
        """
        return chunk if self.node_limit is None else min(chunk, self.node_limit - nodes)
