"""Best supports of every size for a problem with each of its rows deleted in turn, in one tree."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike, NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes, checked_support
from ..core.result import Status, Work
from ..core.rounding import (
    CERTAIN_SHARE,
    MOST_TIED,
    SIX_DIGITS_OF_SQUARES,
    TIED_PER_INFLATION,
    UPDATED_SHARE,
    all_certain,
    certain,
    coefficient_spread,
    rounding_margin,
)
from ..core.rows import DEPENDENT_SHARE, MAX_COLUMNS
from ..core.subset_fit import inflation_factors
from ..core.threads import on_one_thread
from ..kernels.linalg import TIE, Array, from_mask
from .open_nodes import LeafFits, prediction_ranges
from .tree import Leaps

# The tree skips a row of leverage h_i in the fit on all columns if 1 − h_i is below this number, as
# division by 1 − h_i would lose more than five of sixteen digits. A skipped row gets no result here
# (NaN), and the caller solves the problem without that row by itself; the other rows stay in the
# shared tree. The value is a choice.
LEAST_ONE_MINUS_LEVERAGE = 1e-5


class DeletedFits(NamedTuple):
    """Ridge fits on one support with every row deleted in turn.

    Every array has shape (n,). ``residual[i]`` = t_i − z_iᵀβ^(−i); ``gain[i]`` is yᵀy without row i
    less ``objective[i]``; ``rounding[i]`` is the error that ``objective[i]``, a difference, may
    have. ``one_minus_leverage[i]`` is 1 − h_i of the fit on all rows, or 0 for every row where
    columns may depend on each other.
    """

    objective: Array
    gain: Array
    residual: Array
    rounding: Array
    one_minus_leverage: Array


class DeletedRowSubsets(NamedTuple):
    """Best supports for n problems, each of which lacks one row of the same table.

    Attributes
    ----------
    sizes : ndarray of int, shape (sizes,)
    supports, choice : list of ndarray, and ndarray of int, shape (sizes, n)
        ``supports[choice[s, i]]`` is the best support of ``sizes[s]`` columns of the problem that
        lacks row i.
    objective : ndarray, shape (sizes, n)
        The objective of that support.
    residual : ndarray, shape (sizes, n)
        The residual of row i under that support's fit to the other rows.
    low, high : ndarray, shape (sizes, n)
        Bounds on that residual under every optimal support. They coincide with ``residual`` where
        the search has ended.
    skipped : ndarray of int
        Rows that cannot be deleted by an update without loss of digits: 1 − h_i or yᵀy − t_i² is
        too small, or what remains of an objective. The entries of these rows are NaN, and the
        caller solves each of their problems alone.
    """

    sizes: NDArray[np.intp]
    supports: list[NDArray[np.intp]]
    choice: NDArray[np.intp]
    objective: Array
    residual: Array
    low: Array
    high: Array
    skipped: NDArray[np.intp]


@on_one_thread
def best_subsets_rows_deleted(
    problem: SparseRidgeProblem,
    rows: ArrayLike,
    targets: ArrayLike,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    limits: Limits | None = None,
) -> tuple[DeletedRowSubsets, Status, Work]:
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
    found : DeletedRowSubsets
    status : Status
        Optimal where every problem is proved whose row is not skipped, else the limit that was met.
    work : Work
        Nodes of the one tree, and seconds.

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
    >>> found, status, _ = best_subsets_rows_deleted(problem, X, y)
    >>> str(status), found.supports[found.choice[0, 5]]
    ('optimal', array([1]))
    """
    limits = (limits or Limits()).within()
    Z = np.ascontiguousarray(rows, dtype=np.float64)
    t = np.ascontiguousarray(targets, dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != problem.p or t.shape != (Z.shape[0],):
        raise ValueError(f"rows must be (n, {problem.p}), targets (n,); got {Z.shape}, {t.shape}")
    if problem.constraints.bounded:
        problem.refuse_constraints("best_subsets_rows_deleted")
    wanted = checked_sizes(problem, sizes)
    starts = [checked_support(problem.p, s) for s in warm_starts]
    if not problem.holds_tree():
        raise ValueError(
            f"the shared tree holds at most {MAX_COLUMNS} single columns; got {problem.p}"
        )
    problem, Z = at_unit_length(problem, Z)
    tree, skipped = shared_tree(problem, wanted, Z, t)
    tree.seed(starts)
    status = tree.run(limits) if skipped.size < t.size else Status.OPTIMAL
    supports: list[NDArray[np.intp]] = []
    choice = np.zeros((wanted.size, t.size), dtype=np.intp)
    objective, residual = np.empty(choice.shape), np.empty(choice.shape)
    rounding = np.empty(choice.shape)
    for s, (size, within) in enumerate(zip(wanted, tree.inner, strict=True)):
        used, index, objective[s], residual[s], rounding[s] = _chosen(tree, Z, t, int(within))
        choice[s] = index + len(supports)
        supports += [problem.constraints.padded(support, int(size)) for support in used]
    spread, off = tree.stretch * coefficient_spread(problem), problem.data.off
    rounding += rounding_margin(objective, problem.yy, tree.reach, spread, off)
    left_out = tree.left_out(problem)
    if left_out > 0.0:  # An objective that no digits are left of is infinite.
        rounding += left_out * objective
    # An objective without a row is a difference, of which rounding may leave 0.
    most, yy = objective + rounding, np.maximum(problem.yy - t * t, 0.0)
    sure = certain(most, rounding, yy, off)
    skipped = np.union1d(skipped, np.flatnonzero(~sure.all(axis=0)))
    objective[:, skipped] = residual[:, skipped] = np.nan
    low, high = _residual_bounds(tree, Z, t, objective, residual)
    found = DeletedRowSubsets(
        sizes=wanted,
        supports=supports,
        choice=choice,
        objective=objective,
        residual=residual,
        low=low,
        high=high,
        skipped=skipped,
    )
    return found, status, Work(tree.n_nodes, limits.elapsed())


def at_unit_length(problem: SparseRidgeProblem, rows: Array) -> tuple[SparseRidgeProblem, Array]:
    """A problem as :meth:`~.SparseRidgeProblem.at_unit_length` has it, and its rows likewise."""
    at = problem.at_unit_length()
    if at is problem:
        return problem, rows
    lengths = np.where(at.squared_lengths > 0.0, problem.squared_lengths, 1.0)
    lengths /= np.where(at.squared_lengths > 0.0, at.squared_lengths, 1.0)
    return at, rows / np.exp2(np.round(0.5 * np.log2(lengths)))  # Powers of 2 round no number.


def shared_tree(
    problem: SparseRidgeProblem,
    sizes: NDArray[np.intp],
    rows: Array,
    targets: Array,
    unwanted: NDArray[np.bool_] | None = None,
    n_best: int = 1,
) -> tuple[Leaps, NDArray[np.intp]]:
    """The tree, with rows at its root, and the rows that the tree skips.

    Losses within a relative difference ``tie`` count as tied; deleting row i multiplies rounding by
    1/(1 − h_i), h_i its leverage, so that ``tie`` grows by 20u/min(1 − h_i), u the rounding unit,
    and to 1e-5 at most. Without row i a column, the others projected out, keeps at least the share
    √(1 − h_i) of its length. The tree's ``reach``, in which the inverses of these lengths are
    summed, is therefore divided by √min(1 − h_i).
    Where columns are so nearly dependent that rounding, or the working γ at γ = 0, may hide which
    support is best, the tree skips all rows.

    rows, targets: Without rows the tree is that of the problem itself, and none is skipped.
    unwanted, shape (n,): Rows that are skipped although the tree could delete them.
    n_best: How many of the best supports of each size are wanted, for each row.
    """
    tree = Leaps(problem, sizes, rows, targets, n_best)
    if not targets.size:
        return tree, np.empty(0, dtype=np.intp)
    tree.begin()
    now, one_minus_leverage = tree.lists.now[0], tree.tree.one_minus_leverage[0]
    skip = problem.yy - targets * targets < SIX_DIGITS_OF_SQUARES * problem.yy
    skip |= one_minus_leverage < LEAST_ONE_MINUS_LEVERAGE
    if unwanted is not None:
        skip |= unwanted
    if not skip.all():
        least = float(one_minus_leverage[~skip].min())
        now.tie = min(now.tie + TIED_PER_INFLATION / least, MOST_TIED)
        now.reach /= math.sqrt(least)
        skip |= not _all_certain(tree, ~skip)
    tree.exclude(np.flatnonzero(skip))
    return tree, np.flatnonzero(skip)


def _all_certain(tree: Leaps, rows: NDArray[np.bool_]) -> bool:
    """Whether rounding and the working γ leave proofs of all sizes without each of these rows."""
    problem, state = tree.problem, tree.tree
    spread = coefficient_spread(problem)
    if problem.gamma == problem.given_gamma and all_certain(problem, spread):
        return True
    left, residual = state.one_minus_leverage[0][rows], state.deleted_residual[0][rows]
    full = np.maximum(tree.now("full") - residual * residual * left, 0.0)
    margin = rounding_margin(full, problem.yy, tree.reach, spread, problem.data.off)
    margin += problem.data_loss(problem.yy, problem.p) / left
    # Without anything to explain the margin is 0, which says nothing of what the working γ hides.
    return bool((margin < CERTAIN_SHARE * full).all())


def _residual_bounds(
    tree: Leaps, rows: Array, targets: Array, objective: Array, residual: Array
) -> tuple[Array, Array]:
    """Bounds, shape (sizes, n) each, on the deleted residual of every optimal support.

    Row i has the residual r and the leverage h in the fit of all rows, and the residual r/(1 − h)
    when it is deleted, which lowers the objective by r²/(1 − h).

    rows, targets, shape (n, p) and (n,): The rows that are deleted, and their responses.
    objective, residual, shape (sizes, n): Of the best support known for each size without each row
        the objective, and the deleted residual.
    """
    # f_S − r²/(1−h) loses digits of both of its terms, which are at most yᵀy and yᵀy + r². The
    # share that is lost is the larger of what fits lose and of ``UPDATED_SHARE``, which is far
    # above the p rounding units, about, of the sums in f_S and h. Where the given γ is 0, the tree
    # works with a tiny γ, at which an optimum has a larger objective, by at most ``data_loss``.
    problem = tree.problem
    share = max(UPDATED_SHARE, 2.0 * problem.data.off * tree.reach)
    margin = share * (problem.yy + residual * residual)
    left = np.maximum(tree.tree.one_minus_leverage[0], LEAST_ONE_MINUS_LEVERAGE)
    margin += problem.data_loss(problem.yy, problem.p) / left

    def without_row(fits: LeafFits) -> LeafFits:
        """The fits in the problems without a row: residual r/(1−h), leverage h/(1−h)."""
        left = np.maximum(1.0 - fits.spread, 0.5 * LEAST_ONE_MINUS_LEVERAGE)
        pull = targets - fits.centre
        loss = np.maximum(fits.loss[:, None] - pull * pull / left, 0.0)
        return fits._replace(loss=loss, centre=pull / left, spread=fits.spread / left)

    known = tree.open_leaves(), rows, tree.sizes, residual, objective
    return prediction_ranges(problem, *known, 2.0 * margin, without_row)


def deleted_fits(
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    rows: Array,
    targets: Array,
) -> DeletedFits:
    """Ridge fits on ``support`` with each row deleted in turn, from one QR factorisation.

    With r the residual and h the leverage of row i in the fit on all rows, the objective without
    the row is f − r²/(1 − h) and the deleted residual is r/(1 − h). Both are at the γ that the user
    named: at γ = 0 the working γ would count beside columns that are much shorter than others.

    problem: The problem with all rows; its τ is not used.
    support, shape (s,).
    rows, targets, shape (n, p) and (n,): Rows of the problem, each deleted alone.
    Returns: Fits that lose their digits where ``one_minus_leverage`` is near 0. At γ = 0 they are
        those of the :func:`spanning_columns`; ``one_minus_leverage`` is 0 for every row where even
        these may depend on each other, or columns at another γ.
    """
    s = support.size
    R, inflation, surely_independent = problem.sure_factor(support)
    if not surely_independent:
        spanning = spanning_columns(problem, support)
        if spanning.size < s:
            return deleted_fits(problem, spanning, rows, targets)
        R = problem.factor(support)  # The working γ keeps pivots above 0.
        inflation = inflation_factors(R[:s, :s])
    T, z = R[:s, :s], R[:s, s]
    V = rows[:, support].T
    if s > 0:
        V, _ = sla.lapack.dtrtrs(T, V, trans=1)
    one_minus_leverage = 1.0 - np.einsum("ij,ij->j", V, V)
    residual = targets - z @ V
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = residual * residual / one_minus_leverage
        objective = R[s, s] ** 2 - lost
        # The gain is bᵀ(G_S + γ/2 I − z zᵀ)⁻¹b with b less the row's share of Xᵀy: the first term
        # is bᵀ(G_S + γ/2 I)⁻¹b, the second is the Sherman–Morrison correction.
        reduced = z[:, None] - V * targets
        gain = np.einsum("ij,ij->j", reduced, reduced)
        gain += np.einsum("ij,ij->j", V, reduced) ** 2 / one_minus_leverage
        # The difference of two terms loses at most some rounding units of either.
        rounding = R[s, s] ** 2 + np.abs(lost)
        # The fit is exact for columns and y that are off by a share of their lengths. It moves the
        # residuals by at most the share of ``reach``, and leverages by twice that of ``spread``.
        spread = float(np.sqrt(inflation).sum())
        reach = math.sqrt(problem.yy) * (1.0 + 2.0 * spread)
        moved = 2.0 * np.abs(residual) * reach + 2.0 * np.abs(lost) * spread
        rounding = problem.data.off * (rounding + moved / np.abs(one_minus_leverage))
        deleted = residual / one_minus_leverage
    if not surely_independent:
        one_minus_leverage[:] = 0.0
    return DeletedFits(objective, gain, deleted, rounding, one_minus_leverage)


def spanning_columns(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> NDArray[np.intp]:
    """At γ = 0 columns of a support that fit as much as all of it; else the support.

    The columns increase. Those left out keep at most ``DEPENDENT_SHARE`` of their length, the
    columns that stay projected out, as QR with pivots finds it.
    """
    if problem.given_gamma > 0.0:
        return support
    columns = problem.triangle[:, support]
    lengths = np.linalg.norm(columns, axis=0)
    R, order = sla.qr(columns / np.where(lengths > 0.0, lengths, 1.0), mode="r", pivoting=True)
    count = int((np.abs(np.diag(R)) > DEPENDENT_SHARE).sum())
    return np.asarray(np.sort(support[order[:count]]), dtype=np.intp)


def _chosen(
    search: Leaps, rows: Array, targets: Array, size: int
) -> tuple[list[NDArray[np.intp]], NDArray[np.intp], Array, Array, Array]:
    """The best supports of a size, which of these supports each problem takes, and its fit.

    Where units count more than once, these are the best supports of at most the size. Supports tied
    up to rounding are compared by fresh fits, and supports whose fits tie too by their size and
    columns: the lexicographically first is taken.

    Returns: Supports; then of every problem, shape (n,), the position of its support, the
        objective, the deleted residual, and what rounding leaves open of the objective.
    """
    problem, lists = search.problem, search.lists
    losses, found = lists.loss[size], lists.found[size]
    if search.weighted:
        losses, found = np.hstack([*lists.loss[: size + 1]]), np.hstack([*lists.found[: size + 1]])
    tied = losses <= search.tied(losses.min(axis=1, keepdims=True))
    tied &= np.isfinite(losses)
    tied[:, 0] |= ~tied.any(axis=1)  # The tree lists no supports for rows that it skips.
    masks, one_word = found[tied], found.shape[2] == 1
    masks, inverse = np.unique(masks, axis=None if one_word else 0, return_inverse=True)
    options = [
        search.table.support(from_mask(mask)) for mask in masks.reshape(-1, lists.found.shape[3])
    ]
    rules = problem.constraints
    size_first = [rules.size_of(one) if search.weighted else 0 for one in options]
    order = sorted(range(len(options)), key=lambda m: (size_first[m], *options[m]))
    offered = np.zeros((len(options), targets.size), dtype=bool)
    offered[np.argsort(order)[inverse.ravel()], np.nonzero(tied)[0]] = True
    fits = np.full((len(order), 4, targets.size), np.inf)
    for fit, m, here in zip(fits, order, offered, strict=True):
        fit[:, here] = deleted_fits(problem, options[m], rows[here], targets[here])[:4]
    objective, gain, residual, rounding = fits.swapaxes(0, 1)
    # Of the objective and the gain, the smaller number keeps more digits.
    by_gain = 2.0 * objective.min(axis=0) > problem.yy - targets**2
    values = np.where(offered, np.where(by_gain, -gain, objective), np.inf)
    rounding = np.where(offered, rounding, 0.0).max(axis=0)
    lost = np.where(by_gain, 0.0, rounding)
    least = values.min(axis=0)
    with np.errstate(invalid="ignore"):  # For a row that the tree skips least may be −∞, lost ∞.
        close = values <= least + TIE * np.abs(least) + lost
    first = np.argmax(close | (values == least), axis=0)
    used, index = np.unique(first, return_inverse=True)
    at = first, np.arange(targets.size)
    supports = [options[order[m]] for m in used]
    return supports, index.ravel(), np.maximum(objective[at], 0.0), residual[at], rounding
