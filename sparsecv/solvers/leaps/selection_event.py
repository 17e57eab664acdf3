"""The responses on a line from which the same support is selected: what inference conditions on.

For a support T the objective of the response y + vδ is a quadratic polynomial f_T(v). A support S
that is selected, as the one of least w·f, stays selected at v if w_T f_T(v) ≥ w_S f_S(v) for every
T. So every T takes at most two intervals of v out of the line. One leaps-and-bounds tree hands out
all T that take out what others do not: a node is closed for the v at which its own objective, which
no support below it has less of, exceeds w_S f_S(v)/w, w the least weight below the node. Lee, Sun,
Sun and Taylor (2016) condition on such an event for the lasso.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status, Work
from ..core.threads import on_one_thread
from ..kernels.linalg import EPS, Array
from .all_sizes import coefficient_spread
from .gathering import Comparison, Members
from .lines import below_zero
from .quadratics import Lines, complement, union
from .tree import Leaps

# The squared length of the vectors δ: what it lacks to 1 keeps 1 − h of a tree above 0.
SQUARED_LENGTH = 0.5
NOTHING, WHOLE_LINE = np.empty((0, 2)), np.array([[-np.inf, np.inf]])


class SelectionEvent(NamedTuple):
    """Where on a line the same support is selected; v counts unit vectors from the response.

    inner, outer, shape (k, 2): Increasing intervals. The support is selected on all of ``inner``,
        and nowhere outside ``outer``.
    """

    inner: Array
    outer: Array


@on_one_thread
def selection_events(
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    comparison: Comparison,
    directions: Array,
    limits: Limits | None = None,
) -> tuple[list[SelectionEvent], Status, Work]:
    """Find where on lines y + vd a support is selected, the one of least w·f.

    problem: It has no bounds on coefficients; its τ is not used.
    support: The support that is selected from y.
    directions, shape (d, r): Unit vectors d that the columns of the support span, in the rows of
        ``problem.triangle``.
    Returns: The events; whether the tree has ended, which is OPTIMAL, or else the limit that was
        reached, or PRECISION; and what the search took.
    """
    limits = (limits or Limits()).within()
    if not len(directions):
        return [], Status.OPTIMAL, Work()
    search = _Search(problem, support, comparison, directions * math.sqrt(SQUARED_LENGTH))
    status = search.run(limits)
    events = [search.event(i) for i in range(len(directions))]
    return events, status, Work(n_nodes=search.n_nodes, seconds=limits.elapsed())


class _Search:
    """The search for the events of one support; other parameters as of :func:`selection_events`.

    delta, shape (d, r): The vectors δ, in whose lengths v counts here.
    surely, perhaps, doubt: By line the v that some support surely, or perhaps, takes out, and those
        that open nodes leave in doubt.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        support: NDArray[np.intp],
        comparison: Comparison,
        delta: Array,
    ) -> None:
        self.support, self.comparison, self.delta = support, comparison, delta
        self.at, table = problem.at_unit_length(), problem.triangle
        X, y = table[:, : problem.p], table[:, problem.p]
        self.lines = Lines(X, y, delta, problem.given_gamma / 2.0)
        self.members = Members(self.at, comparison)
        self.table = self.members.table
        self.member = np.isin(np.arange(self.table.units.size), self.table.members(support))
        self.weight = float(comparison.weights(self.table, self.member[None])[0])
        value, error = self.lines.of(support[None])
        self.own, self.own_error = self.weight * value[0], self.weight * error[0]
        self.surely, self.perhaps, self.doubt = ([NOTHING] * len(delta) for _ in range(3))
        self.n_nodes = 0

    def run(self, limits: Limits) -> Status:
        """Search until no support is left that may win, which is OPTIMAL, or return the limit."""
        self.take(self.neighbours())
        _, _, sizes = self.comparison.of_units(self.table)
        if not sizes.size:
            return Status.OPTIMAL
        # Products of the columns of the working problem, which may be scaled, with the directions.
        table = self.at.triangle
        rows, targets = self.delta @ table[:, : self.at.p], self.delta @ table[:, self.at.p]
        tree = Leaps(self.at, sizes, rows, targets, gathers=True)
        tree.begin()
        gathering, reached = tree.tree.gathering, None
        tree.lists.max_searched[:] = 1e300  # This is above all losses but ∞.
        gathering.pieces[0, :, 0], gathering.n_pieces[0] = WHOLE_LINE[0], 1
        for i, end in enumerate(self.limit_polynomials(tree)):
            beyond = np.array([[-np.inf, -end], [end, np.inf]])
            left = complement(np.vstack([self.surely[i], beyond]))
            room = gathering.region.shape[1]
            while len(left) > room:  # The narrowest gap is filled.
                gap = int(np.argmin(left[1:, 0] - left[:-1, 1]))
                left = np.delete(left.ravel(), [2 * gap + 1, 2 * gap + 2]).reshape(-1, 2)
            gathering.region[i, : len(left)], gathering.n_region[i] = left, len(left)
            self.doubt[i] = beyond
            reached = Status.PRECISION if end == 0.0 else reached
        ended = False
        while not ended and reached is None:
            reached = limits.reached(tree.n_nodes)
            if reached is None:
                ended = tree.step(limits)
                self.take(self.members.from_masks(tree.handed_out()))
        self.n_nodes = tree.n_nodes
        if reached is not None:
            self.leave_in_doubt(tree, reached)
        return reached or Status.OPTIMAL

    def neighbours(self) -> NDArray[np.bool_]:
        """The supports that differ from S in one unit, or have one unit in place of another.

        Those of all units, of included ones alone and, with a criterion, of none are among them.
        These take out so much that further starts of the tree were not worth their time.
        """
        m, inside = self.table.units.size, self.table.included > 0
        every = np.eye(m + 1, m, dtype=bool)  # Its last row changes nothing.
        out = every[np.append(self.member & ~inside, True)]
        come = every[np.append(~self.member, True)]
        near = (self.member & ~out)[:, None] | come[None]
        return np.vstack([near.reshape(-1, m), np.ones(m, dtype=bool), inside])

    def limit_polynomials(self, tree: Leaps) -> Array:
        """Write below which polynomials supports may win, and win for sure.

        :meth:`doubts` says what rounding and the working γ add.

        Returns, shape (d,): Beyond plus and minus this v they may add more than 1e-4 of S's
            objective, a choice.
        """
        gathering, least_most = tree.tree.gathering, self.comparison.of_units(self.table)
        spare, centre = tree.tree.one_minus_leverage[0], tree.tree.deleted_residual[0]
        share, added = self.doubts(tree)
        if not share + added < 1.0:
            return np.zeros(len(self.delta))
        base = np.zeros((len(self.delta), 3))
        base[:, 0] = 1.0 - SQUARED_LENGTH
        base[:, 2] = spare * centre**2 - float(tree.now("full"))
        inexact = np.array([added, 0.0, added * self.at.yy])
        wider = (1.0 + share) * self.own + self.own_error
        limits = (wider, 1.0), (2.0 * self.own - wider, -1.0)
        targets = gathering.wins, gathering.cuts
        for target, weights, (limit, sign) in zip(targets, least_most[:2], limits, strict=True):
            target[:], target[:, :, 2] = 0.0, -1e300  # Nothing is below such a number.
            for s in np.flatnonzero(weights < np.inf).tolist():
                target[s] = limit / weights[s] + sign * inexact + base
        worst = added * self.own[:, 2] + self.own_error[:, 0]
        return np.asarray(
            1e-2 * self.own[:, 2] / np.sqrt(np.maximum(worst * self.own[:, 2], 1e-300))
        )

    def doubts(self, tree: Leaps) -> tuple[float, float]:
        """A share of f, and one of |y|² + v², that objectives in a tree may be off by.

        Every term is 2√f times a root r, at most a share e of f and r²/e; e is 1e-5, a choice. With
        v the largest A_jj M_jj as in :func:`~.depth_first.begin`, what one column adds to a loss is
        off by 2u√(v·added·full), and what p columns add by 2u√(v·p·loss·full). The margin for the
        rounding of a factor is that of :func:`~.all_sizes.rounding_margin`, by the spread of
        coefficients where that is short. The working γ adds ``zero_loss``.
        """
        at, e = self.at, 1e-5
        R = tree.tree.columns_of[:-1, :-1].T
        squares = np.maximum((R * R).sum(axis=0), tree.tree.scale**2)
        inflation = float(((np.linalg.inv(R) ** 2).sum(axis=1) * squares).max())
        share = 3.0 * e + 1e-11 + tree.left_out(at)
        added = 0.25 * EPS * EPS * at.p * inflation / e + 8.0 * at.p * EPS
        moved, spread = 32.0 * EPS, tree.stretch * coefficient_spread(at)
        if moved * spread <= 1e-5:
            share += 2.0 * moved * spread + 2.0 * (moved * spread) ** 2
            added += 2.0 * moved**2 * (1.0 + 1.0 / e)
        else:
            added += (moved * tree.reach) ** 2 * (1.0 + 1.0 / e)
        if at.gamma > at.given_gamma and at.yy > 0.0:
            constant, sloped = at.zero_loss(0.0) / at.yy, at.zero_loss(at.yy) / at.yy
            added += constant + (sloped - constant) ** 2 / e
        return share, added

    def take(self, members: NDArray[np.bool_]) -> None:
        """Take what supports, rows (k, m), win out of every line."""
        supports, weights = self.members.new(members)
        width = np.array([support.size for support in supports])
        for size in np.unique(width).tolist():
            same_size = np.flatnonzero(width == size)
            # Some 10 MB of singular vectors are made at a time.
            for here in np.array_split(same_size, 1 + same_size.size // 2000):
                columns = np.array([supports[i] for i in here]).reshape(here.size, size)
                differ = ~self.lines.same(self.support, columns.astype(np.intp))
                value, error = self.lines.of(columns[differ].astype(np.intp))
                weight = weights[here[differ]][:, None, None]
                self.take_out(weight * value - self.own, weight * error + self.own_error)

    def take_out(self, differ: Array, error: Array) -> None:
        """Take out where polynomials (k, d, 3), known up to errors, are below 0."""
        for kept, sign in ((self.surely, 1.0), (self.perhaps, -1.0)):
            for i in range(len(self.delta)):
                polynomials = (differ[:, i] + sign * error[:, i]).tolist()
                found = np.array([below_zero(*one) for one in polynomials])
                kept[i] = union(np.vstack([kept[i], found.reshape(-1, 2)]))

    def leave_in_doubt(self, tree: Leaps, reached: Status) -> None:
        """Note the v that open nodes leave in doubt; all where the tree cannot be trusted."""
        state, gathering = tree.tree, tree.tree.gathering
        for level in range(int(tree.now("level")) + 1):
            open_for = state.problem_of[level, : state.n_open[level]].tolist()
            for i in open_for if state.cursor[level] >= 0 else ():
                pieces = gathering.pieces[level, i, : gathering.n_pieces[level, i]]
                self.doubt[i] = union(np.vstack([self.doubt[i], pieces]))
        if reached is Status.PRECISION:
            self.doubt = [WHOLE_LINE] * len(self.delta)

    def event(self, i: int) -> SelectionEvent:
        """Where on line i S is selected."""
        length = math.sqrt(SQUARED_LENGTH)
        inner = complement(np.vstack([self.perhaps[i], self.doubt[i]]))
        return SelectionEvent(length * inner, length * complement(self.surely[i]))
