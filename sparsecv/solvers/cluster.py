"""Units of work on a Dask cluster: sent as workers are free, sent again when one is lost."""

from __future__ import annotations

import asyncio
import time
import uuid
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from .. import __version__
from ..errors import ClusterError, InputError
from .core.limits import Limits
from .remote import Compiling, held, stop_run, unit_there

Late = (TimeoutError, asyncio.TimeoutError)  # one and the same from Python 3.11 on
MISSING = 'a Dask cluster needs Dask here: pip install "sparsecv[distributed]"'
ATTEMPTS = 5  # of a unit whose workers are lost
PATIENCE = 60.0  # seconds to wait for a worker where there is none
LARGE = 100_000  # bytes of an argument that is sent apart from its unit
REFRESH = 2.0  # seconds between looks at how many workers there are

KEPT = ("pending", "finished")  # status of a value the cluster holds, or will
_values: Any = weakref.WeakKeyDictionary()  # what units share -> the cluster's name, its future


def connect(client: Any) -> Any:
    """A Dask client, or one that is connected to a scheduler's address.

    Raises InputError: Dask is not installed, nothing answers at the address, or this is neither of
        the two.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(MISSING) from None
    if isinstance(client, str):
        try:
            return Client(client, timeout=5, set_as_default=False)
        except (OSError, *Late, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"no Dask scheduler answers at {client}: {reason}") from None
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
    run = _Run(client, unit, shared, tasks, allot)
    try:
        yield from run.results()
    finally:
        run.cancel()


class _Run:
    """The units of one call: waiting, at work, done."""

    def __init__(
        self,
        client: Any,
        unit: Callable[..., Any],
        shared: Any,
        tasks: Sequence[tuple[Any, ...]],
        allot: Callable[[float], Limits],
    ) -> None:
        self.client, self.unit, self.shared = client, unit, shared
        self.tasks, self.allot = tasks, allot
        self.name = uuid.uuid4().hex
        self.waiting = deque(range(len(tasks)))
        self.running: dict[Any, int] = {}
        self.attempts = [0] * len(tasks)
        self.large: dict[int, Any] = {}  # arguments that many units may have: id -> future
        self._looked, self._slots = -REFRESH, 0

    def results(self) -> Iterator[tuple[int, Any]]:
        from distributed import as_completed

        # results come with the notice that they are there
        ended = as_completed(loop=self.client.loop, with_results=True, raise_errors=False)
        compiling = Compiling()
        self._send(ended)
        while self.running:
            with _scheduler_there():
                future, found = self._next(ended)
            index = self.running.pop(future)
            if future.status == "finished":
                yield index, compiling.take(found)
            elif future.status == "error":
                self._fail(future)
            else:  # cancelled or lost: its worker, or the only one that held the data
                self.attempts[index] += 1
                if self.attempts[index] >= ATTEMPTS:
                    raise ClusterError(_LOST.format(ATTEMPTS))
                self.waiting.appendleft(index)
            self._send(ended)

    def _next(self, ended: Any) -> tuple[Any, Any]:
        """The next future that has ended, and what it gave.

        One that a restart has forgotten is told by its status.
        """
        while True:
            with ended.thread_condition:
                if not ended.has_ready():
                    ended.thread_condition.wait(REFRESH)
            while ended.has_ready():
                future, found = next(ended)
                if future in self.running:
                    return future, found
            for future in self.running:
                if future.status in ("cancelled", "lost"):
                    return future, None

    def _send(self, ended: Any) -> None:
        """As many units as there are free threads; twice that where no time has to be shared."""
        if not self.waiting:
            return
        with _scheduler_there():
            slots = self._count()
            share = self.allot((len(self.waiting) + len(self.running)) / slots)
            most = slots if share.remaining() is not None else 2 * slots
            while self.waiting and len(self.running) < most:
                index = self.waiting.popleft()
                arguments = (
                    self.unit,
                    _sent(self.client, self.shared),
                    self._arranged(self.tasks[index]),
                    share.remaining(),
                    self.name,
                    __version__,
                )
                future = self.client.submit(unit_there, *arguments, pure=False)
                self.running[future] = index
                ended.add(future)

    def _arranged(self, task: tuple[Any, ...]) -> tuple[Any, ...]:
        """Large arguments are sent once; Dask's own lazy values are computed where they lie."""
        from dask.sizeof import sizeof

        parts = []
        for part in task:
            if hasattr(part, "__dask_graph__"):
                parts.append(self.client.compute(part))
            elif sizeof(part) > LARGE or id(part) in self.large:
                known = self.large.get(id(part))
                if known is None or known.status not in KEPT:
                    known = self.large[id(part)] = _held(self.client, part)
                parts.append(known)
            else:
                parts.append(part)
        return tuple(parts)

    def _count(self) -> int:
        """Threads of all workers; waits for a first one."""
        if self.client.status != "running":
            raise ConnectionError(f"the client is {self.client.status}")
        if time.monotonic() - self._looked > REFRESH or self._slots == 0:
            self._slots = sum(self.client.ncores().values())
            self._looked = time.monotonic()
        if self._slots == 0:
            try:
                self.client.wait_for_workers(1, timeout=PATIENCE)
            except Late:
                raise ClusterError(
                    f"the Dask cluster has had no worker for {PATIENCE:.0f} s: start one with "
                    "`dask worker ADDRESS`"
                ) from None
            return self._count()
        return self._slots

    def _fail(self, future: Any) -> None:
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

    def cancel(self) -> None:
        """Nothing waits or runs any longer."""
        if not self.running:
            return
        futures, self.running = list(self.running), {}
        with suppress(Exception):  # the scheduler may be what was lost
            self.client.run(stop_run, self.name, on_error="ignore")
            self.client.cancel(futures)


@contextmanager
def _scheduler_there() -> Iterator[None]:
    """Say so where the scheduler does not answer."""
    try:
        yield
    except (OSError, *Late, CancelledError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(
            f"the Dask scheduler is lost ({reason}): start it again; what had finished is kept "
            "where a checkpoint was asked for"
        ) from error


_LOST = (
    "{} workers were lost at the same unit of work: their memory may be too small "
    "(dask worker --memory-limit); what had finished is kept where a checkpoint was asked for"
)


def _held(client: Any, value: Any) -> Any:
    """The future of a value sent to the cluster once, and fetched once by every worker.

    It is a task of its own, not scattered data: the scheduler makes it again where the worker that
    held it is lost, and sending it waits for no worker.
    """
    with warnings.catch_warnings():  # that a task holds much is what is meant
        warnings.simplefilter("ignore", UserWarning)
        return client.submit(held, value, pure=False)


def _sent(client: Any, shared: Any) -> Any:
    """The future of what units share; where it has been sent already, that."""
    try:
        known = _values.get(shared)
    except TypeError:  # neither hashable nor weakly referable: sent for this call only
        return shared
    if known is not None and known[0] == client.id and known[1].status in KEPT:
        return known[1]
    _values[shared] = client.id, _held(client, shared)
    return _values[shared][1]
