"""Diagonals D with XᵀX − D ⪰ 0 for the relaxation of a node under constraints on columns.

The relaxation's value φ(D) is concave, with ∂φ/∂D_jj = ω_j = β_j²(1/z_u − 1) for a column j of unit
u. Coordinate steps maximise Σ ω_j D_jj + μ·log det(XᵀX − D), μ → 0; then ω is computed anew. As the
columns of a group are orthogonal here (``unit_form``), a diagonal is a block for every group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..kernels.linalg import EPS, Array
from .diagonal import allowed, ascend
from .unit_form import UnitForm, UnitRelaxer


class UnitDiagonalSettings(NamedTuple):
    """Tuning numbers of the search for a diagonal: that XᵀX − D ⪰ 0 holds is checked anyway."""

    # Problems of more columns have no diagonal but the least eigenvalue's, as every barrier takes
    # O(p³) operations.
    max_columns: int = 400
    # Weights μ of the barrier, used in turn, in units of the mean ω_jG_jj. The last is about what
    # each column adds less to Σ ω_jD_jj than it could: ten times the last leaves ten times as much.
    barriers: tuple[float, ...] = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    # At most so many rounds of new ω.
    rounds: int = 12
    # A round is the last where the bound closes less than this share of the gap.
    least_gain: float = 0.01
    # ω is at least this share of its largest entry.
    least_weight: float = 1e-3
    # Of the new diagonal this share is taken, and the rest of the best so far, as ω jumps where a
    # unit's share reaches 0 or 1. A share nearer to 1 moves faster and overshoots.
    damping: float = 0.5


SETTINGS = UnitDiagonalSettings()


def fits(form: UnitForm, rank: int) -> bool:
    """Whether a diagonal is worth a search: few columns, and XᵀX of full rank by its rows."""
    return rank >= form.b.size and form.b.size <= SETTINGS.max_columns


def fit_units(
    form: UnitForm,
    now: UnitRelaxer,
    bound: float,
    target: float,
    limits: Limits | None = None,
) -> tuple[Array, UnitRelaxer, float]:
    """A diagonal that gives a node's relaxation a larger bound.

    now, bound: The relaxation of the node with ``form.D``, solved, and its bound.
    target: The search ends once the bound reaches this objective.
    Returns: The diagonal of the best bound, with its relaxation and bound.
    """
    ridge = now.ridge
    best = (form.D, now, bound)
    for turn in range(SETTINGS.rounds):
        if best[2] >= target or (limits is not None and limits.reached(0) is not None):
            break
        share = now.share
        weight = np.zeros(share.size)
        there = share > 0.0
        weight[there] = now.beta[there] ** 2 * (1.0 / share[there] - 1.0)
        if not weight.max() > 0.0:
            break
        weight = np.maximum(weight / weight.max(), SETTINGS.least_weight)
        D = _largest(form, ridge, weight, now.inside)
        if D is None:
            break
        if turn > 0 or form.D.any():
            D = SETTINGS.damping * D + (1.0 - SETTINGS.damping) * best[0]
        if not (ridge + D > 0.5 * ridge).all():
            break
        now = UnitRelaxer(replace(form, D=D), ridge, now.state, now.k).start(now)
        bound, before = now.relax(target), best[2]
        if bound > before:
            best = (D, now, bound)
        if bound - before < SETTINGS.least_gain * (target - before):
            break
    return best


def _largest(form: UnitForm, ridge: float, weight: Array, inside: NDArray[np.intp]) -> Array | None:
    """D (p,) on the columns ``inside`` with Σ ω_jD_jj nearly as large as possible, 0 on others.

    Columns are multiplied by √ω, which makes ω = 1. A small multiple of ω is added to the matrix,
    which may be singular, and taken off D again.
    """
    root = np.sqrt(weight[inside])
    G = form.G[np.ix_(inside, inside)] * root * root[:, None]
    squares = (form.before or (np.diag(form.G), 0.0))[0][inside] * root * root
    trace = float(np.trace(G))
    shift = min(1e-8 * float(np.diag(form.G).max()), 5e-4 * ridge) * root * root
    D = np.zeros(inside.size)
    for mu in trace / inside.size * np.array(SETTINGS.barriers):
        M = G.copy()
        M.flat[:: D.size + 1] += shift - D
        try:
            inverse = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return None
        ascend(0.5 * (inverse + inverse.T), D, np.array([mu]), 1)
    if not np.isfinite(D).all():
        return None
    D = allowed(G, D - shift, form.eps * float(squares.sum()) / trace) / (root * root)
    found = np.zeros(form.b.size)
    found[inside] = D - 4.0 * EPS * np.abs(D)
    return found
