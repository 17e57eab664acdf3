"""The best support of one problem by a solver that has a name: the native one, or another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import SolverUnavailable
from .branching.single import WORST_GAP
from .branching.size_sweep import SizeSearch
from .core.limits import Limits
from .core.problem import SparseRidgeProblem, checked_support
from .core.result import Answer, Status
from .core.rounding import BOUND_SHARE
from .core.threads import on_one_thread
from .core.ties import first_answer

Backend = Callable[..., Answer]  # takes a problem and the keywords of :func:`register_backend`
_BACKENDS: dict[str, Backend] = {}
# What solvers lack here, by functions of :func:`register_backend`.
_LACKING: dict[str, Callable[[], str | None]] = {}


def register_backend(
    name: str, backend: Backend, lacking: Callable[[], str | None] | None = None
) -> None:
    """Make a solver available to :func:`~sparsecv.solvers.solve` under ``name``.

    Parameters
    ----------
    name : str
        A name in use is replaced.
    backend : callable
        Takes a problem and the keywords time_limit, node_limit, stop, tol and n_jobs of
        :func:`~sparsecv.solvers.solve`, and ``warm_starts``, a list of supports; returns an
        :class:`~sparsecv.solvers.Answer`.
    lacking : callable, optional
        Says in one line what the solver lacks here, such as a package or a licence, and None where
        it can run. Without this function it always can.

    Examples
    --------
    >>> from sparsecv.solvers import branch_and_bound, register_backend, solve
    >>> register_backend("mine", lambda problem, **options: branch_and_bound(problem))
    """
    _BACKENDS[name] = backend
    _LACKING[name] = lacking or (lambda: None)


def available_backends() -> list[str]:
    """Names of the solvers that can run here, as :func:`~sparsecv.solvers.solve` takes them.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from sparsecv.solvers import available_backends
    >>> "native" in available_backends()
    True
    """
    return sorted(name for name in _BACKENDS if _LACKING[name]() is None)


def checked_backend(name: str) -> str:
    """Return the solver that ``name`` stands for; "auto" is the native one.

    name: As :func:`~sparsecv.solvers.solve` takes it, or "auto".
    Raises ValueError: No such backend.
    Raises SolverUnavailable: Its package or licence is missing.
    """
    if name == "auto":
        return "native"
    if name not in _BACKENDS:
        raise ValueError(f"unknown backend {name!r}; known: {', '.join(['auto', *_BACKENDS])}")
    reason = _LACKING[name]()
    if reason is not None:
        raise SolverUnavailable(f"backend {name}: {reason}")
    return name


@on_one_thread
def best_support(
    problem: SparseRidgeProblem,
    *,
    backend: str = "native",
    tol: float = 1e-6,
    warm_start: ArrayLike | None = None,
    n_jobs: int | None = None,
    **limited: Any,
) -> Answer:
    """What :func:`sparsecv.solvers.solve` finds, without coefficients.

    limited: time_limit, node_limit and stop, as :func:`~sparsecv.solvers.solve` takes them.
    """
    if not tol >= 0.0:
        raise ValueError(f"tol must be >= 0; got {tol}")
    if checked_backend(backend) != "native":
        problem.refuse_constraints(f"backend {backend}")
    start = [] if warm_start is None else [checked_support(problem.p, warm_start)]
    limited = {"time_limit": None, "node_limit": None, "stop": None} | limited
    found = _BACKENDS[checked_backend(backend)](
        problem, tol=tol, warm_starts=start, n_jobs=n_jobs, **limited
    )
    # The search of this package ends with the first of the supports that tie.
    return first_answer(problem, found) if found.proved and backend != "native" else found


def _native(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[NDArray[np.intp]],
    tol: float,
    n_jobs: int | None,
    **limited: Any,
) -> Answer:
    limits, size = Limits(**limited), np.array([problem.tau])
    how: dict[str, Any] = {"tol": tol, "worst_gap": WORST_GAP, "n_jobs": n_jobs}
    search = SizeSearch(problem, size, warm_starts, **how).run(limits)
    (found,) = search.answers
    closed = found.objective <= problem.nothing_left or found.gap <= max(tol, BOUND_SHARE)
    if closed and not found.proved:
        found = first_answer(problem, replace(found, status=Status.OPTIMAL))
    work = found.work._replace(n_nodes=search.n_nodes, seconds=limits.elapsed())
    return replace(found, work=work)


register_backend("native", _native)
