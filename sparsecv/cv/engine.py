"""Exact cross-validation over a grid of γ and τ (eq. 2, main paper)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ..design.fold_data import FoldData, RowFolds
from ..errors import InputError
from ..solvers import (
    MAX_COLUMNS,
    TREE_ONLY,
    BestSubsets,
    StopFlag,
    certificates_of,
    checked_backend,
    solve_sizes,
    worst,
)
from .budget import Budget
from .fold_solvers import FoldOutcome, solve_fold_grid, solve_folds, solve_rows_deleted
from .joint import rows_left_out, solve_folds_jointly
from .results import Array, CVResult, GammaResult
from .tau_search import search_taus

TRANSFER_FOLDS = 20  # from here on a fold is close enough to the whole for its tree
JOINT_ROWS = 4  # in a fold, up to which one tree for all folds pays
METHODS = ("auto", "exact", "grid", "search", "bounds")
BOUNDS = ("best", "paper", "paper-exact")


@dataclass(frozen=True)
class Settings:
    """How to search.

    Attributes
    ----------
    method : str
        "exact": one tree per fold for all τ, or one for all leave-one-out folds. "grid": one
        problem per fold and τ, the main paper's Grid. "search": the best τ alone, by the main
        paper's Algorithm 1. "bounds": its first phase, no mixed-integer problem solved. "auto":
        exact, or grid where an outside solver is asked for.
    backend : str
        Solver of single problems (grid and search); exact has trees of its own.
    time_limit : float or None
        Seconds for everything; what is not proved by then is bracketed.
    n_jobs : int or None
        Threads, as in joblib.
    tol : float
        search: relative tolerance (UB − LB)/UB of the least CV error at each γ.
    bounds : str
        search and bounds: "best"; "paper" for the main paper's Algorithm 2 alone; "paper-exact"
        for the same with u*, the optimum on all rows, in Corollary 3 (one problem more per τ).
    mio_limit : int or None
        search: most mixed-integer problems at each γ (r in Algorithm 1).
    """

    method: str = "auto"
    backend: str = "auto"
    time_limit: float | None = None
    n_jobs: int | None = None
    tol: float = 0.01
    bounds: str = "best"
    mio_limit: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)}; got {self.method!r}")
        try:
            solver = checked_backend(self.backend)
        except ValueError as error:
            raise InputError(str(error)) from None
        if solver != "native" and self.method in ("exact", "bounds"):
            raise InputError(
                f"method {self.method} has trees of its own and calls no backend: "
                f"use method grid or search with backend {self.backend}"
            )
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, Real) and float(limit) > 0):
            raise InputError(f"time_limit must be > 0 seconds; got {limit!r}")
        checked_jobs(self.n_jobs)
        if not (isinstance(self.tol, Real) and 0.0 <= float(self.tol) < 1.0):
            raise InputError(f"tol must lie in [0, 1); got {self.tol!r}")
        if self.bounds not in BOUNDS:
            raise InputError(f"bounds must be one of {', '.join(BOUNDS)}; got {self.bounds!r}")
        most = self.mio_limit
        if most is not None and not (isinstance(most, Integral) and most >= 0):
            raise InputError(f"mio_limit must be a whole number >= 0; got {most!r}")

    @property
    def grid(self) -> bool:
        """Whether every (fold, τ) is a problem of its own."""
        outside = self.backend not in ("auto", "native")
        return self.method == "grid" or (self.method == "auto" and outside)

    @property
    def searches(self) -> bool:
        """Whether the best τ alone is wanted, not h at every τ."""
        return self.method in ("search", "bounds")


def cross_validate(
    data: FoldData,
    gammas: Sequence[float] | Array,
    taus: Sequence[int] | NDArray[np.intp],
    settings: Settings | None = None,
    *,
    known: Callable[[float], GammaResult | None] | None = None,
    finished: Callable[[GammaResult], None] | None = None,
    progress: Callable[[float, int, int], None] | None = None,
) -> CVResult:
    """Compute h(γ, τ) for every γ and τ, proved or bracketed.

    Parameters
    ----------
    data : FoldData
        :class:`sparsecv.design.fold_data.RowFolds` or :class:`~sparsecv.fold_data.MomentFolds`.
    gammas : sequence of float
        Ridge weights γ > 0.
    taus : sequence of int
        Sparsities in 1..p.
    settings : Settings, optional
    known : callable, optional
        Returns the stored result of a γ, or None.
    finished : callable, optional
        Called with every result as it is finished.
    progress : callable, optional
        Called with γ, folds done and folds in all.

    Returns
    -------
    CVResult

    Raises
    ------
    InputError
        γ ≤ 0 or τ out of range.
    KeyboardInterrupt
        On Ctrl-C, within a fraction of a second; results handed to ``finished`` are complete.
    """
    settings = settings or Settings()
    gamma_values = checked_gammas(gammas)
    tau_values = checked_taus(taus, data.p)
    started = time.perf_counter()
    budget = Budget(settings.time_limit)
    results = []
    # the matrices are small: a threaded BLAS would only wait for itself
    with interruptible() as stop, threadpool_limits(1, user_api="blas"):
        for i, gamma in enumerate(gamma_values):
            result = known(float(gamma)) if known is not None else None
            if result is None:
                one = Budget(budget.share(len(gamma_values) - i))
                try:
                    result = _one_gamma(
                        data, float(gamma), tau_values, settings, one, stop, progress
                    )
                except ValueError as error:  # γ below what double precision can tell from zero
                    raise InputError(str(error)) from error
                if finished is not None:
                    finished(result)
            results.append(result)
    seconds = time.perf_counter() - started
    tolerance = settings.tol if settings.searches else None
    return CVResult(data.folds, gamma_values, tau_values, results, seconds, tolerance)


def _one_gamma(
    data: FoldData,
    gamma: float,
    taus: NDArray[np.intp],
    settings: Settings,
    budget: Budget,
    stop: StopFlag,
    progress: Callable[[float, int, int], None] | None,
) -> GammaResult:
    if settings.searches:
        return _search_taus(data, gamma, taus, settings, budget, stop, progress)
    started = time.perf_counter()
    k = data.folds.k
    full = data.full().replace(gamma=gamma)
    shared = _shares_a_tree(data, settings)
    whole = solve_sizes(
        full, sizes=taus, time_limit=budget.share(3.0 if shared else 0.5 * k + 1.0), stop=stop
    )
    if stop.is_set():
        raise KeyboardInterrupt
    # where one tree for the whole grows too large, one for all folds would not end either
    shared = shared and whole.settled is None

    def tell(done: int) -> None:
        if progress is not None:
            progress(gamma, done, k)

    tell(0)
    work: dict[str, Any] = {
        "data": data,
        "gamma": gamma,
        "taus": taus,
        "starts": whole.supports,
        "share": budget.share,
        "stop": stop,
        "tell": tell,
        "n_jobs": settings.n_jobs,
    }
    left_out = None
    small = k >= TRANSFER_FOLDS and int(data.folds.sizes.max()) <= JOINT_ROWS
    if not settings.grid and data.p > TREE_ONLY and small:
        left_out = rows_left_out(data, full)
    if settings.grid:
        outcome = solve_fold_grid(backend=settings.backend, **work)
    elif shared:
        outcome = solve_rows_deleted(**work)
    elif left_out is not None:
        del work["starts"]
        outcome = solve_folds_jointly(left_out, whole, **work)
    else:
        certificates = None
        if k >= TRANSFER_FOLDS:
            margin = min(0.01, max(0.002, 2.0 / k))
            certificates = certificates_of(full, whole, margin, budget.share(10.0), stop)
        outcome = solve_folds(range(k), certificates=certificates, **work)
    if stop.is_set():
        raise KeyboardInterrupt
    result = _summarise(outcome, data, gamma, taus)
    _take_models(result, whole)
    if not (result.exact.all() and whole.proved.all()):
        result.status = str(worst([outcome.status, whole.status]))
    result.seconds = time.perf_counter() - started
    return result


def _search_taus(
    data: FoldData,
    gamma: float,
    taus: NDArray[np.intp],
    settings: Settings,
    budget: Budget,
    stop: StopFlag,
    progress: Callable[[float, int, int], None] | None,
) -> GammaResult:
    """Algorithm 1 in place of the exact h at every τ."""
    started = time.perf_counter()

    def tell(done: int) -> None:
        if progress is not None:
            progress(gamma, done, data.folds.k)

    tell(0)
    found = search_taus(
        data=data,
        gamma=gamma,
        taus=taus,
        bounds=settings.bounds,
        backend=settings.backend,
        tol=settings.tol,
        mio_limit=settings.mio_limit,
        only_bounds=settings.method == "bounds",
        budget=budget,
        stop=stop,
        tell=tell,
    )
    if stop.is_set():
        raise KeyboardInterrupt
    result = _summarise(found.outcome, data, gamma, taus)
    _take_models(result, found.whole)
    result.status = str(found.whole.status)  # the chosen model's proof counts, too
    result.history = found.history
    result.seconds = time.perf_counter() - started
    return result


def _take_models(result: GammaResult, whole: BestSubsets) -> None:
    result.models = whole.supports
    result.model_objective, result.model_bound = whole.objective, whole.lower_bound
    result.model_proved = whole.proved


def _shares_a_tree(data: FoldData, settings: Settings) -> bool:
    return (
        not settings.grid
        and isinstance(data, RowFolds)
        and data.folds.leave_one_out
        and data.p <= TREE_ONLY
        and data.folds.n > data.p + 2  # fewer rows interpolate: then no row is taken out safely
    )


def _summarise(
    outcome: FoldOutcome, data: FoldData, gamma: float, taus: NDArray[np.intp]
) -> GammaResult:
    sizes = data.folds.sizes
    rows = float(sizes.sum())
    exact = np.asarray(outcome.exact.all(axis=1))
    error = outcome.error.sum(axis=1) / rows
    # mean over folds weighted by their rows, as the CV error itself is
    spread = (sizes * (outcome.error / sizes - error[:, None]) ** 2).sum(axis=1) / rows
    lower = np.where(exact, error, np.minimum(outcome.lower.sum(axis=1) / rows, error))
    upper = np.where(exact, error, np.maximum(outcome.upper.sum(axis=1) / rows, error))
    return GammaResult(
        gamma=gamma,
        taus=taus,
        cv_error=error,
        std_error=np.sqrt(spread / max(data.folds.k - 1, 1)),
        lower=lower,
        upper=upper,
        exact=exact,
        n_mio=outcome.n_mio,
        n_nodes=outcome.n_nodes,
        mio_by_tau=outcome.mio_by_tau,
        seconds=0.0,
        supports=outcome.supports,
        choice=outcome.choice,
        fold_error=outcome.error,
        models=[],
        model_objective=np.empty(0),
        model_bound=np.empty(0),
        model_proved=np.empty(0, dtype=bool),
    )


@contextmanager
def interruptible() -> Iterator[StopFlag]:
    """Yield a flag that Ctrl-C raises before anything waits for the worker threads."""
    stop = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.getsignal(signal.SIGINT)

    def on_interrupt(number: int, frame: Any) -> None:
        stop.set()
        if callable(previous):
            previous(number, frame)

    if previous in (None, signal.SIG_IGN):  # not Python's, or meant to be ignored: leave it alone
        yield stop
        return
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)


def checked_jobs(n_jobs: Any) -> None:
    """Validate a number of threads: None or a whole number other than 0, as in joblib."""
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and n_jobs != 0):
        raise InputError(f"n_jobs must be None or a whole number other than 0; got {n_jobs!r}")


def checked_gammas(gammas: Sequence[float] | Array) -> Array:
    """Validate ridge weights: at least one, finite and > 0; order and repeats are kept."""
    try:
        values = np.atleast_1d(np.asarray(gammas, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"gamma must be a number or a list of numbers; got {gammas!r}") from None
    if values.ndim != 1:
        raise InputError(f"gamma must be a number or a flat list; got {values.ndim} dimensions")
    if values.size == 0:
        raise InputError("gamma must be a number or a list of numbers; got none")
    bad = values[~((values > 0) & np.isfinite(values))]
    if bad.size:
        raise InputError(f"gamma must be finite and > 0; got {bad[0]:g}")
    return values


def checked_taus(taus: Sequence[int] | NDArray[np.intp], p: int) -> NDArray[np.intp]:
    """Validate sparsities: whole numbers in 1..p, returned increasing and distinct."""
    try:
        values = np.atleast_1d(np.asarray(taus))
    except ValueError:
        raise InputError(f"tau must be a whole number or a list of them; got {taus!r}") from None
    if values.ndim != 1:
        raise InputError(f"tau must be a number or a flat list; got {values.ndim} dimensions")
    if values.size == 0:
        raise InputError("tau must name at least one sparsity; got none")
    if not np.issubdtype(values.dtype, np.integer):
        raise InputError(f"tau must be whole numbers; got {taus}")
    bad = values[(values < 1) | (values > p)]
    if bad.size:
        raise InputError(
            f"tau must lie between 1 and p = {p}, the number of columns that are not constant; "
            f"got {bad[0]}"
        )
    return np.unique(values).astype(np.intp)


def default_taus(n: int, p: int) -> NDArray[np.intp]:
    """Sparsities searched when none are named.

    All of 1..p while trees can be searched; beyond that the main paper's largest τ with
    τ log τ ≤ min(n, p) (Section 4.2).
    """
    top = p
    if p > MAX_COLUMNS:
        candidates = np.arange(1, p + 1)
        top = int(candidates[candidates * np.log(candidates) <= min(n, p)][-1])
    return np.arange(1, top + 1, dtype=np.intp)


def log_grid(low: float, high: float, count: int) -> Array:
    """``count`` values spaced evenly in the logarithm from ``low`` to ``high``."""
    return np.geomspace(low, high, count)


DEFAULT_GAMMAS = log_grid(1e-4, 1e4, 10)  # Section 4.2, main paper
