"""One loop over units of work: in threads here, in joblib's processes, or on a Dask cluster.

Units run in threads unless the caller says otherwise, because kernels run without Python's lock.
``with joblib.parallel_config("loky")`` runs the same units in processes, and ``with
joblib.parallel_config("dask")`` runs them on the workers of a cluster; :func:`on_client` does the
latter for one client. A unit is a pure function, so that every way gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from ..errors import InputError, first_line, not_installed
from .cluster import NO_ANSWER, Run, on_cluster, unit_there
from .core.limits import Limits

try:
    import cloudpickle
except ImportError:  # Older versions of joblib bring a copy of cloudpickle.
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
    shared: What all units need. Every process other than this one gets it once.
    tasks: The other arguments, one tuple per unit.
    n_jobs: As in joblib; a cluster is used whole.
    allot: Gives the limits of the next unit, from how many rounds of units are still to come.
    Yields: The number of a task, and what the unit has returned for it.
    """
    backend, _ = get_active_backend(prefer="threads")
    client = getattr(backend, "client", None)
    if client is not None:
        yield from on_cluster(client, unit, shared, tasks, allot)
        return
    left, run = len(tasks), Run()
    jobs = min(workers(n_jobs), max(left, 1))
    if jobs == 1:
        for index, task in enumerate(tasks):
            yield index, unit(shared, *task, allot(float(left - index)))
        return
    here = getattr(backend, "supports_sharedmem", False)
    with nullcontext() if here else TemporaryDirectory(prefix="sparsecv-") as folder:
        if folder is not None:
            path = Path(folder, "shared.pkl")
            path.write_bytes(cloudpickle.dumps(shared, protocol=5))

        def call(index: int, task: tuple[Any, ...]) -> Any:
            limits = allot(left / jobs)
            if here:
                return delayed(_numbered)(index, unit, shared, *task, limits)
            seconds = limits.remaining()
            return delayed(_numbered)(index, _in_process, path, unit, task, seconds, run.name)

        # joblib takes the next call when a unit ends, so that a unit gets its time when it starts.
        calls = (call(index, task) for index, task in enumerate(tasks))
        options: dict[str, Any] = {"pre_dispatch": jobs, "batch_size": 1, "max_nbytes": None}
        found = Parallel(jobs, prefer="threads", return_as="generator_unordered", **options)(calls)
        for index, one in found:
            left -= 1
            yield index, one if here else run.take(one)


def _numbered(index: int, unit: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    """The number of a task, and what its unit returns."""
    return index, unit(*arguments)


def _in_process(path: Path, unit: Any, task: Any, seconds: float | None, run: str) -> Any:
    """Do a unit of work in one of joblib's processes.

    path: The file of what all units share.
    The other arguments are those of :func:`.cluster.unit_there`.
    """
    return unit_there(unit, _loaded(path), task, seconds, run)


@lru_cache(maxsize=1)
def _loaded(path: Path) -> Any:
    """What a file holds; a process reads the file once for all units of a run."""
    return cloudpickle.loads(path.read_bytes())


def workers(n_jobs: int | None = None) -> int:
    """How many units run at a time.

    n_jobs: As in joblib; a cluster is used whole.
    """
    backend, _ = get_active_backend(prefer="threads")
    cluster = getattr(backend, "client", None) is not None
    return int(effective_n_jobs(-1 if cluster else n_jobs))


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
    try:
        from distributed import Client
    except ImportError:
        raise InputError(f"no cluster, as {not_installed('Dask', 'distributed')}") from None
    connected = client
    if not isinstance(client, Client) or client.asynchronous:
        try:
            connected = Client(client, timeout=5, set_as_default=False)
        except (*NO_ANSWER, TypeError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {client} ({first_line(error)}): client must be a "
                "distributed.Client, not asynchronous, or the address of a scheduler"
            ) from None
    try:
        # A Dask collection that the cluster holds is computed by the current client.
        with connected.as_current(), parallel_config("dask", client=connected, n_jobs=-1):
            yield
    finally:
        if connected is not client:
            connected.close()
