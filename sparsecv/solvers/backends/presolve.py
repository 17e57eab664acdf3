"""What every outside solver is given, and what its answer is held against.

The columns left after screening and a support found by rounding and swaps go in. What comes out is
recomputed: the objective from a fresh fit of the support, and a lower bound above an objective that
is known to be attained is a failure of the solver, not a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..branching.single import WORST_GAP
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status, Work, relative_gap
from ..relaxation.gram import TOLERANCE, GramForm, wants_gram
from ..relaxation.root import Incumbent, Root, reduced_root


@dataclass
class Prepared:
    """A problem ready for an outside solver.

    columns: Those that may be in a better support; the solver's variables.
    gram: Of those columns.
    support: Of the incumbent, by position in ``columns``.
    objective: Of the incumbent.
    bound: Proved over ``columns`` by the relaxation.
    slack: Proved for every support with another column.
    done: Where nothing is left to solve.
    """

    problem: SparseRidgeProblem
    columns: NDArray[np.intp]
    gram: GramForm
    support: NDArray[np.intp]
    objective: float
    bound: float
    slack: float
    tol: float
    limits: Limits
    done: Proof | None = None

    def proof(
        self,
        support: NDArray[np.intp],
        bound: float,
        status: Status,
        n_nodes: int,
        precision: float = WORST_GAP,
        margin: float = 0.0,
    ) -> Proof:
        """What a solver found, recomputed.

        support: By position in ``columns``.
        bound: Over ``columns``, the solver's tolerances taken off.
        precision: Relative gap that counts as none for this solver.
        margin: Rounding already taken off the bound.
        """
        problem = self.problem
        chosen = np.sort(self.columns[support]).astype(np.intp)
        fit = problem.fit(chosen)
        known = self.columns[self.support]
        if problem.objective(known) < fit.objective:
            chosen, fit = np.sort(known).astype(np.intp), problem.fit(known)
        best = fit.objective
        if status is Status.FAILED or not bound <= best * (1.0 + 1e-9) + 1e-12 * problem.yy:
            bound, status = self.bound, Status.FAILED  # nothing it says is believed
        rounding = 1e-9 * best + 1e-12 * problem.yy + problem.data_loss(best)
        lower = max(0.0, min(max(bound, self.bound), self.slack, best) - rounding)
        gap = relative_gap(best, lower)
        closed = max(self.tol, precision)
        ended = status in (Status.OPTIMAL, Status.PRECISION, Status.FAILED)
        if gap <= (closed if ended else max(self.tol, 1e-9)):
            status = Status.OPTIMAL  # nothing is left to prove, whatever made it stop
        elif status is Status.OPTIMAL:
            lost = 4.0 * (margin + rounding) / best
            status = Status.PRECISION if gap <= closed + lost else Status.FAILED
        return Proof(chosen, best, lower, status, Work(n_nodes, self.limits.elapsed()))


def prepare(
    problem: SparseRidgeProblem,
    warm_starts: Sequence[NDArray[np.intp]],
    tol: float,
    limits: Limits,
    *,
    screening: bool = True,
) -> Prepared:
    """Find a good support and screen columns.

    screening: Without it every column stays, and no relaxation is solved.
    Returns: The columns left, the incumbent and the bounds that are known.
    """
    whole = wants_gram(problem) or not screening
    gram = GramForm.of(problem, limits=limits) if whole else None
    incumbent = Incumbent(problem, warm_starts, gram)
    incumbent.select_forward()
    if screening:
        root, gram = reduced_root(problem, incumbent, tol, gram, limits)
    else:
        root = Root(np.arange(problem.p, dtype=np.intp), np.zeros(problem.p), 0.0, 0.0, np.inf)
    if root.columns.size <= problem.tau:  # any other support holds a column screened out
        incumbent.offer(root.columns)
        root.bound = root.slack
    root.bound = min(root.bound, incumbent.objective)
    settled = min(root.bound, root.slack) >= incumbent.objective * (1.0 - max(tol, TOLERANCE))
    reached = limits.reached(0)
    inside = np.flatnonzero(np.isin(root.columns, incumbent.support)).astype(np.intp)
    if inside.size < incumbent.support.size:  # screened: nothing on the columns left is better
        root.columns = np.union1d(root.columns, incumbent.support).astype(np.intp)
        inside = np.searchsorted(root.columns, incumbent.support).astype(np.intp)
        gram = None
    ready = Prepared(
        problem,
        root.columns,
        GramForm(np.zeros((0, 0)), np.zeros(0), 0.0, np.zeros(0), 0.0),
        inside,
        incumbent.objective,
        root.bound,
        root.slack,
        tol,
        limits,
    )
    if settled or reached is not None:
        status = Status.OPTIMAL if settled else reached or Status.TIME_LIMIT
        ready.done = ready.proof(inside, root.bound, status, 0)
        return ready
    ready.gram = GramForm.of(problem, root.columns, extract=False) if gram is None else gram
    return ready
