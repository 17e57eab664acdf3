"""The shared tree: best supports of every size for a problem with each of its rows deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike, NDArray

from ..core.limits import Limits, StopFlag
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..core.threads import on_one_thread
from ..kernels.linalg import EPS, Array, Mask, from_mask
from ..supports.rounding import pad_support
from . import deleted_rows_kernels as kernels
from .all_sizes import (
    MAX_COLUMNS,
    active_columns,
    checked_sizes,
    checked_support,
    rounding_margin,
    run,
    seed,
    tie_window,
)
from .open_nodes import Children, OpenNode, expand, open_nodes, widen

MIN_REMAIN = 1e-5  # 1 − h_i below which a down-date would lose too many digits
MIN_LEFT = 1e-10  # share of yᵀy below which what a deletion leaves of y is mostly rounding
WORK_PER_CHUNK = 20_000_000  # updates between two looks at the clock: some tens of milliseconds


@dataclass(frozen=True)
class DeletedFits:
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
    lower_bound: Array
    residual: Array
    skipped: NDArray[np.intp]
    status: Status
    n_nodes: int
    seconds: float
    open_nodes: list[OpenNode]
    low: Array = field(repr=False)
    high: Array = field(repr=False)


@on_one_thread
def best_subsets_rows_deleted(
    problem: SparseRidgeProblem,
    rows: ArrayLike,
    targets: ArrayLike,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    time_limit: float | None = None,
    node_limit: int | None = None,
    stop: StopFlag | None = None,
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
    sizes, warm_starts, time_limit, node_limit, stop
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
    limits = Limits(time_limit, node_limit, stop)
    Z = np.ascontiguousarray(rows, dtype=np.float64)
    t = np.ascontiguousarray(targets, dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != problem.p or t.shape != (Z.shape[0],):
        raise ValueError(f"rows must be (n, {problem.p}), targets (n,); got {Z.shape}, {t.shape}")
    wanted = checked_sizes(problem, sizes)
    starts = [checked_support(problem.p, s) for s in warm_starts]
    active = active_columns(problem)
    if active.size == 0:
        return _nothing_to_explain(problem, t, wanted, limits)
    if active.size > MAX_COLUMNS:
        raise ValueError(f"the shared tree holds at most {MAX_COLUMNS} columns; got {active.size}")
    inner = np.minimum(wanted, active.size)
    R = problem.factor() if active.size == problem.p else problem._augmented_triangle(active)
    tie = tie_window(R)
    state = kernels.new_state(R, Z[:, active], t, np.unique(inner), tie, problem.gamma / 2.0)
    left = problem.yy - t * t
    remain = state.one_minus_leverage[0]
    skipped = np.flatnonzero((remain < MIN_REMAIN) | (left <= MIN_LEFT * problem.yy))
    kernels.exclude(state, skipped)
    if skipped.size < t.size:
        tie = min(tie + 20.0 * EPS / np.delete(remain, skipped).min(), 1e-5)
        state.tree.settings[0].tie = tie
    local = [np.searchsorted(active, np.intersect1d(s, active)) for s in starts]
    seed(state, local, kernels.advance)
    chunk = max(1, WORK_PER_CHUNK // (t.size * active.size))
    status = Status.OPTIMAL
    if skipped.size < t.size:
        status = run(kernels.advance, state, limits, chunk)
    return _Report(problem, Z, t, active, wanted, inner, state, tie, skipped).build(status, limits)


def deleted_fits(
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    rows: Array,
    targets: Array,
    with_gain: bool = False,
) -> DeletedFits:
    """Ridge fits on ``support`` with each row deleted in turn, from one QR factorisation.

    problem: With all rows; its τ is not used.
    support, shape (s,).
    rows, targets, shape (n, p) and (n,): Rows of the problem, each deleted alone.
    with_gain: Compute ``gain``, too; otherwise it is 0.
    Returns: Arrays of shape (n,). Not to be trusted where ``remain``, 1 less the leverage, is near
        0.
    """
    s = support.size
    R = problem._augmented_triangle(support)
    T, z = R[:s, :s], R[:s, s]
    V = sla.solve_triangular(T, rows[:, support].T, trans="T", check_finite=False)
    remain = 1.0 - np.einsum("ij,ij->j", V, V)
    residual = targets - z @ V
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = residual * residual / remain
        objective = R[s, s] ** 2 - lost
        gain = np.zeros_like(objective)
        if with_gain:
            # b^(−i) whitened by T, then the rank-one correction of the inverse
            reduced = z[:, None] - V * targets
            gain = np.einsum("ij,ij->j", reduced, reduced)
            gain += np.einsum("ij,ij->j", V, reduced) ** 2 / remain
        rounding = 32.0 * EPS * (R[s, s] ** 2 + np.abs(lost))
        return DeletedFits(objective, gain, residual / remain, rounding, remain)


def _nothing_to_explain(
    problem: SparseRidgeProblem, targets: Array, wanted: NDArray[np.intp], limits: Limits
) -> DeletedRowSubsets:
    """Every column or the response is zero: all supports are as good as the empty one."""
    k, n = wanted.size, targets.size
    value = np.tile(np.maximum(problem.yy - targets * targets, 0.0), (k, 1))
    residual = np.tile(targets, (k, 1))
    return DeletedRowSubsets(
        wanted,
        [np.arange(s, dtype=np.intp) for s in wanted],
        np.tile(np.arange(k, dtype=np.intp)[:, None], (1, n)),
        value,
        np.maximum(value - rounding_margin(value, problem.yy, 1e-11), 0.0),
        residual,
        np.empty(0, dtype=np.intp),
        Status.OPTIMAL,
        0,
        limits.elapsed(),
        [],
        residual,
        residual,
    )


class _Report:
    """Turns the tree's masks and losses into supports, objectives and bounds."""

    def __init__(
        self,
        problem: SparseRidgeProblem,
        rows: Array,
        targets: Array,
        active: NDArray[np.intp],
        wanted: NDArray[np.intp],
        inner: NDArray[np.intp],
        state: kernels.SharedState,
        tie: float,
        skipped: NDArray[np.intp],
    ) -> None:
        self.problem, self.rows, self.targets = problem, rows, targets
        self.active, self.wanted, self.inner = active, wanted, inner
        self.state, self.tie, self.skipped = state, tie, skipped
        self.yy = np.maximum(problem.yy - targets * targets, 0.0)

    def build(self, status: Status, limits: Limits) -> DeletedRowSubsets:
        k, n = self.wanted.size, self.targets.size
        supports: list[NDArray[np.intp]] = []
        choice = np.zeros((k, n), dtype=np.intp)
        objective = np.full((k, n), np.nan)
        residual = np.full((k, n), np.nan)
        for s in range(k):
            masks, index = self._chosen(int(self.inner[s]))
            choice[s] = index + len(supports)
            for local, mask in enumerate(masks):
                support = pad_support(
                    self.active[from_mask(mask)], int(self.wanted[s]), self.problem.p
                )
                fits = deleted_fits(self.problem, support, self.rows, self.targets)
                here = index == local
                objective[s, here] = np.maximum(fits.objective[here], 0.0)
                residual[s, here] = fits.residual[here]
                supports.append(support)
        objective[:, self.skipped] = residual[:, self.skipped] = np.nan
        nodes = open_nodes(self.state.tree, self.active)
        lower, low, high = self._brackets(objective, residual, nodes)
        return DeletedRowSubsets(
            self.wanted,
            supports,
            choice,
            objective,
            lower,
            residual,
            self.skipped,
            status,
            int(self.state.tree.counts[0].nodes),
            limits.elapsed(),
            nodes,
            low,
            high,
        )

    def _chosen(self, size: int) -> tuple[list[Mask], NDArray[np.intp]]:
        """Distinct chosen masks of a size and which of them each problem takes."""
        tree = self.state.tree
        near = tree.found_loss[size] <= (self.state.best[size] * (1.0 + 2.0 * self.tie))[:, None]
        near &= np.isfinite(tree.found_loss[size])
        near[:, 0] |= ~near.any(axis=1)  # excluded rows have no candidate of their own
        distinct, inverse = np.unique(tree.found[size][:, :-1][near], axis=0, return_inverse=True)
        option = np.full(near.shape, -1, dtype=np.intp)
        option[near] = inverse.ravel()
        tied = np.flatnonzero(near.sum(axis=1) > 1)
        index = option.max(axis=1)
        if tied.size:
            index[tied] = self._break_ties(distinct, option[tied], tied)
        used, index = np.unique(index, return_inverse=True)
        return [np.ascontiguousarray(distinct[m]) for m in used], index.ravel().astype(np.intp)

    def _break_ties(
        self, distinct: Mask, option: NDArray[np.intp], tied: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Settle near ties by fresh fits, and what is still tied lexicographically."""
        involved = np.unique(option[option >= 0])
        members = [self.active[from_mask(np.ascontiguousarray(distinct[m]))] for m in involved]
        order = sorted(range(involved.size), key=lambda m: tuple(members[m]))
        fits = [
            deleted_fits(self.problem, members[m], self.rows, self.targets, True) for m in order
        ]
        objective = np.array([f.objective[tied] for f in fits])
        gain = np.array([f.gain[tied] for f in fits])
        # whichever of objective and gain is the smaller keeps its digits
        by_gain = gain[0] < objective[0]
        values = np.where(by_gain, -gain, objective)
        rounding = np.where(by_gain, 0.0, np.array([f.rounding[tied] for f in fits]).max(axis=0))
        offered = (option[None] == involved[order][:, None, None]).any(axis=2)
        values = np.where(offered, values, np.inf)
        least = values.min(axis=0)
        first = np.argmax(values <= least + 1e-12 * np.abs(least) + rounding, axis=0)
        return np.asarray(involved[order][first])

    def _brackets(
        self, objective: Array, residual: Array, nodes: list[OpenNode]
    ) -> tuple[Array, Array, Array]:
        # f_S − r²/(1−h) is a difference: it loses digits of what it subtracts
        lost = max(256.0 * EPS, self.tie) * (self.problem.yy + residual * residual)
        lower, low, high = objective.copy(), residual.copy(), residual.copy()
        t = self.targets
        for node in nodes:
            children = expand(self.problem, node, self.rows)
            remain = np.maximum(1.0 - children.spread, 0.5 * MIN_REMAIN)
            pull = t - children.centre
            values = np.maximum(children.loss[:, None] - pull * pull / remain, 0.0)
            # row i deleted: residual r_i/(1−h_i), leverage h_i/(1−h_i)
            deleted = Children(
                children.low, children.high, children.loss, pull / remain, children.spread / remain
            )
            for s, size in enumerate(self.wanted):
                reach = (children.low <= size) & (size <= children.high)
                if reach.any():
                    lower[s] = np.minimum(lower[s], values[reach].min(axis=0))
            widen(low, high, objective + 2.0 * lost, values, deleted, self.wanted)
        lower = lower - rounding_margin(lower, self.yy, self.tie) - lost
        return np.maximum(lower, 0.0), low, high
