"""One budget of coefficients for all equations of a system.

With f_t(k) the least objective of equation t with at most k columns, the least total over sizes
k_1 + … + k_q ≤ K follows from d_t(k) = min_j d_{t−1}(k − j) + f_t(j). Lower bounds of f_t go
through the same recursion and bound the total from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..schedule import FIRST_NODES, HALVES
from ..solvers.api import best_support
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer, Status, Work, relative_gap
from ..solvers.leaps.all_sizes import best_subsets

# The search may stop where the relative gap of the total is at most this number, which is also the
# default tolerance of :func:`sparsecv.solvers.solve`.
TOLERANCE = 1e-6


class Allocation(NamedTuple):
    """How a budget of coefficients is shared out among equations.

    answers: The support of every equation, of at most the size that it gets, in their order.
    objective, lower_bound: The sum of their objectives, and a lower bound on the least sum.
    status: Optimal where no other allocation is better, else what has ended the search.
    """

    answers: list[Answer]
    objective: float
    lower_bound: float
    status: Status

    @property
    def gap(self) -> float:
        """(objective − lower_bound) / objective of the total."""
        return relative_gap(self.objective, self.lower_bound)


class _Equation:
    """The best support and bounds of every size 0..most of one equation.

    answers: What is known of every size, by the size. At first no size but 0 has a support.
    settled: Of every size whether its objective is the least one up to rounding, which a bound that
        holds in spite of rounding may not reach.
    """

    def __init__(self, problem: SparseRidgeProblem, most: int) -> None:
        self.problem = problem
        empty = [
            replace(Answer.nothing_known(size), objective=problem.yy) for size in range(most + 1)
        ]
        empty[0] = replace(empty[0], lower_bound=problem.yy, status=Status.OPTIMAL)
        self.answers = empty
        self.settled = np.arange(most + 1) == 0

    def first(self, start: ArrayLike | None, limits: Limits) -> None:
        """Give every size a support and a bound by one tree of FIRST_NODES nodes at most.

        start, shape (p,): Coefficients; the columns where they are not 0 are a first support.
        """
        sizes = np.flatnonzero(~self.settled)
        if sizes.size == 0:
            return
        known = np.flatnonzero([] if start is None else start)
        starts = [known] if known.size else []
        within = limits.within(nodes=FIRST_NODES)
        found = best_subsets(self.problem, sizes=sizes, warm_starts=starts, limits=within)
        for i, size in enumerate(sizes.tolist()):
            self.enter(size, found[i], found[i].proved)
        self.spread()

    def prove(self, size: int, tol: float, limits: Limits) -> None:
        """Solve one size until its relative gap is at most ``tol``, or the limits are reached."""
        found = best_support(
            self.problem.replace(tau=size),
            warm_start=self.answers[size].support,
            tol=tol,
            time_limit=limits.remaining(),
            stop=limits.stop,
        )
        self.enter(size, found, found.proved and found.gap > tol)
        self.spread()

    def bound(self, size: int) -> float:
        """The least objective of a size where that is settled, else its lower bound."""
        answer = self.answers[size]
        return answer.objective if self.settled[size] else answer.lower_bound

    def enter(self, size: int, found: Answer, settled: bool) -> None:
        """Keep the better support and the better bound of what is known and what a search found.

        settled: Whether the search has proved its objective to be the least one up to rounding.
        """
        answer = self.answers[size].joined(found, Work())
        self.answers[size] = replace(answer, status=Status.OPTIMAL) if settled else answer
        self.settled[size] = settled

    def spread(self) -> None:
        """More columns are never worse: supports go up the sizes, bounds down."""
        answers, bound = self.answers, 0.0
        for size in range(1, len(answers)):
            fewer = answers[size - 1]
            if fewer.objective < answers[size].objective:
                answers[size] = replace(
                    answers[size], support=fewer.support, objective=fewer.objective
                )
        for size, answer in reversed(list(enumerate(answers))):
            # A bound of more columns holds for fewer, and none exceeds a known objective.
            bound = min(max(bound, answer.lower_bound), answer.objective)
            answers[size] = replace(answer, lower_bound=bound)


def solve_budget(
    problems: Sequence[SparseRidgeProblem],
    total: int,
    *,
    time_limit: float | None = None,
    warm_starts: Sequence[ArrayLike | None] | None = None,
) -> Allocation:
    """Minimise the sum of all equations' objectives with at most ``total`` coefficients in all.

    An allocation gives every equation a size. The allocation that is cheapest by lower bounds
    bounds the total from below, and the one that is cheapest by known objectives bounds it from
    above. As long as the two differ by more than TOLERANCE, one size of the first allocation is
    solved to a smaller gap: that with the largest difference between its objective and its bound.

    problems: One for each equation, without constraints; τ is the most columns of that equation.
    total: The most columns of all equations together.
    time_limit: Seconds for everything; the allocation is then the best that is known.
    warm_starts: For each equation coefficients (p,) whose columns that are not 0 are a support to
        start from, or None.
    Returns: The cheapest allocation by known objectives. Its status is OPTIMAL where the gap is at
        most TOLERANCE up to rounding, else the limit that was reached, or UNPROVED.
    """
    limits = Limits(time_limit)
    equations = [_Equation(problem, min(problem.tau, total)) for problem in problems]
    for t, equation in enumerate(equations):
        start = None if warm_starts is None else warm_starts[t]
        equation.first(start, limits.share(HALVES * (len(equations) - t)))
    # The relative gap that an equation was last solved to at a size, by (equation, size). A search
    # that has not reached this gap is made again only for a smaller one.
    tried: dict[tuple[int, int], float] = {}
    while True:
        bounds = [[one.bound(size) for size in range(len(one.answers))] for one in equations]
        objectives = [[answer.objective for answer in one.answers] for one in equations]
        lower, sizes = _allocate(bounds, total)
        upper, chosen = _allocate(objectives, total)
        if lower >= upper * (1.0 - TOLERANCE) or limits.reached(0) is not None:
            break
        cells = []
        for t, size in enumerate(sizes):
            answer = equations[t].answers[size]
            # With a lower bound of ``enough`` at this size, the allocation's total of lower bounds
            # would reach (1 − TOLERANCE)·upper. A larger bound, and so a smaller gap, is of no use.
            enough = upper * (1.0 - TOLERANCE) - (lower - bounds[t][size])
            needed = max(0.5 * TOLERANCE, relative_gap(answer.objective, enough))
            again = answer.gap > needed and tried.get((t, size), np.inf) > needed
            if again and not equations[t].settled[size]:
                cells.append((answer.objective - answer.lower_bound, t, size, needed))
        if not cells:
            break
        _, t, size, needed = max(cells)
        tried[t, size] = needed
        equations[t].prove(size, needed, limits)
    answers = [equations[t].answers[size] for t, size in enumerate(chosen)]
    status = Status.OPTIMAL
    if lower < upper * (1.0 - TOLERANCE):
        status = limits.reached(0) or Status.worst(
            [Status.UNPROVED, *(one.status for one in answers)]
        )
    # ``lower`` counts settled objectives, which rounding may have made too large for a bound.
    safe = [[answer.lower_bound for answer in one.answers] for one in equations]
    bound, _ = _allocate(safe, total)
    return Allocation(answers, objective=upper, lower_bound=min(bound, upper), status=status)


def _allocate(values: Sequence[Sequence[float]], total: int) -> tuple[float, list[int]]:
    """The least sum of values, and sizes, one for each row, that add up to at most ``total``.

    values: For every equation its values at the sizes 0, 1, …, at least one.
    total: The budget, at least 0.
    """
    # The least sum of the rows so far for every budget 0..total, and the size that a row then has.
    best: NDArray[np.float64] = np.zeros(total + 1)
    choices = []
    for row in values:
        options = np.full((len(row), total + 1), np.inf)
        for size, value in enumerate(row[: total + 1]):
            options[size, size:] = best[: total + 1 - size] + value
        choices.append(options.argmin(axis=0))
        best = options.min(axis=0)
    remaining, sizes = total, []
    for choice in reversed(choices):
        sizes.append(int(choice[remaining]))
        remaining -= sizes[-1]
    return float(best[total]), sizes[::-1]
