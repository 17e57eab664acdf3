"""Branch and bound for one problem at fixed (γ, τ), with any number of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from ...schedule import (
    FITTING_SUPPORTS,
    HEAD_START_SUPPORTS,
    HEURISTIC_SECONDS,
    MAX_SHARE_CLOSED,
    PARTS_OF_A_LAST_BOUND,
    REFIT_SHARE,
    ROUGH_NODES,
    SHARE_OF_A_START,
    SHARE_OF_BETTER_INCUMBENTS,
)
from ..core.limits import Limits
from ..core.plan import BRANCH, EVERY, Way, ways_of_one_size
from ..core.problem import SparseRidgeProblem, checked_support
from ..core.result import Answer, Status, Work, relative_gap
from ..core.rounding import BOUND_SHARE, FITTED_SHARE_OF_YY, support_bound
from ..core.threads import on_one_thread
from ..leaps.all_sizes import SizesTree
from ..relaxation.diagonal import STEPS, Fitted, fit_diagonal, interior
from ..relaxation.gram import GramForm
from ..relaxation.perspective import perspective_relaxation
from ..relaxation.root import Incumbent, Root, reduced_root
from ..supports.path import heuristic_support
from .enumeration import Enumeration
from .sdp_nodes import RefittedTree
from .search import Search, Tree

# A finished search whose bounds leave a relative gap, a share of the incumbent's objective, above
# this number or the gap asked for, whichever is larger, is no proof: its status is "precision
# limit". Before that, a converged relaxation is tried for a larger bound. The mixed-integer solvers
# in ``backends`` use the number in the same way.
WORST_GAP = 2e-6
# Under groups or bounds nodes of single columns are enumerated if elimination on Gram matrices
# loses at most this share of the incumbent's objective. The value is a choice, below common gaps.
MOST_LOST = 1e-7


@on_one_thread
def branch_and_bound(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    limits: Limits | None = None,
    gram: GramForm | None = None,
    n_jobs: int | None = None,
) -> Answer:
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
    Answer
        The lower bound holds at whatever moment the search stops.

    Raises
    ------
    ValueError
        A negative tolerance, or a warm start that names columns outside 0..p−1.

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
    if not tol >= 0.0:
        raise ValueError(f"tol must be >= 0; got {tol}")
    starts = [checked_support(problem.p, start) for start in warm_starts]
    search = SizeAlone(problem, starts, tol=tol, gram=gram, n_jobs=n_jobs)
    return search.run(limits or Limits())


class SizeAlone:
    """The searches of :func:`ways_of_one_size` in order, which stop at limits and go on from there.

    problem, warm_starts, tol, gram, n_jobs: As of :func:`branch_and_bound`.
    answer: What is known of the problem so far.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        warm_starts: Sequence[NDArray[np.intp]] = (),
        *,
        tol: float,
        gram: GramForm | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.problem, self.starts, self.gram = problem, list(warm_starts), gram
        self.tol, self.n_jobs, self.clock = tol, n_jobs, Limits()
        self.ways, self.answer = list(ways_of_one_size(problem)), Answer.nothing_known(problem.tau)
        self.seconds_branching, self.nodes_before = 0.0, 0  # nodes of searches that have ended
        self.below: BelowRoot | None = None  # None before that search has begun
        self.on_triangle: Enumeration | SizesTree | None = None  # and so here

    @property
    def can_go_on(self) -> bool:
        """Whether a search of the problem is left that has not ended."""
        return bool(self.ways)

    @property
    def n_bytes(self) -> float:
        """Memory that the search below the root holds, or the tree of all sizes."""
        held = 0.0 if self.below is None else self.below.n_bytes
        return held + (self.on_triangle.n_bytes if isinstance(self.on_triangle, SizesTree) else 0.0)

    def offer(self, support: NDArray[np.intp]) -> None:
        """Start from a support that another search has found, if it is better than all so far."""
        self.starts.append(support)
        if self.below is not None:
            self.below.offer(support)

    def run(self, limits: Limits, most_supports: float = np.inf) -> Answer:
        """Search until the size is proved, a limit is reached, or nothing is left to try.

        A limit of nodes counts those of earlier calls, too. Every support is visited only where
        there are at most ``most_supports``.
        """
        problem = self.problem
        while self.ways and not self.answer.proved:
            way = self.ways[0]
            if way.search == EVERY and comb(problem.p, problem.tau) > most_supports:
                self.answer = replace(self.answer, status=Status.NODE_LIMIT)
                return self.answer
            found = self._by(way, limits)
            nodes = self.nodes_before + found.n_nodes
            work = found.work._replace(n_nodes=nodes, seconds=self.clock.elapsed())
            self.answer = self.answer.joined(found, work)
            reached = limits.reached(nodes)
            if reached is None or found.status is not reached:
                self.ways.pop(0)  # The search has ended, or met a limit of its own.
                self.nodes_before, self.below, self.on_triangle = nodes, None, None
            if reached is not None:
                if self.ways and not self.answer.proved:  # Another search would have followed.
                    self.answer = replace(self.answer, status=reached)
                return self.answer
        if self.answer.status is Status.NODE_LIMIT:  # It is a limit of the plan.
            self.answer = replace(self.answer, status=Status.PRECISION)
        return self.answer

    def _by(self, way: Way, limits: Limits) -> Answer:
        """Search in one way, which counts its nodes from 0."""
        limits = limits.after(self.nodes_before)
        if way.search != BRANCH:
            within = way.within(limits)
            if self.on_triangle is None:
                self.on_triangle = self._begin_on_triangle(way.search, within)
            return self.on_triangle.run(within)[0]
        if way.seconds is not None:
            way = way._replace(seconds=max(way.seconds - self.seconds_branching, 0.0))
        within = way.within(limits)
        found = self._branched(within)
        self.seconds_branching += within.elapsed()
        return found

    def _begin_on_triangle(self, search: str, limits: Limits) -> Enumeration | SizesTree:
        """A search on a triangular factor of X, which keeps more digits than the relaxation."""
        problem, left, tau = self.problem, limits.remaining(), np.array([self.problem.tau])
        if not problem.constraints.plain:
            return Enumeration(problem, tau)
        known = self.answer.support
        starts, seconds = [known] if known.size else self.starts, HEURISTIC_SECONDS
        seconds = seconds if left is None else min(seconds, SHARE_OF_A_START * left)
        start = heuristic_support(problem, warm_starts=starts, time_limit=seconds)
        if search == EVERY:
            return Enumeration(problem, tau, [start])
        return SizesTree(problem, tau, [start])

    def _branched(self, limits: Limits) -> Answer:
        """Branch on the perspective relaxation."""
        if self.below is not None:
            return self.below.run(limits)
        problem, tol = self.problem, self.tol
        incumbent, root, gram = reduced_root(problem, self.starts, tol, self.gram, limits)
        target = incumbent.objective * (1.0 - max(tol, BOUND_SHARE))
        bound, status = min(root.screened_bound, root.bound), Status.OPTIMAL
        if root.bound < target and root.units.size <= problem.tau:
            # Any other support holds a column that was screened out.
            rest = problem.constraints.columns_of(root.units)
            incumbent.offer(rest)
            bound = min(root.screened_bound, support_bound(problem, rest))
        elif root.bound < target and gram is None:  # A tree had no time, or no room, to begin.
            status = limits.reached(0) or Status.UNPROVED
        elif root.bound < target and gram is not None:
            self.below = BelowRoot(problem, incumbent, root, gram, tol, self.n_jobs, self.clock)
            return self.below.run(limits)
        return _answer(problem, incumbent, bound, status, Work(1, limits.elapsed()), tol)


class BelowRoot:
    """The search of the columns, or groups of columns, that the root has left.

    The plain tree goes first. Where it does not end soon, a fitted diagonal, a better incumbent and
    a new tree are tried, in the order of what they cost. The numbers were chosen by measured time
    on benchmarks.

    gram: The Gram form of the units that the root has left.
    clock: Has run since the problem's search began.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        incumbent: Incumbent,
        root: Root,
        gram: GramForm,
        tol: float,
        n_jobs: int | None,
        clock: Limits,
    ) -> None:
        self.problem, self.incumbent, self.root = problem, incumbent, root
        self.gram, self.tol, self.n_jobs = gram, tol, n_jobs
        self.single, self.tree = gram.grouping is None, Tree(gram, problem, tol, root.units)
        self.first = Search(self.tree, since=clock)
        self.last: Search | None = None  # the search that goes on after the head start
        # The diagonal for a new tree, and whether that tree's nodes get diagonals of their own.
        self.fitted = Fitted(gram.D, root.node)
        self.fits_tried = self.refits = False
        self.relaxed: float | None = None  # the bound of the converged relaxation, once computed
        if not self.single:
            lost = gram.overlooked(problem.gamma / 2.0, problem.tau, incumbent.objective)
            self.tree.now["enumerates"] = lost <= MOST_LOST * incumbent.objective
        self.offer(incumbent.support)
        self.tree.aim_below(incumbent.objective)
        # With an ``open_share`` of .1 trees of solver_benchmark.py above 30 ms took 1.1 times as
        # long.
        self.tree.now["rough_left"], self.tree.now["open_share"] = ROUGH_NODES, 0.3
        self.tree.add(root.node)

    @property
    def searches(self) -> list[Search]:
        """The searches below the root, without one whose tree another goes on with."""
        if self.last is None or self.last.trees[0] is self.tree:
            return [self.last or self.first]
        return [self.first, self.last]

    @property
    def n_bytes(self) -> float:
        """Memory of all trees."""
        return sum(tree.n_bytes for search in self.searches for tree in search.trees)

    def offer(self, support: NDArray[np.intp]) -> None:
        """Improve a support by swaps, and make the result the incumbent if it is better.

        Columns that the root has screened out are left out, and others fill their places.
        """
        tree = self.searches[-1].trees[0]
        tree.enter(tree.numbers(support))

    def run(self, limits: Limits) -> Answer:
        """Search until no node is open or a limit is reached.

        A limit of nodes counts those of earlier calls, too, and the root for one.

        Returns: What is proved so far.
        """
        ended = self._head_start(limits) if self.last is None else None
        if self.last is not None:
            ended = self.last.run(limits)
        assert ended is not None  # A search without a pause says how it has ended.
        return self._answer(ended, limits)

    def _head_start(self, limits: Limits) -> Status | None:
        """Search the plain tree alone; None once ``last`` is the search that goes on after that."""
        first, p, fits = self.first, self.gram.b.size, self.gram.fits
        ended = first.run(limits, min(FITTING_SUPPORTS * p**3, HEAD_START_SUPPORTS))
        if ended is not None:
            return ended
        if fits and not self.fits_tried:
            self.fits_tried = True
            self.fitted = self._fit(self.fitted._replace(D=interior(self.gram)), limits, 8)
            if self.fitted.bound > first.bound:
                self.fitted = self._fit(self.fitted, limits)
                # Fits at nodes take too long where descent solves their relaxations (measured).
                self.refits = self.single and self._closed(self.fitted.bound) > REFIT_SHARE
        if not self.refits:
            ended = first.run(limits, HEAD_START_SUPPORTS)
            if ended is not None:
                return ended
            left, start = limits.remaining(), [self.tree.columns(first.support)]
            seconds = (
                HEURISTIC_SECONDS
                if left is None
                else min(HEURISTIC_SECONDS, SHARE_OF_BETTER_INCUMBENTS * left)
            )
            self.offer(heuristic_support(self.problem, warm_starts=start, time_limit=seconds))
        if not self.refits and self._closed(first.bound) >= MAX_SHARE_CLOSED:
            # The tree goes on with what its branching has learnt.
            self.last = Search(self.tree, self.n_jobs, after=first)
        else:  # In a new tree, as what rough nodes have taught of columns misleads.
            if fits and not self.refits:
                self.fitted = self._fit(self.fitted, limits)
            self.last = Search(self._new_tree(), self.n_jobs, after=first)
        return None

    def _fit(self, start: Fitted, limits: Limits, steps: int = STEPS) -> Fitted:
        """Fit the diagonal of the root's relaxation to (γ, τ)."""
        problem = self.problem
        upper, to_choose = self._upper, problem.tau - problem.constraints.min_size
        at = (self.gram, problem.gamma / 2.0, to_choose, start, upper)
        return fit_diagonal(*at, steps, limits)

    def _closed(self, bound: float) -> float:
        """The share of the root's gap that a bound closes; below 0 for a bound below the root's."""
        return (bound - self.root.bound) / (self._upper - self.root.bound)

    @property
    def _upper(self) -> float:
        """The objective of the plain tree's incumbent."""
        return float(self.tree.now["upper"][0])

    def _new_tree(self) -> Tree:
        """A tree from the root on, with the fitted diagonal where that closes much of the gap."""
        share, root = self._closed(self.fitted.bound), self.root
        kind = RefittedTree if self.single and share > REFIT_SHARE else Tree
        if share <= 0.0:
            self.fitted = Fitted(self.gram.D, root.node)
        fitted = self.fitted
        begun = kind(replace(self.gram, D=fitted.D), self.problem, self.tol, root.units)
        begun.take_incumbent(self.tree)
        begun.now["enumerates"] = self.tree.now["enumerates"]
        begun.now["rough_left"] = ROUGH_NODES if kind is Tree else 0
        begun.add(fitted.node)
        return begun

    def _answer(self, status: Status, limits: Limits) -> Answer:
        """What the search has proved so far."""
        problem, gram, incumbent, searches = self.problem, self.gram, self.incumbent, self.searches
        incumbent.offer(self.tree.columns(searches[-1].support))
        every = [tree.now[0] for search in searches for tree in search.trees]
        bound = min(self.root.screened_bound, max(search.bound for search in searches))
        if self.tree.now["enumerates"][0] > 0:
            # Enumeration passes over no support whose objective is below this bound.
            upper = min(min(float(now["upper"]), float(now["least"])) for now in every)
            bound = min(bound, upper - gram.overlooked(problem.gamma / 2.0, problem.tau, upper))
        gap = relative_gap(incumbent.objective, bound)
        if problem.constraints.plain and gap > max(self.tol, WORST_GAP):
            if self.relaxed is None:
                self.relaxed = _relaxed(
                    problem, incumbent.gram, limits.share(PARTS_OF_A_LAST_BOUND)
                )
            bound = max(bound, self.relaxed)
        nodes = 1 + sum(search.n_nodes for search in searches)
        branched = sum(search.n_branched for search in searches)
        work = Work(
            n_nodes=nodes,
            seconds=limits.elapsed(),
            n_branched=branched,
            history=tuple(searches[-1].history),
        )
        return _answer(problem, incumbent, bound, status, work, self.tol)


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


def _answer(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    bound: float,
    status: Status,
    work: Work,
    tol: float,
) -> Answer:
    """The answer that a bound amounts to, less what rounding may have added to the bound."""
    objective = incumbent.objective
    # Where no node is open, the incumbent's objective is the bound, which may be rounded up.
    fitted = objective - (BOUND_SHARE * objective + FITTED_SHARE_OF_YY * problem.yy)
    bound = max(0.0, min(fitted, bound * (1.0 - BOUND_SHARE)) - problem.data_loss(objective))
    if status is Status.OPTIMAL and relative_gap(objective, bound) > max(tol, WORST_GAP):
        status = Status.PRECISION
    return Answer(
        size=problem.tau,
        support=incumbent.support,
        objective=objective,
        lower_bound=bound,
        status=status,
        work=work,
    )
