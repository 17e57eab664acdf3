"""Best supports of every size for a problem with each of its rows deleted in turn, in one tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike, NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes, checked_support
from ..core.result import Status
from ..core.threads import on_one_thread
from ..kernels.linalg import EPS, Array, from_mask
from ..supports.rounding import pad_support
from .all_sizes import (
    MAX_COLUMNS,
    active_columns,
    root_state,
    rounding_margin,
    run,
    seed,
)
from .open_nodes import Children, OpenNode, open_nodes, prediction_ranges
from .tree_kernels import TREE, State, exclude

# A row of leverage h_i in the fit on all columns is skipped where 1 − h_i is below this number: the
# division by 1 − h_i would lose more than five of sixteen digits. Skipped rows are solved alone.
# Doubled, somewhat more rows are skipped.
LEAST_ONE_MINUS_LEVERAGE = 1e-5
# A row is skipped where yᵀy less its t² is at most this share of yᵀy: what the deletion leaves of y
# is mostly rounding then. Doubled, somewhat more rows are skipped.
LEAST_SHARE_OF_YY = 1e-10


class DeletedFits(NamedTuple):
    """Ridge fits on one support with every row deleted in turn.

    ``residual[i]`` = t_i − z_iᵀβ^(−i); ``objective[i]`` and ``gain[i]`` belong to problem i.
    ``rounding[i]`` is what ``objective[i]``, a difference, may have lost, and ``remain[i]`` the
    share of row i that the others do not fit by themselves, 1 − its leverage.
    """

    objective: Array
    gain: Array
    residual: Array
    rounding: Array
    remain: Array


@dataclass
class DeletedRowSubsets:
    """Best supports for n deleted-row problems.

    Row s of ``choice``, ``objective``, ``lower_bound`` and ``residual`` (sizes, n) belongs to
    ``sizes[s]``; ``supports[choice[s, i]]`` is problem i's best support of that size.
    ``skipped`` are rows with 1 − h_i too small to be deleted by a down-date: their entries are
    NaN, solve those problems on their own.
    """

    sizes: NDArray[np.intp]
    supports: list[NDArray[np.intp]]
    choice: NDArray[np.intp]
    objective: Array
    residual: Array
    lower_bound: Array
    low: Array
    high: Array
    skipped: NDArray[np.intp]
    status: Status
    n_nodes: int
    seconds: float
    open_nodes: list[OpenNode]


@on_one_thread
def best_subsets_rows_deleted(
    problem: SparseRidgeProblem,
    rows: ArrayLike,
    targets: ArrayLike,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    limits: Limits | None = None,
) -> DeletedRowSubsets:
    """Solve, in one tree, the n problems that each lack one row.

    Parameters
    ----------
    problem : SparseRidgeProblem
        The problem with all rows.
    rows : array, shape (n, p)
    targets : array, shape (n,)
        Problem i has Gram matrices G − z_i z_iᵀ, b − z_i t_i, yᵀy − t_i². For leave-one-out with
        an intercept refitted in every fold these are √(n/(n−1)) times the centred data.
    sizes, warm_starts, limits
        As in :func:`sparsecv.solvers.best_subsets`.

    Returns
    -------
    DeletedRowSubsets
        ``low`` and ``high`` (sizes, n) bracket the deleted residual of every optimal solution;
        they coincide with ``residual`` once the status is optimal.

    Raises
    ------
    ValueError
        More columns than one tree can hold (``MAX_COLUMNS``), or rows that do not fit the problem.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, best_subsets_rows_deleted
    >>> X, y = np.tile(np.eye(2), (3, 1)), np.array([1.0, 3.0, 1.2, 2.9, 0.9, 3.1])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    >>> str(best_subsets_rows_deleted(problem, X, y).status)
    'optimal'
    """
    limits = (limits or Limits()).within()
    Z = np.ascontiguousarray(rows, dtype=np.float64)
    t = np.ascontiguousarray(targets, dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != problem.p or t.shape != (Z.shape[0],):
        raise ValueError(f"rows must be (n, {problem.p}), targets (n,); got {Z.shape}, {t.shape}")
    wanted = checked_sizes(problem, sizes)
    starts = [checked_support(problem.p, s) for s in warm_starts]
    active = active_columns(problem)
    if active.size > MAX_COLUMNS:
        raise ValueError(f"the shared tree holds at most {MAX_COLUMNS} columns; got {active.size}")
    inner = np.minimum(wanted, active.size)
    state, skipped = _root(problem, active, np.unique(inner), Z, t)
    seed(state, active, starts)
    status = Status.OPTIMAL
    if skipped.size < t.size:
        status = run(state, limits, max(1, TREE.updates_per_look // (t.size * active.size)))
    supports: list[NDArray[np.intp]] = []
    choice = np.zeros((wanted.size, t.size), dtype=np.intp)
    objective, residual = np.empty(choice.shape), np.empty(choice.shape)
    for s, (size, within) in enumerate(zip(wanted, inner, strict=True)):
        found, index, objective[s], residual[s] = _chosen(problem, Z, t, state, int(within), active)
        choice[s] = index + len(supports)
        supports += [pad_support(support, int(size), problem.p) for support in found]
    objective[:, skipped] = residual[:, skipped] = np.nan
    nodes, tie = open_nodes(state.tree, active), float(state.tree.options[0].tie)
    bounds = _bounds(problem, Z, t, nodes, wanted, objective, residual, tie)
    work = status, int(state.tree.counts[0].nodes), limits.elapsed()
    return DeletedRowSubsets(
        wanted, supports, choice, objective, residual, *bounds, skipped, *work, nodes
    )


def _root(
    problem: SparseRidgeProblem,
    active: NDArray[np.intp],
    sizes: NDArray[np.intp],
    rows: Array,
    targets: Array,
) -> tuple[State, NDArray[np.intp]]:
    """The tree at its root, with the tie window of the rows deleted, and the rows it skips."""
    state = root_state(problem, active, sizes, rows[:, active], targets)
    options, remain = state.tree.options[0], state.one_minus_leverage[0]
    skip = problem.yy - targets * targets < LEAST_SHARE_OF_YY * problem.yy
    skip |= remain < LEAST_ONE_MINUS_LEVERAGE
    exclude(state, np.flatnonzero(skip))
    if not skip.all():
        options.tie = min(options.tie + 20.0 * EPS / remain[~skip].min(), 1e-5)
    return state, np.flatnonzero(skip)


def _bounds(
    problem: SparseRidgeProblem,
    rows: Array,
    targets: Array,
    nodes: list[OpenNode],
    sizes: NDArray[np.intp],
    objective: Array,
    residual: Array,
    tie: float,
) -> tuple[Array, Array, Array]:
    """Bounds, shape (sizes, n), on the objective of every optimal support and its residual.

    Returns lower, low, high: Of the objective; of the deleted residual.
    """
    # f_S − r²/(1−h) is a difference: it loses digits of what it subtracts
    margin = max(256.0 * EPS, tie) * (problem.yy + residual * residual)

    def without_row(nodes: Children) -> Children:
        """The children for the problems without a row: residual r/(1−h), leverage h/(1−h)."""
        left = np.maximum(1.0 - nodes.spread, 0.5 * LEAST_ONE_MINUS_LEVERAGE)
        pull = targets - nodes.centre
        loss = np.maximum(nodes.loss[:, None] - pull * pull / left, 0.0)
        return nodes._replace(loss=loss, centre=pull / left, spread=nodes.spread / left)

    upper = objective + 2.0 * margin
    low, high, lower = prediction_ranges(problem, nodes, rows, sizes, residual, upper, without_row)
    lower = np.minimum(lower, objective)
    yy = np.maximum(problem.yy - targets * targets, 0.0)
    return np.maximum(lower - rounding_margin(lower, yy, tie) - margin, 0.0), low, high


def deleted_fits(
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    rows: Array,
    targets: Array,
) -> DeletedFits:
    """Ridge fits on ``support`` with each row deleted in turn, from one QR factorisation.

    problem: With all rows; its τ is not used.
    support, shape (s,).
    rows, targets, shape (n, p) and (n,): Rows of the problem, each deleted alone.
    Returns: Arrays of shape (n,). Not to be trusted where ``remain``, 1 less the leverage, is near
        0.
    """
    s = support.size
    R = problem._augmented_triangle(support)
    T, z = R[:s, :s], R[:s, s]
    V, _ = sla.lapack.dtrtrs(T, rows[:, support].T, trans=1)  # no pivot is below √(γ/2)
    remain = 1.0 - np.einsum("ij,ij->j", V, V)
    residual = targets - z @ V
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = residual * residual / remain
        objective = R[s, s] ** 2 - lost
        # b^(−i) whitened by T, then the rank-one correction of the inverse
        reduced = z[:, None] - V * targets
        gain = np.einsum("ij,ij->j", reduced, reduced)
        gain += np.einsum("ij,ij->j", V, reduced) ** 2 / remain
        rounding = 32.0 * EPS * (R[s, s] ** 2 + np.abs(lost))
        return DeletedFits(objective, gain, residual / remain, rounding, remain)


def _chosen(
    problem: SparseRidgeProblem,
    rows: Array,
    targets: Array,
    state: State,
    size: int,
    active: NDArray[np.intp],
) -> tuple[list[NDArray[np.intp]], NDArray[np.intp], Array, Array]:
    """The chosen supports of a size, which of them each problem takes, and its fit.

    Ties within rounding are settled by fresh fits, and what is still tied lexicographically.

    Returns supports, index, objective, residual: The last three of shape (n,).
    """
    tree = state.tree
    window = 1.0 + 2.0 * float(tree.options[0].tie)
    near = tree.found_loss[size] <= (state.best[size] * window)[:, None]
    near &= np.isfinite(tree.found_loss[size])
    near[:, 0] |= ~near.any(axis=1)  # skipped rows have no candidate of their own
    masks, inverse = np.unique(tree.found[size][:, :-1][near], axis=0, return_inverse=True)
    options = [active[from_mask(mask)] for mask in masks]
    order = sorted(range(len(options)), key=lambda m: tuple(options[m]))
    offered = np.zeros((len(options), targets.size), dtype=bool)
    offered[np.argsort(order)[inverse.ravel()], np.nonzero(near)[0]] = True
    fits = np.full((len(order), 4, targets.size), np.inf)
    for fit, m, here in zip(fits, order, offered, strict=True):
        fit[:, here] = deleted_fits(problem, options[m], rows[here], targets[here])[:4]
    objective, gain, residual, rounding = fits.swapaxes(0, 1)
    # whichever of objective and gain is the smaller keeps its digits
    by_gain = 2.0 * objective.min(axis=0) > problem.yy - targets**2
    values = np.where(offered, np.where(by_gain, -gain, objective), np.inf)
    lost = np.where(by_gain, 0.0, np.where(offered, rounding, 0.0).max(axis=0))
    least = values.min(axis=0)
    first = np.argmax(values <= least + 1e-12 * np.abs(least) + lost, axis=0)
    used, index = np.unique(first, return_inverse=True)
    at = first, np.arange(targets.size)
    supports = [options[order[m]] for m in used]
    return supports, index.ravel(), np.maximum(objective[at], 0.0), residual[at]
