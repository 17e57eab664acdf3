"""Supports, coefficients and proofs of one problem at every γ and size: the unit of work above."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .branching.size_sweep import SizeSearch
from .core.limits import Limits
from .core.plan import FIRST_NODES, LEAPS, TREE_ONLY, Way, few_supports, holds_tree, ways
from .core.problem import SparseRidgeProblem, checked_sizes
from .core.result import Status, worst
from .core.threads import on_one_thread
from .kernels.linalg import Array
from .leaps import tree as kernels
from .leaps.all_sizes import (
    MAX_CERTAIN_SPREAD,
    BestSubsets,
    SizesTree,
    best_subsets,
    coefficient_spread,
    ranking,
    rounding_margin,
)
from .relaxation.perspective import Relaxation, perspective_relaxation
from .ridge_fits import Support, SupportPath, fit_supports
from .supports.path import SupportGrower
from .supports.rounding import largest, pad_support, stacked
from .supports.unit_steps import UnitSteps

SOLVERS = ("auto", "estimate", "exact", "heuristic", "rounding")
# Seconds for swaps at the first γ where the time is up before it: every γ after takes its supports,
# so that a moment spent there pays.
LEAST_SECONDS_AT_FIRST_GAMMA = 0.05
# Under constraints a tree gets this share of the nodes that it gets without, as its nodes take so
# much longer: a choice.
SHARE_OF_NODES_OF_UNITS = 0.03
# After a short tree that was left open, the next trees get this share of its nodes until one of
# them ends. So where all trees of a problem are large, ten γ take about twice the time of one short
# tree, which takes 10 ms at 40 columns: a choice.
SHARE_OF_NODES_AFTER_AN_OPEN_TREE = 0.1
LIMITS_REACHED = (Status.NODE_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED)


@on_one_thread
def support_path(
    problem: SparseRidgeProblem,
    gammas: Sequence[float] | Array,
    sizes: ArrayLike,
    *,
    solver: str = "exact",
    limits: Limits | None = None,
) -> SupportPath:
    """Solve eq. (1), first paper, for every γ and size.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Gives the data; its γ and τ are not used.
    gammas : sequence of float
        Ridge weights, best in order: trees start from the γ before.
    sizes : sequence of int
        In 1..p.
    solver : str
        "exact": every problem to optimality. "heuristic": see :class:`SupportGrower`; every γ for
        itself. "rounding": the relaxation's largest entries, as in the stability paper. "estimate":
        as "heuristic", except for what a short tree proves, and where supports are few enough to
        look at each; up to 45 columns the tree has 200,000 nodes, and 20,000 where the tree of the
        γ before was left open. "auto": as "estimate", but up to 45 columns every γ is
        proved in its share of the time.
    limits : Limits, optional
        Where they are reached, a γ takes the supports of the nearest γ; the first goes on as
        heuristic, with forward steps and hardly a swap.

    Returns
    -------
    SupportPath
        Of supports tied within rounding up to 45 columns the lexicographically first.

    Raises
    ------
    ValueError
        Sizes out of 1..p, γ < 0, or an unknown solver.

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
    wanted = checked_sizes(problem, np.asarray(sizes))
    constraints, searches = problem.constraints, solver in ("auto", "estimate", "exact")
    trees = None
    if searches and constraints.plain and constraints.n_units <= TREE_ONLY:
        trees = _Trees(problem, wanted)
    path = _Path(problem, gammas, wanted, solver, limits or Limits(), trees)
    for g in range(path.gammas.size):
        path.answer(g)
    return path.result()


class _Trees:
    """Trees of all sizes at one γ after the other, in the same arrays, up to 45 columns.

    Where thousands of small problems are solved in turn, setting up a tree and fitting its answers
    takes far longer than the search. Every γ starts from the supports at the γ before.

    problem: Gives the data.
    sizes, shape (τ,): Those of the path. The tree has each of them once, at most the number of
        columns that are not zero.
    """

    def __init__(self, problem: SparseRidgeProblem, sizes: NDArray[np.intp]) -> None:
        self.tree = kernels.Leaps(problem, sizes, begun=False)
        self.active, (columns, triangular) = self.tree.active, problem.data.columns
        p = self.active.size
        if p < problem.p:
            columns, triangular = columns[np.append(self.active, problem.p)], False
        self.columns, self.triangular = columns, triangular
        self.sizes, self.at_size = np.unique(self.tree.inner, return_inverse=True)
        self.runners = kernels.RunnersUp(columns, triangular, self.sizes)
        self.found = np.full((self.sizes.size, p), -1, dtype=np.int64)
        self.known = 0  # How many rows of ``found`` hold a support.
        self.n_tied = np.empty(self.sizes.size, dtype=np.int64)
        self.work, self.rank = np.empty_like(columns), np.empty(p, dtype=np.int64)

    def search(self, at: SparseRidgeProblem, limits: Limits) -> Status | None:
        """Search the tree at a γ within limits; None where columns depend too nearly for it.

        Afterwards ``todo`` says which sizes the tree has searched. Of the others the supports at
        smaller γ have told the best one.
        """
        gamma, tree, sizes = at.gamma, self.tree.tree, self.sizes
        if not kernels.restart(tree, self.columns, gamma / 2.0, self.triangular, self.work):
            return None
        tie = float(self.tree.now("tie"))
        self.todo = self.runners.to_search(gamma, tie, self.found)
        if not self.todo.any():
            return Status.OPTIMAL
        self.runners.ask(tree.lists, self.todo)
        kernels.enter_incumbents(tree, self.found, sizes, self.known, self.rank)
        status = self.tree.run(limits)
        kernels.best_supports(tree, sizes, self.found, self.n_tied, self.todo)
        self.known = int(sizes.size)
        self.runners.note(tree.lists, gamma, self.todo)
        if status is not Status.OPTIMAL:
            self.runners.forget()
            return status
        for i in np.flatnonzero(self.todo & (self.n_tied > 1)).tolist():
            tied = self.tree.listed(int(sizes[i]))
            fits = [at.fit(self.active[support]) for support in tied]
            self.found[i, : sizes[i]] = tied[ranking(fits, tied)[0]]
        return status

    def going_on(self, at: SparseRidgeProblem, where: NDArray[np.bool_]) -> SizesTree:
        """The tree that has stopped at a γ, for some sizes of the path; ends at the next γ."""
        tree = copy(self.tree)
        tree.problem, tree.sizes, tree.inner = at, tree.sizes[where], tree.inner[where]
        return SizesTree(at, tree.sizes, tree=tree)


class _Path:
    """The answers gathered γ by γ; ``at`` holds the problem at every γ."""

    def __init__(
        self,
        problem: SparseRidgeProblem,
        gammas: Sequence[float] | Array,
        sizes: NDArray[np.intp],
        solver: str,
        limits: Limits,
        trees: _Trees | None,
    ) -> None:
        self.problem, self.sizes, self.solver, self.limits = problem, sizes, solver, limits
        self.trees = trees
        self.at = [problem.replace(gamma=float(gamma)) for gamma in gammas]
        self.gammas = np.array([at.given_gamma for at in self.at])
        shape, constraints = (len(self.at), sizes.size), problem.constraints
        self.plain, self.few = constraints.plain, constraints.n_units <= TREE_ONLY
        most = problem.p if constraints.grouped else int(sizes[-1])
        self.supports = np.full((*shape, most), -1, dtype=np.int64)
        self.lower, self.proved = np.zeros(shape), np.zeros(shape, dtype=bool)
        self.searched = np.zeros(shape, dtype=bool)
        self.n_nodes, self.n_trees = np.zeros((2, shape[0]), dtype=np.int64)
        self.done = np.zeros(shape[0], dtype=bool)
        # The number ``reach`` of the tree that has proved a size, which the rounding of its bound
        # depends on; NaN where another search has.
        self.reach = np.full(shape, np.nan)
        self.statuses: list[Status] = []
        self.unfinished: dict[int, BestSubsets] = {}
        self.left_open = False  # Whether the last short tree was left before its end.
        self.grower: SupportGrower | None = None

    def answer(self, g: int) -> None:
        """Answer every size at the g-th γ by the solver asked for."""
        problem, reached = self.at[g], self.limits.reached(0)
        if reached is not None:
            self.statuses.append(reached)
            if self.done.any():
                working = np.array([at.gamma for at in self.at])
                away = np.abs(np.log(working / working[g]))
                self.supports[g] = self.supports[int(np.argmin(np.where(self.done, away, np.inf)))]
            else:
                self.without_proof(g)
            self.done[g] = True
        elif self.solver == "rounding" and self.plain:
            self.enter(g, rounded_supports(problem, self.sizes))
        elif self.solver in ("heuristic", "rounding"):
            self.without_proof(g)
        elif self.trees is not None and self.by_tree(self.trees, g):
            pass
        elif (
            self.solver == "exact" or self.few or (self.plain and few_supports(problem, self.sizes))
        ):
            self.prove(g, np.ones(self.sizes.size, dtype=bool))
        else:
            self.without_proof(g)
            if self.plain and holds_tree(problem):
                self.short_tree(g)

    def by_tree(self, trees: _Trees, g: int) -> bool:
        """Answer the g-th γ by the tree of all sizes; whether columns are independent enough."""
        at, p, most = self.at[g], trees.active.size, self.supports.shape[2]
        # At a tiny γ a tree of unit length may know better, or enumeration of dependent columns.
        if at.gamma < self.problem.squared_lengths.sum() * (2.0 / MAX_CERTAIN_SPREAD) ** 2:
            return False
        status = trees.search(at, self.limits.within(nodes=self._most_nodes()))
        if status is None:
            return False
        self.left_open = status is not Status.OPTIMAL
        here = trees.todo[trees.at_size]
        proved = ~here | (status is Status.OPTIMAL)
        self.n_nodes[g], self.n_trees[g], self.searched[g] = trees.tree.n_nodes, here.any(), here
        if not proved.all():
            self.prove(g, here, trees.going_on(at, here))
        chosen = trees.found[trees.at_size[proved], :most]
        self.supports[g, proved, : chosen.shape[1]] = np.where(chosen < 0, -1, trees.active[chosen])
        for t in np.flatnonzero(proved & (self.sizes > p)).tolist():
            size = int(self.sizes[t])
            self.supports[g, t, :size] = pad_support(trees.active, size, self.problem.p)
        self.proved[g, proved], self.done[g] = True, True
        self.reach[g, proved] = trees.tree.reach
        return True

    def prove(self, g: int, where: NDArray[np.bool_], tree: SizesTree | None = None) -> None:
        """Prove some sizes at the g-th γ by the searches of the plan.

        With another solver than "exact" sizes that are left open have the supports of a search
        without a proof, which the data and γ alone decide, and not where the search has stopped.
        """
        limits, sizes = self.limits, self.sizes[where]
        if self.solver == "auto":
            limits = limits.share(float(self.gammas.size - g))
        elif self.solver == "estimate":
            share = 1.0 if self.plain else SHARE_OF_NODES_OF_UNITS
            limits = limits.within(nodes=int(share * self._most_nodes()))
        before = self.supports[g - 1] if g > 0 and self.done[g - 1] else self.supports[:0, 0]
        starts = [row[row >= 0].astype(np.intp) for row in before]
        found = SizeSearch(self.at[g], sizes, starts, tree=tree).run(limits).subsets(0.0)
        better = np.ones(sizes.size, dtype=bool)
        self.left_open = found.status in LIMITS_REACHED
        if self.solver != "exact" and found.status in LIMITS_REACHED:
            better = found.proved
            self.without_proof(g)
        self.take(g, found, where, better)
        if not better.all():
            del self.unfinished[g]
        reached = self.limits.reached(0)
        self.statuses.append(found.status if better.all() else reached or Status.OPTIMAL)

    def _most_nodes(self) -> int:
        """Nodes after which the tree of one γ is left; the problem's own trees alone decide."""
        shorter = self.left_open and self.solver != "exact"
        return int(FIRST_NODES * (SHARE_OF_NODES_AFTER_AN_OPEN_TREE if shorter else 1.0))

    def short_tree(self, g: int) -> None:
        """Prove what a short tree of all sizes can prove, of more than 45 columns."""
        trees = [way for way in ways(self.at[g], self.sizes) if way.search == LEAPS]
        # The plan has no tree for a single size, as branch and bound proves it sooner.
        first = trees[0] if trees else Way(LEAPS, nodes=20_000, share=0.25)
        starts = [row[row >= 0].astype(np.intp) for row in self.supports[g]]
        found = best_subsets(
            self.at[g], sizes=self.sizes, warm_starts=starts, limits=first.within(self.limits)
        )
        every = np.ones(self.sizes.size, dtype=bool)
        self.take(g, found, every, every)

    def take(
        self, g: int, found: BestSubsets, where: NDArray[np.bool_], better: NDArray[np.bool_]
    ) -> None:
        """Enter what a search says of some sizes, and its supports of the ``better`` ones."""
        rows = stacked(found.supports, self.supports.shape[2])
        self.supports[g, np.flatnonzero(where)[better]] = rows[better]
        self.lower[g, where] = np.maximum(self.lower[g, where], found.lower_bound)
        self.proved[g, where] |= found.proved
        self.searched[g, where] = self.done[g] = True
        self.n_nodes[g], self.n_trees[g] = found.n_nodes, found.n_trees
        if not found.proved.all():
            self.unfinished[g] = found

    def without_proof(self, g: int) -> None:
        """Enter good supports of one γ."""
        problem, sizes = self.at[g], self.sizes.tolist()
        if not self.plain:
            by_size = UnitSteps(problem).supports(sizes, [], self._for_swaps(g))
        else:
            if self.grower is None:
                left = self.limits.share(2.0).remaining()
                if left is not None:
                    left = max(left, LEAST_SECONDS_AT_FIRST_GAMMA)
                self.grower = SupportGrower(problem, sizes, [], Limits(left))
            by_size = self.grower.at(problem.gamma, [], self._for_swaps(g))
        self.enter(g, [by_size[size] for size in sizes])

    def _for_swaps(self, g: int) -> Limits:
        """This γ's share of the time, and a moment where nothing is left and nothing known."""
        share = self.limits.share(self.gammas.size - g)
        left = share.remaining()
        if left is None or self.done.any():
            return share
        return Limits(max(left, LEAST_SECONDS_AT_FIRST_GAMMA), None, self.limits.stop)

    def enter(self, g: int, supports: Sequence[Support]) -> None:
        """Answer the g-th γ by these supports."""
        self.supports[g] = stacked(supports, self.supports.shape[2])
        self.done[g] = True

    def result(self) -> SupportPath:
        """Fit the supports of all γ and gather the answers, once every γ has been answered.

        What a tree has proved gets the fitted objective, less rounding, as its lower bound.
        """
        coef, objective = fit_supports(self.problem, self.gammas, self.supports)
        for g in np.flatnonzero(np.isfinite(self.reach).any(axis=1)).tolist():
            best, spread = objective[g], coefficient_spread(self.at[g])
            margin = rounding_margin(best, self.problem.yy, self.reach[g], spread)
            bound = best - margin - self.at[g].data_losses(best, self.sizes)
            by_tree = np.isfinite(self.reach[g])
            self.lower[g, by_tree] = np.maximum(bound[by_tree], 0.0)
        if not self.proved.all():
            self.statuses.append(Status.UNPROVED)
        return SupportPath(
            self.gammas,
            self.sizes,
            self.supports,
            coef,
            objective,
            np.minimum(self.lower, objective),
            self.proved,
            self.searched,
            self.n_nodes,
            self.n_trees,
            worst(self.statuses),
            self.unfinished,
        )


def rounded_supports(problem: SparseRidgeProblem, sizes: NDArray[np.intp]) -> list[Support]:
    """Greedy rounding of the perspective relaxation at every size; the problem's τ is not used."""
    found = []
    relaxed: Relaxation | None = None
    for size in sizes.tolist():
        at_size = problem.replace(tau=size)
        relaxed = perspective_relaxation(at_size, warm_start=relaxed, gap=1e-5)
        found.append(largest(np.abs(relaxed.beta), size))
    return found
