"""Supports, coefficients and proofs of one problem at every γ and size: the unit of work above.

The γ are answered one after the other, every size of a γ together. Each way to answer them is a
class with the method ``answer`` and an entry in ``SOLVERS``. What a way needs is handed to it: the
problem, what is known at the γ before, and limits. It writes what it has found to the row of its γ
in ``PathProblem.found``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..schedule import (
    FIRST_NODES,
    LEAST_SECONDS_AT_FIRST_GAMMA,
    MORE_NODES,
    NODES_OF_A_PROOF,
    SHARE_OF_NODES_AFTER_AN_OPEN_TREE,
    UNITS_OF_LARGER_TREES,
)
from .branching.size_sweep import SizeSearch
from .core.limits import Limits
from .core.plan import (
    LEAPS,
    estimates_search,
    one_tree_proves,
    share_of_nodes,
    short_tree,
    ways,
)
from .core.problem import SparseRidgeProblem, checked_sizes
from .core.quick_fits import fit_supports
from .core.result import Answer, Status
from .core.rounding import all_certain, coefficient_spread, rounding_margin
from .core.threads import cached, on_one_thread, threads_for
from .kernels.linalg import Array, stacked
from .leaps.all_sizes import SizesTree, best_subsets
from .leaps.gamma_trees import GammaTrees, Listed
from .relaxation.perspective import Relaxation, perspective_relaxation
from .ridge_fits import SupportPath
from .supports.path import GrownUnits, SupportGrower
from .supports.rounding import Support
from .supports.weighted import WeightedGrower, support_grower

Supports = NDArray[np.int64]
LIMITS_REACHED = (Status.NODE_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED)


class PathProblem:
    """A problem at all γ of a path: what is found there, and what the γ share.

    A solver answers one γ after the other. Supports of all γ are fitted together at the end, as
    that is several times faster; until then a bound by a tree is kept without an objective.

    problem: Gives the data and the constraints on columns; its γ and τ are not used.
    sizes, shape (τ,): The support sizes, increasing and distinct.
    at: The problem at every γ, in the order in which they are answered.
    found: The path. Solvers write its rows, and :meth:`fitted` completes it.
    tree_bound, shape (γ, τ): What a tree of all sizes says of the objectives of all supports: ∞
        where the support is the best, 0 where nothing. Rounding is to be taken off.
    reach, shape (γ,): The number ``reach`` of that tree, on which the rounding of its bounds
        depends; 0 where there was none.
    left_open, gave_up, shape (γ,): Whether the last tree at a γ, or the searches there, were left
        before their end, and whether the searches have reached a limit.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        gammas: Sequence[float] | Array,
        sizes: ArrayLike,
        listed: Listed | None = None,
        grown: dict[float, GrownUnits] | None = None,
    ) -> None:
        self.problem, self.sizes = problem, checked_sizes(problem, np.asarray(sizes))
        self.at = [problem.replace(gamma=float(gamma)) for gamma in gammas]
        # With groups a size is a number of groups, and a support may have any number of columns.
        most = problem.p if problem.constraints.grouped else int(self.sizes[-1])
        # The result names the γ that the user gave. The problems may work with another γ, because
        # a tiny one takes the place of 0.
        given = np.array([at.given_gamma for at in self.at])
        supports = np.full((given.size, self.sizes.size, most), -1, dtype=np.int64)
        self.found = SupportPath.empty(given, self.sizes, supports)
        self.found.status = Status.OPTIMAL
        self.tree_bound, self.reach = np.zeros(supports.shape[:2]), np.zeros(given.size)
        self.left_open, self.gave_up = np.zeros((2, given.size), dtype=bool)
        self._gammas, self._listed, self._grown = gammas, listed or {}, grown
        self._grower: SupportGrower | WeightedGrower | None = None

    @cached
    def trees(self) -> GammaTrees | None:
        """The trees of all sizes; None where the plan has none or they have no room."""
        problem = self.problem
        if not (one_tree_proves(problem.constraints) and problem.holds_tree()):
            return None
        return GammaTrees(problem, self._gammas, self.sizes, self._listed)

    def grown(self, g: int, limits: Limits) -> Supports:
        """Good supports at the g-th γ, by forward steps and swaps, shape (τ, most).

        Nothing is taken over from another γ. A row lists the columns of one size, ended by −1. The
        search gets an equal share of the time that is left, without a node limit. At the first γ it
        gets ``LEAST_SECONDS_AT_FIRST_GAMMA`` even if no time is left, and never goes on beyond the
        latest end that the limits allow.
        """
        limits = limits.share(len(self.at) - g)
        left, sizes = limits.remaining(), self.sizes.tolist()
        if left is not None and g == 0:
            limits = limits.longer(max(0.0, LEAST_SECONDS_AT_FIRST_GAMMA - left))
        if self._grower is None:
            self._grower = support_grower(self.at[g], sizes)
        before = (self._grown or {}).get(self.at[g].given_gamma)
        self._grower.find(self.at[g].gamma, [], limits, before)
        if self._grown is not None and (units := self._grower.grown()) is not None:
            self.found.grown[self.at[g].given_gamma] = units
        return self._grower.table(self.found.supports.shape[2])

    def before(self, g: int) -> list[Support]:
        """The supports at the γ before the g-th; none before the first."""
        return self.found.at(g - 1) if g > 0 else []

    def take(
        self, g: int, answers: list[Answer], where: NDArray[np.bool_] | slice = slice(None)
    ) -> None:
        """Enter what a search has found at the g-th γ.

        answers: One for every size that was searched, in increasing order; their nodes are those
            of all these sizes together.
        where, shape (τ,): Marks these sizes; by default all.
        """
        found = self.found
        found.supports[g, where] = stacked(
            [one.support for one in answers], found.supports.shape[2]
        )
        found.proved[g, where] = [one.proved for one in answers]
        found.lower_bound[g, where] = [max(one.lower_bound, 0.0) for one in answers]
        found.searched[g, where] = True
        found.n_nodes[g], found.n_trees[g] = answers[0].n_nodes, 1
        if not found.proved[g, where].all():
            found.unfinished[g] = answers

    def note(self, status: Status) -> None:
        """Remember how the work at a γ has ended."""
        self.found.status = Status.worst([self.found.status, status])

    def pass_over(self, g: int, limits: Limits, reached: Status) -> None:
        """Answer the g-th γ where a limit was reached before: by the supports of the nearest γ.

        The nearest γ, by its logarithm, is one of those before. At the first γ supports are grown.

        reached: How work ends at that limit, which :meth:`note` takes into the path's status.
        """
        supports = self.found.supports
        if g == 0:
            supports[0] = self.grown(0, limits)
        else:
            logs = np.log([at.gamma for at in self.at[: g + 1]])
            supports[g] = supports[np.argmin(np.abs(logs[:-1] - logs[-1]))]
        self.note(reached)

    def fitted(self) -> SupportPath:
        """The path with fits of its supports, after every γ was answered.

        The coefficients, objectives and lower bounds of ``found`` are written. The lower bound of a
        support that a tree of all sizes has proved best is its fitted objective less what rounding
        takes. No lower bound exceeds the fitted objective.
        """
        found, trees = self.found, self.__dict__.get("trees")
        found.coef, objective = fit_supports(self.problem, found.gammas, found.supports)
        found.objective, some = objective, np.flatnonzero(self.reach)
        if some.size:
            bound = np.maximum(found.lower_bound[some], self._tree_bounds(some, objective[some]))
            found.lower_bound[some] = bound
        found.lower_bound = np.minimum(found.lower_bound, objective)
        if not found.proved.all():
            self.note(Status.UNPROVED)
        if trees is not None:
            found.listed = trees.listed
        return found

    def _tree_bounds(self, some: NDArray[np.intp], objective: Array) -> Array:
        """What trees of all sizes bound objectives by, less rounding, at some γ; 0 by nothing.

        some, shape (s,): Positions of the γ.
        objective, shape (s, τ): The objectives of the supports at these γ.
        Returns: The bounds, shape (s, τ).
        """
        assert self.trees is not None
        tree, at = self.trees.tree, [self.at[g] for g in some.tolist()]
        reach = self.reach[some, None]
        spread = tree.stretch * np.array([[coefficient_spread(one)] for one in at])
        off = self.problem.data.off
        margin = rounding_margin(objective, self.problem.yy, reach, spread, off)
        margin += np.array([[tree.left_out(one)] for one in at]) * objective
        of_rows = zip(at, objective, strict=True)
        margin += [one.data_losses(best, self.sizes) for one, best in of_rows]
        bound = np.minimum(objective, self.tree_bound[some])
        return np.asarray(np.maximum(bound - margin, 0.0))


class Solver(ABC):
    """A way to answer every size of a problem at one γ; it has settings alone, and no state."""

    @abstractmethod
    def answer(self, path: PathProblem, g: int, limits: Limits) -> None:
        """Answer the g-th γ of a path, whose γ before are answered; ``path`` is written.

        limits: Those of all γ together.
        """


class Grown(Solver):
    """Finds good supports and proves nothing; at every γ independently of other γ."""

    def answer(self, path: PathProblem, g: int, limits: Limits) -> None:
        """Answer one γ by forward steps and swaps."""
        path.found.supports[g] = path.grown(g, limits)


class Rounded(Grown):
    """Rounds the relaxation, as in the stability paper; under constraints supports are grown."""

    def answer(self, path: PathProblem, g: int, limits: Limits) -> None:
        """Answer one γ by the columns of the relaxation's largest coefficients."""
        if not path.problem.constraints.plain:
            super().answer(path, g, limits)
            return
        relaxed: Relaxation | None = None
        for t, size in enumerate(path.sizes.tolist()):
            at_size = path.at[g].replace(tau=size)
            relaxed = perspective_relaxation(at_size, warm_start=relaxed, gap=1e-5)
            path.found.supports[g, t, :size] = relaxed.rounded(size)


class Exact(Solver):
    """Searches until everything is proved: by trees of all sizes, then as the plan says."""

    # Whether the support of a size counts whose search a limit has ended. It depends on where the
    # search has stopped.
    keeps_unproved = True

    def answer(self, path: PathProblem, g: int, limits: Limits) -> None:
        """Answer one γ by searches."""
        if not self.by_tree(path, g, limits):
            self.without_tree(path, g, limits)

    def without_tree(self, path: PathProblem, g: int, limits: Limits) -> None:
        """Answer one γ where there is no tree of all sizes to begin with."""
        self.by_searches(path, g, limits, np.ones(path.sizes.size, dtype=bool))

    def nodes_of_a_tree(self, path: PathProblem, left_open: bool) -> int:
        """Nodes after which the tree of one γ is left; the problem's own trees alone decide.

        left_open: Whether the tree before was.
        """
        share = SHARE_OF_NODES_AFTER_AN_OPEN_TREE if left_open else 1.0
        rules = path.problem.constraints
        return int(share_of_nodes(rules) * int(self.first_nodes(rules.n_units) * share))

    def first_nodes(self, units: int) -> int:
        """Nodes after which the tree of so many units is left at the first γ."""
        return NODES_OF_A_PROOF * (MORE_NODES if units > UNITS_OF_LARGER_TREES else 1)

    def limits_of_searches(
        self, path: PathProblem, g: int, limits: Limits, left_open: bool
    ) -> Limits:
        """The limits of the searches at one γ, its tree of all sizes included.

        left_open: Whether the last tree, at this γ or the γ before, was left open.
        """
        if g == 0 or not path.gave_up[g - 1] or limits.node_limit is None:
            return limits
        return limits.within(nodes=int(SHARE_OF_NODES_AFTER_AN_OPEN_TREE * limits.node_limit))

    def by_tree(self, path: PathProblem, g: int, limits: Limits) -> bool:
        """Answer one γ by the tree of all sizes, and what it leaves open by other searches.

        Returns: False, and nothing is answered, where there is no tree, or the columns are not
            independent enough for it.
        """
        at, trees, found = path.at[g], path.trees, path.found
        if trees is None:
            return False
        # At a tiny γ a tree of unit length may know better, or enumeration of dependent columns.
        tree, spread = trees.tree, trees.tree.stretch * coefficient_spread(at)
        if not all_certain(at, spread):
            return False
        left_open = g > 0 and bool(path.left_open[g - 1])
        within = self.limits_of_searches(path, g, limits, left_open)
        nodes = self.nodes_of_a_tree(path, left_open)
        status = trees.search(at, within.within(nodes=nodes))
        if status is None:
            return False
        searched, proved = trees.todo[tree.inner], np.ones(path.sizes.size, dtype=bool)
        if status is not Status.OPTIMAL:
            proved = ~searched
        sizes, most = path.sizes[proved], found.supports.shape[2]
        chosen = trees.table.supports(trees.best[tree.inner[proved]], sizes, most)
        found.supports[g, proved, : chosen.shape[1]] = chosen
        found.proved[g, proved], path.tree_bound[g, proved] = True, np.inf
        path.reach[g] = tree.reach
        if status is not Status.OPTIMAL:
            self.by_searches(path, g, limits, searched, trees.going_on(at, searched))
            path.left_open[g] &= not trees.ended_since(at)
            return True
        if trees.table.bounded:
            path.tree_bound[g] = tree.open_bound()
        found.searched[g] = searched
        found.n_nodes[g], found.n_trees[g] = tree.n_nodes, int(searched.any())
        return True

    def by_searches(
        self,
        path: PathProblem,
        g: int,
        limits: Limits,
        where: NDArray[np.bool_],
        tree: SizesTree | None = None,
    ) -> None:
        """Search for some sizes at one γ by the searches of the plan; ``path`` takes what is found.

        Without ``keeps_unproved`` the sizes that a limit has left unproved have grown supports, and
        no leaves are kept. That is not how the work has ended then, as :meth:`PathProblem.fitted`
        notes what is not proved.

        where, shape (τ,): Marks the sizes, at least one.
        limits: Those of all γ together.
        tree: The tree of all sizes that was left open at this γ.
        """
        found, sizes = path.found, path.sizes[where]
        left_open = tree is not None or (g > 0 and bool(path.left_open[g - 1]))
        within = self.limits_of_searches(path, g, limits, left_open)
        search = SizeSearch(path.at[g], sizes, path.before(g), tree=tree).run(within)
        status = Status.worst(one.status for one in search.answers)
        path.gave_up[g] = status in LIMITS_REACHED
        path.left_open[g] = tree is not None or path.gave_up[g]
        path.take(g, search.answers, where)
        found.n_nodes[g], found.n_trees[g] = search.n_nodes, search.n_trees
        if path.gave_up[g] and not self.keeps_unproved:
            unproved = where & ~found.proved[g]
            found.supports[g, unproved] = path.grown(g, limits)[unproved]
            found.unfinished.pop(g, None)
            status = limits.reached(0) or Status.OPTIMAL
        path.note(status)


class Timed(Exact):
    """Searches like :class:`Exact` for an equal share of the time at every γ.

    Sizes that are left open have the supports of a search without a proof, which the data and γ
    alone decide, and not where the search has stopped. Beyond 45 columns a short tree is searched,
    or every support where supports are few.
    """

    keeps_unproved = False

    def without_tree(self, path: PathProblem, g: int, limits: Limits) -> None:
        """Answer one γ by searches that are worth their time, and else by good supports."""
        problem, sizes = path.at[g], path.sizes
        if estimates_search(problem, sizes):
            super().without_tree(path, g, limits)
            return
        path.found.supports[g] = path.grown(g, limits)
        if not (problem.constraints.plain and problem.holds_tree()):
            return
        trees = [way for way in ways(problem, sizes) if way.search == LEAPS]
        # The plan has no tree for a single size, as branch and bound proves it sooner.
        first = trees[0] if trees else short_tree()
        starts, short = path.found.at(g), first.within(limits)
        path.take(g, best_subsets(problem, sizes=sizes, warm_starts=starts, limits=short))

    def limits_of_searches(
        self, path: PathProblem, g: int, limits: Limits, left_open: bool
    ) -> Limits:
        """An equal share of the time that is left."""
        return limits.share(float(len(path.at) - g))


class Estimated(Timed):
    """Searches few nodes, so that the answer does not depend on the speed of the machine."""

    def first_nodes(self, units: int) -> int:
        """Nodes after which the tree of the first γ is left."""
        return FIRST_NODES

    def limits_of_searches(
        self, path: PathProblem, g: int, limits: Limits, left_open: bool
    ) -> Limits:
        """As many nodes as a tree may have."""
        return limits.within(nodes=self.nodes_of_a_tree(path, left_open))


# The ways by name: tasks of other processes name a way.
SOLVERS: dict[str, Solver] = {
    "auto": Timed(),
    "estimate": Estimated(),
    "exact": Exact(),
    "heuristic": Grown(),
    "rounding": Rounded(),
}


def support_path(
    problem: SparseRidgeProblem,
    gammas: Sequence[float] | Array,
    sizes: ArrayLike,
    *,
    solver: str = "exact",
    limits: Limits | None = None,
    listed: Listed | None = None,
    grown: dict[float, GrownUnits] | None = None,
) -> SupportPath:
    """Solve eq. (1), first paper, for every γ and size.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Gives the data; its γ and τ are not used.
    gammas : sequence of float
        Ridge weights, best in order: trees start from the γ before.
    sizes : sequence of int
        In 0..p; the path has them in increasing order, each once. The size 0 has one support,
        which needs no search.
    solver : str
        "exact" solves every problem to optimality. "heuristic" proves nothing: it finds supports by
        forward steps and swaps (:class:`SupportGrower`), at every γ independently. "rounding" takes
        the columns of the relaxation's largest coefficients, as in the stability paper. "estimate"
        answers like "heuristic" what a search with few nodes leaves unproved. Up to 45 columns that
        search is a tree of 200,000 nodes, or of 20,000 where the tree of the γ before was not
        finished; beyond 45 columns it is a shorter tree, or a look at each support where supports
        are few. "auto" is like "estimate", but up to 45 columns trees have no limit of nodes,
        and every γ has an equal share of the time that is left.
    limits : Limits, optional
        Once they are reached, a γ takes the supports of the nearest γ that was answered. The first
        γ, which has none, is answered as by "heuristic", with hardly a swap.
    listed : optional
        What another path of the problem has ``listed``. It proves sizes for all solvers with trees.
    grown : optional
        What a path of the problem's smaller sizes has ``grown``. Searches without a proof go on
        from there. Where it is given, if only as an empty dictionary, this path has it, too.

    Returns
    -------
    SupportPath
        Of supports tied within rounding up to 45 columns the lexicographically first.

    Raises
    ------
    ValueError
        Sizes out of 0..p or not whole, γ < 0 or not finite, or an unknown solver.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, support_path
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> path = support_path(SparseRidgeProblem(X, y, gamma=1.0, tau=1), [0.1, 1.0], [1, 2])
    >>> path.support(0, 1), bool(path.proved.all())
    (array([1, 3]), True)
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}; got {solver!r}")
    every = some = np.asarray(sizes)
    if every.dtype.kind in "iu":
        every = np.unique(every)
        some = every[1:] if (every[:1] == 0).all() else every
    if every.size == 1 and some.size == 0:
        given = np.array([problem.replace(gamma=float(gamma)).given_gamma for gamma in gammas])
        no_size = np.empty(0, dtype=np.intp)
        none = np.empty((given.size, 0, 0), dtype=np.int64)
        return SupportPath.empty(given, no_size, none).after_no_column(problem)
    path, limits = PathProblem(problem, gammas, some, listed, grown), limits or Limits()
    with threads_for(problem):
        for g in range(len(path.at)):
            reached = limits.reached(0)
            if reached is None:
                SOLVERS[solver].answer(path, g, limits)
            else:
                path.pass_over(g, limits, reached)
        found = path.fitted()
        return found if some.size == every.size else found.after_no_column(problem)


@on_one_thread
def path_of_one_tree(
    problem: SparseRidgeProblem, sizes: ArrayLike, starts: Sequence[Support], limits: Limits
) -> SupportPath:
    """Answer every size at the problem's γ by one tree of all sizes, whether it ends or not.

    starts: Supports that the tree starts from.
    Returns: A path of the problem's γ alone.
    """
    path = PathProblem(problem, [problem.given_gamma], sizes)
    path.take(0, best_subsets(path.at[0], sizes=path.sizes, warm_starts=starts, limits=limits))
    return path.fitted()
