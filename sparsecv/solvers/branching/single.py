"""Branch and bound for one problem at fixed (γ, τ), with any number of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.plan import BRANCH, EVERY, ways_of_one_size
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status, Work, nothing_known, relative_gap
from ..core.threads import on_one_thread
from ..leaps.all_sizes import best_subsets, support_bound
from ..relaxation.diagonal import STEPS, Fitted, fit_diagonal, interior
from ..relaxation.gram import TOLERANCE, GramForm
from ..relaxation.perspective import perspective_relaxation
from ..relaxation.root import Incumbent, Root, reduced_root
from ..supports.path import heuristic_support
from .enumeration import enumerated
from .sdp_nodes import REFIT_SHARE, RefittedTree
from .search import Search, Tree

# A finished search whose bounds leave a relative gap, a share of the incumbent's objective, above
# this number or the gap asked for, whichever is larger, is no proof: its status is "precision
# limit". Before that, a converged relaxation is tried for a larger bound. The mixed-integer solvers
# in ``backends`` use the number in the same way.
WORST_GAP = 2e-6
# Under groups or bounds nodes of single columns are enumerated if elimination on Gram matrices
# loses at most this share of the incumbent's objective. The value is a choice, below common gaps.
MOST_LOST = 1e-7
# The first so many relaxations of a plain tree are those of rough nodes: coordinate descent ends
# once the relaxation's value is below the target, and the node is branched on without trials.
ROUGH_NODES = 100
# The plain tree alone works until its relaxations have taken the time in which enumeration visits
# this many supports, some 3 ns each. Only then is local search for a better incumbent begun.
HEAD_START_SUPPORTS = 5e7
# A better diagonal is tried once the relaxations of the plain tree have taken the time of this many
# supports times p³, where the root has left p columns: ten times what a trial costs. The smaller of
# this and ``HEAD_START_SUPPORTS`` counts.
FITTING_SUPPORTS = 20.0
# After the head start, a tree whose bound has closed at least this share of the root's gap goes on
# as it is. The root's gap is the incumbent's objective less the root's bound.
MAX_SHARE_CLOSED = 0.6


@on_one_thread
def branch_and_bound(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    limits: Limits | None = None,
    gram: GramForm | None = None,
    n_jobs: int | None = None,
) -> Proof:
    """Solve eq. (1), first paper, at the problem's γ and τ.

    Parameters
    ----------
    problem : SparseRidgeProblem
    warm_starts : supports
        Of at most τ columns or, where columns are grouped, τ groups.
    tol : float
        Relative gap at which the search stops.
    limits : Limits, optional
    gram : GramForm, optional
        Of the same data, to share among several γ and τ.
    n_jobs : int, optional
        Threads that share the tree, as in joblib; 1 by default. The result is as good with any
        number, but which of several tied supports is returned may change.

    Returns
    -------
    Proof
        The lower bound holds at whatever moment the search stops.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, branch_and_bound
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> found = branch_and_bound(problem)
    >>> found.support, round(found.objective, 3), found.lower_bound <= found.objective
    (array([1, 3]), 5.333, True)
    """
    limits, known, n_nodes = limits or Limits(), nothing_known(), 0
    for way in ways_of_one_size(problem):
        within = way.within(limits)
        if way.search == BRANCH:
            found = _branched(problem, warm_starts, tol, within, gram, n_jobs)
        else:
            starts = [known.support] if known.support.size else warm_starts
            found = _on_triangle(problem, way.search, starts, within)
        n_nodes += found.n_nodes
        known = known.joined(found, found.work._replace(n_nodes=n_nodes, seconds=limits.elapsed()))
        if known.status is Status.OPTIMAL or limits.reached(known.n_nodes) is not None:
            return known
    if known.status is Status.NODE_LIMIT:  # It is a limit of the plan, not of the caller.
        known = replace(known, status=Status.PRECISION)
    return known


def _on_triangle(
    problem: SparseRidgeProblem,
    search: str,
    warm_starts: Sequence[NDArray[np.intp]],
    limits: Limits,
) -> Proof:
    """Search on a triangular factor of X, which keeps twice as many digits as the relaxation."""
    left, tau = limits.remaining(), np.array([problem.tau])
    if not problem.constraints.plain:
        return enumerated(problem, tau, [], limits)[0]
    seconds = 0.2 if left is None else min(0.2, 0.2 * left)
    start = heuristic_support(problem, warm_starts=warm_starts, time_limit=seconds)
    if search == EVERY:
        return enumerated(problem, tau, [start], limits)[0]
    tree = best_subsets(problem, sizes=tau, warm_starts=[start], limits=limits)
    return tree.proof(0, Work(tree.n_nodes))


def _branched(
    problem: SparseRidgeProblem,
    warm_starts: Sequence[NDArray[np.intp]],
    tol: float,
    limits: Limits,
    gram: GramForm | None,
    n_jobs: int | None,
) -> Proof:
    """Branch on the perspective relaxation; the arguments are those of `branch_and_bound`."""
    incumbent, root, gram = reduced_root(problem, warm_starts, tol, gram, limits)
    target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
    bound, status = min(root.screened_bound, root.bound), Status.OPTIMAL
    if root.bound < target and root.units.size <= problem.tau:
        # Any other support holds a column that was screened out.
        rest = problem.constraints.columns_of(root.units)
        incumbent.offer(rest)
        bound = root.screened_bound
        if not problem.constraints.plain:
            bound = min(bound, support_bound(problem, rest))
    elif root.bound < target and gram is None:  # A tree had no time, or no room, to begin.
        status = limits.reached(0) or Status.UNPROVED
    elif root.bound < target and gram is not None:
        return _below_root(problem, incumbent, root, gram, tol, limits, n_jobs)
    return _proof(problem, incumbent, bound, status, Work(1, limits.elapsed()), tol)


def _below_root(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    root: Root,
    gram: GramForm,
    tol: float,
    limits: Limits,
    n_jobs: int | None,
) -> Proof:
    """Search below the root, on the columns or groups of columns that the root has left.

    The plain tree goes first. Where it does not end soon, a fitted diagonal, a better incumbent and
    a new tree are tried, in the order of what they cost. The numbers were chosen by measured time
    on benchmarks.

    gram: The Gram form of the units that the root has left.
    """
    p, fitted = gram.b.size, Fitted(gram.D, root.beta, root.root_lam, root.bound)
    plain, tree = fitted, Tree(gram, problem, tol, root.units)

    def enter(support: NDArray[np.intp]) -> None:
        """Enter the units of a support that the root has left."""
        units = problem.constraints.units(support)
        tree.enter(np.searchsorted(root.units, units[np.isin(units, root.units)]))

    def fit(start: Fitted, steps: int = STEPS) -> Fitted:
        """Fit the diagonal of the root's relaxation to (γ, τ)."""
        upper, to_choose = float(tree.now["upper"][0]), problem.tau - problem.constraints.min_size
        at = (gram, problem.gamma / 2.0, root.state, to_choose, start, upper)
        return fit_diagonal(*at, steps, limits)

    def closed(bound: float) -> float:
        """The share of the root's gap that a bound closes."""
        return (bound - root.bound) / (float(tree.now["upper"][0]) - root.bound)

    single = gram.grouping is None
    enter(incumbent.support)
    tree.aim_below(incumbent.objective)
    if not single:
        lost = gram.rounding(problem.gamma / 2.0, problem.tau, incumbent.objective)
        tree.now["enumerates"] = lost <= MOST_LOST * incumbent.objective
    tree.now["rough_left"], tree.now["open_share"] = ROUGH_NODES, 0.3
    tree.start(root.beta, root.root_lam, root.bound, root.state)
    first = last = Search(tree)
    ended = first.run(limits, min(FITTING_SUPPORTS * p**3, HEAD_START_SUPPORTS))
    fits = ended is None and gram.fits
    if fits:
        fitted = fit(fitted._replace(D=interior(gram)), 8)
        if fitted.bound > first.bound:
            fitted = fit(fitted)
    # Fits at nodes take too long where descent solves their relaxations (measured).
    refits = fits and single and fitted.bound > first.bound
    refits = refits and closed(fitted.bound) > REFIT_SHARE
    if not refits:
        ended = ended or first.run(limits, HEAD_START_SUPPORTS)
    if ended is None:
        if not refits:  # Local search takes 0.2 seconds, or less of a short time.
            left, start = limits.remaining(), [tree.columns(first.support)]
            seconds = 0.2 if left is None else min(0.2, 0.3 * left)
            enter(heuristic_support(problem, warm_starts=start, time_limit=seconds))
        if not refits and closed(first.bound) >= MAX_SHARE_CLOSED:
            last = Search(tree, n_jobs)  # The tree goes on with what its branching has learnt.
        else:  # In a new tree, as what rough nodes have taught of columns misleads.
            fitted = fit(fitted) if fits and not refits else fitted
            kind = RefittedTree if single and closed(fitted.bound) > REFIT_SHARE else Tree
            fitted = fitted if closed(fitted.bound) > 0.03 else plain
            begun = kind(replace(gram, D=fitted.D), problem, tol, root.units)
            begun.take_incumbent(tree)
            begun.now["enumerates"] = tree.now["enumerates"]
            begun.now["rough_left"] = ROUGH_NODES if kind is Tree else 0
            begun.start(fitted.beta, fitted.root_lam, fitted.bound, root.state)
            last = Search(begun, n_jobs)
        last.history = first.history
        ended = last.run(limits)
    # A search that goes on with the first tree deals its nodes out to other threads' trees.
    searches = [last] if last.trees[0] is tree else [first, last]
    incumbent.offer(tree.columns(last.support))
    every = [tree.now[0] for search in searches for tree in search.trees]
    bound = min(root.screened_bound, max(search.bound for search in searches))
    if tree.now["enumerates"][0] > 0:
        # Enumeration passes over no support whose objective is below this bound.
        upper = min(min(float(now["upper"]), float(now["least"])) for now in every)
        bound = min(bound, upper - gram.rounding(problem.gamma / 2.0, problem.tau, upper))
    within, plain_problem = limits.share(20.0), problem.constraints.plain
    if plain_problem and relative_gap(incumbent.objective, bound) > max(tol, WORST_GAP):
        bound = max(bound, _relaxed(problem, incumbent.gram, within))
    nodes = 1 + sum(search.n_nodes for search in searches)
    branched = sum(search.n_branched for search in searches)
    work = Work(nodes, limits.elapsed(), branched, tuple(last.history))
    return _proof(problem, incumbent, bound, ended or Status.TIME_LIMIT, work, tol)


def _relaxed(problem: SparseRidgeProblem, gram: GramForm | None, limits: Limits) -> float:
    """The bound of the converged relaxation, from the rows where they keep more digits.

    gram: Gram matrices of all columns, where they are at hand.
    """
    bound = 0.0
    for extract in (True, False) if gram is None or not gram.scaled else (False,):
        if limits.affords(20.0 * problem.p**2):
            found = perspective_relaxation(problem, extract=extract, gram=gram, limits=limits)
            bound = max(bound, found.bound)
    return bound


def _proof(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    bound: float,
    status: Status,
    work: Work,
    tol: float,
) -> Proof:
    """The proof that a bound amounts to, less what rounding may have added to the bound."""
    objective = incumbent.objective
    # Dual bounds hold as they are; where no node is open, the incumbent's rounded fit counts.
    fitted = objective - (1e-9 * objective + 1e-12 * problem.yy)
    bound = max(0.0, min(fitted, bound * (1.0 - 1e-9)) - problem.data_loss(objective))
    if status is Status.OPTIMAL and relative_gap(objective, bound) > max(tol, WORST_GAP):
        status = Status.PRECISION
    return Proof(incumbent.support, objective, bound, status, work)
