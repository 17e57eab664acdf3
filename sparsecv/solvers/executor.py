"""One loop over units of work: threads here, joblib's processes, or a Dask cluster.

Threads are the rule, as kernels run without Python's lock. ``with joblib.parallel_config("loky")``
runs the same units in processes, ``with joblib.parallel_config("dask")`` on the workers of a
cluster, and :func:`on_client` is that for a client by name. A unit is a pure function, so that the
answer is the same bit for bit.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from .. import __version__
from .cluster import connect, on_cluster
from .core.limits import Limits
from .remote import Compiling, Sent, unit_there

try:
    import cloudpickle
except ImportError:  # older joblib brings a copy of its own
    from joblib.externals import cloudpickle


def run_units(
    unit: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    n_jobs: int | None = None,
    *,
    allot: Callable[[float], Limits],
) -> Iterator[tuple[int, Any]]:
    """Do units of work; yield each as it ends.

    unit: ``unit(shared, *task, limits)``: a function of a module, which changes nothing but caches.
    shared: What all units need: sent once to every process that is not this one.
    tasks: The other arguments, one tuple per unit.
    n_jobs: As in joblib; a cluster is used whole.
    allot: Limits of the next unit, given how many rounds of units are still to come.
    Yields index: Of the task.
    Yields found: What the unit gave for it.
    """
    backend, _ = get_active_backend(prefer="threads")
    client = getattr(backend, "client", None)
    if client is not None:
        yield from on_cluster(client, unit, shared, tasks, allot)
        return
    jobs, left = min(workers(n_jobs), max(len(tasks), 1)), len(tasks)

    def here(index: int) -> tuple[int, Any]:
        return index, unit(shared, *tasks[index], allot(left / jobs))

    found: Iterator[tuple[int, Any]]
    if jobs == 1 or len(tasks) == 1:
        found = map(here, range(len(tasks)))
    elif getattr(backend, "supports_sharedmem", False):
        every = (delayed(here)(index) for index in range(len(tasks)))
        found = Parallel(n_jobs=jobs, require="sharedmem", return_as=UNORDERED)(every)
    else:
        found = _in_processes(unit, shared, tasks, jobs, lambda: allot(left / jobs))
    for index, one in found:
        left -= 1
        yield index, one


def workers(n_jobs: int | None = None) -> int:
    """How many units run at a time.

    n_jobs: As in joblib; a cluster is used whole.
    """
    backend, _ = get_active_backend(prefer="threads")
    cluster = getattr(backend, "client", None) is not None
    return int(effective_n_jobs(-1 if cluster else n_jobs))


UNORDERED = "generator_unordered"


def _in_processes(
    unit: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    jobs: int,
    allot: Callable[[], Limits],
) -> Iterator[tuple[int, Any]]:
    """The units in processes of joblib, which read what is shared from a file, once each."""
    compiling, run = Compiling(), uuid.uuid4().hex
    number, name = tempfile.mkstemp(prefix="sparsecv-", suffix=".pkl")
    path = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            cloudpickle.dump(shared, file, protocol=5)
        every = (
            delayed(_from_file)(unit, path, task, allot().remaining(), run, index)
            for index, task in enumerate(tasks)
        )
        # a unit's share of the time is known when it starts, not earlier
        for index, sent in Parallel(
            n_jobs=jobs, return_as=UNORDERED, pre_dispatch=jobs, batch_size=1, max_nbytes=None
        )(every):
            yield index, compiling.take(sent)
    finally:
        path.unlink(missing_ok=True)


_held: dict[Path, Any] = {}  # in a process of joblib: what the units at work share


def _from_file(
    unit: Callable[..., Any],
    path: Path,
    task: tuple[Any, ...],
    seconds: float | None,
    run: str,
    index: int,
) -> tuple[int, Sent]:
    if path not in _held:
        _held.clear()
        with path.open("rb") as file:
            _held[path] = cloudpickle.load(file)
    return index, unit_there(unit, _held[path], task, seconds, run, __version__)


@contextmanager
def on_client(client: Any) -> Iterator[None]:
    """Have units of work run on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, or a scheduler's address; None changes nothing.

    Yields
    ------
    None

    Raises
    ------
    InputError
        Dask is not installed, or nothing answers at the address.

    Examples
    --------
    >>> from sparsecv.solvers.executor import on_client
    >>> with on_client(None):
    ...     pass
    """
    if client is None:
        yield
        return
    connected = connect(client)
    try:
        # current: what the cluster holds of a Dask collection is computed there
        with connected.as_current(), parallel_config("dask", client=connected, n_jobs=-1):
            yield
    finally:
        if connected is not client:
            connected.close()
