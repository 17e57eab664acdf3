"""Every support that is best at some γ of a range, with the γ at which it is, of many problems.

Trees at a few γ list the best supports of every size and bound the objectives of all others. In
a cell between two such γ the others are worse than a chord of that bound allows, so that the
supports that can be best in the cell are a short list, which ``kernels.envelope`` divides the
cell among. A cell whose bound does not suffice is halved by another tree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.gamma_span import GammaSpan
from ..core.limits import Limits
from ..core.plan import refuse_many_columns
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.result import Status
from ..core.rounding import DIFFERENCE_SHARE, coefficient_spread, rounding_margin
from ..core.threads import on_one_thread
from ..kernels import envelope
from ..kernels.linalg import Array, mask_rows, placed
from ..supports.rounding import pad_support
from .deleted_rows import at_unit_length, shared_tree
from .tree import Leaps

Mask = NDArray[np.uint64]
# A tree lists this many supports of a size, for each problem, and more where supports tie. Measured
# on tables of 11 to 25 columns.
LISTED = 7
# At most this many supports of a list are kept, and the others are bounded by the best of these.
LIST_LENGTH = 16
# Rows and targets of problems that each lack a row, and the problem with all rows.
Shared = tuple[SparseRidgeProblem, Array, Array]


@dataclass(frozen=True)
class NearBest:
    """What finished trees say about the supports of some sizes at one γ.

    gamma: The γ of the trees.
    masks, shape (sizes, problems, m): Supports as bit masks over the problem's units, which without
        groups are its columns; 0 where fewer than m supports are listed.
    objective, shape (sizes, problems, m): A lower bound on the objective of every listed support.
    others, shape (sizes, problems): A lower bound on the objective of every support that is not
        listed; ∞ where all supports are listed, −∞ where nothing was searched.
    """

    gamma: float
    masks: Mask
    objective: Array
    others: Array

    @classmethod
    def nothing(cls, gamma: float, sizes: int, problems: int) -> NearBest:
        """Nothing is known of any size of any problem."""
        shape = (sizes, problems, LIST_LENGTH)
        unknown = np.full(shape[:2], -np.inf)
        return cls(gamma, np.zeros(shape, np.uint64), np.full(shape, np.inf), unknown)

    def bound_besides(self, s: int, numbers: NDArray[np.intp], masks: Mask) -> Array:
        """Lower bounds on the objectives of all supports of one size but some, shape (numbers,).

        masks, shape (numbers, k): The supports of every problem that are left out.
        """
        rest = ~(self.masks[s, numbers, :, None] == masks[:, None]).any(axis=2)
        listed = np.where(rest, self.objective[s, numbers], np.inf).min(axis=1)
        return np.asarray(np.minimum(listed, self.others[s, numbers]))

    def search(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        wanted: NDArray[np.bool_],
        limits: Limits,
        deleted: tuple[Array, Array] | None = None,
        at_half: Array | None = None,
    ) -> NDArray[np.intp]:
        """Search one tree, and enter its lists in the arrays of this record if it was finished.

        The lists stay empty where a limit ends the search.

        at_half, shape (problems,): Lower bounds on the objectives at half of this γ, if any.
        wanted, shape (sizes, problems): Sizes wanted of each problem: of one problem, or of
            problems that each lack a row. Every size that some problem wants is searched for every
            problem that wants some size.
        deleted: These rows and their targets, as :func:`best_subsets_rows_deleted` takes them.
        Returns: The problems whose row the tree cannot delete without loss of digits: their lists
            stay empty.
        """
        some, asked = np.asarray(wanted.any(axis=1)), np.asarray(wanted.any(axis=0))
        rows, targets = deleted or (np.empty((0, problem.p)), np.empty(0))
        at, rows = at_unit_length(problem.replace(gamma=self.gamma), rows)
        unwanted = None if deleted is None else ~asked
        tree, hard = shared_tree(at, sizes[some], rows, targets, unwanted, LISTED)
        numbers = np.setdiff1d(np.flatnonzero(asked), hard)
        if numbers.size:
            tree.seed()
            if tree.run(limits) is Status.OPTIMAL:
                if at_half is None or at.gamma > at.given_gamma:  # Half of a lost γ says nothing.
                    at_half = np.zeros(wanted.shape[1])
                self._enter(tree, np.flatnonzero(some), numbers, at_half[numbers], deleted)
        return np.intersect1d(hard, np.flatnonzero(asked))

    def _enter(
        self,
        search: Leaps,
        some: NDArray[np.intp],
        numbers: NDArray[np.intp],
        at_half: Array,
        deleted: tuple[Array, Array] | None,
    ) -> None:
        """Write the lists of a finished tree to ``masks``, ``objective`` and ``others``.

        Objectives are lowered by what rounding, a working γ that replaces the given one, and
        columns that the tree leaves out may have raised them by, so that they are lower bounds.

        some: The positions of the tree's sizes among those of this record.
        numbers: The positions of the problems.
        at_half, shape (numbers,): Lower bounds on the problems' objectives at half of this γ.
        deleted: The rows deleted and their targets; None for a tree of one problem.
        """
        problem, tree, lists, of = search.problem, search.tree, search.lists, numbers
        full, yy = np.array([float(search.now("full"))]), np.array([problem.yy])
        if deleted is None:
            of, lost = np.zeros(1, dtype=np.intp), np.zeros(1)
        else:
            residual, left = tree.deleted_residual[0, of], tree.one_minus_leverage[0, of]
            full = full - residual * residual * left
            lost = DIFFERENCE_SHARE * (problem.yy + residual * residual)
            lost += problem.zero_loss(problem.yy)
            lost, yy = lost / left, np.maximum(yy - deleted[1][of] ** 2, 0.0)
        tie, reach = search.now("tie"), search.reach
        spread, left_out = search.stretch * coefficient_spread(problem), search.left_out(problem)
        for s, size in zip(some, search.inner.tolist(), strict=True):
            losses, width = lists.loss[size, of, :-1], LIST_LENGTH
            # Every support whose loss is smaller than both numbers is in the list.
            others = np.minimum(lists.max_searched[size, of], losses[:, -1])
            others[lists.n[size, of] == comb(search.table.units.size, size)] = np.inf
            if losses.shape[1] > width:
                others = np.minimum(others, losses[:, width])
            keep = losses[:, :width] < others[:, None]
            keep[:, 0] = True
            losses = np.where(keep, losses[:, :width], np.inf)
            masks = over_units(lists.found[size, of, : losses.shape[1], 0], search.table.units)
            self.masks[s, numbers, : losses.shape[1]] = np.where(keep, masks, 0)
            losses = np.column_stack([losses, others])
            with np.errstate(invalid="ignore"):
                value = full[:, None] + losses * (1.0 - 3.0 * tie)  # Losses are that precise.
                least = np.maximum(value, 0.0)
                value -= lost[:, None]
                if deleted is None:  # At γ = 0 a tree works with a tiny γ, which raises objectives.
                    value[0] -= problem.data_losses(least[0], [size] * least.shape[1])
                off = problem.data.off
                value -= rounding_margin(least, yy[:, None], reach, spread, off, at_half[:, None])
                value -= left_out * least
            value = np.where(np.isfinite(losses), np.maximum(value, 0.0), np.inf)
            self.objective[s, numbers, : value.shape[1] - 1] = value[:, :-1]
            self.others[s, numbers] = value[:, -1]


def over_units(masks: Mask, units: NDArray[np.intp]) -> Mask:
    """Masks in which bit i becomes bit ``units[i]``; there are at most 64 units."""
    if (units == np.arange(units.size)).all():
        return masks
    found = np.zeros(masks.shape, dtype=np.uint64)
    for place, unit in enumerate(units.tolist()):
        found |= ((masks >> np.uint64(place)) & np.uint64(1)) << np.uint64(unit)
    return found


class Decomposition(NamedTuple):
    """Singular value decompositions of some problems' rows on m supports of one size.

    number, shape (m,): The problem.
    columns, shape (m, size): The support, ended by −1.
    energy, squares, left, reach, off: Those of :attr:`fits`; the least singular value is 0 where
        columns depend on each other, and −1 where they do not at length 1.
    turned, shape (m, size), and vectors, shape (m, size, size): The ridge fit at t = γ/2 is
        Σ_k vectors[k] turned[k] / (squares[k] + t).
    """

    number: NDArray[np.intp]
    columns: NDArray[np.intp]
    energy: Array
    squares: Array
    left: Array
    reach: Array
    off: Array
    turned: Array
    vectors: Array

    @property
    def fits(self) -> envelope.Fits:
        """The fits as functions of t."""
        return envelope.Fits(self.energy, self.squares, self.left, self.reach, self.off)


class Decomposed:
    """The decompositions of some problems' rows on supports of one size that were made so far.

    problems, rows: The problems, and what :func:`stacked_rows` gives of them.
    size: The supports have at most so many columns.
    """

    def __init__(self, problems: Sequence[SparseRidgeProblem], rows: Array, size: int) -> None:
        self._rows, self.size, self._place = rows, size, dict[tuple[int, int], int]()
        self._off = np.array([envelope.BACKWARD + 0.5 * one.data.lost for one in problems])
        for i, one in enumerate(problems):
            if one.data.gram is not None:  # Columns are off by the root of what products are.
                self._off[i] += math.sqrt(one.data.gram.off)
        self.made = self._decomposed(np.empty(0, dtype=np.intp), np.empty((0, size), dtype=np.intp))

    def of(self, numbers: NDArray[np.intp], masks: Mask) -> NDArray[np.int64]:
        """The places in ``made`` of the decompositions of some problems on some supports.

        A decomposition that is missing is made and added.

        numbers, shape (m,): The positions of the problems.
        masks, shape (m,): The support of each, a bit for every column, in one word of 64 bits.
        """
        keys = list(zip(numbers.tolist(), masks.tolist(), strict=True))
        fresh = list(dict.fromkeys(key for key in keys if key not in self._place))
        if fresh:
            self._place |= {key: self.made.number.size + i for i, key in enumerate(fresh)}
            at = np.array([key[0] for key in fresh], dtype=np.intp)
            masks = np.array([key[1:] for key in fresh], dtype=np.uint64)
            self.add(at, placed(mask_rows(masks, 64 * masks.shape[1]), self.size))
        return np.array([self._place[key] for key in keys], dtype=np.int64)

    def add(self, numbers: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        """Decompose the rows of some problems on some supports, shape (m, size), ended by −1."""
        pairs = zip(self.made, self._decomposed(numbers, columns), strict=True)
        joined: list[Any] = [np.concatenate(pair) for pair in pairs]
        self.made = Decomposition(*joined)

    def _decomposed(self, numbers: NDArray[np.intp], columns: NDArray[np.intp]) -> Decomposition:
        """The decompositions that :meth:`add` takes."""
        p = self._rows.shape[2] - 2  # The last column is zero, in the place of missing columns.
        rows = np.arange(self._rows.shape[1])
        X = self._rows[numbers[:, None, None], rows[:, None], columns[:, None, :]]
        y = self._rows[numbers, :, p]
        U, s, V = np.linalg.svd(X, full_matrices=False)
        along = np.einsum("irk,ir->ik", U, y)
        rest = y - np.einsum("irk,ik->ir", U, along)
        # A direction in which the columns do not extend explains nothing at any γ.
        none = s <= envelope.BACKWARD * s[:, :1]
        extent = np.where(none, 0.0, s)
        left = np.einsum("ir,ir->i", rest, rest) + np.where(none, along**2, 0.0).sum(axis=1)
        along[none] = 0.0
        least = extent[np.arange(len(s)), (columns >= 0).sum(axis=1) - 1]
        # Fits tell columns apart at length 1, where a short one may have a direction of its own.
        rank = np.sum(~none, axis=1)
        some = np.flatnonzero(rank < np.sum(columns >= 0, axis=1))
        length = np.linalg.norm(X[some], axis=1, keepdims=True)
        values = np.linalg.svd(X[some] / np.where(length > 0.0, length, 1.0), compute_uv=False)
        more = np.sum(values > envelope.BACKWARD * values[:, :1], axis=1) > rank[some]
        least[some[more]] = -1.0
        return Decomposition(
            number=numbers,
            columns=columns,
            energy=along**2,
            squares=np.where(none, 1.0, extent**2),
            left=left,
            reach=np.column_stack([np.sqrt(np.einsum("irk,irk->i", X, X)), least]),
            off=self._off[numbers],
            turned=extent * along,
            vectors=V,
        )


class Pieces(NamedTuple):
    """For problems of one size, which support is best at which γ.

    Every γ of the range is in a piece of every problem. Pieces overlap where several supports may
    be best, as at a breakpoint, which is known to some nine digits.

    number, shape (m,): The problem; pieces of a problem stand together, in increasing order.
    low, high, shape (m,): Ends, as γ.
    row, shape (m,): Row of ``decomposed``; −1 where any support may be best.
    """

    number: NDArray[np.intp]
    low: Array
    high: Array
    row: NDArray[np.int64]
    decomposed: Decomposition


class GammaRange:
    """The search over a range of γ for the supports of some problems.

    problems: Training problems of the same p columns, at most 64, without constraints.
    sizes, shape (sizes,): From 1 to p, increasing.
    limits: Where one of them is reached supports stay unknown.
    shared: Where the problems each lack one row, that tells it; one tree then serves all of them.
    n_trees, status: What :meth:`run`, which is called once, has searched, and how it has ended.
    lengths, shape (problems, 2): The length of every problem's y, and its square.
    """

    def __init__(
        self,
        problems: Sequence[SparseRidgeProblem],
        sizes: NDArray[np.intp],
        limits: Limits,
        shared: Shared | None = None,
    ) -> None:
        self.problems, self.sizes, self.limits, self.shared = problems, sizes, limits, shared
        self.n_trees, self.status = 0, Status.OPTIMAL
        rows, p = stacked_rows(problems), problems[0].p
        squares = np.einsum("ir,ir->i", rows[:, :, -2], rows[:, :, -2])
        # The length of every problem's y, and its square.
        self.lengths = np.column_stack([np.sqrt(squares), squares])
        # The fits on all columns, whose objectives bound those of all supports.
        self.whole = Decomposed(problems, rows, p)
        self.whole.add(np.arange(len(problems)), np.tile(np.arange(p), (len(problems), 1)))
        self.decomposed = [Decomposed(problems, rows, int(size)) for size in sizes]
        self._found: list[list[tuple[NDArray[np.intp], Array, Array, NDArray[np.int64]]]] = [
            [] for _ in sizes
        ]
        most, waiting = 2 * LIST_LENGTH, envelope.MAX_WAITING
        marks = np.empty((waiting, most), dtype=np.bool_)
        self._work = envelope.Division(np.empty((waiting, 2)), marks, np.empty((5, most)))
        # The kernel has room for 64 pieces of each problem in a cell. Where the room does not
        # suffice the cell is halved.
        room = 64 * len(problems)
        self._pieces = envelope.FoundPieces(np.empty((room, 2)), np.empty(room, dtype=np.int64))

    def run(self, low: float, high: float) -> list[Pieces]:
        """Search the range from low to high; one record per size.

        Trees at 25 values of γ are searched before any cell is looked at, which is measured on
        tables of 11 to 25 columns. A cell is not halved, and its supports stay unknown, where its
        ends differ by at most 1e-6 of the upper end; or by a half, where rounding leaves the best
        support open at both ends, as in fits that interpolate at a tiny γ. Both are choices.
        """
        count, span = len(self.problems), GammaSpan(low, high)
        if self.sizes.tolist() == [self.problems[0].p]:  # There is one support.
            number, ends = np.arange(count), (np.full(count, low), np.full(count, high))
            return [Pieces(number, *ends, number.astype(np.int64), self.whole.made)]
        everything = np.ones((self.sizes.size, count), dtype=bool)
        lists = [self._lists(float(gamma), everything) for gamma in span.spaced(25)]
        cells = [(a, b, everything) for a, b in itertools.pairwise(lists)][::-1]
        while cells:
            a, b, wanted = cells.pop()
            failed, undecided = np.zeros((2, *wanted.shape), dtype=bool)
            for s in np.flatnonzero(wanted.any(axis=1)).tolist():
                numbers = np.flatnonzero(wanted[s])
                failed[s, numbers], undecided[s, numbers] = self._divide(s, numbers, a, b)
            width, reached = b.gamma - a.gamma, self.limits.reached(0)
            narrow = width <= 1e-6 * b.gamma or b.gamma <= span.narrowest
            left = failed
            if not narrow and reached is None:
                left = undecided & (width <= 0.5 * b.gamma)
            for s in np.flatnonzero(left.any(axis=1)).tolist():
                self.status, numbers = reached or Status.UNPROVED, np.flatnonzero(left[s])
                ends = np.full(numbers.size, a.gamma), np.full(numbers.size, b.gamma)
                self._found[s].append((numbers, *ends, np.full(numbers.size, -1)))
            failed = failed & ~left
            if failed.any():
                middle = self._lists(GammaSpan(a.gamma, b.gamma).middle, failed)
                cells += [(middle, b, failed), (a, middle, failed)]
        return [self._joined(s) for s in range(self.sizes.size)]

    def _lists(self, gamma: float, wanted: NDArray[np.bool_]) -> NearBest:
        """The lists of the best supports that trees at one γ give, and bounds on other supports.

        Fits on all columns give lower bounds on the objectives at half of this γ, with which less
        has to be taken off the trees' bounds for rounding. A tree that serves all problems that
        lack one row comes first, if there is one, and then a tree of its own for every problem that
        the first tree cannot serve.

        wanted, shape (sizes, problems): The sizes and problems that are searched.
        Returns: A record without any list if a limit was reached before.
        """
        near = NearBest.nothing(gamma, *wanted.shape)
        if self.limits.reached(0) is not None:
            return near
        self.n_trees += 1
        alone, at_half = np.flatnonzero(wanted.any(axis=0)), np.empty(wanted.shape[1])
        envelope.objective_bounds(self.whole.made.fits, self.lengths, gamma / 4.0, at_half)
        sizes, limits = self.sizes, self.limits
        if self.shared is not None:
            full, *deleted = self.shared
            alone = near.search(full, sizes, wanted, limits, (deleted[0], deleted[1]), at_half)
        for i in alone.tolist():
            one = wanted & (np.arange(wanted.shape[1]) == i)
            near.search(self.problems[i], sizes, one, limits, at_half=at_half)
        return near

    def _divide(
        self, s: int, numbers: NDArray[np.intp], a: NearBest, b: NearBest
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Divide a cell among the supports of one size.

        ``_found`` gets the pieces of the problems that are divided. A problem without a finished
        tree at both ends of the cell fails.

        s, numbers: The position of the size, and the positions of the problems.
        a, b: What is known at the lower and at the upper end of the cell.
        Returns, shape (numbers,) each: Whether that failed, and whether it failed because the best
            support is open at both ends of the cell.
        """
        count = np.full(numbers.size, -1)
        known = (a.others[s, numbers] > -np.inf) & (b.others[s, numbers] > -np.inf)
        # In most cells one of the best supports of both ends is the best. The others on the lists
        # are decomposed only where that is not so.
        for most in (1, LIST_LENGTH):
            some = np.flatnonzero(known & (count < 0))
            if some.size:
                count[some] = self._divide_among(s, numbers[some], a, b, most)
        return count < 0, count == -3

    def _divide_among(
        self, s: int, numbers: NDArray[np.intp], a: NearBest, b: NearBest, most: int
    ) -> NDArray[np.int64]:
        """Divide a cell among the ``most`` best supports of one size that are listed at its ends.

        Returns, shape (numbers,): The number of every problem's pieces, or why there are none, see
            ``envelope.divide``.
        """
        decomposed, lengths = self.decomposed[s], np.ascontiguousarray(self.lengths[numbers])
        masks = np.column_stack([x.masks[s, numbers, :most] for x in (a, b)])
        others = np.column_stack([x.bound_besides(s, numbers, masks) for x in (a, b)])
        twice = (masks[:, most:, None] == masks[:, None, :most]).any(axis=2)
        masks[:, most:][twice] = 0
        at, slot = np.nonzero(masks)
        rows = decomposed.of(numbers[at], masks[at, slot])
        order = np.lexsort((*decomposed.made.columns[rows].T[::-1], at))
        start = np.searchsorted(at, np.arange(numbers.size + 1)).astype(np.int64)
        listing = envelope.ListedRows(rows[order], start)
        count = np.empty(numbers.size, dtype=np.int64)
        cell = np.array([a.gamma, b.gamma]) / 2.0
        envelope.divide_cells(
            cell, others, lengths, listing, decomposed.made.fits, self._work, self._pieces, count
        )
        pieces = np.maximum(count, 0)
        (ends, rows), found = self._pieces, int(pieces.sum())
        low, high = 2.0 * ends[:found].T
        self._found[s].append((np.repeat(numbers, pieces), low, high, rows[:found].copy()))
        return count

    def _joined(self, s: int) -> Pieces:
        """All pieces of one size, neighbours of the same support joined."""
        number, low, high, row = (
            np.concatenate(part) for part in zip(*self._found[s], strict=True)
        )
        order = np.lexsort((low, row, number))
        number, low, high, row = number[order], low[order], high[order], row[order]
        first = np.ones(number.size, dtype=bool)
        first[1:] = (number[1:] != number[:-1]) | (row[1:] != row[:-1]) | (low[1:] > high[:-1])
        start = np.flatnonzero(first)
        number, low, row = number[start], low[start], row[start]
        high = np.maximum.reduceat(high, start)
        order = np.lexsort((high, low, number))
        return Pieces(number[order], low[order], high[order], row[order], self.decomposed[s].made)


def stacked_rows(problems: Sequence[SparseRidgeProblem]) -> Array:
    """Factors of [X y] of problems of the same columns, each with a last column of zeros.

    Returns, shape (problems, p + 1, p + 2): Rows of zeros give all problems one shape.
    """
    bases = [problem.triangle for problem in problems]
    made = np.zeros((len(bases), problems[0].p + 1, problems[0].p + 2))
    for rows, base in zip(made, bases, strict=True):
        rows[: len(base), :-1] = base
    return made


class SupportInterval(NamedTuple):
    """A support that is optimal for low ≤ γ ≤ high, up to the nine digits known of both ends.

    Attributes
    ----------
    low, high : float
        The ends of the interval of γ.
    support : ndarray of int, or None
        The columns; None where a limit, or rounding, left it open which support is optimal.
    """

    low: float
    high: float
    support: NDArray[np.intp] | None


@on_one_thread
def supports_along_gamma(
    problem: SparseRidgeProblem,
    low: float,
    high: float,
    *,
    sizes: ArrayLike | None = None,
    limits: Limits | None = None,
) -> tuple[dict[int, list[SupportInterval]], Status]:
    """Find every support that is optimal at some γ from low to high, with its interval of γ.

    Parameters
    ----------
    problem : SparseRidgeProblem
        At most 45 columns. Its γ is not used; its τ gives the default sizes 1..τ.
    low, high : float
        Ends of the range, 0 ≤ low < high.
    sizes : array of int, optional
        Support sizes wanted.
    limits : Limits, optional
        Where they are reached, supports stay unknown.

    Returns
    -------
    intervals : dict of int to list of SupportInterval
        For every size its intervals, by their low ends. Together they cover the range. They overlap
        where several supports may be optimal: at a breakpoint, by a share of 1e-9 of its γ. Of
        supports that tie at every γ the lexicographically first is listed.
    status : Status
        Optimal where every support is known, else the limit that was reached, or "not proved" where
        rounding left a support open.

    Raises
    ------
    InputError
        A range that cannot be searched, too many columns, or constraints; also a ValueError.
    ValueError
        Sizes that cannot be searched.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, supports_along_gamma
    >>> X, y = np.diag([1.0, 9.0, 2.0]), np.array([3.0, 2.0, 1.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    >>> along, status = supports_along_gamma(problem, 0.01, 100.0)
    >>> [(one.support.tolist(), round(one.high, 3)) for one in along[1]]
    [([0], 2.571), ([1], 100.0)]
    """
    problem.refuse_constraints("the search for supports along gamma")
    wanted = checked_sizes(problem, sizes)
    GammaSpan(low, high).check()
    refuse_many_columns(problem.p, "the search for supports along gamma")
    intervals: dict[int, list[SupportInterval]] = {}
    if problem.yy == 0.0 or not problem.data.squares.any():  # All supports tie.
        nothing = np.empty(0, dtype=np.intp)
        for size in wanted.tolist():
            intervals[size] = [SupportInterval(low, high, pad_support(nothing, size, problem.p))]
        return intervals, Status.OPTIMAL
    search = GammaRange([problem], wanted, (limits or Limits()).within())
    for size, found in zip(wanted.tolist(), search.run(low, high), strict=True):
        intervals[size] = []
        for start, end, row in zip(found.low.tolist(), found.high.tolist(), found.row, strict=True):
            support = None
            if row >= 0:
                columns = found.decomposed.columns[row]
                support = pad_support(columns[columns >= 0], size, problem.p)
            intervals[size].append(SupportInterval(start, end, support))
    return intervals, search.status
