"""Every support that is nearly the best, and the best one by a criterion, from one tree."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Answer, Status, Work
from ..core.rounding import CERTAIN_SHARE, EQUAL_SHARE, tree_margin
from ..core.threads import threads_for
from ..core.ties import ties_in_order
from ..kernels.linalg import Array
from .all_sizes import support_objectives
from .table import TreeTable
from .tree import Leaps

# A list has at most so many supports, which is a choice.
MANY = 100_000


class Comparison(NamedTuple):
    """How supports are compared: by w·f, f the objective and w ≥ 1 a weight of the size.

    weight: By size, from 0 on; ∞ for sizes whose supports do not count.
    by_rank: Whether a size is the number of coefficients together (:class:`Coefficients`); else it
        is what the units count in a size of the problem.
    """

    weight: Array
    by_rank: bool = False

    def weights(self, table: TreeTable, members: Any) -> Array:
        """The weights of supports, rows (k, m) that mark units of a table."""
        sizes = table.coefficients.of(members) if self.by_rank else members @ table.cost
        return np.asarray(np.append(self.weight, np.inf)[np.minimum(sizes, self.weight.size)])

    def of_units(self, table: TreeTable) -> tuple[Array, NDArray[np.intp]]:
        """What the number of units says of weights.

        By rank this is about supports without redundant units (:meth:`Coefficients.least`). Every
        other support has the weight and the objective of one without them.

        Returns: The least weight of supports of at least 0, 1, …, m units, shape (m + 1,), and the
            numbers from 1 to m − 1 of which some support counts.
        """
        m, included = table.units.size, table.included > 0
        own, every, each = int(included.sum()), int(table.cost.sum()), table.cost
        fewest = each[included].sum() + np.append(0, np.cumsum(np.sort(each[~included])))
        if self.by_rank:
            each, every = table.coefficients.each, table.coefficients.every
            fewest = table.coefficients.least(included)
        free = np.sort(each[~included])[::-1]
        most = np.minimum(each[included].sum() + np.append(0, np.cumsum(free)), every)
        least = np.full(m + 1, np.inf)
        for extra, (few, many) in enumerate(zip(fewest.tolist(), most.tolist(), strict=True)):
            least[own + extra] = self.weight[few : many + 1].min(initial=np.inf)
        counted = np.flatnonzero(least < np.inf)
        least = np.minimum.accumulate(least[::-1])[::-1]
        return least, counted[(counted > 0) & (counted < m)]

    def near_best(
        self,
        problem: SparseRidgeProblem,
        within: float = 0.0,
        limits: Limits | None = None,
        most: int = MANY,
    ) -> NearBestAnswers:
        """List every support T with w·f_T ≤ (1 + within)·min w·f, by one leaps-and-bounds tree.

        Supports of the same columns but for columns that are zero in every row count as one, unless
        there are constraints. Without columns f is yᵀy. A support is listed whose value is above
        the limit by no more than rounding explains, and by a share of ``EQUAL_SHARE`` at most.
        Where rounding, or a tiny working γ, may hide more than that, and where the best fit is
        perfect, the list is not complete.

        problem: Its τ is not used. It has no bounds on coefficients.
        within: A share, at least 0.
        limits: By default the search goes on until the list is complete.
        most: The search ends where more supports would be listed, with the status NODE_LIMIT.
        """
        with threads_for(problem):
            known = _Known(problem, Members(problem.at_unit_length(), self))
            limits = (limits or Limits()).within()
            return _searched(known, within, limits, most).listed(known, most, redundant=limits)

    def best(
        self, problem: SparseRidgeProblem, limits: Limits | None = None
    ) -> tuple[Answer, float] | None:
        """The support of least value w·f, and that value; None where no support counts.

        Of supports whose values tie (:mod:`~.core.ties`) the one of fewest columns is taken, and of
        those the lexicographically first. Columns of zeros do not count.

        limits: By default the search goes on until the support is proved.
        """
        with threads_for(problem):
            known = _Known(problem, Members(problem.at_unit_length(), self))
            limits = (limits or Limits()).within()
            found = _searched(known, 0.0, limits, MANY).listed(known, MANY)
        return (found.answers[0], float(found.value[0])) if found.answers else None


class Members:
    """Supports as rows that mark units of a tree; each is taken once.

    problem: As the tree has it, at a working γ. comparison: What decides which supports count.
    """

    def __init__(self, problem: SparseRidgeProblem, comparison: Comparison) -> None:
        self.problem, self.table, self.comparison = problem, TreeTable(problem), comparison
        self._met: set[bytes] = set()

    def new(self, members: NDArray[np.bool_]) -> tuple[list[NDArray[np.intp]], Array]:
        """Of rows (k, m), the supports that count and were not met before, and their weights."""
        weights, chosen = self.comparison.weights(self.table, members), []
        for i, row in enumerate(np.packbits(members, axis=1)):
            key = row.tobytes()
            if weights[i] < np.inf and key not in self._met:
                self._met.add(key)
                chosen.append(i)
        return [self.table.support(np.flatnonzero(members[i])) for i in chosen], weights[chosen]


class NearBestAnswers(NamedTuple):
    """Every support whose value w·f is at most a multiple of the least, the best first.

    answers: The supports. The status of the first is optimal where no support is better, and the
        lower bound of the first holds for all supports of at most its weight.
    value, shape (k,): w·f of each.
    complete: Whether the list is proved to lack no support.
    """

    answers: list[Answer]
    value: Array
    complete: bool


class _Ended(NamedTuple):
    """How a search has ended.

    factor: Supports are listed up to this multiple of the least value.
    bound: A lower bound on the values of all supports that are not known.
    status, work: Those of the search.
    """

    factor: float
    bound: float
    status: Status
    work: Work

    def listed(self, known: _Known, most: int, redundant: Limits | None = None) -> NearBestAnswers:
        """The supports that are good enough, by increasing value.

        Where more than ``most`` supports are that good, the status is NODE_LIMIT. The lower bound
        of an answer holds for all supports of at most its weight that are not listed before it.

        redundant: Limits within which supports with redundant units are listed, for which no tree
            is searched; None lists none.
        """
        status, bound, limit = self.status, self.bound, self.factor * known.least
        if redundant is not None:
            status = known.add_redundant(limit, most, redundant) or status
        chosen = np.flatnonzero(known.within(limit))
        # Of supports that tie the smallest comes first, then the order of columns. Columns of zeros
        # are in no table of the rows that the problem has, and do not count.
        varies = known.problem.data.squares > 0.0
        tied = [[j for j in known.supports[i].tolist() if varies[j]] for i in chosen]
        keys = [
            (len(tie), tie, known.supports[i].size) for tie, i in zip(tied, chosen, strict=True)
        ]
        ranked = chosen[ties_in_order(known.value[chosen], keys)].tolist()
        if len(ranked) > most:
            status, bound = Status.NODE_LIMIT, min(bound, float(known.value[ranked[most]]))
        answers, problem = [], known.problem
        for i in ranked[:most]:
            objective, value = float(known.objective[i]), float(known.value[i])
            above = min(objective, bound / float(known.weight[i])) - float(known.off[i])
            answers.append(
                Answer(
                    size=problem.constraints.size_of(known.supports[i]),
                    support=known.supports[i],
                    objective=objective,
                    lower_bound=max(above, 0.0),
                    # Nothing is better than a fit that leaves nothing.
                    status=Status.OPTIMAL if value == 0.0 and self.factor == 1.0 else status,
                    work=self.work,
                )
            )
        return NearBestAnswers(answers, known.value[ranked[:most]], status is Status.OPTIMAL)


def _searched(known: _Known, within: float, limits: Limits, most: int) -> _Ended:
    """Search for all supports that are good enough, enter them, and say how that has ended.

    Supports with redundant units are left to :meth:`_Known.add_redundant`.

    within, limits, most: As of :func:`near_best_subsets`.
    """
    factor = 1.0 + within
    at, comparison = known.members.problem, known.members.comparison
    table, status = known.members.table, Status.OPTIMAL
    least, sizes = comparison.of_units(table)
    known.add(np.vstack([np.ones(table.units.size), table.included]) > 0)
    tree = Leaps(at, sizes, gathers=True)
    tree.begin()
    counts, ended = least < np.inf, not sizes.size
    if not ended:  # Good supports of all sizes leave little to be searched.
        tree.seed()
        known.add(tree.handed_out())
    while not ended:
        limit = factor * known.least
        # No objective is above twice yᵀy. The limit is ∞ until some support counts.
        wanted = np.where(counts, limit / np.where(counts, least, 1.0), 0.0)
        wanted = np.minimum(wanted, 2.0 * at.yy)
        doubt = _in_doubt(at, tree, wanted)
        _search_below(tree, wanted + counts * doubt)
        reached = limits.reached(tree.n_nodes)
        if limit == 0.0:
            reached = Status.PRECISION
        elif (known.value <= limit).sum() > most:
            reached = Status.NODE_LIMIT
        if reached is not None:
            status = reached
            break
        ended = tree.step(limits)
        known.add(tree.handed_out())
    bound = limit = factor * known.least
    if limit == 0.0:  # Nothing is better, and much may be as good.
        status = Status.PRECISION
    if not ended:
        above = np.minimum(tree.open_bound(), wanted[sizes]) - doubt[sizes]
        bound = float((above * least[sizes]).min())
    work = Work(n_nodes=tree.n_nodes, seconds=limits.elapsed())
    known.off = _in_doubt(at, tree, known.objective)
    if ended and known.doubtful(limit):
        status = Status.PRECISION
    return _Ended(factor, bound, status, work)


class _Known:
    """Supports that a search knows, with their objectives f and values w·f.

    problem: The problem at its own γ.
    off: What rounding, and a working γ, may add to each objective. It is empty until a search has
        ended, and :meth:`within` and :meth:`doubtful` are for afterwards.
    """

    def __init__(self, problem: SparseRidgeProblem, members: Members) -> None:
        self.problem, self.members = problem, members
        self.supports: list[NDArray[np.intp]] = []
        self.objective, self.value, self.weight, self.off = np.empty((4, 0))

    def add(self, rows: NDArray[np.bool_]) -> None:
        """Add those of some supports, shape (k, m), that count and are new."""
        supports, weights = self.members.new(rows)
        if supports:
            objective = support_objectives(self.problem, supports)
            objective[objective <= self.problem.nothing_left] = 0.0
            self.supports += supports
            self.objective = np.append(self.objective, objective)
            self.value = np.append(self.value, weights * objective)
            self.weight = np.append(self.weight, weights)

    @property
    def least(self) -> float:
        """The least value; ∞ where nothing is known."""
        return float(self.value.min(initial=math.inf))

    def within(self, limit: float) -> NDArray[np.bool_]:
        """Which values are at most a limit, or above it by no more than rounding explains."""
        explained = np.minimum(self.weight * self.off, EQUAL_SHARE * limit)
        return np.asarray(self.value <= limit + explained)

    def doubtful(self, limit: float) -> bool:
        """Whether rounding may hide on which side of a limit a value is, or by how far."""
        off = self.weight * self.off
        near = self.value - off <= limit
        return bool((near & ((off > CERTAIN_SHARE * limit) | ~self.within(limit))).any())

    def add_redundant(self, limit: float, most: int, limits: Limits) -> Status | None:
        """Add to the supports within a limit what they span: units that add no coefficient.

        Such supports have the objective and the weight of those that they are made from.

        limit: Supports of at most this value w·f are looked at.
        most: About so many supports may be added. The work ends before a support with more than 30
            such units, or one whose additions could bring the number beyond twice ``most``.
        Returns: None where all such supports have been added, those with units of no coefficient
            included; else the limit at which the work has ended.
        """
        members, comparison = self.members, self.members.comparison
        table, added = members.table, 0
        each, every = table.coefficients.each, table.coefficients.every
        if not comparison.by_rank or (every >= each.sum() and (each > 0).all()):
            return None
        for i in np.flatnonzero(self.within(limit)).tolist():
            own = np.isin(np.arange(table.units.size), table.members(self.supports[i]))
            if (reached := limits.reached(0)) is not None:
                return reached
            more = table.coefficients.spanned(own)
            if more.size > 30 or added + 2**more.size > 2 * most:
                return Status.NODE_LIMIT
            rows = np.repeat(own[None], 2**more.size, axis=0)
            rows[:, more] = list(itertools.product([False, True], repeat=more.size))
            supports, weights = members.new(rows)
            added += len(supports)
            self.supports += supports
            self.weight = np.append(self.weight, weights)
            for name in ("objective", "value", "off"):
                mine = getattr(self, name)
                setattr(self, name, np.append(mine, np.full(len(supports), mine[i])))
        return None


def _search_below(tree: Leaps, limit: Array) -> None:
    """Let a tree hand out all supports whose objective is at most the limit of their number.

    limit, shape (m + 1,): Falling with the number of units, 0 where none counts.
    """
    loss = limit - float(tree.now("full"))
    loss = loss * (1.0 + 2.0 * float(tree.now("tie"))) + float(tree.now("tied_loss"))
    loss[limit == 0.0] = -1.0
    tree.lists.max_kept[: loss.size, 0] = tree.lists.max_searched[: loss.size, 0] = loss


def _in_doubt(at: SparseRidgeProblem, tree: Leaps, objective: Array) -> Array:
    """What rounding, and a working γ, may add to objectives in a tree, or to fits.

    It is at most twice yᵀy, as no objective exceeds yᵀy by more than rounding.
    """
    lost = at.data_losses(objective, [at.p] * objective.size, given_gamma=True)
    return np.minimum(tree_margin(at, objective, tree) + lost, 2.0 * at.yy)
