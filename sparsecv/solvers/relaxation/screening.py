"""Screening: columns proved to be in, or out of, every optimal support (EC.1, main paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..problem import SparseRidgeProblem

ROUNDING = 1e-10


@dataclass(frozen=True)
class Screening:
    """Columns fixed for the problem's τ (and for no other τ).

    ``included`` are in every optimal support, ``excluded`` in none that an optimum needs: every
    optimal support of size τ is made of included columns and free ones.
    """

    included: NDArray[np.intp]
    excluded: NDArray[np.intp]
    bound: float


def screen(problem: SparseRidgeProblem, beta: ArrayLike, upper: float) -> Screening:
    """Fix columns by a dual bound at any coefficients and a feasible objective.

    With v_i = (2/γ)(s·x_iᵀr)², r = y − Xβ and the best scale s, the bound is
    2s·rᵀy − s²||r||² − (sum of the τ largest v). Forcing column i in replaces the τ-th largest v
    by v_i, forcing it out brings in the (τ+1)-th; where that lifts the bound above ``upper`` no
    optimum does it. The printed rule has the scaling of another paper; this is eq. (1)'s.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Its τ is the one screened for.
    beta : array, shape (p,)
        Best near the optimum of the perspective relaxation.
    upper : float
        Objective of any support of at most τ columns.

    Returns
    -------
    Screening
    """
    values = np.asarray(beta, dtype=np.float64)
    if values.shape != (problem.p,) or not np.isfinite(values).all():
        raise ValueError(f"beta must be {problem.p} finite numbers; got shape {values.shape}")
    head, y = problem._base[:, : problem.p], problem._base[:, problem.p]
    residual = y - head @ values
    # any residual is a dual point, the rounded one too: only its products can be off
    eps = (head.shape[0] + 8) * float(np.finfo(np.float64).eps)
    lost = eps * (np.abs(head).T @ np.abs(residual))
    g, weight = np.abs(head.T @ residual), 2.0 / problem.gamma
    most, least = weight * (g + lost) ** 2, weight * np.maximum(g - lost, 0.0) ** 2
    order, floor = np.sort(most)[::-1], np.sort(least)[::-1]
    tau = problem.tau
    bottom = float(residual @ residual + order[:tau].sum())
    scale = float(residual @ y) / bottom if bottom > 0.0 else 0.0
    square = scale * scale
    bound = scale * float(residual @ y)
    following = square * order[tau] if tau < problem.p else 0.0
    last = square * floor[tau - 1]
    cut = upper + ROUNDING * problem.yy
    high, low = square * most, square * least
    excluded = np.flatnonzero((high <= following) & (bound + last - high > cut))
    included = np.flatnonzero((low >= last) & (bound + low - following > cut))
    if tau == problem.p:
        excluded = np.empty(0, dtype=np.intp)
    return Screening(included.astype(np.intp), excluded.astype(np.intp), bound)
