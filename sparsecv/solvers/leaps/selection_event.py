"""The responses on a line from which the same support is selected: what inference conditions on.

For a support T the objective of the response y + vδ is a quadratic polynomial f_T(v). A support S
that is selected, as the one of least w·f, stays selected at v if w_T f_T(v) ≥ w_S f_S(v) for every
T. So every T takes at most two intervals of v out of the line. One leaps-and-bounds tree hands out
all T that take out what others do not: a node is closed if, at every v that is left, its own
objective, which no support below it has less of, is at least w_S f_S(v)/w, w the least weight below
the node. Lee, Sun, Sun and Taylor (2016) condition on such an event for the lasso.

The response may move on a curve in place of a line: what all columns leave of it changes its length
as well. That adds the same polynomial of degree 2 to the objective of every support.

**What rounding can lose.** A computed f_T loses some r of its root, and 2√f·r ≤ e·f + r²/e for
every e. A tree takes e = 10⁻⁵: a share of f_T(v), and a share of yᵀy + v²; beyond the v at which
the second share is 10⁻⁴ of the objective everything counts as unknown. Ends of intervals come from
fresh fits, and are moved both ways by what those lose, with e = 10⁻¹². A support whose objective
rounding cannot tell from that of S, at any v, counts as S and takes out nothing: so does every
support with the span of S.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...schedule import NODES_BETWEEN_LOOKS
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status, Work
from ..core.rounding import SUM_SHARE, UPDATED_SHARE, coefficient_spread
from ..core.rows import DEPENDENT_SHARE
from ..core.threads import on_one_thread
from ..kernels.linalg import EPS, Array, stacked
from .gathering import Comparison, Members
from .lines import Gathering
from .tree import Leaps

# The squared length of the vectors δ: what it lacks to 1 keeps 1 − h of a tree above 0.
SQUARED_LENGTH = 0.5
NOTHING = np.empty((0, 2))


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
    residual: Array | None = None,
) -> tuple[list[SelectionEvent], Status, Work]:
    """Find where on lines y + vd a support is selected, the one of least w·f.

    Two supports whose objectives rounding cannot tell apart, at any v, count as one.

    problem: It has no bounds on coefficients; its τ is not used.
    support: The support that is selected from y.
    directions, shape (d, r): Unit vectors d that the columns of the support span, in the rows of
        ``problem.triangle``.
    residual, shape (d, 3): Polynomials of what all columns leave of the squared response, on curves
        where this changes with v. The support is selected only where they are above 0.
    Returns: The events; whether the tree has ended, which is OPTIMAL, or else the limit that was
        reached, or PRECISION; and what the search took.
    """
    limits = (limits or Limits()).within()
    if not len(directions):
        return [], Status.OPTIMAL, Work()
    length = math.sqrt(SQUARED_LENGTH)
    curved = np.zeros((len(directions), 3)) if residual is None else residual
    search = _Search(problem, support, comparison, directions * length, curved * SCALED)
    status = search.run(limits)
    events = [
        SelectionEvent(
            length * complement(np.vstack([search.perhaps[i], search.doubt[i]])),
            length * complement(search.surely[i]),
        )
        for i in range(len(directions))
    ]
    return events, status, Work(n_nodes=search.n_nodes, seconds=limits.elapsed())


# Supports are fitted in parts of about so many numbers, 8 MB each. The number is a choice.
NUMBERS_AT_A_TIME = 1_000_000
# Polynomials of v that counts unit vectors, as polynomials of v that counts vectors δ.
SCALED = np.array([SQUARED_LENGTH, math.sqrt(SQUARED_LENGTH), 1.0])


class _Search:
    """The search for the events of one support; other parameters as of :func:`selection_events`.

    delta, shape (d, r): The vectors δ, in whose lengths v counts here.
    own, own_error, shape (d, 3): Polynomials of w_S f_S, and of what they are off by at most.
    common, common_error, shape (d, 3): The same of what a curve adds to all objectives.
    surely, perhaps, doubt: By line the v that some support surely, or perhaps, takes out, and those
        that open nodes leave in doubt.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        support: NDArray[np.intp],
        comparison: Comparison,
        delta: Array,
        residual: Array,
    ) -> None:
        self.comparison, self.delta = comparison, delta
        self.at, table, self.ridge = problem.at_unit_length(), problem.triangle, problem.given_gamma
        self.X = np.append(table[:, : problem.p], np.zeros((len(table), 1)), axis=1)
        self.responses = np.vstack([table[:, problem.p], delta]).T
        self.members = Members(self.at, comparison)
        self.table = self.members.table
        self.member = np.isin(np.arange(self.table.units.size), self.table.members(support))
        self.weight = float(comparison.weights(self.table, self.member[None])[0])
        self.common = residual * [1.0, 1.0, 0.0]
        curved = residual.any(axis=1)
        self.common_error = 16.0 * EPS * np.outer(curved, [1.0, 0.0, problem.yy])
        value, error = self.objectives(support[None])
        self.own, self.own_error = self.weight * value[0], self.weight * error[0]
        self.surely, self.perhaps, self.doubt = ([NOTHING] * len(delta) for _ in range(3))
        for i in np.flatnonzero(curved).tolist():
            self.surely[i] = self.perhaps[i] = negative(residual[i][None])
        self.n_nodes = 0

    def objectives(self, columns: NDArray[np.intp]) -> tuple[Array, Array]:
        """Polynomials of the objectives of supports (k, s), and of what they are off by at most.

        Column −1 is zero in every row.

        A fit is exact for columns and responses that rounding has moved by the share ``Rows.off``
        of their lengths, so that the root of an objective f is off by δ = off·(|y| + Σ ℓ_j|β_j|),
        and f by 2√f·δ + δ², at most a share e of f and δ²(1 + 1/e); e is 1e-12, a choice.

        Returns: Two arrays of shape (k, d, 3), with the coefficient of v² first.
        """
        (k, s), d, n = columns.shape, len(self.delta), len(self.X)
        rows = np.zeros((k, n + (s if self.ridge > 0.0 else 0), s))
        rows[:, :n] = self.X[:, columns].transpose(1, 0, 2)
        rows[:, n:] = math.sqrt(self.ridge / 2.0) * np.eye(s)[: rows.shape[1] - n]
        left = np.zeros((k, rows.shape[1], 1 + d))
        left[:, :n] = self.responses
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0.0, lengths, 1.0)
        U, values, Vt = np.linalg.svd(rows, full_matrices=False)
        kept = values > DEPENDENT_SHARE * values[:, :1]
        U, inverse = U * kept[:, None, :], kept / np.where(kept, values, 1.0)
        inside = inverse[:, :, None] * (U.transpose(0, 2, 1) @ left)
        spread = np.abs(Vt.transpose(0, 2, 1) @ inside).sum(axis=1)
        for _ in range(2):  # The second step restores the digits that the first step has lost.
            left -= U @ (U.transpose(0, 2, 1) @ left)
        off = self.at.data.off * (np.linalg.norm(self.responses, axis=0) + spread)
        y, moved = left[:, :, :1], left[:, :, 1:]
        squares = np.square(moved), 2.0 * y * moved, np.square(y) + np.zeros_like(moved)
        value = np.stack([part.sum(axis=1) for part in squares], axis=2)
        share = SUM_SHARE
        error = share * value  # (off_y + |v| off_δ)² is at most twice the sum of the squares.
        error[:, :, 0] += 2.0 * (1.0 + 1.0 / share) * off[:, 1:] ** 2
        error[:, :, 2] += 2.0 * (1.0 + 1.0 / share) * off[:, :1] ** 2
        return value + self.common, error + self.common_error

    def run(self, limits: Limits) -> Status:
        """Search until no support is left that may win, which is OPTIMAL, or return the limit."""
        reached = self.take(self.neighbours(), limits)
        if reached is not None:
            return reached
        least, sizes = self.comparison.of_units(self.table)
        if not sizes.size:
            return Status.OPTIMAL
        # Products of the columns of the working problem, which may be scaled, with the directions.
        table = self.at.triangle
        rows, targets = self.delta @ table[:, : self.at.p], self.delta @ table[:, self.at.p]
        tree = Leaps(self.at, sizes, rows, targets, gathers=True)
        tree.chunk = min(tree.chunk, NODES_BETWEEN_LOOKS)
        tree.begin()
        tree.lists.max_searched[:] = 1e300  # This is above all losses but ∞.
        ended, ends = False, self.limit_polynomials(tree, least)
        reached = None if ends.all() else Status.PRECISION
        self.doubt = [np.array([[-np.inf, -end], [end, np.inf]]) for end in ends]
        while not ended and reached is None:
            reached = limits.reached(tree.n_nodes)
            if reached is None:
                self.look_at(tree.tree.gathering)
                ended = tree.step(limits)
                if (late := self.take(tree.handed_out(), limits)) is not None:
                    self.n_nodes = tree.n_nodes
                    return late
        self.n_nodes = tree.n_nodes
        if reached is not None:
            self.leave_in_doubt(tree)
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

    def look_at(self, gathering: Gathering) -> None:
        """Let a tree look at what known supports leave of the lines."""
        for i, doubt in enumerate(self.doubt):
            left = complement(np.vstack([self.surely[i], doubt]))
            if len(left) > gathering.region.shape[1]:
                left = np.array([[left[0, 0], left[-1, 1]]])
            gathering.region[i, : len(left)], gathering.n_region[i] = left, len(left)

    def limit_polynomials(self, tree: Leaps, least: Array) -> Array:
        """Write to ``gathering.wins`` below which polynomials supports may win.

        Its row s is for supports of at least s units; nothing is below the rows of sizes that no
        support of finite weight reaches. :meth:`doubts` says what rounding and the working γ add.

        least, shape (m + 1,): The least weights of supports of at least 0, 1, …, m units.
        Returns, shape (d,): Beyond plus and minus this v they may add more than 1e-4 of S's
            objective, a choice; 0 where the tree cannot be trusted.
        """
        spare, centre = tree.tree.one_minus_leverage[0], tree.tree.deleted_residual[0]
        share, added = self.doubts(tree)
        if not share + added < 1.0:
            return np.zeros(len(self.delta))
        base = self.common_error + np.array([1.0 - SQUARED_LENGTH + added, 0.0, 0.0])
        base[:, 2] += spare * centre**2 - float(tree.now("full")) + added * self.at.yy
        wins = tree.tree.gathering.wins
        wins[:], wins[:, :, 2] = 0.0, -1e300  # Nothing is below such a number.
        for s in np.flatnonzero(least < np.inf).tolist():
            limit = self.own / least[s] - self.common  # Of what changes on a line alone.
            wins[s] = (1.0 + share) * limit + self.own_error / least[s] + base
        # v has the unit of y, and what is added to an objective is ``worst`` times v².
        worst = added * self.weight + self.own_error[:, 0]
        return np.asarray(1e-2 * np.sqrt(self.own[:, 2] / worst))

    def doubts(self, tree: Leaps) -> tuple[float, float]:
        """A share of f, and one of |y|² + v², that objectives in a tree may be off by.

        Every term is 2√f times a root r, at most a share e of f and r²/e; e is 1e-5, a choice. With
        v the largest A_jj M_jj as in :func:`~.depth_first.begin`, what one column adds to a loss is
        off by 2u√(v·added·full), and what p columns add by 2u√(v·p·loss·full). The margin for the
        rounding of a factor is that of ``rounding_margin``, by the spread of
        coefficients where that is short. The working γ adds ``zero_loss``.
        """
        at, e = self.at, 1e-5
        R = tree.tree.columns_of[:-1, :-1].T
        squares = np.maximum((R * R).sum(axis=0), tree.tree.scale**2)
        inflation = float(((np.linalg.inv(R) ** 2).sum(axis=1) * squares).max())
        share = 3.0 * e + UPDATED_SHARE + tree.left_out(at)
        added = 0.25 * EPS * EPS * at.p * inflation / e + 8.0 * at.p * EPS
        moved, spread = at.data.off, tree.stretch * coefficient_spread(at)
        if moved * spread <= 1e-5:
            share += 2.0 * moved * spread + 2.0 * (moved * spread) ** 2
            added += 2.0 * moved**2 * (1.0 + 1.0 / e)
        else:
            added += (moved * tree.reach) ** 2 * (1.0 + 1.0 / e)
        if at.gamma > at.given_gamma and at.yy > 0.0:
            constant, sloped = at.zero_loss(0.0) / at.yy, at.zero_loss(at.yy) / at.yy
            added += constant + (sloped - constant) ** 2 / e
        return share, added

    def take(self, members: NDArray[np.bool_], limits: Limits) -> Status | None:
        """Add to ``surely`` and ``perhaps`` of every line the v at which supports beat the own one.

        members, shape (k, m): Rows that mark units. Supports that do not count, or that were taken
            before, are passed over.
        Returns: None, or the limit of time at which this has ended; all v are in doubt then.
        """
        supports, weights = self.members.new(members)
        most = max([1, *(one.size for one in supports)])
        columns = stacked(supports, most)
        of_one = (len(self.X) + most) * (most + 1 + len(self.delta))
        parts = 1 + len(supports) * of_one // NUMBERS_AT_A_TIME
        for here in np.array_split(np.arange(len(supports)), parts):
            if (reached := limits.reached(0)) is not None:
                self.doubt = [np.array([[-np.inf, np.inf]]) for _ in self.delta]
                return reached
            value, error = self.objectives(columns[here])
            weight = weights[here][:, None, None]
            differ, error = weight * value - self.own, weight * error + self.own_error
            # Within these a difference is at most 1.5 (e_a v² + e_c) at every v, as √(e_a e_c) |v|
            # is at most (e_a v² + e_c)/2, so that rounding cannot tell the two supports apart.
            allowed = np.sqrt(error[:, :, [0, 0, 2]] * error[:, :, [0, 2, 2]])
            apart = (np.abs(differ) > allowed).any(axis=2)
            for i in range(len(self.delta)):
                one, off = differ[apart[:, i], i], error[apart[:, i], i]
                self.surely[i] = union(np.vstack([self.surely[i], negative(one + off)]))
                self.perhaps[i] = union(np.vstack([self.perhaps[i], negative(one - off)]))
        return None

    def leave_in_doubt(self, tree: Leaps) -> None:
        """Note the v that open nodes leave in doubt."""
        state = tree.tree
        for level in np.flatnonzero(state.cursor[: int(tree.now("level")) + 1] >= 0).tolist():
            for k, i in enumerate(state.problem_of[level, : state.n_open[level]].tolist()):
                spare, centre = state.one_minus_leverage[level, k], state.deleted_residual[level, k]
                least = np.array([1.0, 2.0 * centre, centre**2]) * spare
                least[2] += state.loss[level, k]
                least -= state.gathering.wins[state.fixed[level], i]
                self.doubt[i] = union(np.vstack([self.doubt[i], negative(least[None])]))


def negative(polynomials: Array) -> Array:
    """The intervals (2k, 2), which may be empty, as (0, 0) is, where polynomials (k, 3) are < 0."""
    a, b, c = polynomials.T + 0.0  # A sum with 0 is never −0.
    square = b * b - 4.0 * a * c
    half = -0.5 * (b + np.copysign(np.sqrt(np.maximum(square, 0.0)), b))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.sort([half / a, c / half], axis=0)
    far, none = np.full(a.size, np.inf), np.zeros(a.size)
    ends = np.where(a < 0.0, [-far, low, high, far], [low, high, none, none])
    ends[:, square <= 0.0] = 0.0
    everywhere = (square <= 0.0) & ((a < 0.0) | ((a == 0.0) & (c < 0.0)))
    ends[:2, everywhere] = [[-np.inf], [np.inf]]
    return ends.T.reshape(-1, 2)


def union(intervals: Array) -> Array:
    """The union of open intervals (k, 2), as increasing intervals that do not overlap."""
    some = intervals[intervals[:, 0] < intervals[:, 1]]
    some = some[np.argsort(some[:, 0], kind="stable")]
    reach = np.maximum.accumulate(some[:, 1])
    first = np.append(True, some[1:, 0] > reach[:-1])[: len(some)]
    return np.column_stack([some[first, 0], reach[np.append(first[1:], True)[: len(some)]]])


def complement(intervals: Array) -> Array:
    """What the union of intervals (k, 2) leaves of the line."""
    taken = union(intervals)
    ends = np.column_stack([np.append(-np.inf, taken[:, 1]), np.append(taken[:, 0], np.inf)])
    return np.asarray(ends[ends[:, 0] < ends[:, 1]])
