"""Supports, coefficients and proofs of one problem at every γ and size: the unit of work above."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .branching.size_sweep import SizeSearch
from .core.constraints import UnitConstraints
from .core.limits import Limits
from .core.plan import (
    FIRST_NODES,
    LEAPS,
    TURNS,
    Way,
    estimates_search,
    holds_tree,
    one_tree_proves,
    ways,
)
from .core.problem import SparseRidgeProblem, checked_sizes
from .core.result import Status, worst
from .core.threads import on_one_thread
from .kernels.fits import ridge_fits, ridge_triangle
from .kernels.linalg import EPS, Array, mask_columns
from .leaps.all_sizes import (
    MAX_CERTAIN_SPREAD,
    BestSubsets,
    SizesTree,
    best_subsets,
    coefficient_spread,
    ranking,
    rounding_margin,
)
from .leaps.leaps_node import wanted_from
from .leaps.tree import NOTHING, Leaps
from .relaxation.perspective import Relaxation, perspective_relaxation
from .ridge_fits import Listed, Support, SupportPath, fit_supports
from .supports.path import SupportGrower
from .supports.rounding import largest, stacked

SOLVERS = ("auto", "estimate", "exact", "heuristic", "rounding")
# Seconds for swaps at the first γ where the time is up before it: every γ after takes its supports,
# so that a moment spent there pays.
LEAST_SECONDS_AT_FIRST_GAMMA = 0.05
# Within bounds on coefficients a tree gets this share of the nodes that it gets without, as its
# nodes take about ten times as long (measured at 20 columns).
SHARE_OF_NODES_WITHIN_BOUNDS = 0.1
# Where all sizes are to be proved, the tree of one γ takes turns with other searches from this many
# nodes on, which take about half a second at 35 columns (measured).
NODES_OF_A_PROOF = TURNS[1][0]
# After a tree that was left open, the next trees get this share of its nodes until one of them
# ends. Where the searches at a γ have reached a limit of nodes, all searches at the next γ get this
# share of the limit. So where all trees of a problem are large, ten γ take about twice the time of
# one: a choice.
SHARE_OF_NODES_AFTER_AN_OPEN_TREE = 0.1
# Two γ are near each other if their places on ``ridge_scale`` differ by less than this number. The
# number is a choice.
NEAR = 0.7
LIMITS_REACHED = (Status.NODE_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED)


@on_one_thread
def support_path(
    problem: SparseRidgeProblem,
    gammas: Sequence[float] | Array,
    sizes: ArrayLike,
    *,
    solver: str = "exact",
    limits: Limits | None = None,
    listed: Listed | None = None,
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
    if searches and one_tree_proves(constraints) and holds_tree(problem):
        trees = _Trees(problem, gammas, wanted, listed or {})
    path = _Path(problem, gammas, wanted, solver, limits or Limits(), trees)
    for g in range(len(path.at)):
        path.answer(g)
    return path.result()


@on_one_thread
def path_of_one_tree(
    problem: SparseRidgeProblem, sizes: ArrayLike, starts: Sequence[Support], limits: Limits
) -> SupportPath:
    """Answer every size at the problem's γ by one tree of all sizes, whether it ends or not.

    starts: Supports that the tree starts from.
    """
    wanted = checked_sizes(problem, np.asarray(sizes))
    path = _Path(problem, [problem.given_gamma], wanted, "exact", limits, None)
    path.one_tree(0, starts, limits)
    return path.result()


def ridge_scale(problem: SparseRidgeProblem, gammas: Sequence[float] | Array) -> Array:
    """Places of some γ on a scale on which trees of γ less than ``NEAR`` apart are much alike.

    The place of γ is log(γ + c), as a γ far below c hardly changes a fit. Here c is the harmonic
    mean of the eigenvalues of XᵀX, which is 0 where columns depend on each other.
    """
    values, c = problem.data.singular[1], 0.0
    if values.size == problem.p and values[-1] > 0.0:
        c = 1.0 / float(np.mean(values**-2.0))
    return np.asarray(np.log(np.maximum(np.asarray(gammas) + c, 1e-12)))


def value_between(low: Array, high: Array, share: Array, yy: float) -> Array:
    """A lower bound on objectives f between two γ, as 1/(yᵀy − f) is at least its chord.

    low, high: Lower bounds on f at the two γ.
    share: Where the γ is between them, from 0 to 1.
    """
    # 16·EPS is more than the few roundings of the formula.
    left, right = np.maximum(yy - low, 1e-16 * yy), np.maximum(yy - high, 1e-16 * yy)
    gain = left * right / ((1.0 - share) * right + share * left)
    return np.asarray(yy - gain * (1.0 + 16.0 * EPS) - 16.0 * EPS * yy)


def share_of_nodes(constraints: UnitConstraints) -> float:
    """The share of a number of nodes that a tree gets under some constraints."""
    return SHARE_OF_NODES_WITHIN_BOUNDS if constraints.bounded else 1.0


class _Trees:
    """Trees of all sizes at one γ after the other, in the same arrays, up to 45 columns.

    Where thousands of small problems are solved in turn, setting up a tree and fitting its answers
    takes far longer than the search. Every γ starts from the supports at the γ before. A tree also
    lists runners-up of every size, and bounds the objective f of all supports that it does not
    list. As f grows with γ, and 1/(yᵀy − f) is concave in γ (``kernels.envelope``), bounds at a
    smaller and at a larger γ bound f in between. Where a listed support is below that, the best of
    the listed supports is optimal and no tree is searched.

    problem, gammas: As of the path.
    sizes, shape (τ,): Those of the path. The tree has each of them once, at most the number of
        columns that are not zero.
    listed: What trees of the problem have listed elsewhere.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        gammas: Sequence[float] | Array,
        sizes: NDArray[np.intp],
        listed: Listed,
    ) -> None:
        self.tree, self.yy = Leaps(problem, sizes, begun=False), problem.yy
        self.table = table = self.tree.table
        columns, triangular = table.data.columns
        m, p = table.units.size, table.columns.size
        if not np.array_equal(table.columns, np.arange(columns.shape[0] - 1)):
            columns, triangular = columns[np.append(table.columns, -1)], False
        self.columns, self.triangular = columns, triangular
        self.sizes = np.unique(self.tree.inner)
        # A tree lists supports whose loss exceeds the least loss of their size by at most 5 %, and
        # at most four of a size. With at most 16 columns no bound is proved, because searching such
        # a tree again is faster. The three numbers are measured. Nor is one where no two γ are near
        # each other: then a tree proves hardly a size at another γ. Within bounds on coefficients
        # 1/(yᵀy − f) is not concave.
        self.margin, self.listed, known = 0.0, dict(listed), sorted({*gammas, *listed})
        if table.bounded:
            self.listed = {}
        elif m > 16 and len(known) > 1 and (np.diff(ridge_scale(problem, known)) < NEAR).any():
            self.margin = 0.05
        self.todo = np.zeros(m + 1, dtype=bool)
        self.best = self.tree.best = np.full((m + 1, m), -1, dtype=np.int64)
        order = np.empty((3, p), dtype=np.int64)
        self.work = self.tree.tree.triangle, np.empty_like(columns), order
        self.coef, self.every = np.empty((8 * (m + 1), p)), np.arange(p)

    def search(self, at: SparseRidgeProblem, limits: Limits) -> Status | None:
        """Write the best support of every size at the γ of ``at`` to ``best``, by one tree.

        Sizes whose best support is known from supports that were listed at other γ are not
        searched again (:meth:`told_by_lists`). Afterwards ``todo`` marks the sizes that the tree
        has searched. These sizes have new lists and bounds if the search has ended and ``margin``
        is above 0.

        at: The problem at the new γ, on the same data.
        Returns: OPTIMAL, or the limit at which the search has stopped, so that ``best`` may not be
            optimal. None where nothing is searched because the columns have no triangular factor:
            with γ = 0 nothing is left of a column beside the columns before it.
        """
        tree, lists, ridge = self.tree, self.tree.lists, at.gamma / 2.0
        m = self.table.units.size
        # The factor of all columns is written to R, the array from which the tree makes its root.
        given, (R, work, _) = (self.columns, self.every, self.every.size, ridge), self.work
        if not ridge_triangle(R, *given, self.triangular, work, 0.0):
            return None
        tree.at_ridge(ridge)
        self.todo[self.sizes] = True
        if self.listed:
            tree.begin()
            self.todo &= ~self.told_by_lists(at.gamma, float(tree.now("tie")))
        sizes = np.flatnonzero(self.todo)
        if not sizes.size:
            return Status.OPTIMAL
        lists.next_wanted[:] = wanted_from(sizes, m)
        # Of every size the tree finds the five supports of least loss, as far as their losses
        # exceed the least by at most the margin. A loss is the objective less ``full``, the
        # objective of the fit on all columns.
        lists.now["rank"], lists.now["margin"] = 5, self.margin
        status, tie = tree.run(limits, self.best), float(tree.now("tie"))
        losses = lists.loss[sizes, 0]
        if status is Status.OPTIMAL and self.margin > 0.0:
            # A support that is not among the first four of its list has at least this loss: it is
            # no better than the fifth, or it lies below a node that the search has passed over,
            # because the node's loss is above ``max_searched``.
            others = np.minimum(lists.max_searched[sizes, 0], losses[:, 4])
            bound, masks = np.full(m + 1, -np.inf), np.zeros_like(lists.found[: m + 1, 0, :4])
            bound[sizes] = (tree.now("full") + others) * (1.0 - tie)
            found, known = lists.found[sizes, 0, :4], losses[:, :4, None] < np.inf
            masks[sizes] = np.where(known, found, np.uint64(0))
            if at.gamma in self.listed:  # An earlier tree has listed other sizes.
                old, new = self.listed[at.gamma], bound > -np.inf
                bound = np.where(new, bound, old[0])
                masks = np.where(new.reshape(-1, *[1] * (masks.ndim - 1)), masks, old[1])
            self.listed[at.gamma] = bound, masks
        # Where rounding may have exchanged the first supports of a list, fresh fits decide.
        if status is not Status.OPTIMAL:
            return status
        best = tree.best_sizes()[sizes]
        losses = lists.loss[best, 0]
        again = losses[:, 1] <= tree.tied(losses[:, 0])
        if self.table.bounded:  # The support of a smaller size, which may not be wanted, serves.
            again |= lists.next_wanted[best] != best
        for size in np.unique(best[again]).tolist() if again.any() else ():
            options = tree.listed(size)
            fits = [at.fit(self.table.support(members)) for members in options]
            self.best[size] = stacked([options[ranking(fits, options)[0]]], m)
        if self.table.bounded:
            self.best[sizes] = self.best[best]
        return status

    def told_by_lists(self, gamma: float, tie: float) -> NDArray[np.bool_]:
        """Sizes whose best support at γ is a listed one, shape (p + 1,); it is put in ``best``.

        tie: Relative difference of objectives that rounding may make.
        """
        gammas = np.array(sorted(self.listed))
        bounds = np.array([self.listed[known][0] for known in gammas])
        listed = np.array([self.listed[known][1] for known in gammas])
        has, smaller, every = bounds > -np.inf, gammas[:, None] <= gamma, np.arange(self.todo.size)
        between = (has & ~smaller).any(axis=0)
        told: NDArray[np.bool_] = np.logical_or.reduce(has & smaller)
        if not told.any():
            return told
        low = gammas.size - 1 - (has & smaller)[::-1].argmax(axis=0)
        high = np.where(between, (has & ~smaller).argmax(axis=0), low)
        apart = gammas[high] - gammas[low]
        share = (gamma - gammas[low]) / np.where(apart > 0.0, apart, 1.0)
        bounds = np.maximum(bounds, 0.0)
        bound = value_between(bounds[low, every], bounds[high, every], share, self.yy)
        bound = np.maximum(bound, bounds[low, every])
        masks = np.concatenate([listed[low, every], listed[high, every]], axis=1)
        twice = (masks[:, 4:, None] == masks[:, None, :4]).all(axis=3).any(axis=2)
        masks[:, 4:][twice] = 0
        # A row without a support gets yᵀy, the largest value.
        values = np.empty(masks.shape[:2])
        supports = mask_columns(masks.reshape(values.size, -1), self.table.units.size)
        columns = self.table.expanded(supports)
        supports = supports.reshape(*values.shape, -1)
        given = self.columns, gamma / 2.0, self.triangular, columns
        if ridge_fits(*given, self.coef, values.reshape(-1), self.work, 0.0) > 0:
            return np.zeros_like(told)
        least = values.min(axis=1)
        n_tied = (values <= least[:, None] * (1.0 + 2.0 * tie)).sum(axis=1)
        told &= (least * (1.0 + tie) < bound) & (n_tied == 1)
        self.best[told] = supports[told, values[told].argmin(axis=1)]
        return told

    def going_on(self, at: SparseRidgeProblem, where: NDArray[np.bool_]) -> SizesTree:
        """The tree that has stopped at a γ, for some sizes of the path; ends at the next γ."""
        tree = copy(self.tree)
        tree.best = NOTHING
        tree.problem, tree.sizes, tree.inner = at, tree.sizes[where], tree.inner[where]
        return SizesTree(at, tree.sizes, tree=tree)


class _Path:
    """The answers ``found``, gathered γ by γ; ``at`` holds the problem at every γ.

    problem: Gives the data and the constraints on columns.
    gammas: The values of γ in the order in which they are answered.
    sizes, shape (τ,): The support sizes, increasing and distinct.
    solver: One of ``SOLVERS``.
    limits: The limits of all γ together.
    trees: The trees of all sizes, at most 45 columns; None where the solver or the problem does
        not allow them.
    """

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
        self.at, self.trees = [problem.replace(gamma=float(gamma)) for gamma in gammas], trees
        constraints, count = problem.constraints, len(self.at)
        self.plain = constraints.plain
        # The most columns of a support. With groups a size is a number of groups, not of columns.
        most = problem.p if constraints.grouped else int(sizes[-1])
        supports = np.full((count, sizes.size, most), -1, dtype=np.int64)
        # The result names the γ that the user gave. The problems may work with another γ, because
        # a tiny one takes the place of 0.
        given = np.array([at.given_gamma for at in self.at])
        self.found, self.done = SupportPath.empty(given, sizes, supports), np.zeros(count, bool)
        # The number ``reach`` of the tree that has proved a size, which the rounding of its bound
        # depends on; NaN where another search has.
        self.reach = np.full(supports.shape[:2], np.nan)
        # The numbers ``stretch`` times the spread, and ``left_out``, of the tree of every γ.
        self.spread, self.left_out = np.zeros((2, count))
        # What such a tree says of the objectives of all supports; ∞ where the support is the best.
        self.tree_bound = np.full(supports.shape[:2], np.inf)
        self.statuses: list[Status] = []
        self.left_open = False  # Whether the last tree was left before its end.
        self.gave_up = False  # Whether the searches at the last γ have reached a limit.
        self.grower: SupportGrower | None = None

    def answer(self, g: int) -> None:
        """Answer every size at the g-th γ by the solver asked for."""
        problem, reached = self.at[g], self.limits.reached(0)
        if reached is not None:
            self.statuses.append(reached)
            if self.done.any():
                working = np.array([at.gamma for at in self.at])
                away = np.abs(np.log(working / working[g]))
                supports = self.found.supports
                supports[g] = supports[int(np.argmin(np.where(self.done, away, np.inf)))]
            else:
                self.without_proof(g)
            self.done[g] = True
        elif self.solver == "rounding" and self.plain:
            self.enter(g, rounded_supports(problem, self.sizes))
        elif self.solver in ("heuristic", "rounding"):
            self.without_proof(g)
        elif self.trees is not None and self.by_tree(self.trees, g):
            pass
        elif self.solver == "exact" or estimates_search(problem, self.sizes):
            self.prove(g, np.ones(self.sizes.size, dtype=bool))
        else:
            self.without_proof(g)
            if self.plain and holds_tree(problem):
                self.short_tree(g)

    def by_tree(self, trees: _Trees, g: int) -> bool:
        """Answer the g-th γ by the tree of all sizes; whether columns are independent enough."""
        at, found, inner = self.at[g], self.found, trees.tree.inner
        # At a tiny γ a tree of unit length may know better, or enumeration of dependent columns.
        self.spread[g] = trees.tree.stretch * coefficient_spread(at)
        if self.spread[g] > MAX_CERTAIN_SPREAD:
            return False
        nodes = int(share_of_nodes(self.problem.constraints) * self._most_nodes())
        status = trees.search(at, self.limits.within(nodes=nodes))
        if status is None:
            return False
        self.left_open = status is not Status.OPTIMAL
        self.gave_up &= self.left_open
        here = trees.todo[inner]
        proved = ~here | (status is Status.OPTIMAL)
        found.n_nodes[g], found.n_trees[g] = trees.tree.n_nodes, here.any()
        found.searched[g] = here
        if not proved.all():
            self.prove(g, here, trees.going_on(at, here))
        members, most = trees.best[inner[proved]], found.supports.shape[2]
        chosen = trees.table.supports(members, self.sizes[proved], most)
        found.supports[g, proved, : chosen.shape[1]] = chosen
        found.proved[g, proved], self.done[g] = True, True
        self.reach[g, proved], self.left_out[g] = trees.tree.reach, trees.tree.left_out(at)
        if status is Status.OPTIMAL and trees.table.bounded:
            self.tree_bound[g] = trees.tree.open_bound()
        return True

    def prove(self, g: int, where: NDArray[np.bool_], tree: SizesTree | None = None) -> None:
        """Prove some sizes at the g-th γ by the searches of the plan.

        With another solver than "exact" sizes that are left open have the supports of a search
        without a proof, which the data and γ alone decide, and not where the search has stopped.
        """
        limits, sizes = self.limits, self.sizes[where]
        if self.solver == "auto":
            limits = limits.share(float(len(self.at) - g))
        elif self.solver == "estimate":
            nodes = int(share_of_nodes(self.problem.constraints) * self._most_nodes())
            limits = limits.within(nodes=nodes)
        elif self.gave_up and limits.node_limit is not None:
            nodes = int(SHARE_OF_NODES_AFTER_AN_OPEN_TREE * limits.node_limit)
            limits = limits.within(nodes=nodes)
        starts = self.found.at(g - 1) if g > 0 and self.done[g - 1] else []
        found = SizeSearch(self.at[g], sizes, starts, tree=tree).run(limits).subsets(0.0)
        better = np.ones(sizes.size, dtype=bool)
        self.gave_up = found.status in LIMITS_REACHED
        self.left_open = tree is not None or self.gave_up
        if self.solver != "exact" and found.status in LIMITS_REACHED:
            better = found.proved
            self.without_proof(g)
        self.take(g, found, where, better)
        if not better.all():
            del self.found.unfinished[g]
        reached = self.limits.reached(0)
        self.statuses.append(found.status if better.all() else reached or Status.OPTIMAL)

    def _most_nodes(self) -> int:
        """Nodes after which the tree of one γ is left; the problem's own trees alone decide."""
        nodes = FIRST_NODES if self.solver == "estimate" else NODES_OF_A_PROOF
        return int(nodes * (SHARE_OF_NODES_AFTER_AN_OPEN_TREE if self.left_open else 1.0))

    def short_tree(self, g: int) -> None:
        """Prove what a short tree of all sizes can prove, of more than 45 columns."""
        trees = [way for way in ways(self.at[g], self.sizes) if way.search == LEAPS]
        # The plan has no tree for a single size, as branch and bound proves it sooner.
        first = trees[0] if trees else Way(LEAPS, nodes=20_000, share=0.25)
        self.one_tree(g, self.found.at(g), first.within(self.limits))

    def one_tree(self, g: int, starts: Sequence[Support], limits: Limits) -> None:
        """Prove at the g-th γ what one tree of all sizes can prove within limits."""
        found = best_subsets(self.at[g], sizes=self.sizes, warm_starts=starts, limits=limits)
        every = np.ones(self.sizes.size, dtype=bool)
        self.take(g, found, every, every)

    def take(
        self, g: int, found: BestSubsets, where: NDArray[np.bool_], better: NDArray[np.bool_]
    ) -> None:
        """Enter what a search says of some sizes, and its supports of the ``better`` ones."""
        path = self.found
        rows = stacked(found.supports, path.supports.shape[2])
        path.supports[g, np.flatnonzero(where)[better]] = rows[better]
        path.lower_bound[g, where] = np.maximum(path.lower_bound[g, where], found.lower_bound)
        path.proved[g, where] |= found.proved
        path.searched[g, where] = self.done[g] = True
        path.n_nodes[g], path.n_trees[g] = found.n_nodes, found.n_trees
        if not found.proved.all():
            path.unfinished[g] = found

    def without_proof(self, g: int) -> None:
        """Enter good supports of one γ."""
        problem, sizes = self.at[g], self.sizes.tolist()
        if self.grower is None:
            self.grower = SupportGrower(problem, sizes)
        by_size = self.grower.at(problem.gamma, [], self._for_swaps(g))
        self.enter(g, [by_size[size] for size in sizes])

    def _for_swaps(self, g: int) -> Limits:
        """The limits of the swaps at the g-th γ.

        The time that is left is divided equally among this γ and those after it. Before the first
        γ is answered, the swaps get ``LEAST_SECONDS_AT_FIRST_GAMMA`` even if no time is left. There
        is no limit of nodes.
        """
        share = self.limits.share(len(self.at) - g)
        left = share.remaining()
        if left is None or self.done.any():
            return share
        return Limits(max(left, LEAST_SECONDS_AT_FIRST_GAMMA), None, self.limits.stop)

    def enter(self, g: int, supports: Sequence[Support]) -> None:
        """Answer the g-th γ by these supports."""
        self.found.supports[g] = stacked(supports, self.found.supports.shape[2])
        self.done[g] = True

    def result(self) -> SupportPath:
        """Fit the supports of all γ and gather the answers, once every γ has been answered.

        What a tree has proved gets the fitted objective, less rounding, as its lower bound.
        """
        path = self.found
        path.coef, path.objective = fit_supports(self.problem, path.gammas, path.supports)
        for g in np.flatnonzero(np.isfinite(self.reach).any(axis=1)).tolist():
            best, at = path.objective[g], self.at[g]
            margin = rounding_margin(best, self.problem.yy, self.reach[g], self.spread[g])
            margin += self.left_out[g] * best
            bound = np.minimum(best, self.tree_bound[g]) - margin - at.data_losses(best, self.sizes)
            by_tree = np.isfinite(self.reach[g])
            path.lower_bound[g, by_tree] = np.maximum(bound[by_tree], 0.0)
        path.lower_bound = np.minimum(path.lower_bound, path.objective)
        path.listed = {} if self.trees is None else self.trees.listed
        if not path.proved.all():
            self.statuses.append(Status.UNPROVED)
        path.status = worst(self.statuses)
        return path


def rounded_supports(problem: SparseRidgeProblem, sizes: NDArray[np.intp]) -> list[Support]:
    """Greedy rounding of the perspective relaxation at every size; the problem's τ is not used."""
    found = []
    relaxed: Relaxation | None = None
    for size in sizes.tolist():
        at_size = problem.replace(tau=size)
        relaxed = perspective_relaxation(at_size, warm_start=relaxed, gap=1e-5)
        found.append(largest(np.abs(relaxed.beta), size))
    return found
