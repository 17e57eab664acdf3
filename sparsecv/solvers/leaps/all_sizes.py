"""The all-sizes tree: the best support of every size of one problem, in one search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes, checked_support
from ..core.result import Proof, Status, Work, nothing_left
from ..core.subset_fit import SubsetFit, inflation_factors
from ..core.threads import on_one_thread
from ..kernels.linalg import EPS, Array, field, from_mask
from ..supports.greedy import forward_order
from ..supports.rounding import pad_support, stacked
from ..supports.unit_steps import UnitSteps
from . import tree_kernels as kernels
from .open_nodes import RELATIVE_ROUNDING, OpenNode, expand, open_nodes
from .tree_kernels import TREE
from .unit_sizes import fits_memory, search_units

# Columns of the largest tree, counted by :func:`active_columns`. A tree keeps p matrices of p × p
# numbers, 38 MB at this limit. With more columns :func:`best_subsets` returns greedy supports, and
# the objective of the full ridge fit as the bound; the tree for deleted rows refuses them; and
# other modules, in ``cv`` and ``cli`` too, choose by the number what to try.
MAX_COLUMNS = 168
# With at most this many columns every size is proved by trees unless a limit is named. With more
# columns a tree may take hours, and proofs are made in the order in which they matter for the
# choice of γ and τ. Measured; doubled, a cross-validation of 90 columns may not end within days.
TREE_ONLY = 45
# A support counts as proved optimal where rounding leaves no other support more than this share of
# the objective below it, besides the second share, of yᵀy, for fits that leave only rounding errors
# of y.
CERTAIN_SHARE, CERTAIN_SHARE_OF_YY = 1e-5, 1e-20
# Up to this :func:`coefficient_spread`, :func:`rounding_margin` is below the two shares above for
# every objective; with more, each objective decides. It follows from 128u·spread ≤ 0.9e-5.
MAX_CERTAIN_SPREAD = 6e8


@dataclass(frozen=True)
class BestSubsets:
    """Best supports of several sizes, each with its proof.

    ``objective[i]``, ``lower_bound[i]`` and ``proved[i]`` belong to ``sizes[i]`` and
    ``supports[i]``.

    Attributes
    ----------
    sizes : ndarray of int, shape (sizes,)
    supports : list of ndarray
        The best support known of every size.
    objective, lower_bound : ndarray, shape (sizes,)
        Its objective, and a proved lower bound on the least objective of this size.
    proved : ndarray of bool, shape (sizes,)
        Whether the support is proved to be the best one.
    status : Status
        Optimal where every size is proved, else the limit that was met.
    n_nodes, n_trees : int
        Number of nodes and of trees that were searched.
    seconds : float
        Wall time of the search.
    open_nodes : list of OpenNode
        Where ``status`` is not optimal, every support that is better than an unproved incumbent
        lies below one of these nodes.
    """

    sizes: NDArray[np.intp]
    supports: list[NDArray[np.intp]]
    objective: Array
    lower_bound: Array
    proved: NDArray[np.bool_]
    status: Status
    n_nodes: int
    seconds: float
    open_nodes: list[OpenNode]
    n_trees: int = 1

    def proof(self, i: int, work: Work) -> Proof:
        """The support of ``sizes[i]``, its objective and bound, and how the whole search ended."""
        objective, bound = float(self.objective[i]), float(self.lower_bound[i])
        return Proof(self.supports[i], objective, bound, self.status, work)


@on_one_thread
def best_subsets(
    problem: SparseRidgeProblem,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    tol: float = 0.0,
    limits: Limits | None = None,
) -> BestSubsets:
    """Solve eq. (1), first paper, for every size in ``sizes`` in one leaps-and-bounds tree.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Its τ gives the default sizes 1..τ.
    sizes : array of int, optional
        Support sizes wanted.
    warm_starts : iterable of supports, optional
        Incumbents of any size; greedy steps from each also serve the other sizes.
    tol : float
        Relative gap at which a size counts as solved; 0 proves it exactly up to rounding.
    limits : Limits, optional
        Seconds, nodes, and a flag that another thread may raise; none by default. Bounds stay
        valid where a limit ends the search.

    Returns
    -------
    BestSubsets
        Supports tied within rounding are compared by a fresh QR fit; of those still tied the
        lexicographically first is returned.

    Raises
    ------
    ValueError
        Sizes out of 1..p, a warm start that names columns outside 0..p−1, or a bad limit.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, best_subsets
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> [support.tolist() for support in best_subsets(problem).supports]
    [[1], [1, 2]]
    """
    limits = (limits or Limits()).within()
    problem = problem.at_unit_length()
    wanted = checked_sizes(problem, sizes)
    starts = [checked_support(problem.p, s) for s in warm_starts]
    active, asked = active_columns(problem), problem.constraints
    if _all_zero(problem, active) or (not asked.plain and fits_memory(problem)):
        supports, bound, reach, status, count = _by_units(problem, wanted, starts, limits)
        nodes = [] if status is Status.OPTIMAL else [_whole(problem)]
    elif active.size <= MAX_COLUMNS and asked.plain:
        inner = np.minimum(wanted, active.size)
        state = root_state(problem, active, np.unique(inner), tolerance=tol)
        tree, reach = state.tree, float(field(state.tree.options, "reach"))
        seed(state, active, starts, int(inner.max()))
        status = run(state, limits, TREE.nodes_per_look)
        supports = [
            pad_support(active[best_of_tied(state, int(size), problem, active)], int(s), problem.p)
            for s, size in zip(wanted, inner, strict=True)
        ]
        nodes, count = open_nodes(tree, active), int(field(tree.counts, "nodes"))
        bound = np.minimum(state.pruned_bound[inner], open_loss(state, inner))
        bound += tree.columns_of[-1, -1] ** 2
    else:  # With so many columns no tree is searched.
        supports = _greedy_supports(problem, wanted, starts)
        nodes, count, reach = [_whole(problem)], 0, 1.0
        bound = expand(problem, nodes[0], np.zeros((0, problem.p))).loss.repeat(wanted.size)
        status = limits.reached(0) or Status.NODE_LIMIT
    objective, lower, proved = _proofs(problem, supports, bound, reach, status)
    if proved.all():
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL:
        status = Status.PRECISION
    known = wanted, supports, objective, lower, proved, status, count
    return BestSubsets(*known, limits.elapsed(), nodes)


def _proofs(
    problem: SparseRidgeProblem,
    supports: list[NDArray[np.intp]],
    bound: Array,
    reach: float,
    status: Status,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Objectives of the best supports, bounds that hold in spite of rounding, and what is proved.

    bound: Bounds of the tree, ∞ where no node is left. reach: As :func:`rounding_margin` takes it.
    status: How the tree ended.
    """
    objective = np.array([problem.objective(s) for s in supports])
    margin = rounding_margin(objective, problem.yy, reach, coefficient_spread(problem))
    margin += [problem.zero_loss(f) for f in objective.tolist()]
    lost = problem.data_losses(objective, (s.size for s in supports), True)
    lower = np.maximum(np.minimum(objective, bound) - margin - lost, 0.0)
    # A size is proved if no open node's bound is below the incumbent, or if no node is open.
    closed = (bound > objective * (1.0 + RELATIVE_ROUNDING)) | (status is Status.OPTIMAL)
    return objective, lower, closed & certain(objective, margin, problem.yy)


def _all_zero(problem: SparseRidgeProblem, active: NDArray[np.intp]) -> bool:
    """Whether all columns are zero; ``active`` are the :func:`active_columns`."""
    return active.size == 1 and not problem.rows[:, : problem.p].any()


def _whole(problem: SparseRidgeProblem) -> OpenNode:
    """The node of all supports."""
    return OpenNode(np.empty(0, dtype=np.intp), np.arange(problem.p, dtype=np.intp), -1)


def _by_units(
    problem: SparseRidgeProblem,
    wanted: NDArray[np.intp],
    starts: list[NDArray[np.intp]],
    limits: Limits,
) -> tuple[list[NDArray[np.intp]], Array, float, Status, int]:
    """Supports and bounds of the wanted sizes by the tree over units, or where X is 0 any supports.

    Returns: The supports, bounds, the reach of :func:`rounding_margin`, the status and the nodes.
    """
    asked = problem.constraints
    if not problem.rows[:, : problem.p].any():
        least = asked.columns_of(np.flatnonzero(asked.least))
        supports = [asked.padded(least, int(s)) for s in wanted]
        return supports, np.full(wanted.size, problem.yy), 1.0, Status.OPTIMAL, 1
    found = search_units(problem, wanted, starts, limits)
    supports = []
    for s, tied in zip(wanted, found.candidates, strict=True):
        best = tied[prefer([problem.fit(t) for t in tied], tied)]
        supports.append(asked.padded(best, int(s)))
    return supports, found.bound, found.reach, found.status, found.n_nodes


def root_state(
    problem: SparseRidgeProblem,
    active: NDArray[np.intp],
    sizes: NDArray[np.intp],
    rows: Array | None = None,
    targets: Array | None = None,
    tolerance: float = 0.0,
    n_best: int = 1,
) -> kernels.State:
    """A tree over the active columns, at its root; the arguments are those of :func:`new_state`."""
    R = problem.factor(active)
    state = kernels.new_state(active.size, sizes, rows, targets, tolerance, n_best)
    state.tree.columns_of[:] = R.T
    kernels.begin(state, problem.gamma / 2.0)
    return state


def run(state: kernels.State, limits: Limits, chunk: int) -> Status:
    """Search a tree until no node is open or a limit is reached.

    chunk: Nodes between two looks at the clock.
    Returns: OPTIMAL, or the limit that was reached.
    """
    while True:
        nodes = int(field(state.tree.counts, "nodes"))
        reached = limits.reached(nodes)
        if reached is not None:
            return reached
        if kernels.advance(state, limits.nodes_left(nodes, chunk), kernels.SEARCH):
            return Status.OPTIMAL


def seed(
    state: kernels.State,
    active: NDArray[np.intp],
    starts: Sequence[NDArray[np.intp]],
    steps: int | None = None,
) -> None:
    """Enter incumbents by backward elimination, and from given supports or forward selection.

    active: The problem's column that each column of the tree stands for.
    starts: Good supports, as columns of the problem; without any, columns are selected forward.
    steps: How many columns are selected forward; all columns by default.
    """
    p = active.size
    local = [np.searchsorted(active, np.intersect1d(s, active)) for s in starts]
    sizes = np.array([s.size for s in local], dtype=np.int64)
    rank = np.empty(p, dtype=np.int64)
    kernels.enter_incumbents(state, stacked(local, p), sizes, len(local), rank)
    if not starts:
        R = state.tree.columns_of.T
        order = forward_order(R[:, :p], R[:, p], p if steps is None else steps)
        rank[:] = p
        rank[order] = np.arange(order.size)
        kernels.advance(state, 1, rank)


def active_columns(problem: SparseRidgeProblem) -> NDArray[np.intp]:
    """Columns that are not identically zero, increasing; other columns never enter a fit.

    Where y or every column is zero, all supports are equally good and column 0 alone is returned.
    """
    return problem.data.active


def prefer(fits: Sequence[SubsetFit], supports: Sequence[NDArray[np.intp]]) -> int:
    """Index of the best fit; of fits tied within rounding, that of lexicographically first support.

    Where the gain yᵀy − f is smaller than the objective f, gains are compared, as they keep more
    digits. Fits tie if they differ by at most 1e-12 of the best, the error of a QR factorisation.

    supports: One per fit, increasing columns.
    """
    by_gain = fits[0].gain < fits[0].objective
    values = np.array([-f.gain if by_gain else f.objective for f in fits])
    least = values.min()
    tied = np.flatnonzero(values <= least + 1e-12 * abs(least)).tolist()
    return int(min(tied, key=lambda t: tuple(supports[t])))


def best_of_tied(
    state: kernels.State, size: int, problem: SparseRidgeProblem, active: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The best support of a size, chosen by fresh fits where supports tie up to rounding.

    active: The problem's column that each column of the tree stands for.
    Returns: Columns of the tree.
    """
    tree = state.tree
    n, window = int(tree.found_n[size, 0]), 1.0 + 2.0 * float(field(tree.options, "tie"))
    tied = np.flatnonzero(tree.found_loss[size, 0, :n] <= state.best[size, 0] * window)
    supports = [from_mask(tree.found[size, 0, t]) for t in tied]
    if len(supports) == 1:
        return supports[0]
    return supports[prefer([problem.fit(active[s]) for s in supports], supports)]


def open_loss(state: kernels.State, sizes: NDArray[np.intp]) -> Array:
    """Least loss of an open child for every size; ∞ where no open child has supports of a size."""
    bound = np.full(sizes.size, np.inf)
    tree, p = state.tree, state.tree.A.shape[0]
    for level in range(int(field(tree.counts, "level")) + 1):
        for j in range(int(tree.cursor[level]) + 1):
            below = (max(tree.fixed[level] + j, 1) <= sizes) & (sizes <= p - level - 1)
            loss = state.loss[level, 0] + tree.added_loss[level, j]
            bound[below] = np.minimum(bound[below], loss)
    return bound


def rounding_margin(
    value: Array, yy: float | Array, reach: float | Array, spread: float = math.inf
) -> Array:
    """What is taken off a bound f for rounding: 1e-11 f + 2√f δ + δ², δ = 64u·(|y| + Σ ℓ_j|β_j|).

    Here u = EPS/2 is the rounding unit. What Householder's QR says of a fit is exact for columns
    and y that are off by some tens of u of their lengths (Higham 2002, Theorem 19.4), so that the
    root of f is off by δ. The sum is at most reach·|y|, and at most |y| + spread·√f, as a support
    that is better than the best known has (γ/2)|β|² ≤ f. docs/certified.md says what the margin
    rests on.

    value: Objectives f; the result has the same shape.
    yy: yᵀy.
    reach: The option of a tree, see ``leaps_node.begin_tree``.
    spread: The number :func:`coefficient_spread` of the problem.
    """
    length = np.sqrt(yy)
    # Where reach or spread is ∞ and has the factor 0, fmin takes the other number.
    off = 32.0 * EPS * np.fmin(length * reach, length + spread * np.sqrt(value))
    return 1e-11 * value + 2.0 * np.sqrt(value) * off + off * off


def coefficient_spread(problem: SparseRidgeProblem) -> float:
    """2√(Σ ℓ_j²/γ): Σ ℓ_j|β_j| of a fit of objective 2f is at most this number times √f.

    The working γ at most doubles the objective of a support whose status may be optimal.
    """
    return 2.0 * math.sqrt(float(problem.squared_lengths.sum()) / problem.gamma)


def certain(objective: Array, margin: Array, yy: float) -> NDArray[np.bool_]:
    """Whether a margin for rounding is so small that a finished search counts as proof."""
    small = margin <= CERTAIN_SHARE * objective + CERTAIN_SHARE_OF_YY * yy
    return np.asarray(small | (objective <= nothing_left(yy)))


def attained_margin(problem: SparseRidgeProblem, upper: Array) -> Array:
    """What a search may lay above the objective of an optimum, for objectives ≤ ``upper``.

    The optimum is that at the given γ. The working γ adds at most ``zero_loss`` to its objective;
    rounding of the factor adds :func:`rounding_margin`. Where the working γ is the larger one, it
    does not bound the coefficients β, and Σ ℓ_j|β_j| ≤ √p ``_reach`` does.
    """
    reach, spread = np.inf, coefficient_spread(problem)
    if problem.gamma > problem.given_gamma:
        length = math.sqrt(problem.yy) or 1.0
        reach, spread = 1.0 + math.sqrt(problem.p) * problem._reach() / length, np.inf
    with np.errstate(invalid="ignore"):
        margin = rounding_margin(upper, problem.yy, reach, spread)
    margin += np.reshape([problem.zero_loss(f) for f in upper.ravel().tolist()], upper.shape)
    return np.minimum(margin, 1e300)  # Ranges multiply it with numbers that may be 0.


def only_support(problem: SparseRidgeProblem, support: NDArray[np.intp], seconds: float) -> Proof:
    """The proof of the only support that the constraints allow; seconds is what it has taken."""
    objective, bound = problem.objective(support), support_bound(problem, support)
    bound = max(bound - problem.data_loss(objective, support.size), 0.0)
    sure = certain(np.array(objective), np.array(objective - bound), problem.yy)
    status = Status.OPTIMAL if sure else Status.PRECISION
    return Proof(support, objective, bound, status, Work(0, seconds))


def support_bound(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> float:
    """The objective of a support, less what rounding can have added to the fit; at least 0.

    The margin is :func:`rounding_margin` with the variance inflation factors of the support: where
    columns nearly depend on each other the bound may be 0.
    """
    s, fit = support.size, problem.fit(support)
    factors = inflation_factors(problem.factor(support)[:s, :s])
    reach, spread = 1.0 + 2.0 * float(np.sqrt(factors).sum()), coefficient_spread(problem)
    margin = rounding_margin(np.array(fit.objective), problem.yy, reach, spread)
    return max(float(fit.objective - fit.lacking - margin), 0.0)


def _greedy_supports(
    problem: SparseRidgeProblem, wanted: NDArray[np.intp], starts: list[NDArray[np.intp]]
) -> list[NDArray[np.intp]]:
    """The support of every wanted size by forward selection, or a better support of ``starts``."""
    if not problem.constraints.plain:
        by_size = UnitSteps(problem).supports(wanted.tolist(), starts)
        return [by_size[int(s)] for s in wanted]
    X, y = problem.triangle[:, : problem.p], problem.triangle[:, problem.p]
    order = forward_order(X, y, int(wanted[-1]), problem.gamma)
    found = []
    for s in wanted:
        options = [np.sort(order[:s]), *(t for t in starts if t.size == s)]
        found.append(options[prefer([problem.fit(t) for t in options], options)])
    return found
