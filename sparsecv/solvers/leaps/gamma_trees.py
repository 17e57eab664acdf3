"""Trees of all sizes of one problem at one γ after the other, which share arrays and lists."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from ...schedule import NODES_OF_LARGE_TREES, UNITS_OF_LARGE_TREES
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.quick_fits import fit_supports
from ..core.result import Status
from ..core.rounding import tree_margin
from ..core.rows import DEPENDENT_SHARE
from ..core.ties import ranking
from ..kernels.envelope import values_between
from ..kernels.fits import FitRoom, ridge_fits
from ..kernels.linalg import Array, Mask, mask_rows, placed, stacked
from .all_sizes import SizesTree
from .records import wanted_from
from .tree import NOTHING, Leaps

# Two γ are near each other if their places on ``ridge_scale`` differ by less than this number. The
# number is a choice.
NEAR = 0.7
# On that scale a γ counts as at least this share of the largest eigenvalue of XᵀX. It is a choice.
LEAST_GAMMA_AS_SHARE = 1e-14
# A tree that has ended at a γ, the key, says this of every size s. The first array has at place s a
# lower bound on the objectives of all supports that are not listed; −∞ says nothing. The second
# array has in row s at most four listed supports, as masks over the units of the tree.
Listed = dict[float, tuple[Array, Mask]]


def ridge_scale(problem: SparseRidgeProblem, gammas: Sequence[float] | Array) -> Array:
    """Places of some γ on a scale on which trees of γ less than ``NEAR`` apart are much alike.

    The place of γ is log(γ + c), as a γ far below c hardly changes a fit. Here c is the harmonic
    mean of the eigenvalues of XᵀX, without those that are rounding of 0 because columns depend on
    each other; c is 0 where rows are fewer than columns. A γ + c below
    ``LEAST_GAMMA_AS_SHARE`` of the largest eigenvalue counts as that.
    """
    values, c = problem.data.singular[1], 0.0
    if values.size == problem.p and values[0] > 0.0:
        c = 1.0 / float(np.mean(values[values > DEPENDENT_SHARE * values[0]] ** -2.0))
    least = LEAST_GAMMA_AS_SHARE * float(values[:1].sum()) ** 2 or 1.0  # All columns may be 0.
    return np.asarray(np.log(np.maximum(np.asarray(gammas) + c, least)))


def near_first(
    problem: SparseRidgeProblem, gammas: Sequence[float] | Array, at: int, some: Sequence[int]
) -> list[int]:
    """Those of some γ whose trees are much like the tree at one γ, the nearest first.

    at: The position in ``gammas`` of the one γ.
    some: The positions of the γ that are asked about.
    """
    places = ridge_scale(problem, gammas)
    away = {g: abs(places[g] - places[at]) for g in some}
    return sorted((g for g in some if away[g] < NEAR), key=lambda g: away[g])


class GammaTrees:
    """Trees of all sizes at one γ after the other, in the same arrays, up to 45 columns.

    Where thousands of small problems are solved in turn, setting up a tree and fitting its answers
    takes far longer than the search. Every γ starts from the supports at the γ before. A tree also
    lists runners-up of every size, and bounds the objective f of all supports that it does not
    list. As f grows with γ, and 1/(yᵀy − f) is concave in γ (``kernels.envelope``), bounds at a
    smaller and at a larger γ bound f in between. Where a listed support is below that, the best of
    the listed supports is optimal and no tree is searched.

    problem, gammas: The problem, and the γ at which it will be solved.
    sizes, shape (τ,): The sizes wanted. The tree has each of them once, and sizes beyond its units
        as their number.
    listed: What trees of the problem have listed elsewhere.
    best, shape (most + 1, units), most the size of all units: Row s has the best known support of
        size s, as increasing units of the tree; −1 ends the row.
    todo, shape (most + 1,): The sizes that the last tree has searched.
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
        m, p, most = table.units.size, table.columns.size, self.tree.most
        if not np.array_equal(table.columns, np.arange(columns.shape[0] - 1)):
            columns, triangular = columns[np.append(table.columns, -1)], False
        self.columns, self.triangular = columns, triangular
        self.sizes = np.unique(self.tree.inner)
        self.wanted = wanted_from(self.sizes, most)
        self.listed = {} if self.tree.at_most else dict(listed)
        self.known = sorted({*gammas, *listed})
        # Of every size the tree finds the five supports of least loss, as far as their losses
        # exceed the least by at most the margin. A loss is the objective less ``full``, the
        # objective of the fit on all columns.
        self.tree.lists.now["rank"], self.margin = 1 if self.tree.weighted else 5, 0.0
        self.make_lists(bool(self.listed) or m > UNITS_OF_LARGE_TREES)
        self.todo = np.zeros(most + 1, dtype=bool)
        self.best = self.tree.best = np.full((most + 1, m), -1, dtype=np.int64)
        # The fit on all columns, whose factor is the array from which the tree makes its root.
        order = np.empty((3, p), dtype=np.int64)
        self.room = FitRoom(self.tree.tree.triangle, np.empty_like(columns), order)
        self.every, self.coef, self.whole = np.arange(p)[None], np.empty((1, p)), np.empty(1)

    def make_lists(self, worth_it: bool) -> None:
        """Let trees list runners-up from now on, if that is worth it and γ are near each other.

        They list supports whose loss exceeds the least loss of their size by at most 5 %, and at
        most four of a size; both numbers are measured. A tree at one γ proves hardly a size at
        another γ that is not near. Within bounds on coefficients 1/(yᵀy − f) is not concave. Where
        units count more than once in a size, what answers a size may be in the list of another.
        """
        if worth_it and self.margin == 0.0 and not self.tree.at_most:
            places = ridge_scale(self.tree.problem, self.known)
            self.margin = 0.05 if (np.diff(places) < NEAR).any() else 0.0

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
        tree, ridge = self.tree, at.gamma / 2.0
        given = self.columns, ridge, self.triangular, self.every
        if ridge_fits(*given, self.coef, self.whole, self.room, 0.0) > 0:
            return None
        tree.at_ridge(ridge)
        self.todo[self.sizes] = True
        sizes, wanted = self.sizes, self.wanted
        if self.listed:
            tree.begin()
            self.todo &= ~self.told_by_lists(at)
            sizes = np.flatnonzero(self.todo)
            if not sizes.size:
                return Status.OPTIMAL
            wanted = wanted_from(sizes, self.tree.most)
        tree.lists.next_wanted[:], tree.lists.now["margin"] = wanted, self.margin
        status = tree.run(limits, self.best)
        if status is Status.OPTIMAL:
            if self.margin > 0.0:
                self.list_supports(at, sizes)
            self.settle_ties(at, sizes)
        self.make_lists(tree.n_nodes > NODES_OF_LARGE_TREES)
        return status

    def ended_since(self, at: SparseRidgeProblem) -> bool:
        """Whether the tree that :meth:`going_on` has handed on has ended; then it lists supports.

        at: The problem at the γ of the tree.
        """
        lists, sizes = self.tree.lists, np.arange(self.todo.size)
        if self.tree.has_ended and float(self.tree.now("margin")) > 0.0:
            # A size that was left out on the way (:meth:`Leaps.narrow`) has no complete list.
            whole = lists.next_wanted[: sizes.size] == sizes
            self.list_supports(at, np.flatnonzero(self.todo & whole))
        return self.tree.has_ended

    def list_supports(self, at: SparseRidgeProblem, sizes: NDArray[np.intp]) -> None:
        """Enter in ``listed``, at the γ of ``at``, what the tree says of sizes it has searched.

        The tree has just ended, and its ``margin`` is above 0, so that no coefficient has bounds
        and no unit counts more than once. The bounds are used at other γ, where nothing else allows
        for the rounding at this one. So it is taken off here: ``tie`` is the share by which losses
        may be off, and the margin what the rounding of fits, and a working γ, may add to
        objectives.

        sizes, shape (k,): Sizes whose lists are complete. What is known of other sizes stays.
        """
        lists, m = self.tree.lists, self.table.units.size
        losses, found = lists.loss[sizes, 0], lists.found[: m + 1, 0, :4]
        # A support that is not among the first four of its list has at least this loss: it is no
        # better than the fifth, or it lies below a node that the search has passed over, because
        # the node's loss is above ``max_searched``.
        others = np.minimum(lists.max_searched[sizes, 0], losses[:, 4])
        # An earlier tree may have listed other sizes at this γ.
        nothing = np.full(m + 1, -np.inf), np.zeros_like(found)
        bound, masks = (array.copy() for array in self.listed.get(at.gamma, nothing))
        # No objective exceeds yᵀy, and the formula between two γ holds up to yᵀy.
        value = np.minimum(self.tree.now("full") + others, self.yy)
        margin = tree_margin(at, value, self.tree)
        bound[sizes] = value * (1.0 - float(self.tree.now("tie"))) - margin
        masks[sizes] = np.where(losses[:, :4, None] < np.inf, found[sizes], np.uint64(0))
        self.listed[at.gamma] = bound, masks

    def settle_ties(self, at: SparseRidgeProblem, sizes: NDArray[np.intp]) -> None:
        """Let fresh fits decide where rounding may have exchanged the first supports of a list."""
        tree, lists = self.tree, self.tree.lists
        best = tree.best_sizes()[sizes] if tree.at_most else sizes
        losses = lists.loss[best, 0]
        again = losses[:, 1] <= tree.tied(losses[:, 0])
        if tree.at_most:  # The support of a smaller size, which may not be wanted, serves.
            again |= lists.next_wanted[best] != best
        for size in np.unique(best[again]).tolist() if again.any() else ():
            options = tree.listed(size)
            fits = [at.fit(self.table.support(members)) for members in options]
            self.best[size] = stacked([options[ranking(fits, options)[0]]], self.best.shape[1])
        if tree.at_most:
            self.best[sizes] = self.best[best]

    def told_by_lists(self, at: SparseRidgeProblem) -> NDArray[np.bool_]:
        """Mark the sizes whose best support at γ is proved to be a listed one, shape (units + 1,).

        ``best`` takes the support. A size is not marked where another listed support ties with it.
        ``listed`` is not empty. The tree must have its root at the γ of ``at``, and says how far
        rounding moves objectives.
        """
        gamma, tie = at.gamma, float(self.tree.now("tie"))
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
        # Without a larger γ the bound is that at the smaller γ.
        share = (gamma - gammas[low]) / np.where(apart > 0.0, apart, np.inf)
        bounds = np.maximum(bounds, 0.0)
        bound = values_between(bounds[low, every], bounds[high, every], share, self.yy)
        masks = np.concatenate([listed[low, every], listed[high, every]], axis=1)
        twice = (masks[:, 4:, None] == masks[:, None, :4]).all(axis=3).any(axis=2)
        masks[:, 4:][twice] = 0
        m = self.table.units.size
        holds = mask_rows(masks.reshape(-1, masks.shape[2]), m)
        supports, sizes = placed(holds, m), holds.sum(axis=1)
        columns = self.table.supports(supports, sizes, at.p)
        # A row without a support gets yᵀy, the largest value.
        _, objective = fit_supports(at, np.array([gamma]), columns[None])
        values, supports = objective.reshape(told.size, -1), supports.reshape(told.size, -1, m)
        least = values.min(axis=1)
        n_tied = (values <= least[:, None] * (1.0 + 2.0 * tie)).sum(axis=1)
        told &= (least * (1.0 + tie) < bound) & (n_tied == 1)
        self.best[told] = supports[told, values[told].argmin(axis=1)]
        return told

    def going_on(self, at: SparseRidgeProblem, where: NDArray[np.bool_]) -> SizesTree:
        """The search of the tree that has stopped at a limit, which may be resumed.

        It shares the tree's arrays, and so cannot be used any more once the next γ is searched.

        where, shape (τ,): Which of the sizes wanted it searches.
        """
        tree = copy(self.tree)
        tree.best = NOTHING
        tree.problem, tree.sizes, tree.inner = at, tree.sizes[where], tree.inner[where]
        return SizesTree(at, tree.sizes, tree=tree)
