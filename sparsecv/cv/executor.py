"""Units of work: what becomes of late ones, what is reported, and the one loop that does them.

A unit of work is a call of a pure function of a module, such as all searches of one fold. Units run
in threads, in processes, or on a Dask cluster, all by joblib: in threads unless the caller says
otherwise, because kernels run without Python's lock. ``with joblib.parallel_config("loky")`` runs
the same units in processes, and ``with joblib.parallel_config("dask")`` on the workers of a
cluster. Every way gives the same bits. joblib does not stop units that run on a cluster: they end
at the deadline that their limits carry.
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
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from ..clock import CLOCK
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status
from ..solvers.core.threads import one_blas_thread

_futures: dict[tuple[str, int], Any] = {}  # (client, id of a value) -> the future of the value


class OutOfTime(Exception):
    """Work was left out because its time was up; what needs its result cannot be had."""


class Report(Protocol):
    """A function that is told what is being done."""

    def __call__(self, what: str, done: int, total: int, detail: str = "") -> None:
        """Take what is being done, the number of units done and the number of all units.

        what: The phase in words of a user, and after a comma what else a user may want to know.
        detail: For those who follow the search: γ, sizes, gaps.
        """


def silent(what: str, done: int, total: int, detail: str = "") -> None:
    """Report no progress."""


@dataclass
class Batch:
    """Units of work that differ by their tasks alone.

    rows: Rows of the ledger that the results change; the seconds are divided among these rows.
    unit: A function of a module, so that it can be pickled, called as
        ``unit(shared, *task, limits)``. The result None is that of a unit that had no time.
    shared: What all units need alike; it is sent once to every process.
    enter: Takes the number of a task and the result of its unit, enters it into the ledger, and
        returns how the unit has ended.
    allot: Takes the number of rounds of units still to come, as many units to a round as run at a
        time, and returns the next unit's limits. It may be called in another thread.
    report: Takes the number of units done, 0 at first, and the number of all units.
    keep: Whether the rows are saved in the checkpoint after every unit that returned a result.
    all_or_none: Whether no further unit gets time once a unit has reached a limit.
    """

    rows: Sequence[int]
    unit: Callable[..., Any]
    shared: Any
    tasks: Sequence[tuple[Any, ...]]
    enter: Callable[[int, Any], Status]
    allot: Callable[[float], Limits]
    report: Callable[[int, int], object] = lambda done, total: None
    keep: bool = False
    all_or_none: bool = False


# A function that does one unit of work, which may run in another thread or process.
Unit = Callable[..., Any]
# The arguments of every call of such a function, besides what all calls share and the limits.
Tasks = Sequence[tuple[Any, ...]]
# Runs units of work as ``Study.run`` does: (text for progress reports, function, what all calls
# share, tasks) → results in the order of the tasks, None of a unit that was left out.
RunUnits = Callable[[str, Unit, Any, Tasks], list[Any]]
# A function that runs the units of a batch, enters their results into the ledger, and returns how
# the units have ended, in any order.
Run = Callable[[Batch], list[Status]]


class Late(Enum):
    """What becomes of a unit of work whose limits are reached before it begins.

    DONE: It is done even so, because nothing at all is known without it.
    AFTER_GRACE: It is done unless the grace of the run is over, too (:attr:`Limits.overdue`). An
        answer cannot do without it, and there is an answer of another kind.
    LEFT_OUT: It is left out.
    """

    DONE = "done"
    AFTER_GRACE = "left out after the grace"
    LEFT_OUT = "left out"

    def unit(self, unit: Callable[..., Any]) -> Callable[..., Any]:
        """The unit of work that returns None, and does nothing, where it is left out."""
        return unit if self is Late.DONE else partial(_in_time, self, unit)

    def leaves_out(self, limits: Limits) -> bool:
        """Whether a unit of work that would begin now, with these limits, is left out."""
        if self is Late.AFTER_GRACE:
            return limits.overdue
        return self is Late.LEFT_OUT and limits.reached(0) is not None


def all_done(results: list[Any]) -> list[Any]:
    """The results of units of work, where none is left out.

    Raises OutOfTime: One is left out.
    """
    if any(one is None for one in results):
        raise OutOfTime
    return results


def _in_time(late: Late, unit: Callable[..., Any], *arguments: Any) -> Any:
    """What a unit of work returns; None where it is left out.

    late: What becomes of the unit where it is late.
    arguments: Those of the unit, of which its limits are the last.
    """
    return None if late.leaves_out(arguments[-1]) else unit(*arguments)


class TimedReport:
    """Adds the time that is left of a stage to reports, once the stage has run for a second.

    A stage is a sequence of reports with the same total and a number of units done that does not
    fall. Its clock begins at its first report, at which no unit is done. The time left is that of
    the units left at the mean time of the units done, and at most the time that the limits of the
    run leave.

    report: Takes the reports with the added time.
    limits: Limits of the whole run.
    """

    def __init__(self, report: Report, limits: Limits) -> None:
        self._report, self._limits = report, limits
        self._done, self._total, self._clock = 0, -1, Limits()

    def __call__(self, what: str, done: int, total: int, detail: str = "") -> None:
        if total != self._total or done < self._done:
            self._clock = Limits()
        self._done, self._total = done, total
        spent, most = self._clock.elapsed(), self._limits.remaining()
        # A stage reports the time left once it has run for a second. A shorter stage ends before
        # its line is read.
        if spent >= 1.0 and 0 < done < total:
            rest = spent / done * (total - done)
            what += f", about {rest if most is None else min(rest, most):.0f} s left"
        self._report(what, done, total, detail)


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
    allot: Gives the limits of the next unit, from how many rounds of units are still to come. It is
        called just before the unit is handed out, perhaps in another thread.
    Yields: The number of a task, and what the unit has returned for it; in the order in which units
        end, which with one worker is that of the tasks.
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

    n_jobs: As in joblib: None is one, −1 as many as there are processors; a cluster is used whole.
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
