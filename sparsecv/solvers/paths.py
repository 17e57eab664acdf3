"""Supports, coefficients and proofs of one problem at every γ and size: the unit of work above.

Where thousands of problems of a few columns are solved one after the other, setting a tree up and
fitting its answers costs far more than searching it. Here a tree's arrays are kept, its factor,
seeds, answers and fits are compiled, and every γ starts from the supports at the γ before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .branching.enumeration import enumerated, few_supports
from .branching.size_sweep import FIRST_NODES, HANDOVER, solve_sizes
from .core.limits import Limits
from .core.problem import SparseRidgeProblem, checked_sizes
from .core.result import Status, worst
from .core.threads import on_one_thread
from .kernels.linalg import Array
from .leaps import tree as kernels
from .leaps.all_sizes import (
    MAX_CERTAIN_SPREAD,
    MAX_COLUMNS,
    TREE_ONLY,
    BestSubsets,
    best_subsets,
    coefficient_spread,
    ranking,
    rounding_margin,
)
from .leaps.near_best import RunnersUp
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
        look at each; up to 45 columns the tree has 200,000 nodes. "auto": as "estimate", and up to
        45 columns the γ that are open are proved afterwards, from the largest to the smallest.
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
    found = _Answers(problem, gammas, wanted, limits or Limits())
    plain, few = problem.constraints.plain, problem.constraints.n_units <= TREE_ONLY
    if solver in ("auto", "estimate", "exact") and problem.p <= TREE_ONLY and plain:
        found.by_tree(solver)
    for g in range(found.gammas.size):
        if not found.done[g]:
            found.alone(g, solver)
    if solver == "auto" and few:
        found.prove_open()
    return found.result()


class _Answers:
    """The answers gathered γ by γ; ``at`` holds the problem at every γ."""

    def __init__(
        self,
        problem: SparseRidgeProblem,
        gammas: Sequence[float] | Array,
        sizes: NDArray[np.intp],
        limits: Limits,
    ) -> None:
        self.problem, self.sizes, self.limits = problem, sizes, limits
        self.at = [problem.replace(gamma=float(gamma)) for gamma in gammas]
        self.known: list[Support] = []  # at the γ before
        self.gammas = np.array([at.given_gamma for at in self.at])
        self.working = np.array([at.gamma for at in self.at])
        shape = (len(self.at), sizes.size)
        most = problem.p if problem.constraints.grouped else int(sizes[-1])
        self.supports = np.full((*shape, most), -1, dtype=np.int64)
        self.lower, self.proved = np.zeros(shape), np.zeros(shape, dtype=bool)
        self.searched = np.zeros(shape, dtype=bool)
        self.n_nodes, self.n_trees = np.zeros((2, shape[0]), dtype=np.int64)
        self.done = np.zeros(shape[0], dtype=bool)
        self.reach = np.full(shape[0], np.nan)  # where proved by a tree whose bound is exact
        self.statuses: list[Status] = []
        self.unfinished: dict[int, BestSubsets] = {}
        self.open: list[int] = []  # Up to 45 columns: positions of the γ that a tree left open.
        self.grower: SupportGrower | None = None

    def by_tree(self, solver: str) -> None:
        """Up to 45 columns: one set of arrays for the trees of all γ."""
        search, problem = kernels.Leaps(self.problem, self.sizes), self.problem
        active, state, tree = search.active, search.state, search.tree
        p, (columns, triangular) = active.size, problem.data.columns
        if p < problem.p:
            columns, triangular = columns[np.append(active, problem.p)], False
        inner, at_size = np.unique(search.inner, return_inverse=True)
        counts, options = tree.counts.view(np.ndarray), tree.options.view(np.ndarray)
        work, rank = np.empty_like(columns), np.empty(p, dtype=np.int64)
        found = np.full((inner.size, p), -1, dtype=np.int64)
        near = np.empty(inner.size, dtype=np.int64)
        runners = RunnersUp(columns, triangular, inner)
        known, most = 0, min(p, self.supports.shape[2])
        least_certain = problem.squared_lengths.sum() * (2.0 / MAX_CERTAIN_SPREAD) ** 2
        for g, gamma in enumerate(self.working):
            if self.limits.reached(0) is not None:
                return
            ridge = gamma / 2.0
            # At a tiny γ a single tree may know better, or enumeration where columns are dependent.
            if gamma < least_certain or not kernels.restart(
                state, columns, ridge, triangular, work
            ):
                self.single(g, solver)
                continue
            tie, reach = float(options["tie"][0]), float(options["reach"][0])
            todo = runners.to_search(gamma, tie, found)
            ended = not todo.any()
            if not ended:
                runners.ask(tree, todo)
                kernels.enter_incumbents(state, found, inner, known, rank)
                few = self.limits.within(nodes=HANDOVER)
                ended = search.run(few) is Status.OPTIMAL
            if todo.any():
                runners.note(state, gamma, todo)
                kernels.best_supports(state, inner, found, near, todo)
            known = int(inner.size)
            if not ended:
                self.known = [
                    np.sort(active[found[i, :s]]).astype(np.intp) for i, s in enumerate(inner)
                ]
                if solver == "exact":
                    self.single(g, solver)
                else:
                    self.estimate(g)
                self.n_nodes[g] += counts["nodes"][0]
                for support in self.known:
                    local = np.searchsorted(active, np.intersect1d(support, active))
                    found[inner == local.size, : local.size] = local
                runners.forget()
                continue
            for i in np.flatnonzero(todo & (near > 1)).tolist():
                tied = search.listed(int(inner[i]))
                fits = [self.at[g].fit(active[s]) for s in tied]
                found[i, : inner[i]] = tied[ranking(fits, tied)[0]]
            chosen = found[at_size, :most]
            self.supports[g, :, :most] = np.where(chosen < 0, -1, active[chosen])
            for t in np.flatnonzero(self.sizes > p).tolist():  # Columns of zeros fill supports up.
                size = int(self.sizes[t])
                self.supports[g, t, :size] = pad_support(active, size, problem.p)
            self.proved[g], self.searched[g], self.done[g] = True, todo[at_size], True
            self.n_nodes[g], self.n_trees[g] = counts["nodes"][0], todo.any()
            self.reach[g] = reach

    def single(self, g: int, solver: str) -> None:
        """The tree of one γ, and branch-and-bound where it grows large.

        With another solver than "exact" the search is short, and sizes that it leaves open have the
        supports of a search without a proof, which do not depend on where the tree has stopped.
        """
        nodes = None
        if solver != "exact":
            share = 1.0 if self.problem.constraints.plain else SHARE_OF_NODES_OF_UNITS
            nodes = int(share * HANDOVER)
        found = solve_sizes(
            self.at[g],
            sizes=self.sizes,
            warm_starts=self.known,
            limits=self.limits.within(nodes=nodes),
        )
        self.n_trees[g] = found.n_trees
        if solver != "exact" and found.status in LIMITS_REACHED:
            self.estimate(g)
            self.take_proved(g, found)
        else:
            self.take(g, found)
            self.searched[g] = True
            self.statuses.append(found.status)

    def estimate(self, g: int) -> None:
        """Supports of one γ without a proof, which the data and γ alone decide."""
        self.known = []
        self.without_proof(g)
        self.open.append(g)
        self.statuses.append(self.limits.reached(0) or Status.OPTIMAL)

    def prove_open(self) -> None:
        """Search the γ that are open without a limit of nodes, the largest first.

        The answers of sizes that stay open do not change.
        """
        for done, g in enumerate(sorted(self.open, key=lambda g: -self.gammas[g])):
            if self.limits.reached(0) is not None:
                return
            starts = [row[row >= 0].astype(np.intp) for row in self.supports[g]]
            share = self.limits.share(float(len(self.open) - done))
            found = solve_sizes(self.at[g], sizes=self.sizes, warm_starts=starts, limits=share)
            self.take_proved(g, found)
            self.statuses.append(found.status)

    def take_proved(self, g: int, found: BestSubsets) -> None:
        """Enter the sizes that a search has proved, and the bounds of all sizes."""
        better = found.proved & ~self.proved[g]
        rows = stacked(found.supports, self.supports.shape[2])
        self.supports[g, better] = rows[better]
        self.proved[g] |= found.proved
        self.lower[g] = np.maximum(self.lower[g], found.lower_bound)
        self.n_nodes[g] += found.n_nodes
        self.searched[g] = True
        if self.proved[g].all():
            self.unfinished.pop(g, None)
        else:
            self.unfinished[g] = found

    def alone(self, g: int, solver: str) -> None:
        """One γ by the solver asked for, heuristic where its limits are reached."""
        problem = self.at[g]
        reached = self.limits.reached(0)
        if reached is not None:
            self.statuses.append(reached)
            if self.done.any():
                away = np.abs(np.log(self.working / self.working[g]))
                self.supports[g] = self.supports[int(np.argmin(np.where(self.done, away, np.inf)))]
                self.done[g] = True
                return
        elif solver in ("auto", "estimate", "exact"):
            plain, units = problem.constraints.plain, problem.constraints.n_units
            if plain and few_supports(problem, self.sizes):
                proofs = enumerated(problem, self.sizes, self.known, self.limits)
                if all(proof.status is Status.OPTIMAL for proof in proofs):
                    self.enter(g, [proof.support for proof in proofs])
                    self.lower[g] = [proof.lower_bound for proof in proofs]
                    self.proved[g] = True
                else:
                    self.single(g, solver)
                return
            if solver == "exact" or units <= TREE_ONLY:
                self.single(g, solver)
                return
        if solver == "rounding" and problem.constraints.plain:
            self.enter(g, rounded_supports(problem, self.sizes))
            return
        self.without_proof(g)
        searched = solver in ("auto", "estimate") and problem.constraints.plain
        if searched and reached is None and TREE_ONLY < problem.p <= MAX_COLUMNS:
            within = self.limits.within(nodes=FIRST_NODES)
            self.take(
                g, best_subsets(problem, sizes=self.sizes, warm_starts=self.known, limits=within)
            )

    def without_proof(self, g: int) -> None:
        """Enter good supports of one γ."""
        problem = self.at[g]
        if not problem.constraints.plain:
            by_units = UnitSteps(problem).supports(
                self.sizes.tolist(), [] if self.done.any() else self.known, self._for_swaps(g)
            )
            self.enter(g, [by_units[int(size)] for size in self.sizes])
            return
        if self.grower is None:
            left = self.limits.share(2.0).remaining()
            if left is not None:
                left = max(left, LEAST_SECONDS_AT_FIRST_GAMMA)
            sizes = self.sizes.tolist()
            self.grower = SupportGrower(problem, sizes, self.known, Limits(left))
        starts = [] if self.done.any() else self.known
        by_size = self.grower.at(problem.gamma, starts, self._for_swaps(g))
        self.enter(g, [by_size[int(size)] for size in self.sizes])

    def _for_swaps(self, g: int) -> Limits:
        """This γ's share of the time, and a moment where nothing is left and nothing known."""
        share = self.limits.share(self.gammas.size - g)
        left = share.remaining()
        if left is None or self.done.any():
            return share
        return Limits(max(left, LEAST_SECONDS_AT_FIRST_GAMMA), None, self.limits.stop)

    def enter(self, g: int, supports: Sequence[Support]) -> None:
        self.supports[g] = stacked(supports, self.supports.shape[2])
        self.known, self.done[g] = list(supports), True

    def take(self, g: int, found: BestSubsets) -> None:
        self.enter(g, found.supports)
        self.lower[g], self.proved[g] = found.lower_bound, found.proved
        self.n_nodes[g] = found.n_nodes
        if not found.proved.all():
            self.unfinished[g] = found

    def result(self) -> SupportPath:
        coef, objective = fit_supports(self.problem, self.gammas, self.supports)
        for g in np.flatnonzero(np.isfinite(self.reach)).tolist():
            best = objective[g]
            margin = rounding_margin(
                best, self.problem.yy, float(self.reach[g]), coefficient_spread(self.at[g])
            )
            lost = self.at[g].data_losses(best, self.sizes)
            self.lower[g] = np.maximum(best - margin - lost, 0.0)
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
