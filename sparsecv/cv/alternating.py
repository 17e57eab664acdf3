"""Alternating minimisation of h over τ and γ (Section 3, main paper)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..errors import InputError
from ..solvers import TREE_ONLY
from .engine import DEFAULT_GAMMAS, Settings, checked_taus, cross_validate
from .gamma_step import HIGH, LOW, FixedSupports, gamma_step
from .results import Array, CVResult, GammaResult, Step

ITERATIONS = 10
SAME = 1e-6  # relative difference of γ that counts as none
SPENT = 1e-3  # seconds given to what must be evaluated after the time limit
MINIMA = 3  # of the first grid that are started from
FINEST, WORTH = 1.02, 1e-4  # least ratio of neighbouring γ and relative gain looked for
MOST_BETWEEN = 40
CANDIDATES = 5  # τ whose γ step is looked at


def alternate(
    data: FoldData,
    taus: Sequence[int] | NDArray[np.intp],
    settings: Settings | None = None,
    *,
    start: float | None = None,
    iterations: int = ITERATIONS,
    known: Callable[[float], GammaResult | None] | None = None,
    finished: Callable[[GammaResult], None] | None = None,
    progress: Callable[[float, int, int], None] | None = None,
) -> CVResult:
    """Minimise h(γ, τ) over τ and γ in turn.

    The τ step is exact at the current γ (or a search, as ``settings`` say). The γ step holds every
    fold's support and minimises over γ in [1e-4, 1e4], for the best few τ: the pair with the least
    predicted error is next. It ends when a γ comes back, when nothing is gained, or after
    ``iterations``.

    Parameters
    ----------
    data : FoldData
    taus : sequence of int
    settings : Settings, optional
    start : float, optional
        First γ. By default the best few local minima among ten values from 1e-4 to 1e4, one after
        the other, and then up to 40 values between them where folds change their supports, where
        one tree serves every τ (up to 45 columns); else 1/√n.
    iterations : int
    known, finished, progress
        As in :func:`~sparsecv.cross_validation.cross_validate`.

    Returns
    -------
    CVResult
        Of every γ visited, in increasing order, with the trace. The best pair visited is
        ``best()``; it is a local minimum, not a proved global one.

    Raises
    ------
    InputError
        γ ≤ 0, τ out of range, or no iterations.
    """
    settings = settings or Settings()
    if iterations < 1:
        raise InputError(f"alternating minimisation needs at least 1 iteration; got {iterations}")
    tau_values = checked_taus(taus, data.p)
    began = time.perf_counter()
    visited: dict[float, GammaResult] = {}
    tolerance = settings.tol if settings.searches else None
    rows = float(data.folds.sizes.sum())

    def left() -> Settings:
        if settings.time_limit is None:
            return settings
        rest = settings.time_limit - (time.perf_counter() - began)
        return replace(settings, time_limit=max(rest, SPENT))

    def spent() -> bool:
        return settings.time_limit is not None and left().time_limit == SPENT

    def descend(gamma: float) -> str:
        """Alternate from one γ; how that ended."""
        seen: list[float] = []
        for _ in range(iterations):
            one = visited.get(gamma) or visit([gamma]).by_gamma[0]
            visited[gamma] = one
            seen.append(gamma)
            alone = CVResult(data.folds, np.array([gamma]), tau_values, [one], 0.0, tolerance)
            best, proposal = alone.best(), _next(data, one, gamma)
            trace.append(Step(gamma, best.tau, best.cv_error, best.certified, *proposal))
            following, _, predicted = proposal
            if spent():
                return "time limit"
            if not predicted < best.cv_error * (1.0 - 1e-9) or _same(following, gamma):
                return "converged"
            if any(_same(following, old) for old in seen):
                return "cycle"
            gamma = following
        return "iterations"

    def refine() -> None:
        """Look between visited γ where folds keep different supports: h jumps with them.

        Were every fold to have the better of its two neighbours' errors, h would be as low as the
        promise of a gap; the gap of the best promise is halved while that beats what is known.
        """
        for _ in range(MOST_BETWEEN):
            order = sorted(visited)
            least = min(float(visited[g].cv_error.min()) for g in order)
            gaps = [
                (_promise(visited[a], visited[b], rows), float(np.sqrt(a * b)))
                for a, b in itertools.pairwise(order)
                if b > FINEST * a
            ]
            promise, between = min(gaps, default=(np.inf, 0.0))
            if promise > least * (1.0 - WORTH) or spent():
                break
            visited[between] = visit([between]).by_gamma[0]
        best = min(visited, key=lambda g: float(visited[g].cv_error.min()))
        if not any(step.gamma == best for step in trace):
            descend(best)

    def visit(gammas: Sequence[float] | Array) -> CVResult:
        return cross_validate(
            data, gammas, tau_values, left(), known=known, finished=finished, progress=progress
        )

    if start is not None:
        starts = [float(start)]
    elif data.p <= TREE_ONLY:
        for one in visit(DEFAULT_GAMMAS).by_gamma:
            visited[one.gamma] = one
        starts = _minima(visited)
    else:
        starts = [float(1.0 / np.sqrt(data.folds.n))]
    trace: list[Step] = []
    ended = "iterations"
    for gamma in starts:
        if any(step.gamma == gamma for step in trace):
            continue  # another start led here
        ended = descend(gamma)
        if ended == "time limit":
            break
    if start is None and data.p <= TREE_ONLY:
        refine()
    order = sorted(visited)
    return CVResult(
        data.folds,
        np.array(order),
        tau_values,
        [visited[g] for g in order],
        time.perf_counter() - began,
        tolerance,
        trace,
        ended,
    )


def _next(data: FoldData, one: GammaResult, gamma: float) -> tuple[float, int, float]:
    """The γ step at the best few τ; γ, τ and the error predicted there."""
    found: list[tuple[float, float, int]] = []
    for t in np.argsort(one.cv_error, kind="stable")[:CANDIDATES]:
        supports = [one.supports[int(c)] for c in one.choice[t]]
        step = gamma_step(FixedSupports.of(data, supports), gamma, low=LOW, high=HIGH)
        found.append((step.error, step.gamma, int(one.taus[t])))
    error, best, tau = min(found)
    return best, tau, error


def _minima(visited: dict[float, GammaResult]) -> list[float]:
    """The best local minima of min_τ h over the γ visited, the best first."""
    order = sorted(visited)
    least = [float(visited[g].cv_error.min()) for g in order]
    padded = [np.inf, *least, np.inf]
    found = [i for i in range(len(order)) if least[i] <= min(padded[i], padded[i + 2])]
    return [order[i] for i in sorted(found, key=lambda i: least[i])[:MINIMA]]


def _promise(a: GammaResult, b: GammaResult, rows: float) -> float:
    """Least h if every fold had the better of its errors at two values of γ."""
    return float(np.minimum(a.fold_error, b.fold_error).sum(axis=1).min()) / rows


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(a, b)
