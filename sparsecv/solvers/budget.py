"""One budget of columns shared by several responses on the same columns.

With f_t(k) the least objective of response t with at most k columns, the least total over sizes
k_1 + … + k_q ≤ K follows from d_t(k) = min_j d_{t−1}(k − j) + f_t(j). Lower bounds of f_t go
through the same recursion and bound the total from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .api import best_support
from .core.limits import Limits
from .core.problem import SparseRidgeProblem
from .core.result import Proof, Status, Work, relative_gap, worst
from .leaps.all_sizes import best_subsets

# Nodes of the first tree of all sizes of a response, which gives every size a support and a bound:
# about 20 ms.
FIRST_NODES = 200_000


class Allocation(NamedTuple):
    """A proof for every response, at the size that its share of the budget allows."""

    proofs: list[Proof]
    objective: float
    lower_bound: float
    status: Status
    n_nodes: int  # of all sizes that were tried

    @property
    def gap(self) -> float:
        """(objective − lower_bound) / objective of the total."""
        return relative_gap(self.objective, self.lower_bound)


class _Response:
    """The best support and bounds of every size 0..most of one response.

    ``settled`` says of every size whether its objective is the least one up to rounding, which a
    bound that holds in spite of rounding may not reach.
    """

    def __init__(self, problem: SparseRidgeProblem, most: int, start: ArrayLike | None) -> None:
        self.problem = problem
        empty = np.empty(0, dtype=np.intp)
        nothing = Proof(empty, problem.yy, 0.0, Status.UNPROVED, Work())
        self.proofs = [nothing] * (most + 1)
        least = problem.constraints.min_size
        self.settled = [size < max(1, least) for size in range(most + 1)]
        self.proofs[0] = Proof(empty, problem.yy, problem.yy, Status.OPTIMAL, Work())
        for size in range(least):  # No support has so few columns, as some must be in.
            self.proofs[size] = Proof(empty, np.inf, np.inf, Status.OPTIMAL, Work())
        self.start = None if start is None else np.flatnonzero(start)

    def first(self, limits: Limits) -> None:
        """Give every size a support and a bound by one tree."""
        sizes = np.flatnonzero(~np.array(self.settled))
        if sizes.size == 0:
            return
        found = best_subsets(
            self.problem,
            sizes=sizes,
            warm_starts=[] if self.start is None or self.start.size == 0 else [self.start],
            limits=limits.within(nodes=FIRST_NODES),
        )
        for i, size in enumerate(sizes.tolist()):
            self.settled[size] = bool(found.proved[i])
            status = Status.OPTIMAL if found.proved[i] else found.status
            proof = found.proof(i, Work(found.n_nodes if i == 0 else 0))
            self._enter(size, replace(proof, status=status))
        self._monotone()

    def prove(self, size: int, tol: float, limits: Limits, n_jobs: int | None) -> None:
        """Solve one size until its relative gap is ``tol``."""
        found = best_support(
            self.problem.replace(tau=size),
            warm_start=self.proofs[size].support,
            tol=tol,
            time_limit=limits.remaining(),
            stop=limits.stop,
            n_jobs=n_jobs,
        )
        self.settled[size] = found.status is Status.OPTIMAL and found.gap > tol
        self._enter(size, found)
        self._monotone()

    @property
    def bounds(self) -> list[float]:
        """For every size the least objective where it is settled, else its lower bound."""
        cells = zip(self.proofs, self.settled, strict=True)
        return [proof.objective if known else proof.lower_bound for proof, known in cells]

    def _enter(self, size: int, found: Proof) -> None:
        known = self.proofs[size]
        work = Work(known.n_nodes + found.n_nodes, known.seconds + found.seconds)
        self.proofs[size] = known.joined(found, work)

    def _monotone(self) -> None:
        """More columns are never worse: supports go up the sizes, bounds down."""
        for size in range(1, len(self.proofs)):
            fewer, here = self.proofs[size - 1], self.proofs[size]
            if fewer.objective < here.objective:
                bound = min(here.lower_bound, fewer.objective)
                self.proofs[size] = replace(
                    here, support=fewer.support, objective=fewer.objective, lower_bound=bound
                )
        for size in range(len(self.proofs) - 2, -1, -1):
            more, here = self.proofs[size + 1], self.proofs[size]
            bound = min(max(here.lower_bound, more.lower_bound), here.objective)
            self.proofs[size] = replace(here, lower_bound=bound)


def solve_budget(
    problems: Sequence[SparseRidgeProblem],
    total: int,
    *,
    tol: float = 1e-6,
    time_limit: float | None = None,
    warm_starts: Sequence[ArrayLike | None] | None = None,
    n_jobs: int | None = None,
) -> Allocation:
    """Minimise the sum of all responses' objectives with at most ``total`` coefficients in all.

    Only the sizes are solved that the cheapest allocation by lower bounds asks for.

    problems: One for each response; τ is the most columns of that response.
    warm_starts: A coefficient vector for each response, or None.
    n_jobs: Threads of the search for one size, as in :func:`~sparsecv.solvers.solve`.
    Raises InputError: The budget is less than the columns that must be in take.
    """
    least = sum(problem.constraints.min_size for problem in problems)
    if total < least:
        raise InputError(f"a budget of {total} is too small: the included columns take {least}")
    limits = Limits(time_limit)
    starts = [None] * len(problems) if warm_starts is None else warm_starts
    responses = [
        _Response(problem, min(problem.tau, total), start)
        for problem, start in zip(problems, starts, strict=True)
    ]
    for t, response in enumerate(responses):
        response.first(limits.share(2.0 * (len(responses) - t)))
    tried: dict[tuple[int, int], float] = {}
    while True:
        lower, sizes = _allocate([response.bounds for response in responses], total)
        upper, chosen = _allocate([[p.objective for p in r.proofs] for r in responses], total)
        open_cells = []
        for t, size in enumerate(sizes):
            proof = responses[t].proofs[size]
            # a bound this large on the cell rules the cheapest allocation out
            enough = upper * (1.0 - tol) - (lower - responses[t].bounds[size])
            needed = max(
                0.5 * tol, 1.0 - enough / proof.objective if proof.objective > 0.0 else 0.0
            )
            known = responses[t].settled[size]
            if not known and proof.gap > needed and tried.get((t, size), np.inf) > needed:
                open_cells.append((proof.objective - proof.lower_bound, t, size, needed))
        if lower >= upper * (1.0 - tol) or limits.reached(0) is not None or not open_cells:
            break
        _, t, size, needed = max(open_cells)
        tried[t, size] = needed
        responses[t].prove(size, needed, limits, n_jobs)
    proofs = [responses[t].proofs[size] for t, size in enumerate(chosen)]
    status = Status.OPTIMAL
    if lower < upper * (1.0 - tol):
        status = limits.reached(0) or worst([Status.UNPROVED, *(p.status for p in proofs)])
    n_nodes = sum(proof.n_nodes for response in responses for proof in response.proofs)
    bound, _ = _allocate([[p.lower_bound for p in r.proofs] for r in responses], total)
    return Allocation(proofs, upper, min(bound, upper), status, n_nodes)


def _allocate(values: Sequence[Sequence[float]], total: int) -> tuple[float, list[int]]:
    """Sizes, one for each row of ``values``, that add up to at most ``total`` at the least sum."""
    best: NDArray[np.float64] = np.zeros(total + 1)
    choices = []
    for row in values:
        options = np.full((len(row), total + 1), np.inf)
        for size, value in enumerate(row[: total + 1]):
            options[size, size:] = best[: total + 1 - size] + value
        choices.append(options.argmin(axis=0))
        best = options.min(axis=0)
    left, sizes = total, []
    for choice in reversed(choices):
        sizes.append(int(choice[left]))
        left -= sizes[-1]
    return float(best[total]), sizes[::-1]
