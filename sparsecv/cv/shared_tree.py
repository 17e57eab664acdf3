"""All folds of one τ by the tree of all rows; what it leaves open by the fold's own relaxations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData, RowFolds
from ..solvers.api import solve
from ..solvers.branching.multi_problem_tree import PartialProof, settle, solve_jointly
from ..solvers.branching.row_deletion import LeftOut
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Solution, Status, Work, worst
from ..solvers.executor import run_units
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.gram import GramForm, wants_gram
from ..solvers.relaxation.perspective import Relaxation, perspective_relaxation
from ..solvers.supports.rounding import pad_support
from .bounds import OF_EIGENVALUE, OF_GAMMA, open_node_range, squared_error_bounds
from .ledger import Page

Array = NDArray[np.float64]
Support = NDArray[np.intp]
ALIKE = 1e-6  # relative difference of objectives that rounding may make
SURE = 1e-9  # relative gap at which an incumbent counts as optimal, an estimate as exact


def rows_left_out(data: FoldData, problem: SparseRidgeProblem) -> LeftOut | None:
    """The folds as rows left out of one Gram matrix; None where that form does not serve.

    problem: Of all rows.
    """
    if not isinstance(data, RowFolds) or not wants_gram(problem):
        return None
    return data.left_out(GramForm.of(problem))


def solve_training(
    data: FoldData, table: Page, t: int, j: int, limits: Limits, backend: str = "auto"
) -> Solution:
    """Solve one training problem from its own rows to proven optimality, and enter what is found.

    table: Gives γ and τ; changed in place.
    t, j: Index of τ, and the fold.
    """
    table.searched[t, j] = True
    solution = solve(
        data.training(j).replace(gamma=table.gamma, tau=int(table.taus[t])),
        backend=backend,
        tol=0.0,
        time_limit=limits.remaining(),
        warm_start=table.support(t, j),
        stop=limits.stop,
    )
    table.offer(t, np.array([j]), solution.support)
    if solution.status is Status.OPTIMAL:
        table.prove(t, np.array([j]))
    return solution


def settle_fold(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    j: int,
    found: PartialProof,
    branch: bool,
    limits: Limits,
) -> PartialProof | None:
    """One fold that the tree of all rows left open; None where the time is up.

    problem: Of all rows.
    branch: Branch where its relaxations do not end it.
    """
    if limits.reached(0) is not None:
        return None
    one = settle(left_out, problem, j, found, limits, branch=False)
    if branch and not one.solved:
        one = settle(left_out, problem, j, one, limits, branch=True)
    return one


class JointFolds:
    """Folds at one γ, solved together τ by τ, with what is still open of each.

    table: Filled in.
    """

    def __init__(self, data: FoldData, table: Page, left_out: LeftOut) -> None:
        self.data, self.table, self.left_out = data, table, left_out
        self.full = data.full().replace(gamma=table.gamma)
        self.open: dict[tuple[int, int], PartialProof] = {}
        self.n_nodes = 0
        self._spectra: dict[int, Spectrum] = {}

    def solve_tau(
        self,
        t: int,
        start: Support,
        limits: Limits,
        *,
        branch: bool,
        n_jobs: int | None = None,
    ) -> Status:
        """One tree for all folds; then each open fold's relaxations, and its branching if wanted.

        t: Index of τ.
        start: Best support of all rows.
        branch: Solve every fold; otherwise what relaxations leave open is bracketed.
        Returns: OPTIMAL, or the limit that was reached.
        """
        table = self.table
        problem = self.full.replace(tau=int(table.taus[t]))
        everyone = np.arange(self.left_out.count)
        table.offer(t, everyone, start)
        used = [start, *(table.supports[c] for c in np.unique(table.best_choice[t]))]
        found = solve_jointly(self.left_out, problem, _same_size(used, problem), limits=limits)
        self.n_nodes += found[0].n_nodes
        supports = np.array([one.support for one in found])
        for support in np.unique(supports, axis=0):
            members = np.flatnonzero((supports == support).all(axis=1))
            table.offer(t, members, support)
        is_open = np.array([not one.solved for one in found])
        coarse = self._coarse(t, found)
        table.prove(t, np.flatnonzero(~is_open & ~coarse))
        is_open &= ~coarse

        statuses = [Status.OPTIMAL]
        left = np.flatnonzero(is_open).tolist()
        tasks = [(problem, j, found[j], branch) for j in left]
        for index, one in run_units(
            settle_fold, self.left_out, tasks, n_jobs, allot=lambda _: limits
        ):
            j = left[index]
            if one is None:
                continue
            self.n_nodes += one.n_nodes
            self.enter(t, j, one)
            statuses.append(one.status)
            is_open[j] = False
        statuses += self._solve_apart(t, problem, np.flatnonzero(coarse), limits) if branch else []
        reached = limits.reached(0)
        if is_open.any() and reached is not None:
            statuses.append(reached)
            if reached is not Status.INTERRUPTED:
                self._out_of_time(t, problem, found, np.flatnonzero(is_open))
        return worst(statuses)

    def _coarse(self, t: int, found: list[PartialProof]) -> NDArray[np.bool_]:
        """Folds whose objectives Gram matrices cannot tell apart well enough."""
        fresh, known = self.table.best_objective[t], np.array([one.objective for one in found])
        rounding = np.array([one.rounding for one in found])
        off = ~(fresh <= known * (1.0 + ALIKE) + rounding)
        return np.asarray(off | ~(rounding <= ALIKE * fresh) | ~np.isfinite(known))

    def _solve_apart(
        self, t: int, problem: SparseRidgeProblem, folds: NDArray[np.intp], limits: Limits
    ) -> list[Status]:
        """Solve folds from their own rows."""
        statuses = []
        for j in folds:
            solution = solve_training(self.data, self.table, t, int(j), limits)
            self.n_nodes += solution.n_nodes
            statuses.append(solution.status)
        return statuses

    def _out_of_time(
        self,
        t: int,
        problem: SparseRidgeProblem,
        found: list[PartialProof],
        folds: NDArray[np.intp],
    ) -> None:
        """Bracket folds nobody had time for around the relaxation of all rows."""
        gram = self.left_out.gram
        relaxed = perspective_relaxation(problem, extract=True, gram=gram, gap=1e-4)
        if self.data.folds.leave_one_out:
            self.bracket_rows(t, relaxed, False)
            self.bracket_rows(t, relaxed, True)
            return
        root = np.zeros((1, problem.p), dtype=np.int8)
        lam = np.array([np.sqrt(relaxed.multiplier)])
        for j in folds:
            upper = min(found[j].objective, float(self.table.best_objective[t, j]))
            nodes = {"leaves": root, "beta": relaxed.beta[None], "root_lam": lam}
            known = replace(found[j], objective=upper, status=Status.TIME_LIMIT, **nodes)
            self.enter(t, int(j), replace(known, work=Work()))

    @cached_property
    def held_out(self) -> tuple[Array, Array]:
        """Leave-one-out: every fold's row and response."""
        held = [self.data.held_out(j) for j in range(self.left_out.count)]
        return np.vstack([h for h, _ in held]), np.concatenate([y for _, y in held])

    def bracket_rows(self, t: int, relaxation: Relaxation, extract: bool) -> None:
        """Leave-one-out: Theorem 2 for all folds at once around coefficients that follow them.

        t: Index of τ.
        relaxation: Of all rows.
        extract: Move a share of the least eigenvalue into the perspective (ε < 0).
        """
        left_out, table = self.left_out, self.table
        everyone = np.arange(left_out.count)
        H, targets = self.held_out
        half, least = table.gamma / 2.0, left_out.least
        shares = OF_EIGENVALUE if extract else (0.0,)
        if extract and not least.any():
            return
        # one value for all folds, the least of what they allow, keeps the spreads to one pass
        shifts = [-share * float(least.min()) for share in shares]
        if not extract and (left_out.n <= self.full.p or left_out.eigen[0][0] <= 0.0):
            shifts = [share * half for share in OF_GAMMA]
        for shift in shifts:
            every = np.full(left_out.count, shift)
            beta, bound = left_out.centres(relaxation, half, int(table.taus[t]), every)
            spread = left_out.spreads(H, shift, everyone)
            room = np.maximum(table.best_objective[t] - bound, 0.0) * (1 + 1e-9)
            radius = np.sqrt((room + 1e-13 * self.full.yy) * spread) * (1 + 1e-9)
            predicted = np.einsum("ij,ij->i", H, beta)
            slack = 1e-12 * np.abs(predicted)
            low, high = predicted - radius - slack - targets, predicted + radius + slack - targets
            least_error, most_error = squared_error_bounds(low, high)
            finite = np.isfinite(radius)
            table.narrow(
                t,
                everyone,
                np.where(finite, least_error, 0.0),
                np.where(finite, most_error, np.inf),
            )
            settled = bound >= table.best_objective[t] * (1.0 - SURE)
            table.prove(t, np.flatnonzero(settled & ~table.exact[t]))

    def solve_fold(self, t: int, j: int, limits: Limits) -> None:
        """Branch on what is open of one fold until it is solved.

        t, j: Index of τ, and fold.
        """
        problem = self.full.replace(tau=int(self.table.taus[t]))
        found = settle(self.left_out, problem, j, self.open[t, j], limits, branch=True)
        self.n_nodes += found.n_nodes
        self.enter(t, j, found)

    def enter(self, t: int, j: int, found: PartialProof) -> None:
        """Take over a fold's incumbent, and bracket its error where nodes are open.

        t, j: Index of τ, and fold.
        """
        table, here = self.table, np.array([j])
        table.searched[t, j] |= found.work.n_branched > 0
        table.offer(t, here, found.support)
        if found.solved:
            table.prove(t, here)
            self.open.pop((t, j), None)
            return
        self.open[t, j] = found
        gram = self.left_out.form(j)
        if j not in self._spectra:
            self._spectra[j] = Spectrum.of_gram(gram, self.left_out.n)
        H, targets = self.data.held_out(j)
        low, high = open_node_range(
            gram,
            found,
            int(table.taus[t]),
            table.gamma,
            H,
            targets,
            self.left_out.n,
            self._spectra[j],
        )
        table.narrow(t, here, np.array([low]), np.array([high]))


def _same_size(supports: Sequence[Support], problem: SparseRidgeProblem) -> NDArray[np.intp]:
    """Distinct supports filled up to τ columns, in order, as rows of one array."""
    rows = {}
    for support in supports:
        full = pad_support(support[: problem.tau], problem.tau, problem.p)
        rows[full.tobytes()] = full
    return np.array(list(rows.values()))
