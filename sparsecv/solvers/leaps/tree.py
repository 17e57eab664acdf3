"""A leaps-and-bounds tree that a caller begins, seeds, runs within limits, and reads.

The compiled search is in :mod:`~.depth_first`, the arrays that it works on in :mod:`~.records`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...schedule import NODES_WITHOUT_DIAGONAL
from ..core.leaves import FREE, IN, OUT, Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..kernels.linalg import TIE, Array, from_mask, mask_rows, stacked
from ..relaxation.diagonal import shared_diagonal
from ..supports.rounding import forward_order
from .depth_first import proceed
from .records import NOW, PlainTree, new_tree, wanted_from
from .table import TreeTable

# No path and no supports, for :func:`~.depth_first.proceed`.
NO_PATH, NOTHING = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64)


class Leaps:
    """One tree for the best supports of some sizes of a problem, or of problems that lack a row.

    The tree numbers the units of ``table``. ``inner`` holds the sizes that it searches for: those
    of ``sizes``, at most ``most``, as zero columns fill a support up. The search may stop after any
    node, and :meth:`run` goes on from there.

    problem: The problem, with all rows.
    sizes, shape (τ,): Support sizes wanted: numbers of units, or what units count together.
    rows, targets, shape (n, p) and (n,): Rows to delete in turn; none by default.
    n_best: How many of the best supports of each size are wanted, for each problem. Within bounds
        on coefficients the best support of at most every size is wanted if it is 1.
    gathers: Whether the search hands out every support that it enters, and keeps no lists. Sizes
        are then numbers of units, whatever these count in a size of the problem.
    most: The size of all units together.
    at_most: Whether the best support of a size is that of at most the size, within bounds on
        coefficients, and where units count more than once in a size.
    begun: Whether the first step makes the root at the problem's γ; otherwise :meth:`at_ridge` has
        to say at which.
    lists: The best supports known, and the state of the search.
    chunk: Nodes between two looks at the clock.
    best, shape (m + 1, m): Where a caller sets this array, :meth:`enter` writes the best support of
        every wanted size to it, as :func:`~.depth_first.proceed` says; at first it has no rows.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        rows: Array | None = None,
        targets: Array | None = None,
        n_best: int = 1,
        begun: bool = True,
        gathers: bool = False,
    ) -> None:
        self.problem, self.sizes, self.table = problem, sizes, TreeTable(problem)
        self.n_best, m = n_best, self.table.units.size
        self.weighted = self.table.weighted and not gathers
        cost = self.table.cost if self.weighted else None
        self.most = m if cost is None else int(cost.sum())
        self.at_most = self.weighted or (self.table.bounded and n_best == 1)
        self.inner = np.minimum(sizes, self.most)
        inside = None if rows is None else self.table.rows(rows)
        # Nodes between two looks at the clock, a choice: these take a few milliseconds, or with n
        # deleted rows, where a node's work grows like n·p, some tens of milliseconds.
        n, p = 0 if targets is None else targets.size, self.table.columns.size
        self.chunk = max(20_000_000 // (n * p), 1) if n else 20_000
        if p > m or self.table.bounded:
            self.chunk = min(self.chunk, max(20_000_000 // (p + 10) ** 2, 1))
        room = max(self.chunk, 2 * m) if gathers else 0  # Seeds are at most 2m supports.
        wanted = np.unique(self.inner)
        self.tree = new_tree(self.table, wanted, inside, targets, n_best, room, cost)
        self.lists, self.best = self.tree.lists, NOTHING
        # A view of the record, by which fields are read in a tenth of the time.
        self._now = self.lists.now.view(NOW)[0]
        self._has_diagonal = False
        if begun:
            self.tree.triangle[:] = self.table.factor(problem.gamma / 2.0)
            self.at_ridge(problem.gamma / 2.0)

    def at_ridge(self, ridge: float) -> None:
        """Forget what was searched: the next step begins with the root at γ/2 = ``ridge``.

        The factor of all columns at this γ has to be in ``tree.triangle``.
        """
        self.lists.now["least_pivot"], self.lists.now["nodes"] = math.sqrt(ridge), 0

    def begin(self) -> None:
        """Make the root, see :func:`~.depth_first.begin`."""
        proceed(self.tree, NO_PATH, NOTHING, 0, NOTHING)

    def seed(self, starts: Sequence[NDArray[np.intp]] = ()) -> None:
        """Enter incumbents by backward elimination, and from given supports or forward selection.

        starts: Good supports, as columns of the problem; without any, columns are selected forward.
        """
        m = self.table.units.size
        self.enter(stacked([self.table.members(start) for start in starts], m))
        if not (starts or self.tree.wide or self.tree.bounded):
            R = self.tree.columns_of.T  # The root is made.
            order = forward_order(R[:, :m], R[:, m], int(self.inner.max()))
            rank = np.full(m, m, dtype=np.int64)
            rank[order] = np.arange(order.size)
            proceed(self.tree, rank, NOTHING, 0, NOTHING)

    def enter(self, known: NDArray[np.int64]) -> None:
        """Enter the supports of backward elimination, and those on paths to known supports.

        known, shape (supports, m): Units of the tree, ended by −1.
        """
        rank = np.zeros(self.table.units.size, dtype=np.int64)
        proceed(self.tree, rank, known, 0, self.best)

    def exclude(self, problems: NDArray[np.intp]) -> None:
        """Leave problems out: no support is entered and no node is open for them.

        The root must be made, as making it (:meth:`begin`) wants supports for all problems again.
        """
        self.lists.max_kept[:, problems] = -1.0
        self.lists.max_searched[:, problems] = -1.0

    def now(self, name: str) -> Any:
        """A field of the record ``NOW`` of the search."""
        return self._now[name]

    @property
    def n_nodes(self) -> int:
        """Nodes searched so far."""
        return int(self.now("nodes"))

    @property
    def has_ended(self) -> bool:
        """Whether the search was begun, and no node is open."""
        return int(self.now("level")) < 0

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays of the tree's own record, without those of the records in it."""
        return sum(array.nbytes for array in self.tree if isinstance(array, np.ndarray))

    @property
    def reach(self) -> float:
        """Σ ℓ_j|β_j| + |y| is at most this number times |y| in the fits of all nodes."""
        return float(self.now("reach"))

    @property
    def inflation(self) -> float:
        """The sum of the variance inflation factors of all columns."""
        return float(self.now("inflation"))

    @property
    def stretch(self) -> float:
        """What the number ``coefficient_spread`` of the problem is multiplied by for this tree."""
        return self.table.stretch

    def left_out(self, at: SparseRidgeProblem) -> float:
        """The share of an objective by which supports may be better that the tree has passed over.

        A column of length ℓ that was left out by turning units takes at most ℓ²/(ℓ² + γ/2) of it.
        At a working γ such columns count as 0. Within bounds on coefficients nodes are searched
        only for supports that are better by the share ``improvement``.

        at: The problem at the γ that is asked about.
        """
        turned = 0.0 if at.gamma > at.given_gamma else 2.0 * self.table.lost / at.gamma
        return turned + float(self.now("improvement"))

    def run(self, limits: Limits, known: NDArray[np.int64] | None = None) -> Status:
        """Search until no node is open, which is OPTIMAL, or return the limit that was reached.

        known: As :meth:`enter` takes them, which are entered first; by default nothing is entered.
        """
        nodes, rank, starts = self.n_nodes, NO_PATH, NOTHING
        if known is not None:
            rank, starts = np.zeros(self.table.units.size, dtype=np.int64), known
        while True:
            most = limits.nodes_left(nodes, self.chunk)
            reached = limits.reached(nodes)
            if reached is not None:
                if rank.size:
                    proceed(self.tree, rank, starts, 0, self.best)
                return reached
            if nodes >= NODES_WITHOUT_DIAGONAL:
                self.extract()
            if proceed(self.tree, rank, starts, most, self.best):
                return Status.OPTIMAL
            nodes, rank, starts = self.n_nodes, NO_PATH, NOTHING

    def extract(self) -> None:
        """Let the search close more sizes from now on, at other γ too, by a diagonal of XᵀX.

        Nodes on the path are searched for all wanted sizes again.
        Trees of groups, within bounds, or of problems that lack rows do without.
        """
        one_problem = isinstance(self.tree, PlainTree) and not self.tree.targets.size
        if one_problem and not self._has_diagonal:
            self.tree.extracted[:] = shared_diagonal(self.table.gram())
            self.lists.now["closes"], self._has_diagonal = 0, True

    def step(self, limits: Limits) -> bool:
        """Search on until the next look at the clock; whether the tree is exhausted.

        limits: The number of nodes alone may end the step earlier; the caller looks at the clock.
        """
        most = limits.nodes_left(self.n_nodes, self.chunk)
        return bool(proceed(self.tree, NO_PATH, NOTHING, most, NOTHING))

    def handed_out(self) -> NDArray[np.bool_]:
        """The supports that were entered since the call before, as rows (k, m) that mark units.

        Only a tree that gathers has them. It has room for those of one step, or of one
        :meth:`seed` without starts, so that a call must follow each.
        """
        gathering = self.tree.gathering
        found = mask_rows(gathering.found[: gathering.n_found[0]], self.table.units.size)
        gathering.n_found[0] = 0
        return found

    def narrow(self, wanted: NDArray[np.bool_]) -> None:
        """Restrict the searches that follow to some of the sizes.

        What the tree says of the other sizes from here on is no proof.

        wanted, shape (τ,): Whether each size is still wanted. A size that an earlier call left out
            must stay out: nodes were passed over that only that size needed.
        """
        sizes = np.unique(self.inner[wanted])
        self.lists.next_wanted[:] = wanted_from(sizes, self.most)
        # A row has at s the least size ≥ s that a level still searches for, which is s if s is one.
        for row in self.tree.open_from:
            row[:] = wanted_from(sizes[row[sizes] == sizes], self.most)

    def listed(self, size: int, n: int = 1) -> list[NDArray[np.intp]]:
        """The n best supports of a size, and those that tie with the last up to rounding.

        They are those of the tree's first problem, as units of the tree. Where units count more
        than once, and n is above 1, they are those of at most the size.
        """
        sizes = slice(0 if self.weighted and n > 1 else size, size + 1)
        listed = np.arange(self.lists.loss.shape[2]) < self.lists.n[sizes, 0, None]
        losses, found = self.lists.loss[sizes, 0][listed], self.lists.found[sizes, 0][listed]
        last = np.sort(losses)[:n].max(initial=0.0)
        return [from_mask(mask) for mask in found[losses <= self.tied(last)]]

    def tied(self, loss: Any) -> Any:
        """The largest loss that is equal to a loss, or to each of an array, up to rounding."""
        return loss * (1.0 + 2.0 * float(self.now("tie"))) + 2.0 * float(self.now("tied_loss"))

    def best_sizes(self) -> NDArray[np.intp]:
        """For every size up to ``most``, the size of the support that answers it.

        Within bounds on coefficients a support of fewer units may be as good as any; it then
        answers the larger size if one support of every size is wanted. So it does where units count
        more than once in a size.
        """
        best = np.arange(self.lists.loss.shape[0])
        if not self.at_most or self.n_best > 1:
            return best
        losses, full = self.lists.loss[:, 0, 0].tolist(), float(self.now("full"))
        for size in range(1 if self.weighted else 2, best.size):
            fewer = losses[best[size - 1]]
            # Within bounds a unit whose coefficients are 0 changes an objective by rounding alone.
            if fewer < math.inf and fewer - losses[size] <= TIE * (full + fewer):
                best[size] = best[size - 1]
        return best

    def candidates(self, n: int) -> list[list[NDArray[np.intp]]]:
        """For every size the n best supports, and supports that tie with the last up to rounding.

        The supports are those of the first problem, filled up to the size.
        """
        best, found = self.best_sizes(), list[list[NDArray[np.intp]]]()
        for size, within in zip(self.sizes.tolist(), self.inner.tolist(), strict=True):
            supports = [self.table.support(members) for members in self.listed(best[within], n)]
            if best[within] < size:
                supports = [self.problem.constraints.padded(some, size) for some in supports]
            found.append(supports)
        return found

    def open_leaves(self) -> Leaves:
        """The nodes that are not searched yet, over the problem's own columns.

        Their parents lie on the tree's current path. A tree of groups names the node of all
        supports, as a leaf counts columns.
        """
        tree, last, p = self.tree, int(self.now("level")), self.problem.p
        if self.problem.constraints.grouped and last >= 0:
            return Leaves.root(p, p)
        states, columns = [np.empty((0, p), dtype=np.int8)], self.table.columns
        # The child without a free column keeps those before it, and may lose those after it.
        place = np.arange(columns.size)
        kept = np.array([IN, OUT, FREE], dtype=np.int8)[np.sign(place - place[:, None]) + 1]
        for level in range(last + 1):
            pending, n = int(tree.cursor[level]) + 1, int(tree.n_columns[level])
            members = np.full(p, OUT, dtype=np.int8)
            members[columns[from_mask(tree.mask[level])]] = IN
            below = np.repeat(members[None], pending, axis=0)
            below[:, columns[tree.free[level, :n]]] = kept[:pending, :n]
            states.append(below)
        return Leaves.at_zero(np.concatenate(states), p)

    def open_bound(self) -> Array:
        """Lower bounds on the objectives of the supports that were not searched, shape (τ,).

        They are in the order of ``sizes``, of a tree of one problem.

        The children of the current path that still wait, at every level up to the current one, hold
        all these supports. A child's supports have at least the loss of the node and what leaving
        out the child's member adds. The bound is ∞ where no support is left. Rounding is not taken
        off.

        With bounds on coefficients, and n_best = 1, the result is a lower bound on the objectives
        of the supports that were searched, too: their fits may lack something to the best ones.
        """
        bound = np.full(self.sizes.size, np.inf)
        tree, m = self.tree, self.table.units.size
        for level in range(int(self.now("level")) + 1):
            for j in range(int(tree.cursor[level]) + 1):
                low, high = max(tree.fixed[level] + j, 1), m - level - 1
                if self.weighted:
                    low, high = int(tree.counting.low[level, j]), self.most
                below = (low <= self.inner) & (self.inner <= high)
                loss = tree.loss[level, 0] + tree.least_added[level, j]
                bound[below] = np.minimum(bound[below], loss)
        if tree.bounded and self.n_best == 1:
            for limit in (tree.within.least_bound, self.lists.max_searched[:, 0]):
                bound = np.minimum(bound, np.minimum.accumulate(limit)[self.inner])
        return bound + float(self.now("full"))
