"""Every support that is nearly the best, and the best one by a criterion, from one tree."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Answer, Status, Work, nothing_left
from ..core.threads import on_one_thread
from ..kernels.linalg import Array, from_mask
from .all_sizes import CERTAIN_SHARE, support_objectives, ties_in_order, tree_margin
from .table import TreeTable
from .tree import Leaps


class Comparison(NamedTuple):
    """How supports are compared: by w·f, f the objective and w ≥ 1 a weight of the size.

    weight: By size, from 0 on; ∞ for sizes whose supports do not count.
    by_rank: Whether a size is the sum of the ranks of the units' columns; else the number of units.
    """

    weight: Array
    by_rank: bool = False

    def weights(self, table: TreeTable, members: Any) -> Array:
        """The weights of supports, rows (k, m) that mark units of a table."""
        size = table.ranks if self.by_rank else np.ones(table.units.size, dtype=np.intp)
        sizes = np.minimum(members @ size, self.weight.size)
        return np.asarray(np.append(self.weight, np.inf)[sizes])

    def of_units(self, table: TreeTable) -> tuple[Array, NDArray[np.intp]]:
        """What the number of units says of weights.

        Returns: The least weight of supports of at least 0, 1, …, m units, shape (m + 1,), and the
            numbers from 1 to m − 1 of which some support counts.
        """
        m = table.units.size
        size = table.ranks if self.by_rank else np.ones(m, dtype=np.intp)
        own, free = size[table.included > 0], np.sort(size[table.included == 0])
        least = np.full(m + 1, np.inf)
        for extra in range(free.size + 1):
            few, many = int(free[:extra].sum()), int(free[free.size - extra :].sum())
            some = self.weight[own.sum() + few : own.sum() + many + 1]
            least[own.size + extra] = some.min(initial=np.inf)
        counted = np.flatnonzero(least < np.inf)
        least = np.minimum.accumulate(least[::-1])[::-1]
        return least, counted[(counted > 0) & (counted < m)]


class Members:
    """Supports as rows that mark units of a tree; each is taken once.

    problem: As the tree has it, at a working γ. comparison: What decides which supports count.
    """

    def __init__(self, problem: SparseRidgeProblem, comparison: Comparison) -> None:
        self.table, self.comparison = TreeTable(problem), comparison
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

    answers: The supports. Their status is optimal where the list is complete up to rounding, and
        the lower bound of the first holds for all supports of at most its weight.
    value, shape (k,): w·f of each.
    """

    answers: list[Answer]
    value: Array


@on_one_thread
def near_best_subsets(
    problem: SparseRidgeProblem,
    comparison: Comparison,
    within: float = 0.0,
    limits: Limits | None = None,
    most: int = 100_000,
) -> NearBestAnswers:
    """List every support T with w·f_T ≤ (1 + within)·min w·f, by one leaps-and-bounds tree.

    Supports of the same columns but for columns that are zero in every row count as one. Without
    columns f is yᵀy. A tree at a tiny working γ, and rounding, may leave in doubt whether a support
    is listed whose value differs from the limit by a share of 1e-5: the list is then of status
    PRECISION.

    problem: Its τ is not used. It has no bounds on coefficients.
    most: The search ends where more supports would be listed, with the status NODE_LIMIT.
    """
    limits, factor = (limits or Limits()).within(), 1.0 + within
    at = problem.at_unit_length()
    known = _Known(problem, Members(at, comparison))
    table, status = known.members.table, Status.OPTIMAL
    least, sizes = comparison.of_units(table)
    known.add(np.vstack([np.ones(table.units.size), table.included, _seeds(at)]) > 0)
    tree = Leaps(at, sizes, gathers=True)
    tree.begin()
    counts, ended = least < np.inf, not sizes.size
    while not ended:
        limit = factor * known.least
        wanted = np.where(counts, limit / least, 0.0)
        doubt = _in_doubt(at, tree, wanted)
        _search_below(tree, wanted + counts * doubt)
        reached = limits.reached(tree.n_nodes)
        if limit == 0.0 and within == 0.0:  # Nothing is better, and much may be as good.
            reached = Status.PRECISION
        elif (known.value <= limit).sum() > most:
            reached = Status.NODE_LIMIT
        if reached is not None:
            status = reached
            break
        ended = tree.step(limits)
        known.add(tree.handed_out())
    bound = limit = factor * known.least
    if not ended:
        above = np.minimum(tree.open_bound(), wanted[sizes]) - doubt[sizes]
        bound = float((above * least[sizes]).min())
    work = Work(n_nodes=tree.n_nodes, seconds=limits.elapsed())
    known.off = _in_doubt(at, tree, known.objective)
    if ended and known.doubtful(limit):
        status = Status.PRECISION
    return known.listed(factor, bound, status, work, most)


class _Known:
    """Supports that a search knows, with their objectives f and values w·f.

    problem: The problem at its own γ.
    off: What rounding, and a working γ, may add to each objective.
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
            objective[objective <= nothing_left(self.problem.yy)] = 0.0
            self.supports += supports
            self.objective = np.append(self.objective, objective)
            self.value = np.append(self.value, weights * objective)
            self.weight = np.append(self.weight, weights)

    @property
    def least(self) -> float:
        """The least value; ∞ where nothing is known."""
        return float(self.value.min(initial=math.inf))

    def doubtful(self, limit: float) -> bool:
        """Whether a value may be at most a limit, and be off by more than a share of the limit."""
        off = self.weight * self.off
        return bool((off > CERTAIN_SHARE * limit)[self.value - off <= limit].any())

    def listed(
        self, factor: float, bound: float, status: Status, work: Work, most: int
    ) -> NearBestAnswers:
        """The supports of at most ``factor`` times the least value, at most ``most`` of them.

        bound: A lower bound on the values of all supports that are not known.
        status, work: Those of the search, which every answer gets. Where more than ``most``
            supports are that good, the status is NODE_LIMIT.
        Returns: Answers by increasing value. The lower bound of an answer holds for all supports
            of at most its weight that are not listed before it.
        """
        chosen = np.flatnonzero(self.value <= factor * self.least)
        # Of supports that tie the smallest comes first, then the order of columns.
        tied = [self.supports[i] for i in chosen]
        keys = [(support.size, tuple(support.tolist())) for support in tied]
        ranked = chosen[ties_in_order(self.value[chosen], keys)].tolist()
        if len(ranked) > most:
            status, bound = Status.NODE_LIMIT, min(bound, float(self.value[ranked[most]]))
        answers = []
        for i in ranked[:most]:
            objective, value = float(self.objective[i]), float(self.value[i])
            above = min(objective, bound / float(self.weight[i])) - float(self.off[i])
            answers.append(
                Answer(
                    size=self.problem.constraints.units(self.supports[i]).size,
                    support=self.supports[i],
                    objective=objective,
                    lower_bound=max(above, 0.0),
                    # Nothing is better than a fit that leaves nothing.
                    status=Status.OPTIMAL if value == 0.0 and factor == 1.0 else status,
                    work=work,
                )
            )
        return NearBestAnswers(answers, self.value[ranked[:most]])


def _seeds(problem: SparseRidgeProblem) -> NDArray[np.bool_]:
    """Good supports of all numbers of units, by backward elimination and forward selection."""
    m = TreeTable(problem).units.size
    tree = Leaps(problem, np.arange(1, m + 1))
    tree.begin()
    tree.seed()
    found = np.zeros((m, m), dtype=bool)
    for s in range(1, m + 1):
        found[s - 1, from_mask(tree.lists.found[s, 0, 0])] = True
    return found[found.any(axis=1)]


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
    lost = at.data_losses(objective, [at.p] * objective.size, True)
    return np.minimum(tree_margin(at, objective, tree) + lost, 2.0 * at.yy)
