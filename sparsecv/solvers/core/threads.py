"""What threads share: one thread of linear algebra, changes of the process, computed values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class cached(Generic[T]):
    """A property that is computed at its first use, in ``vars`` of its object from then on.

    ``functools.cached_property`` of Python 3.11 and before holds one lock over all objects of a
    class, for which the folds of other threads would wait. Here threads that ask for the same
    value of the same object at once may each compute the value; all of them get the first.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, one: object | None, owner: type) -> T:
        if one is None:
            return self  # type: ignore[return-value]
        found: T = vars(one).setdefault(self.name, self.compute(one))
        return found


class SharedByThreads:
    """A change of the whole process that lasts while any thread is inside.

    The first thread that enters makes the change, and the last thread that leaves undoes the
    change. Contexts may be nested.

    change: Makes the change, and returns the function that undoes it.
    """

    def __init__(self, change: Callable[[], Callable[[], object]]) -> None:
        self._change, self._lock, self._inside = change, threading.Lock(), 0
        self._undo: Callable[[], object] = lambda: None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter the context."""
        with self._lock:
            if self._inside == 0:
                self._undo = self._change()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._undo()


def threads_of(n_jobs: int | None) -> int:
    """How many threads a search works in.

    n_jobs: As in joblib, except that None is one thread whatever joblib is set to.
    """
    if n_jobs is None or n_jobs == 1:
        return 1
    from joblib import effective_n_jobs  # Its import takes time, which one thread does not need.

    return int(effective_n_jobs(n_jobs))


@cache
def _libraries() -> tuple[ThreadpoolController, ThreadpoolController]:
    """All libraries of linear algebra, and those whose limit holds for the calling thread alone."""
    found = ThreadpoolController().select(user_api="blas")  # This takes some milliseconds, once.
    return found, found.select(threading_layer="openmp")


def _limit_blas() -> Callable[[], object]:
    """Keep the linear algebra library to one thread; return the function that lifts the limit.

    threadpoolctl 3.8 ignores all threads but the thread that controls OpenBLAS, for as long as that
    thread is alive and has not given up its control; threadpoolctl 3.1 has no such rule.
    """
    if all(one.get_num_threads() == 1 for one in _libraries()[0].lib_controllers):
        return lambda: None  # Setting a limit takes ten times as long as asking for it.
    give_up = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    give_up(force=True)
    limited = _libraries()[0].limit(limits=1)

    def lift() -> None:
        give_up(force=True)
        limited.restore_original_limits()
        give_up(force=True)

    return lift


_one_thread_for_all = SharedByThreads(_limit_blas)
_here = threading.local()  # ``limited`` says whether this thread is inside ``one_blas_thread``.


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the linear algebra library to one thread while any thread is in this context."""
    if getattr(_here, "limited", False):  # Thousands of small problems are solved inside.
        yield
        return
    with _libraries()[1].limit(limits=1), _one_thread_for_all():
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False


@contextmanager
def threads_for(problem: Any) -> Iterator[None]:
    """Keep the linear algebra library to one thread if a problem is small."""
    # With more numbers in X, threads save more than they lose by waiting (measured).
    large = problem.data.y.size * problem.p > 5_000_000
    with nullcontext() if large else one_blas_thread():
        yield


def on_one_thread(entry: Callable[P, R]) -> Callable[P, R]:
    """Make a function run on one thread of linear algebra if its problem is small.

    entry: A function whose first parameter is called ``problem``, by position or by keyword.
    Returns: The function with :func:`threads_for` around each call.
    """

    @wraps(entry)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        with threads_for(args[0] if args else kwargs["problem"]):
            return entry(*args, **kwargs)

    return inner
