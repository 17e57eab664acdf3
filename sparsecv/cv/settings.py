"""What is asked of a fit, and checks of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..errors import InputError
from ..solvers.api import checked_backend
from ..solvers.core.constraints import UnitConstraints
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.limits import Limits, StopFlag
from ..solvers.core.rows import MAX_COLUMNS

# The values of three settings; :class:`Settings` says what each value means.
METHODS = ("auto", "exact", "grid", "search")
BOUNDS = ("best", "paper", "paper-exact")
PROVE = ("choice", "all")
CHOICES = {"method": METHODS, "bounds": BOUNDS, "prove": PROVE}


@dataclass(frozen=True)
class Settings:
    """What is asked of a fit: how h(γ, τ) is computed and for how long, and how a model is chosen.

    method: "exact": one tree per fold for all τ, or one for all leave-one-out folds. "grid": one
        problem per fold and τ, the first paper's Grid. "search": the best τ alone, by the main
        paper's Algorithm 1. "auto": exact, or grid where an outside solver is asked for.
    backend: Solver of single problems (grid and search); exact has trees of its own.
    time_limit: Seconds of the whole call, compiling not counted; what is not proved by then is
        estimated and bracketed. 0 proves nothing, and estimates take as long as they need. None: no
        limit.
    n_jobs: Threads, as in joblib.
    tol: Relative tolerance (UB − LB)/UB of the least CV error. A search ends at each γ once the gap
        is at most this number, 0.01 where it is None; the search of a range of γ ends at 1e-4 where
        it is None.
    bounds: search and bounds: "best"; "paper" for the first paper's Algorithm 2 alone;
        "paper-exact" for the same with u*, the optimum on all rows, in Corollary 3 (one problem
        more per τ).
    prove: "choice" proves what the choice needs, and then the rest, where trees of all sizes prove
        it, for as long again, at most a second; "all" proves every h(γ, τ) and every model.
    gammas: Values of γ. With None the default grid is visited, and a rule that takes a pair then
        alternates between τ and γ. With a :class:`GammaSpan`, or the text that stands for one, the
        least CV error over the range is found and proved.
    taus: Values of τ; with None those of :func:`default_taus`.
    criterion: With "aic", "bic" or "ebic", where nothing is held out, the size of least criterion
        is searched for, and neither gammas nor taus count.
    rule: The rule that chooses. With None it is projected, or minimum where the least CV error
        alone is looked for.
    certificate: Whether a certificate of the least CV error is wanted. A rule of None is then
        minimum.
    size: The number of columns of the model, where the user names it. The rule then chooses among
        the models of this size alone.
    compare: Whether the choices of all rules are computed.
    seed: The seed that the folds were drawn with, and that other partitions are drawn with.

    Raises InputError: method, bounds, prove, backend, time_limit, n_jobs or tol is none of the
        values above, or "exact" is asked of an outside solver. The other values are checked where
        they are read.
    """

    method: str = "auto"
    backend: str = "auto"
    time_limit: float | None = None
    n_jobs: int | None = None
    tol: float | None = None
    bounds: str = "best"
    prove: str = "choice"
    gammas: Any = None
    taus: Any = None
    criterion: str | None = None
    rule: str | None = None
    certificate: bool = False
    size: int | None = None
    compare: bool = False
    seed: Any = 0

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                given = getattr(self, name)
                raise InputError(f"{name} must be one of {', '.join(known)}; got {given!r}")
        if self.outside:
            try:
                checked_backend(self.backend)
            except ValueError as error:
                raise InputError(str(error)) from None
            if self.method == "exact":
                raise InputError(
                    "method exact has trees of its own and calls no backend: "
                    f"use method grid or search with backend {self.backend}"
                )
        checked_limit(self.time_limit)
        checked_jobs(self.n_jobs)
        tol = 0.0 if self.tol is None else self.tol
        if not (isinstance(tol, Real) and 0.0 <= float(tol) < 1.0):
            raise InputError(f"tol must lie in [0, 1); got {tol!r}")

    def deadline(self) -> Limits:
        """The limits of a call that begins now, with a flag that Ctrl-C can raise."""
        seconds = self.time_limit
        return Limits(None if seconds is None else float(seconds), None, StopFlag())

    def check_constraints(self, constraints: UnitConstraints) -> None:
        """Raise an InputError where the solver serves no constraints on columns."""
        if not constraints.plain and self.outside:
            raise InputError(
                f"backend {self.backend} serves no constraints on columns: use the native one"
            )

    @property
    def counts_coefficients(self) -> bool:
        """Whether trees of all sizes serve what is asked, so that sizes may count coefficients.

        Other searches count a group of columns once.
        """
        return not (self.grid or self.searches or isinstance(asked_gammas(self.gammas), GammaSpan))

    @property
    def search_tolerance(self) -> float:
        """The relative gap at which the search of the best τ at one γ ends."""
        # The gap (UB − LB)/UB of the least CV error at which the methods search and bounds end by
        # default: the ε of the first paper's example of Algorithm 1.
        return 0.01 if self.tol is None else float(self.tol)

    @property
    def outside(self) -> bool:
        """Whether another solver than the package's own is asked for."""
        return self.backend not in ("auto", "native")

    @property
    def grid(self) -> bool:
        """Whether every (fold, τ) is a problem of its own."""
        return self.method == "grid" or (self.method == "auto" and self.outside)

    @property
    def searches(self) -> bool:
        """Whether the best τ alone is wanted, not h at every τ."""
        return self.method == "search"


def checked_jobs(n_jobs: Any) -> None:
    """Validate a number of threads: None or a whole number other than 0, as in joblib.

    Raises InputError: Anything else.
    """
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and n_jobs != 0):
        raise InputError(f"n_jobs must be None or a whole number other than 0; got {n_jobs!r}")


def checked_limit(limit: Any) -> float | None:
    """Return a time limit: None or seconds >= 0.

    Raises InputError: Anything else.
    """
    if limit is None:
        return None
    number = isinstance(limit, Real) and not isinstance(limit, bool)
    if not (number and float(limit) >= 0.0):
        raise InputError(f"time_limit must be None or seconds >= 0; got {limit!r}")
    return float(limit)


def _flat(name: str, values: Any, kind: str, kinds: str) -> NDArray[Any]:
    """A number, or a list of at least one number, as a flat array.

    name, kind: What messages call the parameter and its numbers.
    kinds: The kinds of NumPy dtypes that are allowed, such as "iuf".
    Raises InputError: There is no number, or the values are no flat list of such numbers.
    """
    try:
        found = np.atleast_1d(np.asarray(values))
    except ValueError:  # The lists have several lengths.
        found = np.array([None])
    if found.ndim == 1 and found.size == 0:
        raise InputError(f"{name} must be a {kind} or a list of {kind}s; got none")
    if found.ndim != 1 or found.dtype.kind not in kinds:
        raise InputError(f"{name} must be a {kind} or a flat list of {kind}s; got {values!r}")
    return found


def checked_gammas(gammas: Any) -> Array:
    """Validate ridge weights: at least one, finite and >= 0; order and repeats are kept.

    Raises InputError: Anything else.
    """
    values = _flat("gamma", gammas, "number", "iuf").astype(np.float64)
    bad = values[~((values >= 0) & np.isfinite(values))]
    if bad.size:
        raise InputError(f"gamma must be finite and >= 0; got {bad[0]:g}")
    return values


def asked_gammas(gammas: Any) -> Array | GammaSpan | None:
    """The γ that a user asks for: None, a range ("global" or "global:LO:HI"), or values.

    Raises InputError: The values or the text cannot be read.
    """
    if gammas is None or isinstance(gammas, GammaSpan):
        return gammas
    if not isinstance(gammas, str):
        return checked_gammas(gammas)
    name, *ends = gammas.strip().lower().split(":")
    try:
        span = GammaSpan(*(float(end) for end in ends))
    except (ValueError, TypeError):
        span = GammaSpan(np.nan)
    if name != "global" or len(ends) == 1 or not span.is_proper:
        raise InputError(
            "gammas must be numbers, None, 'global' or 'global:LO:HI' with 0 <= LO < HI; "
            f"got {gammas!r}"
        )
    return span


def checked_taus(
    taus: Any, p: int, constraints: UnitConstraints | None = None, least: int = 1
) -> NDArray[np.intp]:
    """Validate sparsities: whole numbers in least..p, returned increasing and distinct.

    p: Number of columns to choose from.
    constraints: What models must obey, which may allow fewer sizes. Only the smallest and the
        largest of the values are compared with them.
    least: The least size that is allowed: 0 where the mean alone is a size.
    Raises InputError: There is no value, or one is not whole or out of range.
    """
    values = _flat("tau", taus, "whole number", "iu")
    bad = values[(values < least) | (values > p)]
    if bad.size:
        raise InputError(
            f"tau must lie between {least} and p = {p}, the number of columns that are not "
            f"constant; got {bad[0]}"
        )
    if constraints is not None and not constraints.plain:
        for tau in (values.min(), values.max()):
            constraints.checked_size(int(tau))
    return np.unique(values).astype(np.intp)


def default_taus(n: float, p: int, constraints: UnitConstraints | None = None) -> NDArray[np.intp]:
    """The sparsities of n rows and p columns where the user names none.

    The mean alone, the size 0, is not one of them. They are 1..p where one tree can serve all
    sizes; with more columns they end at the largest τ with τ log τ ≤ min(n, p) (Section 4.2, first
    paper). Constraints may allow fewer sizes, and a group of columns counts as one in a size: six
    factors of 30 levels are 180 columns, and have the sizes 1 to 6. Where a group counts its
    coefficients, the sizes are those that models have: 29, 58, …, 174.

    n: Number of rows, or the sum of their weights.
    """
    if constraints is not None and constraints.weighted:
        return constraints.sizes
    least, top = 1, p
    if constraints is not None:
        least, top = max(1, constraints.min_size), constraints.max_size
    if p > MAX_COLUMNS:
        candidates = np.arange(1, top + 1)
        top = int(candidates[candidates * np.log(candidates) <= min(n, p)][-1])
    return np.arange(least, max(least, top) + 1, dtype=np.intp)


# The γ of the first paper (Section 4.2): ten values from 1e-4 to 1e4, spaced evenly in log γ.
DEFAULT_GAMMAS = np.geomspace(1e-4, 1e4, 10)
