"""Units of work in other processes: what a process does with one, and the loop over a cluster.

Dask's own client sends the units, because joblib's backend for Dask cannot keep what
docs/clusters.md promises: it loses what units share with the worker that holds it, gives up where
the cluster restarts, and cannot stop a unit that runs.
"""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
import uuid
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import numpy as np

from .. import __version__
from ..errors import ClusterError, first_line
from .core.limits import Limits, StopFlag
from .core.threads import one_blas_thread
from .kernels.compiled import compiled_elsewhere, seconds_compiling

# What Dask raises where nobody answers. The last two are one class from Python 3.11 on.
NO_ANSWER = (OSError, TimeoutError, asyncio.TimeoutError)
# A cluster that has no worker for so many seconds ends the run. The number is a choice.
SECONDS_WITHOUT_WORKER = 60.0
# The loop looks at the number of workers, and for units that were lost, once in so many seconds.
# New workers wait so long for work. The number is a choice.
SECONDS_BETWEEN_LOOKS = 2.0

_KILLED = (
    "several workers were lost at the same unit of work: their memory may be too small "
    "(dask worker --memory-limit); what had finished is kept where a checkpoint was asked for"
)
_lock = threading.Lock()
_futures: dict[tuple[str, int], Any] = {}  # (client, id of a value) -> the future of the value


@lru_cache(maxsize=64)
def _run_here(run: str) -> tuple[StopFlag, float]:
    """The stop flag of a run in this process, and the seconds of compiling before its first unit.

    The process forgets all but the 64 runs used last; units of the others can no longer be stopped.
    The caller holds the lock, as otherwise two threads might get two flags.
    """
    return StopFlag(), seconds_compiling()


def unit_there(
    unit: Callable[..., Any],
    shared: Any,
    task: tuple[Any, ...],
    seconds: float | None,
    run: str,
    version: str = __version__,
) -> tuple[Any, float]:
    """Do one unit of work in this process, with one thread of linear algebra.

    unit: Called with what is shared, the arguments of the task, and limits.
    seconds: The unit's time from now on; compiling is not counted.
    run: The run whose flag ends the unit: see :func:`stop_run`.
    version: The version of sparsecv where the unit comes from.
    Returns: What the unit returns, and how many seconds this process has compiled during the run.
    Raises ClusterError: This process has another version of sparsecv.
    """
    if version != __version__:
        raise ClusterError(
            f"a worker on {socket.gethostname()} has sparsecv {__version__}, this is {version}: "
            "install the same version everywhere"
        )
    with _lock:
        flag, before = _run_here(run)
    with one_blas_thread():
        found = unit(shared, *task, Limits(seconds, None, flag))
    return found, seconds_compiling() - before


def stop_run(run: str) -> None:
    """End the units of a run that are at work in this process, and those still to come."""
    with _lock:
        _run_here(run)[0].set()


class Run:
    """A loop over units of work in other processes: its name, and what these have compiled.

    The clock of this process stands still for as long as the process that compiled most did.
    """

    def __init__(self) -> None:
        self.name, self._compiling = uuid.uuid4().hex, 0.0

    def take(self, sent: tuple[Any, float]) -> Any:
        """What a unit has returned, from the result of :func:`unit_there`."""
        found, seconds = sent
        compiled_elsewhere(max(seconds - self._compiling, 0.0))
        self._compiling = max(seconds, self._compiling)
        return found


def on_cluster(
    client: Any,
    unit: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    allot: Callable[[float], Limits],
) -> Iterator[tuple[int, Any]]:
    """Do units of work on a cluster; yield each as it ends.

    What units share is sent to every worker once, and stays there as long as it is alive here. A
    unit whose worker is lost is sent again. Leaving the loop early cancels the units that wait and
    stops those that run.

    client: A ``distributed.Client``. The other arguments are those of
        :func:`.executor.run_units`.
    Raises ClusterError: No workers, a unit that ends every worker it meets, or a lost scheduler.
    """
    from distributed import wait

    run, waiting, running = Run(), deque(range(len(tasks))), dict[Any, int]()
    threads, looked = 0, -math.inf
    try:
        while waiting or running:
            with _scheduler_there():
                if time.monotonic() - looked > SECONDS_BETWEEN_LOOKS:
                    threads, looked = _threads(client), time.monotonic()
                seconds = allot((len(waiting) + len(running)) / threads).remaining()
                # With a time limit no unit waits on a worker, since its time is known at its start.
                most = threads if seconds is not None else 2 * threads
                while waiting and len(running) < most:
                    index = waiting.popleft()
                    task = tuple(_argument(client, part) for part in tasks[index])
                    given = unit, _sent_once(client, shared), task, seconds, run.name, __version__
                    running[client.submit(unit_there, *given, pure=False)] = index
                # The wait ends with an error where a restart of the cluster has cancelled a unit.
                with client.as_current(), suppress(*NO_ANSWER, CancelledError):
                    wait(list(running), SECONDS_BETWEEN_LOOKS, "FIRST_COMPLETED")
            for future in [one for one in running if one.status != "pending"]:
                index, sent = running.pop(future), _sent_back(future)
                if sent is None:
                    waiting.appendleft(index)
                else:
                    yield index, run.take(sent)
    finally:
        if running:
            with suppress(Exception):  # The scheduler may be what was lost.
                client.run(stop_run, run.name, on_error="ignore")
                client.cancel(list(running))


def _threads(client: Any) -> int:
    """The number of threads of all workers; waits for a first worker."""
    if client.status != "running":
        raise ConnectionError(f"the client is {client.status}")
    while not (threads := int(sum(client.ncores().values()))):
        try:
            client.wait_for_workers(1, timeout=SECONDS_WITHOUT_WORKER)
        except TimeoutError:
            raise ClusterError(
                f"the Dask cluster has had no worker for {SECONDS_WITHOUT_WORKER:.0f} s: "
                "start one with `dask worker ADDRESS`"
            ) from None
    return threads


def _sent_back(future: Any) -> tuple[Any, float] | None:
    """The result of a unit that has ended; None where a restart of the cluster has lost the unit.

    Raises ClusterError: The unit has ended its workers, a worker lacks sparsecv, or the scheduler
        is lost. Other errors of the unit are raised as they are.
    """
    from distributed import KilledWorker

    if future.status == "error":
        error = future.exception()
        if isinstance(error, KilledWorker):
            raise ClusterError(_KILLED) from error
        if isinstance(error, ModuleNotFoundError):
            raise ClusterError(f"a worker cannot run this ({error}): install sparsecv everywhere")
        raise error
    if future.status == "finished":
        with _scheduler_there(), suppress(CancelledError):
            sent: tuple[Any, float] = future.result()
            return sent
    return None


@contextmanager
def _scheduler_there() -> Iterator[None]:
    """Raise a ClusterError where the scheduler does not answer."""
    from distributed import client

    closed = getattr(client, "ClosedClientError", OSError)  # Older versions have no such class.
    try:
        yield
    except (*NO_ANSWER, closed) as error:
        raise ClusterError(
            f"the Dask scheduler is lost ({first_line(error)}): start it again; what had finished "
            "is kept where a checkpoint was asked for"
        ) from error


def _argument(client: Any, part: Any) -> Any:
    """An argument of a unit as it is sent: large arrays go once, Dask computes its collections."""
    if hasattr(part, "__dask_graph__"):
        return client.compute(part)
    large = isinstance(part, np.ndarray) and part.nbytes > 100_000  # The size is a choice.
    return _sent_once(client, part) if large else part


def _sent_once(client: Any, value: Any) -> Any:
    """The future of a value that every worker fetches once, for as long as the value lives here.

    The future is that of a task, not of scattered data: the scheduler makes the value again where
    the worker that held the value is lost, and sending it waits for no worker. A value that knows
    no weak references, such as None or a tuple, is returned as it is.
    """
    key = client.id, id(value)
    known = _futures.get(key)
    if known is not None and known.status in ("pending", "finished"):
        return known
    try:
        weakref.finalize(value, _futures.pop, key, None)
    except TypeError:
        return value
    with warnings.catch_warnings():  # Dask warns of tasks that hold much, as is meant here.
        warnings.simplefilter("ignore", UserWarning)
        _futures[key] = client.submit(_same, value, pure=False)
    return _futures[key]


def _same(value: Any) -> Any:
    """Return the value: a task that keeps a value on the cluster."""
    return value
