"""Ways to answer every size of a problem at one γ after the other; each way is a class.

A new way is a class with the method ``answer``, and an entry in ``SOLVERS``. What it needs is
handed to it: the problem, the answer at the γ before, and limits. What it has found is its answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .branching.size_sweep import SizeSearch
from .core.limits import Limits
from .core.plan import (
    FIRST_NODES,
    LEAPS,
    Way,
    estimates_search,
    holds_tree,
    one_tree_proves,
    share_of_nodes,
    ways,
)
from .core.problem import SparseRidgeProblem, checked_sizes
from .core.result import Answer, Status, worst
from .core.threads import cached
from .kernels.linalg import Array
from .leaps.all_sizes import (
    MAX_CERTAIN_SPREAD,
    SizesTree,
    best_subsets,
    coefficient_spread,
)
from .leaps.gamma_trees import GammaTrees, Listed
from .relaxation.perspective import Relaxation, perspective_relaxation
from .supports.path import SupportGrower
from .supports.rounding import Support, largest, stacked

Supports = NDArray[np.int64]
# Seconds for swaps at the first γ where the time is up before it. Every γ after takes its supports.
LEAST_SECONDS_AT_FIRST_GAMMA = 0.05
# Where all sizes are to be proved, the tree of one γ takes turns with other searches from this many
# nodes on, which take about half a second at 35 columns (measured).
NODES_OF_A_PROOF = 20_000_000
# After a tree that was left open, the next trees get this share of its nodes until one of them
# ends. Where the searches at a γ have reached a limit of nodes, all searches at the next γ get this
# share of the limit. So where all trees of a problem are large, ten γ take about twice the time of
# one: a choice.
SHARE_OF_NODES_AFTER_AN_OPEN_TREE = 0.1
LIMITS_REACHED = (Status.NODE_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED)


class AtGamma(NamedTuple):
    """What is known of every size at one γ: supports, and what their bounds follow from.

    Objectives and bounds follow when the supports of all γ are fitted together.

    supports, shape (τ, most): Increasing columns, ended by −1.
    proved, searched, shape (τ,): As of :class:`~sparsecv.solvers.ridge_fits.SupportPath`.
    lower_bound, shape (τ,): Proved bounds, less rounding, of searches on single sizes, or 0.
    tree_bound, shape (τ,): What a tree of all sizes says of the objectives of all supports: ∞ where
        the support is the best, 0 where nothing. Rounding is to be taken off.
    reach: The number ``reach`` of that tree, on which the rounding of its bounds depends.
    n_nodes, n_trees: Of the searches at this γ.
    status: The limit that a search has met; optimal without one, whatever is proved.
    unfinished: The answers of a search of all sizes that was left open.
    left_open: Whether the last tree was left before its end.
    gave_up: Whether the last searches have reached a limit.
    """

    supports: Supports
    proved: NDArray[np.bool_]
    searched: NDArray[np.bool_]
    lower_bound: Array
    tree_bound: Array
    reach: float = 0.0
    n_nodes: int = 0
    n_trees: int = 0
    status: Status = Status.OPTIMAL
    unfinished: list[Answer] | None = None
    left_open: bool = False
    gave_up: bool = False

    @classmethod
    def of_supports(cls, supports: Supports, status: Status = Status.OPTIMAL) -> AtGamma:
        """Supports of which nothing is proved."""
        no, zero = np.zeros(len(supports), dtype=bool), np.zeros(len(supports))
        return cls(
            supports=supports,
            proved=no,
            searched=no,
            lower_bound=zero,
            tree_bound=zero,
            status=status,
        )

    @classmethod
    def of_answers(
        cls, found: list[Answer], most: int, where: NDArray[np.bool_] | None = None
    ) -> AtGamma:
        """What one search has found.

        where, shape (τ,): The sizes that it has searched, all by default. The others have no
            support.
        """
        where = np.ones(len(found), dtype=bool) if where is None else where
        supports = np.full((where.size, most), -1, dtype=np.int64)
        supports[where] = stacked([one.support for one in found], most)
        proved, bound = np.zeros(where.size, dtype=bool), np.zeros(where.size)
        proved[where] = [one.proved for one in found]
        bound[where] = [max(one.lower_bound, 0.0) for one in found]
        return cls(
            supports=supports,
            proved=proved,
            searched=where,
            lower_bound=bound,
            tree_bound=np.zeros(where.size),
            n_nodes=found[0].n_nodes,
            n_trees=1,
            unfinished=None if proved[where].all() else found,
        )

    def columns(self) -> list[Support]:
        """The support of every size."""
        return [row[row >= 0] for row in self.supports.astype(np.intp)]


class PathProblem:
    """A problem at all γ of a path, and what these share, which is made at its first use.

    problem: Gives the data and the constraints on columns.
    sizes, shape (τ,): The support sizes, increasing and distinct.
    at: The problem at every γ, in the order in which they are answered.
    most: The most columns of a support. With groups a size is a number of groups, not of columns.
    nothing, unbounded, shape (τ,): Bounds of 0 and of ∞, which nobody may change.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        gammas: Sequence[float] | Array,
        sizes: ArrayLike,
        listed: Listed | None = None,
    ) -> None:
        self.problem, self.sizes = problem, checked_sizes(problem, np.asarray(sizes))
        self.at = [problem.replace(gamma=float(gamma)) for gamma in gammas]
        self.most = problem.p if problem.constraints.grouped else int(self.sizes[-1])
        self.nothing, self.unbounded = np.zeros(self.sizes.size), np.full(self.sizes.size, np.inf)
        self._gammas, self._listed = gammas, listed or {}
        self._grower: SupportGrower | None = None

    @cached
    def trees(self) -> GammaTrees | None:
        """The trees of all sizes; None where the plan has none or they have no room."""
        problem = self.problem
        if not (one_tree_proves(problem.constraints) and holds_tree(problem)):
            return None
        return GammaTrees(problem, self._gammas, self.sizes, self._listed)

    @property
    def listed(self) -> Listed:
        """What trees of all sizes have listed so far."""
        trees = self.__dict__.get("trees")
        return {} if trees is None else trees.listed

    def grown(self, problem: SparseRidgeProblem, limits: Limits) -> Supports:
        """Good supports of the problem at one of the γ, by forward steps and swaps."""
        sizes = self.sizes.tolist()
        if self._grower is None:
            self._grower = SupportGrower(problem, sizes)
        by_size = self._grower.at(problem.gamma, [], limits)
        return stacked([by_size[size] for size in sizes], self.most)


class Asked(NamedTuple):
    """One γ of a path.

    to_come: How many γ are still to be answered, this one included.
    """

    path: PathProblem
    problem: SparseRidgeProblem
    to_come: int

    def grown(self, previous: AtGamma | None, limits: Limits) -> Supports:
        """Good supports within an equal share of the time that is left, without a node limit.

        At the first γ swaps get ``LEAST_SECONDS_AT_FIRST_GAMMA`` even if no time is left.
        """
        share = limits.share(self.to_come)
        left = share.remaining()
        if left is not None and previous is None:
            share = Limits(max(left, LEAST_SECONDS_AT_FIRST_GAMMA), None, limits.stop)
        return self.path.grown(self.problem, share)


class Solver(ABC):
    """A way to answer every size of a problem at one γ; it has settings alone, and no state."""

    @abstractmethod
    def answer(self, asked: Asked, previous: AtGamma | None, limits: Limits) -> AtGamma:
        """Answer one γ.

        previous: The answer at the γ before; None at the first γ.
        limits: Those of all γ together.
        """


class Grown(Solver):
    """Finds good supports and proves nothing; at every γ independently of other γ."""

    def answer(self, asked: Asked, previous: AtGamma | None, limits: Limits) -> AtGamma:
        """Answer one γ by forward steps and swaps."""
        return AtGamma.of_supports(asked.grown(previous, limits))


class Rounded(Grown):
    """Rounds the relaxation, as in the stability paper; under constraints supports are grown."""

    def answer(self, asked: Asked, previous: AtGamma | None, limits: Limits) -> AtGamma:
        """Answer one γ by the columns of the relaxation's largest coefficients."""
        if not asked.problem.constraints.plain:
            return super().answer(asked, previous, limits)
        found = []
        relaxed: Relaxation | None = None
        for size in asked.path.sizes.tolist():
            at_size = asked.problem.replace(tau=size)
            relaxed = perspective_relaxation(at_size, warm_start=relaxed, gap=1e-5)
            found.append(largest(np.abs(relaxed.beta), size))
        return AtGamma.of_supports(stacked(found, asked.path.most))


class Exact(Solver):
    """Searches until everything is proved: by trees of all sizes, then as the plan says."""

    # Whether the support of a size counts whose search a limit has ended. It depends on where the
    # search has stopped.
    keeps_unproved = True

    def answer(self, asked: Asked, previous: AtGamma | None, limits: Limits) -> AtGamma:
        """Answer one γ by searches."""
        found = self.by_tree(asked, previous, limits)
        return self.without_tree(asked, previous, limits) if found is None else found

    def without_tree(self, asked: Asked, previous: AtGamma | None, limits: Limits) -> AtGamma:
        """Answer one γ where there is no tree of all sizes to begin with."""
        every = np.ones(asked.path.sizes.size, dtype=bool)
        left_open = previous is not None and previous.left_open
        return self.by_searches(asked, previous, limits, every, left_open)

    def nodes_of_a_tree(self, asked: Asked, left_open: bool) -> int:
        """Nodes after which the tree of one γ is left; the problem's own trees alone decide.

        left_open: Whether the tree before was.
        """
        share = SHARE_OF_NODES_AFTER_AN_OPEN_TREE if left_open else 1.0
        return int(share_of_nodes(asked.problem.constraints) * int(self.first_nodes * share))

    @property
    def first_nodes(self) -> int:
        """Nodes after which the tree of the first γ is left."""
        return NODES_OF_A_PROOF

    def limits_of_searches(
        self, asked: Asked, previous: AtGamma | None, limits: Limits, left_open: bool
    ) -> Limits:
        """The limits of the searches at one γ that follow its tree of all sizes.

        left_open: Whether that tree, or without one the tree of the γ before, was left open.
        """
        if previous is None or not previous.gave_up or limits.node_limit is None:
            return limits
        return limits.within(nodes=int(SHARE_OF_NODES_AFTER_AN_OPEN_TREE * limits.node_limit))

    def by_tree(self, asked: Asked, previous: AtGamma | None, limits: Limits) -> AtGamma | None:
        """The answer by the tree of all sizes, and for what it leaves open by other searches.

        Returns: None where there is no tree, or the columns are not independent enough for it.
        """
        path, at, trees = asked.path, asked.problem, asked.path.trees
        if trees is None:
            return None
        # At a tiny γ a tree of unit length may know better, or enumeration of dependent columns.
        tree, spread = trees.tree, trees.tree.stretch * coefficient_spread(at)
        if spread > MAX_CERTAIN_SPREAD:
            return None
        nodes = self.nodes_of_a_tree(asked, previous is not None and previous.left_open)
        status = trees.search(at, limits.within(nodes=nodes))
        if status is None:
            return None
        here = trees.todo[tree.inner]
        ended = status is Status.OPTIMAL
        proved, bound = ~here | ended, path.unbounded
        if ended and trees.table.bounded:
            bound = tree.open_bound()
        known = trees.best[tree.inner[proved]], path.sizes[proved], path.most
        chosen = trees.table.supports(*known)
        if not proved.all():
            going_on = trees.going_on(at, here)
            rest = self.by_searches(asked, previous, limits, here, True, going_on)
            rest.supports[proved, : chosen.shape[1]] = chosen
            return rest._replace(
                proved=rest.proved | proved,
                tree_bound=np.where(proved, bound, 0.0),
                reach=tree.reach,
            )
        supports = chosen
        if chosen.shape[1] < path.most:
            supports = np.full((here.size, path.most), -1, dtype=np.int64)
            supports[:, : chosen.shape[1]] = chosen
        return AtGamma(
            supports=supports,
            proved=proved,
            searched=here,
            lower_bound=path.nothing,
            tree_bound=bound,
            reach=tree.reach,
            n_nodes=tree.n_nodes,
            n_trees=int(here.any()),
        )

    def by_searches(
        self,
        asked: Asked,
        previous: AtGamma | None,
        limits: Limits,
        where: NDArray[np.bool_],
        left_open: bool,
        tree: SizesTree | None = None,
    ) -> AtGamma:
        """Prove some sizes by the searches of the plan.

        where, shape (τ,): The sizes. The others have no support in the answer.
        left_open: As of :meth:`limits_of_searches`.
        tree: The tree of all sizes that was left open at this γ.
        """
        path, sizes = asked.path, asked.path.sizes[where]
        within = self.limits_of_searches(asked, previous, limits, left_open)
        starts = [] if previous is None else previous.columns()
        search = SizeSearch(asked.problem, sizes, starts, tree=tree).run(within)
        found, status = search.answers, worst(one.status for one in search.answers)
        gave_up, rest = status in LIMITS_REACHED, AtGamma.of_answers(found, path.most, where)
        unproved = where & ~rest.proved
        if gave_up and not self.keeps_unproved:
            rest.supports[unproved] = asked.grown(previous, limits)[unproved]
            rest, status = rest._replace(unfinished=None), limits.reached(0) or Status.OPTIMAL
        return rest._replace(
            n_nodes=search.n_nodes,
            n_trees=search.n_trees,
            status=status,
            left_open=tree is not None or gave_up,
            gave_up=gave_up,
        )


class Timed(Exact):
    """Searches like :class:`Exact` for an equal share of the time at every γ.

    Sizes that are left open have the supports of a search without a proof, which the data and γ
    alone decide, and not where the search has stopped. Beyond 45 columns a short tree is searched,
    or every support where supports are few.
    """

    keeps_unproved = False

    def without_tree(self, asked: Asked, previous: AtGamma | None, limits: Limits) -> AtGamma:
        """Answer one γ by searches that are worth their time, and else by good supports."""
        problem, path = asked.problem, asked.path
        if estimates_search(problem, path.sizes):
            return super().without_tree(asked, previous, limits)
        found = AtGamma.of_supports(asked.grown(previous, limits))
        if not (problem.constraints.plain and holds_tree(problem)):
            return found
        trees = [way for way in ways(problem, path.sizes) if way.search == LEAPS]
        # The plan has no tree for a single size, as branch and bound proves it sooner.
        first = trees[0] if trees else Way(LEAPS, nodes=20_000, share=0.25)
        starts, short = found.columns(), first.within(limits)
        tree = best_subsets(problem, sizes=path.sizes, warm_starts=starts, limits=short)
        return AtGamma.of_answers(tree, path.most)

    def limits_of_searches(
        self, asked: Asked, previous: AtGamma | None, limits: Limits, left_open: bool
    ) -> Limits:
        """An equal share of the time that is left."""
        return limits.share(float(asked.to_come))


class Estimated(Timed):
    """Searches few nodes, so that the answer does not depend on the speed of the machine."""

    @property
    def first_nodes(self) -> int:
        """Nodes after which the tree of the first γ is left."""
        return FIRST_NODES

    def limits_of_searches(
        self, asked: Asked, previous: AtGamma | None, limits: Limits, left_open: bool
    ) -> Limits:
        """As many nodes as a tree may have."""
        return limits.within(nodes=self.nodes_of_a_tree(asked, left_open))


# The ways by name: tasks of other processes name a way.
SOLVERS: dict[str, Solver] = {
    "auto": Timed(),
    "estimate": Estimated(),
    "exact": Exact(),
    "heuristic": Grown(),
    "rounding": Rounded(),
}
