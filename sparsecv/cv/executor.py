"""One loop over units of work: in threads, in processes, or on a Dask cluster, all by joblib.

Units run in threads unless the caller says otherwise, because kernels run without Python's lock.
``with joblib.parallel_config("loky")`` runs the same units in processes, and ``with
joblib.parallel_config("dask")`` on the workers of a cluster. A unit is a pure function, so that
every way gives the same bits. joblib does not stop units that run on a cluster: they end at the
deadline that their limits carry.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..clock import CLOCK
from ..solvers.core.limits import Limits
from ..solvers.core.threads import one_blas_thread

_futures: dict[tuple[str, int], Any] = {}  # (client, id of a value) -> the future of the value


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
    shared: What all units need. Every process other than this one gets it once.
    tasks: The other arguments, one tuple per unit.
    n_jobs: As in joblib; a cluster is used whole.
    allot: Gives the limits of the next unit, from how many rounds of units are still to come.
    Yields: The number of a task, and what the unit has returned for it.
    """
    remaining = len(tasks)
    jobs = min(workers(n_jobs), max(remaining, 1))
    if jobs == 1:
        for index, task in enumerate(tasks):
            yield index, unit(shared, *task, allot(float(remaining - index)))
        return
    from joblib import Parallel, delayed

    backend, client = _backend()
    here = getattr(backend, "supports_sharedmem", False)
    in_files = not here and client is None
    with TemporaryDirectory(prefix="sparsecv-") if in_files else nullcontext() as folder:
        if client is not None:
            shared = _sent_once(client, shared)
        elif folder is not None:
            path = Path(folder, "shared.pkl")
            path.write_bytes(_pickled(shared))
            shared = path
        do = _unit_here if here else _unit_there
        # joblib takes the next call when a unit ends, so that a unit gets its time when it starts.
        calls = (
            delayed(do)(index, unit, shared, task, allot(remaining / jobs))
            for index, task in enumerate(tasks)
        )
        options: dict[str, Any] = {"pre_dispatch": jobs, "batch_size": 1, "max_nbytes": None}
        parallel = Parallel(jobs, prefer="threads", return_as="generator_unordered", **options)
        began, longest, results = dict[str, float](), 0.0, parallel(calls)
        try:
            for index, found, process, before, after in results:
                remaining -= 1
                # The clock of this process stands still for as long as the process that has
                # compiled most in this loop did.
                compiled = after - began.setdefault(process, before)
                CLOCK.leave_out(max(compiled - longest, 0.0))
                longest = max(compiled, longest)
                yield index, found
        finally:
            with warnings.catch_warnings():  # joblib warns where Ctrl-C has left units undone.
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def _unit_here(
    index: int, unit: Callable[..., Any], shared: Any, task: tuple[Any, ...], limits: Limits
) -> tuple[int, Any, str, float, float]:
    """Do a unit of work in a thread of this process; returns what :func:`_unit_there` does."""
    return index, unit(shared, *task, limits), "", 0.0, 0.0


def _unit_there(
    index: int, unit: Callable[..., Any], shared: Any, task: tuple[Any, ...], limits: Limits
) -> tuple[int, Any, str, float, float]:
    """Do a unit of work in another process, with one thread of linear algebra.

    shared: What all units share, or the path of the file that has it.
    Returns: The number of the task, what the unit has returned, the process, and the seconds that
        the process had compiled before and after the unit.
    """
    before = CLOCK.seconds_compiling
    shared = _loaded(shared) if isinstance(shared, Path) else shared
    with one_blas_thread():
        found = unit(shared, *task, limits)
    return index, found, f"{socket.gethostname()} {os.getpid()}", before, CLOCK.seconds_compiling


def _pickled(value: Any) -> bytes:
    """A value as bytes, with functions and classes that no other process can import."""
    try:
        import cloudpickle
    except ImportError:  # Older versions of joblib bring a copy of cloudpickle.
        from joblib.externals import cloudpickle
    return bytes(cloudpickle.dumps(value, protocol=5))


@lru_cache(maxsize=1)
def _loaded(path: Path) -> Any:
    """What a file holds; a process reads the file once for all units of a run."""
    return pickle.loads(path.read_bytes())


def workers(n_jobs: int | None = None) -> int:
    """How many units run at a time.

    n_jobs: As in joblib; a cluster is used whole.
    """
    if n_jobs in (None, 1) and "joblib" not in sys.modules:
        return 1  # Nobody can have set joblib to anything else, and its import takes a while.
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs if _backend()[1] is None else -1))


def _backend() -> tuple[Any, Any]:
    """What joblib is set to run units by, and the ``distributed.Client`` or None."""
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend(prefer="threads")
    return backend, getattr(backend, "client", None)


def _sent_once(client: Any, value: Any) -> Any:
    """The future of a value that every worker fetches once, for as long as the value lives here.

    joblib would send rows with every unit, as Dask takes the object that holds them for small. The
    future is that of a task, not of scattered data: the scheduler makes the value again where the
    worker that held the value is lost. A value that knows no weak references, such as None or a
    tuple, is returned as it is.

    client: A ``distributed.Client``.
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
