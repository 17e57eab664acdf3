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
from ..leaps.all_sizes import best_subsets
from ..relaxation.diagonal import MAX_COLUMNS, STEPS, Fitted, fit_diagonal, interior
from ..relaxation.gram import TOLERANCE, GramForm
from ..relaxation.perspective import perspective_relaxation
from ..relaxation.root import Incumbent, Root, reduced_root
from ..supports.path import heuristic_support
from .enumeration import enumerated
from .sdp_nodes import RefittedTree
from .search import Search, Tree
from .search_settings import SETTINGS
from .unit_search import search_units

# A finished search whose bounds leave a relative gap, a share of the incumbent's objective, above
# this number or the gap asked for, whichever is larger, is no proof: its status is "precision
# limit". Before that, a converged relaxation is tried for a larger bound. The mixed-integer solvers
# in ``backends`` use the number in the same way.
WORST_GAP = 2e-6


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
    if not problem.constraints.plain:
        found = search_units(problem, warm_starts, tol, limits, n_jobs)
        return _proof(problem, found, found.lower_bound, found.status, found.work, tol)
    incumbent, root, gram = reduced_root(problem, warm_starts, tol, gram, limits)
    target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
    bound, status = min(root.screened_bound, root.bound), Status.OPTIMAL
    if root.bound < target and root.columns.size <= problem.tau:
        incumbent.offer(root.columns)  # any other support holds a column that was screened out
        bound = root.screened_bound
    elif root.bound < target and gram is None:  # the time was up before a tree could begin
        status = limits.reached(0) or Status.TIME_LIMIT
    elif root.bound < target and gram is not None:
        return _BelowRoot(problem, incumbent, root, gram, tol, limits, n_jobs).run(incumbent.gram)
    return _proof(problem, incumbent, bound, status, Work(1, limits.elapsed()), tol)


class _BelowRoot:
    """The search of one problem below its root, on the columns that the root has left.

    The plain tree goes first. Where it does not end soon, a fitted diagonal, a better incumbent and
    a new tree are tried, in the order of what they cost.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        incumbent: Incumbent,
        root: Root,
        gram: GramForm,
        tol: float,
        limits: Limits,
        n_jobs: int | None,
    ) -> None:
        self.problem, self.incumbent, self.root, self.gram = problem, incumbent, root, gram
        self.tol, self.limits, self.n_jobs = tol, limits, n_jobs
        self.tree = Tree(gram, problem, tol)
        self.enter(incumbent.support)
        self.tree.now["upper"] = np.minimum(self.tree.now["upper"], incumbent.objective)
        self.tree.start(root.beta, root.root_lam, root.bound)
        self.tree.now["rough_left"] = SETTINGS.rough_nodes
        self.tree.now["open_share"] = SETTINGS.rough_undecided_share
        self.first = Search(self.tree)
        self.fitted: Fitted | None = None  # a diagonal fitted to (γ, τ), and its relaxation

    @property
    def upper(self) -> float:
        """Objective of the first tree's incumbent."""
        return float(self.tree.now["upper"][0])

    def run(self, whole: GramForm | None) -> Proof:
        """Search until the optimum is proved or a limit is reached.

        whole: Gram matrices of all columns, where they are at hand.
        """
        first, limits, p, relaxed = self.first, self.limits, self.root.columns.size, 0.0
        last, head_start = first, SETTINGS.head_start_supports
        ended = first.run(limits, min(SETTINGS.fitting_supports * p**3, head_start))
        if ended is None and not self.gram.scaled and p <= MAX_COLUMNS:
            root_lam, inside = self.root.root_lam, interior(self.gram)
            self.fitted = Fitted(inside, self.root.beta, root_lam, self.root.bound)
            self.fit(SETTINGS.trial_steps)
            if self.fitted.bound > first.bound:
                self.fit()
        if self.gains(SETTINGS.refit_share) and self.fitted and self.fitted.bound > first.bound:
            last = self.restarted(RefittedTree, self.fitted)
            ended = last.run(limits)
        else:
            ended = ended or first.run(limits, head_start)
            if ended is not Status.OPTIMAL:
                relaxed = self.relaxed(whole)
            if ended is None:
                last = self.better_start()
                ended = last.run(limits)
        # A search that goes on with the first tree deals its nodes out to other threads' trees.
        searches = [last] if last.trees[0] is self.tree else [first, last]
        self.incumbent.offer(self.root.columns[last.support])
        bound = min(self.root.screened_bound, max(search.bound for search in searches))
        bound = max(min(bound, self.not_overlooked(searches)), relaxed)
        gap = relative_gap(self.incumbent.objective, bound)
        if relaxed == 0.0 and gap > max(self.tol, WORST_GAP):
            bound = max(bound, self.relaxed(whole))
        nodes = 1 + sum(search.n_nodes for search in searches)
        branched = sum(search.n_branched for search in searches)
        work = Work(nodes, limits.elapsed(), branched, tuple(last.history))
        status = ended or Status.TIME_LIMIT
        return _proof(self.problem, self.incumbent, bound, status, work, self.tol)

    def relaxed(self, gram: GramForm | None) -> float:
        """The bound of the converged relaxation, from the rows where they keep more digits."""
        left, bound, p = self.limits.remaining(), 0.0, self.problem.p
        seconds = None if left is None else SETTINGS.relaxation_share * left
        for extract in (True, False) if gram is None or not gram.scaled else (False,):
            within = self.limits.within(seconds)
            if within.affords(SETTINGS.operations_per_entry * p * p):
                found = perspective_relaxation(
                    self.problem, extract=extract, gram=gram, limits=within
                )
                bound = max(bound, found.bound)
        return bound

    def fit(self, steps: int = STEPS) -> None:
        """Fit the diagonal of the root's relaxation to (γ, τ), from the diagonal fitted before."""
        if self.fitted is None:
            return
        problem, free = self.problem, np.zeros(self.gram.b.size, dtype=np.int8)
        here = (self.gram, problem.gamma / 2.0, free, problem.tau, self.fitted, self.upper)
        self.fitted = fit_diagonal(*here, steps, self.limits)

    def gains(self, share: float) -> bool:
        """Whether the fitted diagonal closes more than this share of the root's gap."""
        below = self.root.bound
        return self.fitted is not None and self.fitted.bound - below > share * (self.upper - below)

    def enter(self, support: NDArray[np.intp]) -> None:
        """Enter the columns of a support that the root has left in the first tree."""
        columns = self.root.columns
        self.tree.enter(np.searchsorted(columns, support[np.isin(support, columns)]))

    def searching(self, tree: Tree) -> Search:
        """A search of a tree that goes on with the history so far."""
        search = Search(tree, self.n_jobs)
        search.history = self.first.history
        return search

    def restarted(self, kind: type[Tree], fitted: Fitted) -> Search:
        """A search from the root with another diagonal and the incumbent so far."""
        tree = kind(replace(self.gram, D=fitted.D), self.problem, self.tol)
        tree.take_incumbent(self.tree)
        if kind is Tree:
            tree.now["rough_left"] = SETTINGS.rough_nodes
        tree.start(fitted.beta, fitted.root_lam, fitted.bound)
        return self.searching(tree)

    def better_start(self) -> Search:
        """A search with an incumbent from local search and, where it helps, a fitted diagonal."""
        root, left, seconds = self.root, self.limits.remaining(), SETTINGS.local_search_seconds
        if left is not None:
            seconds = min(seconds, SETTINGS.local_search_share * left)
        starts = [root.columns[self.first.support]]
        self.enter(heuristic_support(self.problem, warm_starts=starts, time_limit=seconds))
        closed = self.first.bound - root.bound
        if closed >= SETTINGS.max_share_closed * (self.upper - root.bound):
            return self.searching(self.tree)
        # A new tree, as what rough nodes have taught of columns misleads.
        self.fit()
        start = Fitted(self.gram.D, root.beta, root.root_lam, root.bound)
        if self.fitted is not None and self.gains(SETTINGS.min_share_gained):
            start = self.fitted
        return self.restarted(RefittedTree if self.gains(SETTINGS.refit_share) else Tree, start)

    def not_overlooked(self, searches: list[Search]) -> float:
        """An objective that no support passed over by enumeration is below."""
        every = [tree.now[0] for search in searches for tree in search.trees]
        upper = min(min(float(now["upper"]), float(now["least"])) for now in every)
        return upper - self.gram.rounding(self.problem.gamma / 2.0, self.problem.tau, upper)


def _proof(
    problem: SparseRidgeProblem,
    incumbent: Incumbent | Proof,
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
