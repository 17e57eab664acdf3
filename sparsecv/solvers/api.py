"""One door to every solver: ``solve(problem, backend=...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .backends import RUNS, lacking
from .backends.optional_dependencies import SolverUnavailable
from .backends.oracle import prove
from .branching.single import WORST_GAP
from .branching.size_sweep import SizeSearch
from .certificate import given_certificate
from .core.limits import Limits, StopFlag
from .core.problem import SparseRidgeProblem, checked_support
from .core.result import Answer, Status, nothing_left
from .core.rounding import BOUND_SHARE
from .core.threads import on_one_thread
from .core.ties import first_answer

Backend = Callable[..., Answer]  # takes a problem and the keywords of :func:`register_backend`
_BACKENDS: dict[str, Backend] = {}


def register_backend(name: str, backend: Backend) -> None:
    """Make a solver available to :func:`solve` under ``name``.

    Parameters
    ----------
    name : str
        A name in use is replaced.
    backend : callable
        Takes a problem and the keywords time_limit, node_limit, stop, tol and n_jobs of
        :func:`solve`, and ``warm_starts``, a list of supports; returns an :class:`Answer`.

    Examples
    --------
    >>> from sparsecv.solvers import branch_and_bound, register_backend, solve
    >>> register_backend("mine", lambda problem, **options: branch_and_bound(problem))
    """
    _BACKENDS[name] = backend


def available_backends() -> list[str]:
    """Names of the solvers that can run here, as :func:`solve` takes them.

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
    return sorted(name for name in _BACKENDS if lacking(name) is None)


def checked_backend(name: str) -> str:
    """Return the solver that ``name`` stands for; "auto" is the native one.

    name: As :func:`solve` takes it, or "auto".
    Raises ValueError: No such backend.
    Raises SolverUnavailable: Its package or licence is missing.
    """
    if name == "auto":
        return "native"
    if name not in _BACKENDS:
        raise ValueError(f"unknown backend {name!r}; known: {', '.join(['auto', *_BACKENDS])}")
    reason = lacking(name)
    if reason is not None:
        raise SolverUnavailable(f"backend {name}: {reason}")
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
    n_jobs: int | None = None,
) -> Answer:
    """Solve min ||y − Xβ||² + (γ/2)||β||² s.t. ||β||₀ ≤ τ (eq. 1, first paper).

    Parameters
    ----------
    problem : SparseRidgeProblem
    backend : str
        "native" searches the all-sizes tree for few columns and branches on the perspective
        relaxation for more. "highs" and "gurobi" prove by outer approximation
        (generalised Benders decomposition). "mosek" gets the perspective model. Or a registered
        one.
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
    n_jobs : int, optional
        Threads that share one branch-and-bound tree, as in joblib; 1 by default. The all-sizes
        tree of few columns and HiGHS have one.

    Returns
    -------
    Answer
        With coefficients; its method ``certificate`` writes the proof to a file.

    Raises
    ------
    SolverUnavailable
        An outside solver's package or licence is missing; also a ValueError.
    ValueError
        Unknown backend, a negative tolerance or limit, or a warm start outside 0..p−1.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, solve
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> found = solve(problem)
    >>> found.support, str(found.status)
    (array([1, 2]), 'optimal')
    """
    limited: dict[str, Any] = {"time_limit": time_limit, "node_limit": node_limit, "stop": stop}
    found = best_support(
        problem, backend=backend, tol=tol, warm_start=warm_start, n_jobs=n_jobs, **limited
    )
    # A search at γ = 0 fits columns of length 1, so that its objective has other rounding errors.
    fit, coef = problem.fit(found.support), np.zeros(problem.p)
    coef[found.support] = fit.coef
    return Answer(
        size=problem.tau,
        support=found.support,
        objective=fit.objective,
        lower_bound=min(found.lower_bound, fit.objective),
        status=found.status,
        work=found.work,
        coef=coef,
        _certify=partial(given_certificate, problem, found.support),
    )


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
    """What :func:`solve` finds, without coefficients.

    limited: time_limit, node_limit and stop, as :func:`solve` takes them.
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
    closed = found.objective <= nothing_left(problem.yy) or found.gap <= max(tol, BOUND_SHARE)
    if closed and not found.proved:
        found = first_answer(problem, replace(found, status=Status.OPTIMAL))
    work = found.work._replace(n_nodes=search.n_nodes, seconds=limits.elapsed())
    return replace(found, work=work)


register_backend("native", _native)
for _name, (_run, _) in RUNS.items():
    register_backend(_name, partial(prove, _run))
