"""The problem that every outside solver is given, and the checks of the solver's answer.

A solver is given the columns left after screening and a support found by rounding and swaps. Its
answer is recomputed: the objective is that of a fresh fit of the support, and a lower bound above
an objective that is known to be attained is a failure of the solver, not a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..branching.single import WORST_GAP
from ..core.limits import Limits, StopFlag
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status, Work, relative_gap
from ..relaxation.gram import TOLERANCE, GramForm
from ..relaxation.root import Incumbent, Root, reduced_root
from .cuts import CutForm


class Prepared(NamedTuple):
    """What an outside solver is given.

    form: The problem on the columns that a better support may hold.
    support: The best support known, as positions among these columns; its objective is
        ``objective``.
    bound: Lower bound on the objective of every support of these columns, by the relaxation.
    tol: Relative gap that was asked for.
    """

    form: CutForm
    support: NDArray[np.intp]
    objective: float
    bound: float
    tol: float
    limits: Limits


class Claim(NamedTuple):
    """What an outside solver says of the problem that it was given.

    support: Positions among the columns given.
    bound: Lower bound over these columns, from which the solver's tolerances are taken off.
    precision: Relative gap that counts as closed for this solver.
    margin: What was taken off the bound for rounding.
    """

    support: NDArray[np.intp]
    bound: float
    status: Status
    n_nodes: int = 0
    precision: float = WORST_GAP
    margin: float = 0.0


Run = Callable[[Prepared, int], Claim]


def prove(
    run: Run,
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    time_limit: float | None = None,
    node_limit: int | None = None,
    stop: StopFlag | None = None,
    n_jobs: int | None = None,
) -> Proof:
    """Solve a problem by an outside solver, unless screening and rounding are enough.

    run: Calls the solver, with so many threads.
    warm_starts: Supports of at most τ columns.
    node_limit: Counts the solver's own nodes.
    The other keywords are those of :func:`sparsecv.solvers.solve`.
    """
    limits = Limits(time_limit, node_limit, stop)
    incumbent, root, gram = reduced_root(problem, warm_starts, tol, None, limits)
    if root.columns.size <= problem.tau:  # Every other support holds a column screened out.
        incumbent.offer(root.columns)
        root.bound = root.screened_bound
    root.bound = min(root.bound, incumbent.objective)
    closed = min(root.bound, root.screened_bound) >= incumbent.objective * (
        1.0 - max(tol, TOLERANCE)
    )
    reached = Status.OPTIMAL if closed else limits.reached(0)
    if not np.isin(incumbent.support, root.columns).all():  # No column left makes a better support.
        root.columns = np.union1d(root.columns, incumbent.support).astype(np.intp)
        gram = None
    inside = np.searchsorted(root.columns, incumbent.support).astype(np.intp)
    if reached is not None:
        claim = Claim(inside, root.bound, reached)
    else:
        gram = gram or GramForm.of(problem, root.columns, extract=False)
        form = CutForm(problem, root.columns, gram)
        ready = Prepared(form, inside, incumbent.objective, root.bound, tol, limits)
        claim = run(ready, 1 if n_jobs is None else effective_n_jobs(n_jobs))
    return _checked(problem, root, incumbent, claim, tol, limits)


def _checked(
    problem: SparseRidgeProblem,
    root: Root,
    incumbent: Incumbent,
    claim: Claim,
    tol: float,
    limits: Limits,
) -> Proof:
    """What a claim proves, after its support is fitted afresh and its bound is compared."""
    supports = (np.sort(root.columns[claim.support]).astype(np.intp), incumbent.support)
    support = min(supports, key=problem.objective)
    best, status, bound = problem.objective(support), claim.status, claim.bound
    if status is Status.FAILED or not bound <= best * (1.0 + 1e-9) + 1e-12 * problem.yy:
        bound, status = (
            root.bound,
            Status.FAILED,
        )  # The solver's claim is wrong: none of it is used.
    rounding = 1e-9 * best + 1e-12 * problem.yy + problem.data_loss(best)
    lower = max(0.0, min(max(bound, root.bound), root.screened_bound, best) - rounding)
    gap = relative_gap(best, lower)
    closed = max(tol, claim.precision)
    ended = status in (Status.OPTIMAL, Status.PRECISION, Status.FAILED)
    if gap <= (closed if ended else max(tol, 1e-9)):
        status = Status.OPTIMAL  # The gap is closed, whatever made the solver stop.
    elif status is Status.OPTIMAL:  # The claim of optimality is not confirmed.
        lost = 4.0 * (claim.margin + rounding) / best
        status = Status.PRECISION if gap <= closed + lost else Status.FAILED
    return Proof(support, best, lower, status, Work(claim.n_nodes, limits.elapsed()))
