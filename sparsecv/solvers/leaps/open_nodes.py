"""Ranges that hold the predictions of every optimal support that an unfinished tree still allows.

For any S that contains the optimal support, f(β) = f_S + (β − β_S)ᵀ(G_S + γ/2 I)(β − β_S) for all
β supported on S. An optimum β* has f(β*) ≤ u for any incumbent value u, hence
|xᵀβ* − xᵀβ_S| ≤ √((u − f_S) · xᵀ(G_S + γ/2 I)⁻¹x). This is Theorem 2 of the first paper with the
ridge fit on S in place of the perspective relaxation. The union of these ranges over all open
nodes, and the incumbent's prediction, holds the prediction of every optimal solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.leaves import IN, OUT, Leaves
from ..core.problem import SparseRidgeProblem
from ..core.rounding import BOUND_SHARE, DIFFERENCE_SHARE, attained_margin
from ..kernels.linalg import Array

# A leaf's spread is that of its node less a second number. The difference is off by as much as the
# node's spread is. A leaf with a spread below this share of its node's is therefore factorised by
# itself. At the share, the root of a spread and the centre are off by some thirty times as much as
# those of the node. The margins of ``upper`` have 64 times as much to spare.
LEAST_SPREAD_SHARE = 1e-3


class LeafFits(NamedTuple):
    """What ridge fits say of some leaves, c of them, each on the leaf's own columns.

    Below leaf i are supports of ``low[i]`` to ``high`` columns, whose objectives are at least
    ``loss[i]``. For each of r rows x, ``centre`` (c, r) is xᵀβ_S and ``spread`` (c, r) is
    xᵀ(G_S + γ/2 I)⁻¹x, S the columns that the leaf does not exclude.
    """

    low: NDArray[np.intp]
    high: int
    loss: Array
    centre: Array
    spread: Array


def families(members: NDArray[np.bool_]) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Runs of leaves that each lack one column of a common node, and this node's columns.

    A leaf that shares no node with its neighbours is a run of its own, and its own node.

    members, shape (m, p): The columns that each leaf does not exclude.
    """
    first, m = 0, members.shape[0]
    size = members.sum(axis=1)
    apart = (members[1:] != members[:-1]).sum(axis=1)
    while first < m:
        last, parent = first + 1, members[first]
        if last < m and apart[first] == 2 and size[last] == size[first]:
            parent = members[first] | members[last]
            while last < m and size[last] == size[first] and not (members[last] & ~parent).any():
                last += 1
        yield slice(first, last), parent
        first = last


def expand(problem: SparseRidgeProblem, leaves: Leaves, rows: Array) -> Iterator[LeafFits]:
    """Fit the columns of all leaves and predict at ``rows``, shape (r, p).

    One factorisation serves all leaves that each lack one column of the same node, as the children
    of a node of leaps and bounds do. A leaf is factorised alone where a difference loses digits.
    """
    members, inside = leaves.state != OUT, leaves.state == IN
    low = np.maximum(inside.sum(axis=1), 1)
    for some, parent in families(members):
        if not parent.any():  # The empty support alone lies below, and no size asks for it.
            continue
        columns = np.flatnonzero(parent)
        dropped = ~members[some][:, columns]  # At most one in each row.
        alone = not dropped.any()
        if alone and columns.size > problem.triangle.shape[0]:
            yield _expand_dual(problem, columns, rows, low[some])
            continue
        m = columns.size
        R = problem.factor(columns)
        T, z, loss = R[:m, :m], R[:m, m], float(R[m, m] ** 2)
        beta = sla.solve_triangular(T, z, check_finite=False)
        V = sla.solve_triangular(T, rows[:, columns].T, trans="T", check_finite=False)
        centre = rows[:, columns] @ beta
        spread = np.einsum("ij,ij->j", V, V)
        # Numbers of the column that is dropped; they are 0 if there is none.
        W = dropped @ sla.solve_triangular(T, V, check_finite=False)
        inverse = dropped @ sla.solve_triangular(T, np.eye(m), check_finite=False)
        pivot = np.einsum("ij,ij->i", inverse, inverse) + alone
        ratio = dropped @ beta / pivot
        fits = LeafFits(
            low=low[some],
            high=m - 1 + alone,
            loss=loss + (dropped @ beta) * ratio,
            centre=centre - W * ratio[:, None],
            spread=np.maximum(spread - W * W / pivot[:, None], 0.0),
        )
        for i in np.flatnonzero((fits.spread < LEAST_SPREAD_SHARE * spread).any(axis=1)).tolist():
            (own,) = expand(problem, leaves.some(slice(some.start + i, some.start + i + 1)), rows)
            fits.loss[i], fits.centre[i], fits.spread[i] = own.loss[0], own.centre[0], own.spread[0]
        yield fits


def _expand_dual(
    problem: SparseRidgeProblem, members: NDArray[np.intp], rows: Array, low: NDArray[np.intp]
) -> LeafFits:
    """What the fit on more columns than the data has rows says of a leaf, by their SVD.

    rows, shape (r, p): Rows to predict at.
    low, shape (1,): As in the result.
    """
    y, ridge = problem.triangle[:, problem.p], problem.gamma / 2.0
    if members.size == problem.p:
        U, s, Vt = problem.data.singular
    else:
        U, s, Vt = sla.svd(problem.triangle[:, members], full_matrices=False, check_finite=False)
    fitted = U.T @ y
    left = ridge / (s * s + ridge)  # share of y that the ridge fit leaves, by singular vector
    loss = float(left @ (fitted * fitted))
    H = rows[:, members]
    inside = Vt @ H.T
    length = np.einsum("ij,ij->i", H, H)
    outside = np.maximum(length - np.einsum("ij,ij->j", inside, inside), 0.0)
    spread = (outside + left @ (inside * inside) + DIFFERENCE_SHARE * length) / ridge
    return LeafFits(
        low=low,
        high=members.size,
        loss=np.array([loss]),
        centre=((fitted * s / (s * s + ridge)) @ inside)[None],
        spread=spread[None],
    )


def prediction_ranges(
    problem: SparseRidgeProblem,
    leaves: Leaves,
    rows: Array,
    sizes: NDArray[np.intp],
    predicted: Array,
    upper: Array,
    above: Array | None = None,
    as_seen: Callable[[LeafFits], LeafFits] = lambda fits: fits,
) -> tuple[Array, Array]:
    """Ranges that hold xᵀβ* for every row x and the optimal β* of each size.

    Where several β tie exactly, the optimum that a range holds is the optimum that the search would
    end with: the support known, or a support whose objective is lower by more than rounding. Tied
    supports below nodes that are closed already are left out.

    leaves: Those of a tree of the problem that are open.
    rows, shape (r, p).
    sizes, shape (k,).
    predicted, shape (k, r): Predictions of the best support known for each size.
    upper, shape (k, 1) or (k, r): Objectives of these supports, with one column for each prediction
        if every prediction belongs to a problem of its own.
    above: What is added to ``upper``, so that the ranges hold exact optima, as nodes are fitted at
        a rounded γ and from a rounded factor, where an optimum may look worse than it is. By
        default :func:`~sparsecv.solvers.core.rounding.attained_margin` of ``problem``.
    as_seen: Turns fits of ``problem`` into fits of the problems that predictions belong to.
    Returns: Low and high ends of the ranges, shape (k, r).
    """
    low, high = predicted.copy(), predicted.copy()
    upper = upper + (attained_margin(problem, upper) if above is None else above)
    for fits in map(as_seen, expand(problem, leaves, rows)):
        for least, loss, centre, spread in zip(
            fits.low, fits.loss, fits.centre, fits.spread, strict=True
        ):
            # A support answers every larger size where units count more than once.
            small = (sizes <= fits.high) | problem.constraints.weighted
            at = np.flatnonzero((least <= sizes) & small)
            if at.size == 0:
                continue
            gap = upper[at] - loss + BOUND_SHARE * upper[at]
            # 0 times ∞ says nothing of the prediction, and neither does an overflow.
            with np.errstate(invalid="ignore", over="ignore"):
                square = np.maximum(gap, 0.0) * spread
            radius = np.sqrt(np.where(np.isnan(square), np.inf, square)) * (1.0 + BOUND_SHARE)
            radius = np.where(gap >= 0.0, radius + BOUND_SHARE * np.abs(centre), -np.inf)
            low[at] = np.minimum(low[at], centre - radius)
            high[at] = np.maximum(high[at], centre + radius)
    return low, high
