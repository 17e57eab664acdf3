"""One door to every solver: ``solve(problem, backend=...)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .all_sizes import best_subsets
from .limits import StopFlag
from .problem import SparseRidgeProblem
from .solution import Solution, Status, relative_gap


class Backend(Protocol):
    """A solver of one problem at fixed (γ, τ)."""

    def __call__(
        self,
        problem: SparseRidgeProblem,
        *,
        time_limit: float | None,
        node_limit: int | None,
        tol: float,
        warm_starts: Sequence[NDArray[np.intp]],
        stop: StopFlag | None,
    ) -> Solution: ...


_BACKENDS: dict[str, Backend] = {}


def register_backend(name: str, backend: Backend) -> None:
    """Make a solver available to :func:`solve` under ``name``."""
    _BACKENDS[name] = backend


def available_backends() -> list[str]:
    """Names accepted by :func:`solve`."""
    return sorted(_BACKENDS)


def checked_backend(name: str) -> str:
    """Return the solver that ``name`` stands for; "auto" is the native one.

    Raises
    ------
    ValueError
        No such backend.
    """
    if name == "auto":
        return "native"
    if name not in _BACKENDS:
        known = ", ".join(["auto", *available_backends()])
        raise ValueError(f"unknown backend {name!r}; available: {known}")
    return name


def solve(
    problem: SparseRidgeProblem,
    *,
    backend: str = "native",
    time_limit: float | None = None,
    node_limit: int | None = None,
    tol: float = 1e-6,
    warm_start: ArrayLike | None = None,
    stop: StopFlag | None = None,
) -> Solution:
    """Solve min ||y − Xβ||² + (γ/2)||β||² s.t. ||β||₀ ≤ τ (eq. 1, main paper).

    Parameters
    ----------
    problem : SparseRidgeProblem
    backend : str
        "native", the all-sizes tree, or a registered one.
    time_limit : float, optional
        Seconds; the incumbent and a valid bound are returned when it is reached.
    node_limit : int, optional
        Branch-and-bound nodes.
    tol : float
        Relative gap at which the search may stop; 0 proves optimality up to rounding.
    warm_start : array of int, optional
        A support to start from.
    stop : StopFlag, optional
        Lets another thread end the search.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        Unknown backend, a negative tolerance or limit, or a warm start outside 0..p−1.
    """
    if not tol >= 0.0:
        raise ValueError(f"tol must be >= 0; got {tol}")
    start = [] if warm_start is None else [np.asarray(warm_start, dtype=np.intp)]
    return _BACKENDS[checked_backend(backend)](
        problem,
        time_limit=time_limit,
        node_limit=node_limit,
        tol=tol,
        warm_starts=start,
        stop=stop,
    )


def _native(
    problem: SparseRidgeProblem,
    *,
    time_limit: float | None,
    node_limit: int | None,
    tol: float,
    warm_starts: Sequence[NDArray[np.intp]],
    stop: StopFlag | None,
) -> Solution:
    result = best_subsets(
        problem,
        sizes=[problem.tau],
        warm_starts=warm_starts,
        tol=tol,
        time_limit=time_limit,
        node_limit=node_limit,
        stop=stop,
    )
    support = result.supports[0]
    objective, bound = float(result.objective[0]), float(result.lower_bound[0])
    gap = relative_gap(objective, bound)
    coef = np.zeros(problem.p)
    coef[support] = problem.fit(support).coef
    status = result.status
    if status is not Status.OPTIMAL and gap <= max(tol, 1e-9):
        status = Status.OPTIMAL  # stopped with nothing left to prove
    return Solution(
        support, coef, objective, bound, gap, status, result.n_nodes, result.seconds
    )


register_backend("native", _native)
