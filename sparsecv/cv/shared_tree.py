"""All folds at one γ and τ by one search of all rows; open folds by searches of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..solvers.api import best_support
from ..solvers.branching.family import search_alone, solve_jointly
from ..solvers.branching.row_deletion import LeftOut
from ..solvers.branching.single import branch_and_bound
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer, Status
from ..solvers.core.rounding import BOUND_SHARE
from ..solvers.core.threads import cached
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.gram import GramForm
from ..solvers.relaxation.perspective import Relaxation
from .executor import Batch, Late, Run
from .fold_bounds import open_node_range, squared_error_bounds
from .ledger import Cell, Ledger

Array = NDArray[np.float64]
# The search of a fold uses the Gram matrix of all rows less that of the rows that the fold holds
# out. It proves nothing where rounding may change an objective by more than this share of it. That
# is so where the search's estimate of its rounding is larger. It is also so where the objective of
# the support, computed again from the training rows, exceeds the search's objective by more than
# this share plus the estimate. ``solve_tau`` with branch=True then solves the fold from its
# training rows. With branch=False the fold stays unproved. The number is a choice.
MAX_ROUNDING_SHARE = 1e-6


def searched(
    problem: SparseRidgeProblem,
    starts: Sequence[NDArray[np.intp]],
    limits: Limits,
    gram: GramForm | None = None,
    n_jobs: int | None = None,
    backend: str = "auto",
    tol: float = 0.0,
) -> Answer:
    """The best support of one problem, as far as the limits allow; its status says how far.

    starts: Supports that the search starts from; there may be none. Solvers other than branch and
        bound take the first alone.
    gram: XᵀX, where the caller has it.
    backend: The solver; with "" branch and bound, or under constraints the native solver.
    tol: The relative gap at which the support counts as proved.
    """
    if problem.constraints.plain and not backend:
        options: dict[str, Any] = {"limits": limits, "gram": gram, "n_jobs": n_jobs}
        return branch_and_bound(problem, warm_starts=starts, tol=tol, **options)
    limited: dict[str, Any] = {"time_limit": limits.remaining(), "stop": limits.stop}
    start, backend = starts[0] if starts else None, backend or "auto"
    return best_support(problem, backend=backend, warm_start=start, tol=tol, **limited)


def solve_problem(ledger: Ledger, at: Cell, limits: Limits, **options: Any) -> Answer:
    """Solve one problem from its own rows, and enter what is found in the ledger.

    at: The cell (g, t, j) of the problem, which has an answer: the search starts from it.
    options: The arguments gram, n_jobs, backend and tol of :func:`searched`.
    """
    g, t, j = at
    problem = ledger.problem(g, j).replace(tau=int(ledger.taus[t]))
    found = searched(problem, [ledger.support(*at)], limits, **options)
    ledger.cells.searched[at] |= j < ledger.k
    ledger.enter_solution(at, found)
    return found


def close_fold(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    j: int,
    found: Answer,
    branch: bool,
    limits: Limits,
) -> Answer:
    """Close leaves that the search of all rows has left open for fold j; run as a task of a batch.

    Every leaf is first bounded by a relaxation on the fold's training rows, which closes most
    leaves and may find a better incumbent. Only the leaves that remain are branched on.

    problem: The problem of all rows.
    found: The fold's incumbent, and the open leaves of the search of all rows.
    branch: Whether leaves that remain are branched on.
    Returns: The fold's incumbent, its open nodes if there are any, and the work of both steps.
    """
    one = search_alone(left_out, problem, j, found, limits, branch=False)
    if one.proved or not branch:
        return one
    two = search_alone(left_out, problem, j, one, limits, branch=True)
    return replace(two, work=two.work._replace(n_nodes=one.work.n_nodes + two.work.n_nodes))


class SharedTree:
    """The folds at the γ of row g of a ledger, solved together at one τ after the other.

    full: The problem of all rows at this γ.
    left_out: The folds as rows left out of the Gram matrix of all rows.
    open: Under (index of τ, fold) the incumbent and the open nodes of a fold whose search stopped.
    """

    def __init__(self, ledger: Ledger, g: int, left_out: LeftOut) -> None:
        self.ledger, self.g, self.left_out = ledger, g, left_out
        self.full = ledger.problem(g, ledger.k)
        self.open: dict[tuple[int, int], Answer] = {}
        self._spectra: dict[int, Spectrum] = {}

    @classmethod
    def of(cls, ledger: Ledger, g: int) -> SharedTree | None:
        """The tree of the folds at the γ of row g, or None where there cannot be one.

        There cannot be one where folds cannot be left out of the full problem
        (``FoldData.left_out``), and where :meth:`LeftOut.serves` says so.
        """
        problem = ledger.problem(g, ledger.k)
        left_out = ledger.data.left_out(problem) if LeftOut.serves(problem) else None
        return None if left_out is None else cls(ledger, g, left_out)

    def solve_tau(self, t: int, limits: Limits, run: Run, *, branch: bool) -> Status:
        """Search all rows at one τ, bound all folds at the leaves, and close open leaves by fold.

        t: Index of τ.
        branch: Whether every fold is solved; otherwise a fold that its own relaxations leave open
            gets an interval.
        run: Runs the batch of the open folds.
        Returns: OPTIMAL, or the limit that was reached. What is proved of the folds, and intervals
            of the others, are entered in the ledger.
        """
        ledger, g, k = self.ledger, self.g, self.ledger.k
        problem, start = self.full.replace(tau=int(ledger.taus[t])), ledger.support(g, t, k)
        ledger.offer(g, t, np.arange(k), start)

        def objectives(folds: NDArray[np.intp], support: NDArray[np.intp]) -> Array:
            """Offer a support to some folds, and return the least objective known in each."""
            ledger.offer(g, t, folds, support)
            return np.asarray(ledger.incumbent.objective[g, t, folds])

        known = [*(ledger.supports[c] for c in ledger.incumbent.choice[g, t, :k]), start]
        starts = [problem.constraints.padded(support, problem.tau) for support in known]
        upper = ledger.incumbent.objective[g, t, :k]
        answers = solve_jointly(self.left_out, problem, starts, upper, objectives, limits=limits)
        ledger.work.n_nodes[g] += answers[0].n_nodes  # Every answer has those of the whole search.
        has_open_nodes = np.array([not one.proved for one in answers])
        ledger.prove_incumbents(g, t, np.flatnonzero(~has_open_nodes))
        # Where the Gram matrix of a fold is too imprecise, its open nodes are of no use.
        has_open_nodes &= [self._precise(t, j, one) for j, one in enumerate(answers)]
        folds = np.flatnonzero(has_open_nodes).tolist()

        def enter(index: int, one: Answer) -> Status:
            ledger.work.n_nodes[g] += one.n_nodes
            self.enter_fold(t, folds[index], one)
            has_open_nodes[folds[index]] = not one.proved
            return one.status

        unit = Late.LEFT_OUT.unit(close_fold)
        tasks = [(problem, j, answers[j], branch) for j in folds]
        statuses = run(Batch([g], unit, self.left_out, tasks, enter, lambda rounds: limits))
        if branch:  # Folds that are too imprecise for the Gram matrix are solved from their rows.
            unproved = ~ledger.cells.exact[g, t, :k] & ~has_open_nodes
            for j in np.flatnonzero(unproved).tolist():
                statuses.append(solve_problem(ledger, (g, t, j), limits).status)
        return Status.worst(statuses)

    def _precise(self, t: int, j: int, found: Answer) -> bool:
        """Whether fold j's objectives are precise enough for a proof; see MAX_ROUNDING_SHARE.

        The incumbent's objective, from the rows of the fold, must not exceed the objective that
        nodes were pruned by. Of a fold that is solved it must not exceed the lower bound either.
        """
        from_rows = float(self.ledger.incumbent.objective[self.g, t, j])
        of_search = found.objective
        if found.proved:  # The bound is this objective, less its rounding and a share of it.
            of_search = min(of_search, (found.lower_bound + found.rounding) / (1.0 - BOUND_SHARE))
        most = of_search * (1.0 + MAX_ROUNDING_SHARE) + found.rounding
        return from_rows <= most and found.rounding <= MAX_ROUNDING_SHARE * from_rows

    @cached
    def held_out(self) -> tuple[Array, Array]:
        """For leave-one-out the held-out row and response of every fold, shape (n, p) and (n,).

        The rows are in the columns of the tree's Gram form.
        """
        held = [self.ledger.data.held_out(j) for j in range(self.ledger.k)]
        rows = self.left_out.turned(np.vstack([h for h, _ in held]))
        return rows, np.concatenate([y for _, y in held])

    def bracket_rows(self, t: int, relaxation: Relaxation, *, extract: bool) -> None:
        """For leave-one-out: intervals of all folds at once, by Theorem 2 of the first paper.

        The ledger takes the intervals at the tree's γ and the t-th τ, and which folds are proved.

        t: Index of τ.
        relaxation: The perspective relaxation of all rows at this τ.
        extract: Whether a share of the least eigenvalue of XᵀX is moved into the perspective
            (ε < 0).
        """
        ledger, g, k = self.ledger, self.g, self.ledger.k
        H, targets = self.held_out
        upper, size = ledger.incumbent.objective[g, t, :k], int(ledger.taus[t])
        of_all = relaxation, ledger.gammas[g] / 2.0, size, H, upper
        for low, high, solved in self.left_out.prediction_ranges(*of_all, extract=extract):
            ledger.narrow(g, t, np.arange(k), *squared_error_bounds(low - targets, high - targets))
            ledger.prove_incumbents(g, t, np.flatnonzero(solved & ~ledger.cells.exact[g, t, :k]))

    def solve_fold(self, t: int, j: int, limits: Limits) -> None:
        """Branch on the open nodes of fold j until the fold is solved or a limit is reached.

        t, j: Index of τ, and number of the fold: a pair that is in ``open``.
        """
        problem = self.full.replace(tau=int(self.ledger.taus[t]))
        found = search_alone(self.left_out, problem, j, self.open[t, j], limits, branch=True)
        self.ledger.work.n_nodes[self.g] += found.n_nodes
        self.enter_fold(t, j, found)

    def enter_fold(self, t: int, j: int, found: Answer) -> None:
        """Enter a fold's incumbent, and its proof or, from its open nodes, an interval.

        A fold whose Gram matrix is too imprecise for a proof stays unproved without open nodes.

        The interval is one of h_j, the sum of squared errors on the rows that fold j holds out.

        t, j: Index of τ, and number of the fold.
        found: The answer to the fold's problem, with the open nodes of its search.
        """
        ledger, g, n = self.ledger, self.g, self.left_out.n
        ledger.cells.searched[g, t, j] |= found.work.n_branched > 0
        ledger.offer(g, t, j, found.support)
        precise = self._precise(t, j, found)
        self.open.pop((t, j), None)
        if found.proved:
            if precise:
                ledger.prove_incumbents(g, t, j)
            return
        if not precise:  # An optimal support may lie below a node that was pruned.
            return
        self.open[t, j] = found
        problem, gram = self.full.replace(tau=int(ledger.taus[t])), self.left_out.form(j)
        if j not in self._spectra:
            self._spectra[j] = Spectrum.of_gram(gram, n)
        H, targets = ledger.data.held_out(j)
        turned, spectrum = self.left_out.turned(H), self._spectra[j]
        low, high = open_node_range(gram, found, problem, turned, targets, spectrum)
        known = ledger.incumbent.error[g, t, j]  # The incumbent may lie below no open node.
        ledger.narrow(g, t, j, min(low, known), max(high, known))
