"""Algorithm 1 of the main paper: the best τ at one γ, by bounds first and few problems solved.

Phase 1 brackets h_j(γ, τ) for every fold and τ by relaxations alone. Phase 2 takes the τ of least
lower bound and solves its fold of widest interval, until the best τ is known to the tolerance.

With ``bounds="paper"`` a fold is bracketed by Algorithm 2 around its own relaxation and every step
of phase 2 is one problem; with "paper-exact" Corollary 3 has the optimum on all rows in place of
its relaxation, as eq. (19) does, at the price of one problem per τ. With ``bounds="best"`` phase 1
intersects the ellipsoids of several ε (problem 9), and phase 2 begins each τ with ONE tree, that of
all rows, whose nodes settle most folds without any branching of their own
(:func:`sparsecv.solvers.solve_jointly`); what it leaves open is bracketed by the nodes themselves
before it is solved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..solvers.api import solve
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Solution, Status, worst
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.perspective import Relaxation, relaxation_path
from ..solvers.supports.beam import heuristic_support
from ..solvers.supports.rounding import largest
from .bounds import compute_bounds, fold_bounds, strengths
from .ledger import Page
from .shared_tree import SURE, JointFolds, rows_left_out, solve_training

Array = NDArray[np.float64]
Support = NDArray[np.intp]
JOINT_FOLDS = 8  # from here on the tree of all rows says enough about a fold


def search_taus(
    page: Page,
    *,
    bounds: str,
    backend: str,
    tol: float,
    mio_limit: int | None,
    only_bounds: bool,
    limits: Limits,
    tell: Callable[[int], None],
) -> None:
    """Run Algorithm 1 on one γ.

    page: Filled in. ``history`` gets the bounds on h(γ, τ) after every step: [problems solved so
        far, index of τ, lower, upper]. The first entries, one per τ, are phase 1's; each later one
        replaces the bounds of one τ.
    bounds: "best", "paper" or "paper-exact".
    backend: Solver of phase 2's problems.
    tol: Stop at (UB − LB)/UB ≤ tol (ε in the paper).
    mio_limit: Most problems to solve (r in the paper).
    only_bounds: Stop after phase 1.
    limits: Time limit and Ctrl-C.
    tell: Told how many folds of the most promising τ are exact.
    """
    search = _Search(page, bounds, backend, limits)
    search.bracket(not only_bounds)
    status = search.stopped()
    if status is None and not only_bounds:
        status = search.solve(tol, mio_limit, tell)
    lower, upper = search.table.sums()
    least = float(upper.min())
    gap = (least - float(lower.min())) / least if least > 0.0 else 0.0
    if status is None:
        status = Status.OPTIMAL if gap <= tol else Status.MIO_LIMIT
    search.finish(status if only_bounds else search.solve_best_model(status))


class _Search:
    def __init__(
        self,
        page: Page,
        bounds: str,
        backend: str,
        limits: Limits,
    ) -> None:
        data, gamma, taus = page.data, page.gamma, page.taus
        self.data, self.gamma, self.taus, self.bounds = data, gamma, taus, bounds
        self.paper, self.backend, self.limits = bounds != "best", backend, limits
        self.full = data.full().replace(gamma=gamma)
        self.k, self.rows = data.folds.k, data.total
        self.table = page
        self.history: list[list[float]] = []
        self.n_mio = self.n_nodes = 0
        self.supports: list[Support] = []
        self.objective, self.bound = np.zeros(taus.size), np.zeros(taus.size)
        self.proved = np.zeros(taus.size, dtype=bool)
        self.joint: JointFolds | None = None
        left_out = None
        if not self.paper and self.k >= JOINT_FOLDS:
            left_out = rows_left_out(data, self.full)
        if left_out is not None:
            self.joint = JointFolds(data, self.table, left_out)
        self.given_up = np.zeros((taus.size, self.k), dtype=bool)  # beyond double precision
        self.solved = np.zeros(taus.size, dtype=bool)  # τ whose problem on all rows is solved
        self.whole_tree = np.zeros(taus.size, dtype=np.intp)  # and whether that counts
        self.shared = np.zeros(taus.size, dtype=bool)  # τ whose tree has been tried on all folds

    def stopped(self) -> Status | None:
        """The limit that has been reached, if any."""
        return self.limits.reached(0)

    # phase 1

    def bracket(self, solve_some: bool) -> None:
        """Relaxations of all rows and of every fold, and the bounds that follow.

        ``solve_some`` allows the problems on all rows to be solved.
        """
        exact = self.bounds == "paper-exact" and solve_some
        plain, tight = self._relaxations(self.full)
        for t, (tau, first, second) in enumerate(zip(self.taus, plain, tight, strict=True)):
            problem = self.full.replace(tau=int(tau))
            support = largest(np.abs(first.beta), int(tau))
            if not self.paper and self.stopped() is None:
                left = self.limits.share(float(self.taus.size - t)).remaining()
                support = heuristic_support(problem, warm_starts=[support], time_limit=left)
            self.supports.append(support)
            self.objective[t] = problem.objective(support)
            self.bound[t] = min(max(first.bound, second.bound), self.objective[t])
            self.proved[t] = self.bound[t] >= self.objective[t] * (1.0 - SURE)
            if exact:
                self._solve_all_rows(t)
        if self.joint is not None and self.data.folds.leave_one_out:
            for t in range(self.taus.size):
                self.table.offer(t, np.arange(self.k), self.supports[t])
                for relaxation, extract in ((plain[t], False), (tight[t], True)):
                    self.joint.bracket_rows(t, relaxation, extract)
                self.table.narrow_by_objective(t, self.bound[t])
        else:
            for j in range(self.k):
                if self.stopped() is not None:
                    break
                self._bracket_fold(j)
        for t in range(self.taus.size):
            self.table.offer(t, np.arange(self.k), self.supports[t])
        self.table.bound_the_rest()
        for t in range(self.taus.size):
            self._note(t)

    def _relaxations(self, problem: SparseRidgeProblem) -> tuple[list[Relaxation], ...]:
        """At every τ without extraction, and with it where there is a diagonal to extract."""
        plain = relaxation_path(problem, self.taus, limits=self.limits)
        if self.paper or problem.rank_bound < problem.p:
            return plain, plain
        return plain, relaxation_path(problem, self.taus, extract=True, limits=self.limits)

    def _bracket_fold(self, j: int) -> None:
        """One fold at every τ, by its own relaxations."""
        training = self.data.training(j).replace(gamma=self.gamma)
        H, targets = self.data.held_out(j)
        spectrum = Spectrum.of(training)
        here = np.array([j])
        # Corollary 3 needs the optimum on the rows of the fold and its training: all, or none
        whole = self.bound if self.data.folds.covers(j) else np.zeros(self.taus.size)
        if self.paper:
            rows = training.p if training.n is None else training.n
            enough = rows > training.p  # then the paper takes ε = 0
            tried = [e for e in strengths(self.gamma, spectrum) if e >= 0.0]
            for epsilon in [0.0] if enough else tried:
                for t, relaxation in enumerate(
                    relaxation_path(training, self.taus, epsilon=epsilon, limits=self.limits)
                ):
                    problem = training.replace(tau=int(self.taus[t]))
                    self.table.offer(t, here, largest(np.abs(relaxation.beta), problem.tau))
                    low, high = compute_bounds(
                        problem,
                        relaxation,
                        whole[t],
                        float(self.table.best_objective[t, j]),
                        H,
                        targets,
                        epsilon=epsilon,
                        spectrum=spectrum,
                    )
                    self._enter_bounds(t, j, low, high, relaxation.bound)
            return
        plain, tight = self._relaxations(training)
        for t, (first, second) in enumerate(zip(plain, tight, strict=True)):
            problem = training.replace(tau=int(self.taus[t]))
            for support in (self.supports[t], largest(np.abs(first.beta), problem.tau)):
                self.table.offer(t, here, support)
            low, high = fold_bounds(
                problem,
                (first.beta, second.beta),
                whole[t],
                float(self.table.best_objective[t, j]),
                H,
                targets,
                spectrum=spectrum,
            )
            self._enter_bounds(t, j, low, high, max(first.bound, second.bound))

    def _enter_bounds(self, t: int, j: int, low: float, high: float, relaxed: float) -> None:
        here = np.array([j])
        self.table.narrow(t, here, np.array([low]), np.array([high]))
        if relaxed >= self.table.best_objective[t, j] * (1.0 - SURE):
            self.table.prove(t, here)

    # phase 2

    def solve(
        self, tol: float, mio_limit: int | None, tell: Callable[[int], None]
    ) -> Status | None:
        """Solve the fold of widest interval at the τ of least lower bound, again and again."""
        while True:
            lower, upper = self.table.sums()
            t = int(np.argmin(lower))
            if upper.min() - lower[t] <= tol * upper.min():
                return None
            if mio_limit is not None and self.n_mio >= mio_limit:
                return Status.MIO_LIMIT
            status = self.stopped()
            if status is not None:
                return status
            if self.joint is not None and not self.solved[t]:
                self._solve_all_rows(t)
            elif self.joint is not None and not self.shared[t]:
                self._share_tree(t)
            else:
                left = np.flatnonzero(~self.table.exact[t] & ~self.given_up[t])
                if left.size == 0:  # searched to the end, but rounding leaves a gap
                    return Status.PRECISION
                width = self.table.upper[t, left] - self.table.lower[t, left]
                self._solve_fold(t, int(left[np.argmax(width)]))
            self._note(t)
            tell(int(self.table.exact[t].sum()))

    def _solve_all_rows(self, t: int) -> None:
        """The problem on all rows: its objective bounds every fold's error (Corollary 3)."""
        self.solved[t] = True
        if not self.proved[t]:
            self.n_mio += 1
            self.whole_tree[t] = 1
            problem = self.full.replace(tau=int(self.taus[t]))
            self._improve(
                t,
                solve(
                    problem,
                    tol=0.0,
                    warm_start=self.supports[t],
                    time_limit=self.limits.remaining(),
                    stop=self.limits.stop,
                ),
            )
        if not self.paper:
            self.table.offer(t, np.arange(self.k), self.supports[t])
            self.table.narrow_by_objective(t, self.bound[t])

    def _share_tree(self, t: int) -> None:
        """The tree of all rows, tried on every fold; it counts where its problem did not."""
        assert self.joint is not None
        self.shared[t] = True
        if self.whole_tree[t] == 0:
            self.whole_tree[t] = 1
            self.n_mio += 1
        self.joint.solve_tau(t, self.supports[t], self.limits, branch=False)
        self.table.narrow_by_objective(t, self.bound[t])

    def _solve_fold(self, t: int, j: int) -> None:
        """One training problem to proven optimality."""
        self.n_mio += 1
        own = self.backend in ("auto", "native")
        if self.joint is not None and (t, j) in self.joint.open and own:
            self.table.searched[t, j] = True
            self.joint.solve_fold(t, j, self.limits)
            return
        solution = solve_training(self.data, self.table, t, j, self.limits, self.backend)
        self.n_nodes += solution.n_nodes
        self.given_up[t, j] = solution.status is Status.PRECISION

    def _improve(self, t: int, solution: Solution) -> None:
        """Take over a solution of the problem on all rows."""
        self.n_nodes += solution.n_nodes
        if solution.objective <= self.objective[t]:
            self.supports[t], self.objective[t] = solution.support, solution.objective
        self.bound[t] = max(self.bound[t], min(solution.lower_bound, self.objective[t]))
        self.proved[t] = solution.status is Status.OPTIMAL

    # what is told

    def finish(self, status: Status) -> None:
        """Enter how the search ended, what it counted and the models of all rows."""
        page = self.table
        page.met(status)
        page.n_mio = self.n_mio
        page.n_nodes = self.n_nodes + (self.joint.n_nodes if self.joint is not None else 0)
        page.whole_trees += self.whole_tree
        page.models, page.model_objective = self.supports, self.objective
        page.model_bound, page.model_proved = self.bound, self.proved
        page.history = self.history

    def _note(self, t: int) -> None:
        low, high = (float(side[t].sum()) for side in (self.table.lower, self.table.upper))
        self.history.append([self.n_mio, t, low / self.rows, high / self.rows])

    def solve_best_model(self, status: Status) -> Status:
        """Solve the problem of all rows at the most promising τ; how everything ended."""
        t = int(np.argmin(self.table.upper.sum(axis=1)))
        if self.proved[t]:
            return status
        solution = solve(
            self.full.replace(tau=int(self.taus[t])),
            backend=self.backend,
            warm_start=self.supports[t],
            time_limit=self.limits.remaining(),
            stop=self.limits.stop,
        )
        self._improve(t, solution)
        return worst([status, solution.status])
