"""Units of work on a Dask cluster: sent as workers are free, sent again when one is lost."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
import warnings
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from .. import __version__
from ..errors import ClusterError, InputError, first_line, not_installed
from .core.limits import Limits
from .remote import Compiling, held, stop_run, unit_there

Late = (TimeoutError, asyncio.TimeoutError)  # the same class from Python 3.11 on


class ClusterSettings(NamedTuple):
    """Numbers that tune how units of work are sent to a cluster."""

    # The run is given up once a restart of the cluster or the loss of the data that a unit needs
    # has ended the same unit this many times; before that it is sent again. Dask itself sends units
    # again whose worker is lost.
    attempts: int = 5
    # Seconds to wait for a first worker of a cluster that has none, before an error says so.
    seconds_without_worker: float = 60.0
    # Bytes of an argument from which it is sent once, apart from its units.
    large_argument_bytes: int = 100_000
    # Seconds between two looks at how many workers there are, and at units that were lost; new
    # workers wait so long for work.
    seconds_between_looks: float = 2.0


CLUSTER = ClusterSettings()
_HELD = ("pending", "finished")  # status of a value that the cluster holds, or will
_values: Any = weakref.WeakKeyDictionary()  # what units share -> the cluster's name, its future


def connect(client: Any) -> Any:
    """A Dask client, or one that is connected to a scheduler's address.

    Raises InputError: Dask is not installed, nothing answers at the address, or this is neither of
        the two.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(f"no cluster, as {not_installed('Dask', 'distributed')}") from None
    if isinstance(client, str):
        try:
            return Client(client, timeout=5, set_as_default=False)
        except (OSError, *Late, ValueError) as error:
            said = f"no Dask scheduler answers at {client}: {first_line(error)}"
            raise InputError(said) from None
    if not isinstance(client, Client) or client.asynchronous:
        raise InputError(
            f"client must be a distributed.Client (not asynchronous) or the address of a "
            f"scheduler; got {client!r}"
        )
    return client


def on_cluster(
    client: Any,
    unit: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    allot: Callable[[float], Limits],
) -> Iterator[tuple[int, Any]]:
    """Do units of work on a cluster; yield each as it ends.

    What units share is sent to every worker once, and kept there as long as it is alive here. A
    unit whose worker is lost is sent again. Leaving the loop early cancels what waits and stops
    what runs.

    Raises ClusterError: No workers, a unit that ends every worker it meets, or a lost scheduler.
    """
    from distributed import as_completed

    name, compiling = uuid.uuid4().hex, Compiling()
    waiting, running = deque(range(len(tasks))), dict[Any, int]()
    attempts, large = Counter[int](), dict[int, Any]()
    threads, looked = 0, -math.inf
    # results come with the notice that a unit has ended
    ended = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    try:
        while waiting or running:
            with _scheduler_there():
                if not threads or time.monotonic() - looked > CLUSTER.seconds_between_looks:
                    threads, looked = _threads(client), time.monotonic()
                share = allot((len(waiting) + len(running)) / threads)
                # a unit's share of the time is known when it starts, not earlier
                most = threads if share.remaining() is not None else 2 * threads
                while waiting and len(running) < most:
                    index = waiting.popleft()
                    task = tuple(_sent_once(client, part, large) for part in tasks[index])
                    given = unit, _shared(client, shared), task, share.remaining()
                    future = client.submit(unit_there, *given, name, __version__, pure=False)
                    running[future] = index
                    ended.add(future)
                future, found = _next(ended, running)
            index = running.pop(future)
            if future.status == "finished":
                yield index, compiling.take(found)
            elif future.status == "error":
                _fail(future)
            else:  # cancelled or lost, as where the cluster was restarted
                attempts[index] += 1
                if attempts[index] >= CLUSTER.attempts:
                    raise ClusterError(_LOST.format(CLUSTER.attempts))
                waiting.appendleft(index)
    finally:
        if running:
            with suppress(Exception):  # the scheduler may be what was lost
                client.run(stop_run, name, on_error="ignore")
                client.cancel(list(running))


def _next(ended: Any, running: dict[Any, int]) -> tuple[Any, Any]:
    """The next future that ended, and what it gave; None for a future that a restart lost."""
    while True:
        with ended.thread_condition:
            if not ended.has_ready():
                ended.thread_condition.wait(CLUSTER.seconds_between_looks)
        while ended.has_ready():
            future, found = next(ended)
            if future in running:
                return future, found
        for future in running:
            if future.status in ("cancelled", "lost"):
                return future, None


def _threads(client: Any) -> int:
    """Threads of all workers; waits for a first worker."""
    if client.status != "running":
        raise ConnectionError(f"the client is {client.status}")
    while not (threads := int(sum(client.ncores().values()))):
        try:
            client.wait_for_workers(1, timeout=CLUSTER.seconds_without_worker)
        except Late:
            raise ClusterError(
                f"the Dask cluster has had no worker for {CLUSTER.seconds_without_worker:.0f} s: "
                "start one with `dask worker ADDRESS`"
            ) from None
    return threads


def _fail(future: Any) -> None:
    """Raise what a unit raised, or say that it ended its workers."""
    from distributed import KilledWorker

    error = future.exception()
    if isinstance(error, KilledWorker):
        raise ClusterError(_LOST.format("several")) from error
    if isinstance(error, ModuleNotFoundError):
        raise ClusterError(
            f"a worker cannot run this ({error}): install sparsecv on every machine"
        ) from error
    raise error


@contextmanager
def _scheduler_there() -> Iterator[None]:
    """Say so where the scheduler does not answer."""
    from distributed import client

    closed = getattr(client, "ClosedClientError", OSError)  # older versions have no such class
    try:
        yield
    except (OSError, *Late, CancelledError, closed) as error:
        raise ClusterError(
            f"the Dask scheduler is lost ({first_line(error)}): start it again; what had finished "
            "is kept where a checkpoint was asked for"
        ) from error


_LOST = (
    "{} workers were lost at the same unit of work: their memory may be too small "
    "(dask worker --memory-limit); what had finished is kept where a checkpoint was asked for"
)


def _held(client: Any, value: Any) -> Any:
    """The future of a value sent to the cluster once, and fetched once by every worker.

    The future is that of a task, not of scattered data: the scheduler makes the value again where
    the worker that held the value is lost, and sending it waits for no worker.
    """
    with warnings.catch_warnings():  # Dask warns of tasks that hold much, as is meant here
        warnings.simplefilter("ignore", UserWarning)
        return client.submit(held, value, pure=False)


def _sent_once(client: Any, part: Any, large: dict[int, Any]) -> Any:
    """An argument as its unit gets it: a large one is sent once, a lazy one is computed there."""
    from dask.sizeof import sizeof

    if hasattr(part, "__dask_graph__"):
        return client.compute(part)
    known = large.get(id(part))
    if known is None and sizeof(part) <= CLUSTER.large_argument_bytes:
        return part
    if known is None or known.status not in _HELD:
        large[id(part)] = _held(client, part)
    return large[id(part)]


def _shared(client: Any, shared: Any) -> Any:
    """The future of what units share; where it has been sent already, that."""
    try:
        known = _values.get(shared)
    except TypeError:  # neither hashable nor weakly referable: sent with every unit
        return shared
    if known is None or known[0] != client.id or known[1].status not in _HELD:
        _values[shared] = client.id, _held(client, shared)
    return _values[shared][1]
