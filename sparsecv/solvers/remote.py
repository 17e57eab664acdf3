"""A unit of work in another process: its clock, its stop flag, one thread of linear algebra."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import __version__
from ..errors import ClusterError
from .core.limits import Limits, StopFlag
from .core.threads import one_blas_thread
from .kernels.compiled import compiled_elsewhere, seconds_compiling

_flags: dict[str, StopFlag] = {}  # of the runs that have had units in this process
_lock = threading.Lock()
# Runs whose stop flag a worker keeps; with more runs the flags of the oldest runs are forgotten, so
# that their units can no longer be stopped early.
MAX_FLAGS = 64


class Sent(NamedTuple):
    """What a unit gave, and what its process had spent compiling before and after.

    process: Machine and process.
    before, after: Seconds of compiling since that process began.
    """

    found: Any
    process: str
    before: float
    after: float


def held(value: Any) -> Any:
    """The value itself: a task that keeps it on the cluster."""
    return value


def unit_there(
    unit: Callable[..., Any],
    shared: Any,
    task: tuple[Any, ...],
    seconds: float | None,
    run: str,
    version: str,
) -> Sent:
    """Do one unit of work in this process.

    unit: Called with what is shared, the task and limits.
    seconds: From now; compiling is not counted.
    run: Whose flag ends it: see :func:`stop_run`.
    version: Of sparsecv where the work comes from.
    Raises ClusterError: Another version of sparsecv is installed here.
    """
    if version != __version__:
        raise ClusterError(
            f"a worker on {socket.gethostname()} has sparsecv {__version__}, this is {version}: "
            "install the same version everywhere"
        )
    before = seconds_compiling()
    with one_blas_thread():
        found = unit(shared, *task, Limits(seconds, None, _flag(run)))
    process = f"{socket.gethostname()}-{os.getpid()}"
    return Sent(found, process, before, seconds_compiling())


def stop_run(run: str) -> None:
    """End the units of a run that are at work in this process, and those still to come."""
    _flag(run).set()


def _flag(run: str) -> StopFlag:
    with _lock:
        if run not in _flags:
            while len(_flags) >= MAX_FLAGS:
                del _flags[next(iter(_flags))]
            _flags[run] = StopFlag()
        return _flags[run]


class Compiling:
    """Keeps what other processes compile off the clock here: the most that one of them did."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._most = 0.0

    def take(self, sent: Sent) -> Any:
        """Note a unit's seconds of compiling; what it gave."""
        began = min(sent.before, self._began.get(sent.process, sent.before))
        self._began[sent.process] = began
        more = sent.after - began - self._most
        if more > 0.0:
            self._most += more
            compiled_elsewhere(more)
        return sent.found
