"""What a cross-validation is asked to do, and checks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..errors import InputError
from ..solvers.api import checked_backend
from ..solvers.leaps.all_sizes import MAX_COLUMNS, TREE_ONLY

METHODS = ("auto", "exact", "grid", "search", "bounds")
BOUNDS = ("best", "paper", "paper-exact")
PROVE = ("choice", "all")
PROVING = 60.0  # seconds of proving beyond 45 columns where no limit is named


@dataclass(frozen=True)
class Settings:
    """How to search.

    method: "exact": one tree per fold for all τ, or one for all leave-one-out folds. "grid": one
        problem per fold and τ, the main paper's Grid. "search": the best τ alone, by the main
        paper's Algorithm 1. "bounds": its first phase, no mixed-integer problem solved. "auto":
        exact, or grid where an outside solver is asked for.
    backend: Solver of single problems (grid and search); exact has trees of its own.
    time_limit: Seconds for everything, compiling not counted; what is not proved by then is
        estimated and bracketed. 0 proves nothing. "auto": none up to 45 columns, beyond 60 s of
        proving once the estimates are there.
    n_jobs: Threads, as in joblib.
    tol: search: relative tolerance (UB − LB)/UB of the least CV error at each γ.
    bounds: search and bounds: "best"; "paper" for the main paper's Algorithm 2 alone; "paper-exact"
        for the same with u*, the optimum on all rows, in Corollary 3 (one problem more per τ).
    mio_limit: search: most mixed-integer problems at each γ (r in Algorithm 1).
    prove: Beyond 45 columns: "choice" proves what the least error needs, "all" every h(γ, τ).
    proving: Seconds of proving beyond 45 columns where ``time_limit`` is "auto".
    """

    method: str = "auto"
    backend: str = "auto"
    time_limit: float | str | None = None
    n_jobs: int | None = None
    tol: float = 0.01
    bounds: str = "best"
    mio_limit: int | None = None
    prove: str = "choice"
    proving: float = field(default_factory=lambda: PROVING)

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
        checked_limit(self.time_limit)
        if self.prove not in PROVE:
            raise InputError(f"prove must be one of {', '.join(PROVE)}; got {self.prove!r}")
        checked_jobs(self.n_jobs)
        if not (isinstance(self.tol, Real) and 0.0 <= float(self.tol) < 1.0):
            raise InputError(f"tol must lie in [0, 1); got {self.tol!r}")
        if self.bounds not in BOUNDS:
            raise InputError(f"bounds must be one of {', '.join(BOUNDS)}; got {self.bounds!r}")
        most = self.mio_limit
        if most is not None and not (isinstance(most, Integral) and most >= 0):
            raise InputError(f"mio_limit must be a whole number >= 0; got {most!r}")

    def seconds(self, p: int) -> tuple[float | None, float | None]:
        """Seconds for everything, and seconds of proving, with p columns; None: no limit."""
        if self.time_limit == "auto":
            return None, None if p <= TREE_ONLY else self.proving
        return (None if self.time_limit is None else float(self.time_limit)), None

    @property
    def grid(self) -> bool:
        """Whether every (fold, τ) is a problem of its own."""
        outside = self.backend not in ("auto", "native")
        return self.method == "grid" or (self.method == "auto" and outside)

    @property
    def searches(self) -> bool:
        """Whether the best τ alone is wanted, not h at every τ."""
        return self.method in ("search", "bounds")


def checked_jobs(n_jobs: Any) -> None:
    """Validate a number of threads: None or a whole number other than 0, as in joblib.

    Raises InputError: Anything else.
    """
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and n_jobs != 0):
        raise InputError(f"n_jobs must be None or a whole number other than 0; got {n_jobs!r}")


def checked_limit(limit: Any) -> None:
    """Validate a time limit: "auto", None or seconds >= 0.

    Raises InputError: Anything else.
    """
    if limit is None or limit == "auto":
        return
    number = isinstance(limit, Real) and not isinstance(limit, bool)
    if not (number and float(limit) >= 0.0):
        raise InputError(f"time_limit must be 'auto', None or seconds >= 0; got {limit!r}")


def checked_gammas(gammas: Sequence[float] | Array) -> Array:
    """Validate ridge weights: at least one, finite and > 0; order and repeats are kept.

    Returns, shape (γ,).
    Raises InputError: None, one that is not finite and > 0, or more than one dimension.
    """
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
    """Validate sparsities: whole numbers in 1..p, returned increasing and distinct.

    p: Number of columns that are not constant.
    Returns, shape (τ,).
    Raises InputError: None, one that is not a whole number in 1..p, or more than one dimension.
    """
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

    n, p: Rows and columns.
    """
    top = p
    if p > MAX_COLUMNS:
        candidates = np.arange(1, p + 1)
        top = int(candidates[candidates * np.log(candidates) <= min(n, p)][-1])
    return np.arange(1, top + 1, dtype=np.intp)


def log_grid(low: float, high: float, count: int) -> Array:
    """``count`` values spaced evenly in the logarithm from ``low`` to ``high``.

    Returns, shape (count,).
    """
    return np.geomspace(low, high, count)


DEFAULT_GAMMAS = log_grid(1e-4, 1e4, 10)  # Section 4.2, main paper
