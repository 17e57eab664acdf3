"""The linear algebra library is kept to one thread while matrices are small."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

# A search keeps the linear algebra library to one thread if [X y] has at most this many numbers,
# because threads would wait for each other longer than they save (measured). Doubled, larger
# problems run on one core.
MAX_NUMBERS_ON_ONE_THREAD = 5_000_000

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_limit: Any = None
_owner, _depth = 0, 0  # The thread that has set the limit, and how many calls of it are nested.


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # Finding the libraries takes some milliseconds, once.


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the linear algebra library to one thread within this context.

    The thread that has set the limit restores the number of threads. If another thread did so, the
    restoration could have no effect, or make the limit permanent.
    """
    global _limit, _owner, _depth
    me = threading.get_ident()
    with _lock:
        if _limit is None:
            _limit, _owner = _controller().limit(limits=1, user_api="blas"), me
        mine = _owner == me
        _depth += mine
    try:
        yield
    finally:
        with _lock:
            _depth -= mine
            if _depth == 0 and mine:
                _limit.restore_original_limits()
                _limit = None


def on_one_thread(entry: Callable[P, R]) -> Callable[P, R]:
    """Run a function of a problem on one thread of linear algebra if the problem is small."""

    @wraps(entry)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        problem: Any = args[0] if args else kwargs["problem"]
        if problem._rows.size > MAX_NUMBERS_ON_ONE_THREAD:
            return entry(*args, **kwargs)
        with one_blas_thread():
            return entry(*args, **kwargs)

    return inner
