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

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status, worst
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.perspective import Relaxation, relaxation_path
from ..solvers.supports.beam import heuristic_support
from ..solvers.supports.rounding import largest
from .batch import Batch, Strategy
from .bounds import compute_bounds, fold_bounds, strengths
from .ledger import Ledger
from .progress import Tell
from .settings import Settings
from .shared_tree import PROOF_GAP, SharedTree, rows_left_out, solve_problem

# With fewer folds than this each has its own relaxation: the tree of all rows says too little about
# a fold that leaves out more than an eighth of them.
MIN_FOLDS_SHARING = 8


class Search(Strategy):
    """The strategy: Algorithm 1 at one γ after the other, or its first phase (method "bounds")."""

    solver, fills = "heuristic", True

    def fill(self, ledger: Ledger, g: int, limits: Limits, tell: Tell) -> Iterator[Batch]:
        """Run Algorithm 1 on one γ.

        ``ledger.history[g]`` gets the bounds on h(γ, τ) after every step: [problems solved so far,
        index of τ, lower, upper]. The first entries, one per τ, are phase 1's; each later one
        replaces the bounds of one τ.
        """
        ledger.status[g], ledger.history[g] = Status.OPTIMAL, []
        ledger.n_mio[g] = ledger.n_nodes[g] = ledger.trees[g] = 0
        search = _Search(ledger, g, self.settings, limits, tell)
        search.tell()
        search.bracket()
        status = limits.reached(0)
        if status is None and not search.only_bounds:
            yield from search.solve()
            status = search.status
        lower, upper = search.sums()
        least = float(upper.min())
        gap = (least - float(lower.min())) / least if least > 0.0 else 0.0
        if status is None:
            status = Status.OPTIMAL if gap <= self.settings.tol else Status.MIO_LIMIT
        ledger.met(g, status if search.only_bounds else worst([status, search.solve_best_model()]))


class _Search:
    """One run of Algorithm 1; ``status`` is the limit that ended phase 2."""

    def __init__(
        self, ledger: Ledger, g: int, settings: Settings, limits: Limits, tell: Tell
    ) -> None:
        self.ledger, self.g, self.settings, self.limits = ledger, g, settings, limits
        self.data, self.gamma = ledger.data, ledger.gammas[g]
        self.taus, self.k = ledger.taus, ledger.k
        self.paper, self.only_bounds = settings.bounds != "best", settings.method == "bounds"
        self.full, self._tell = ledger.problem(g, ledger.k), tell
        left_out = None
        if not self.paper and self.k >= MIN_FOLDS_SHARING:
            left_out = rows_left_out(self.data)
        self.shared = None if left_out is None else SharedTree(ledger, g, left_out)
        # Of every fold, beyond double precision; and of every τ: its problem on all rows is solved,
        # its tree has been tried on all folds.
        self.given_up = np.zeros((self.taus.size, self.k), dtype=bool)
        self.solved, self.tried = np.zeros((2, self.taus.size), dtype=bool)
        self.status: Status | None = None

    def tell(self, t: int = 0) -> None:
        """Say how many folds of one τ are exact."""
        done = self.ledger.exact[self.g, t, : self.k].sum() if self.ledger.history[self.g] else 0
        self._tell(f"γ = {self.gamma:.4g}", int(done), self.k)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds on Σ_j h_j, shape (τ,) each."""
        return self.ledger.sums("lower")[self.g], self.ledger.sums("upper")[self.g]

    # phase 1

    def bracket(self) -> None:
        """Relaxations of all rows and of every fold, and the bounds that follow."""
        ledger, g, everyone = self.ledger, self.g, np.arange(self.k)
        together = self.shared is not None and self.data.folds.leave_one_out
        plain, tight = self._relaxations(self.full)
        for t, (tau, first, second) in enumerate(zip(self.taus, plain, tight, strict=True)):
            problem = self.full.replace(tau=int(tau))
            support = largest(np.abs(first.beta), problem.tau)
            if not self.paper and self.limits.reached(0) is None:
                left = self.limits.share(float(self.taus.size - t)).remaining()
                support = heuristic_support(problem, warm_starts=[support], time_limit=left)
            bound, at = max(first.bound, second.bound), (g, t, self.k)
            ledger.take(at, support, problem.objective(support), bound, False)
            ledger.exact[at] |= ledger.bound[at] >= ledger.objective[at] * (1.0 - PROOF_GAP)
            if self.settings.bounds == "paper-exact" and not self.only_bounds:
                self._solve_all_rows(t)
        for t, (first, second) in enumerate(zip(plain, tight, strict=True)):
            if self.shared is not None and together:
                ledger.offer(g, t, everyone, ledger.support(g, t, self.k))
                self.shared.bracket_rows(t, first, False)
                self.shared.bracket_rows(t, second, True)
                ledger.narrow_by_objective(g, t)
        for j in [] if together else everyone:
            if self.limits.reached(0) is None:
                self._bracket_fold(int(j))
        for t in range(self.taus.size):
            ledger.offer(g, t, everyone, ledger.support(g, t, self.k))
        ledger.bracket_the_rest(g)
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
        ledger, g = self.ledger, self.g
        training, held_out = ledger.problem(g, j), self.data.held_out(j)
        spectrum = Spectrum.of(training)
        # Corollary 3 needs the optimum on the rows of the fold and its training: all, or none
        whole = ledger.bound[g, :, self.k] if self.data.folds.covers(j) else 0.0 * self.taus

        def enter(t: int, bounds: tuple[float, float], relaxed: float) -> None:
            ledger.narrow(g, t, j, *bounds)
            if relaxed >= ledger.best_objective[g, t, j] * (1.0 - PROOF_GAP):
                ledger.prove(g, t, j)

        if not self.paper:
            plain, tight = self._relaxations(training)
            for t, (first, second) in enumerate(zip(plain, tight, strict=True)):
                problem = training.replace(tau=int(self.taus[t]))
                ledger.offer(g, t, j, ledger.support(g, t, self.k))
                ledger.offer(g, t, j, largest(np.abs(first.beta), problem.tau))
                upper, centres = float(ledger.best_objective[g, t, j]), (first.beta, second.beta)
                bounds = fold_bounds(
                    problem, centres, whole[t], upper, *held_out, spectrum=spectrum
                )
                enter(t, bounds, max(first.bound, second.bound))
            return
        rows = training.p if training.n is None else training.n
        tried = [e for e in strengths(self.gamma, spectrum) if e >= 0.0]
        for epsilon in [0.0] if rows > training.p else tried:  # the paper's choice
            path = relaxation_path(training, self.taus, epsilon=epsilon, limits=self.limits)
            options: dict[str, Any] = {"epsilon": epsilon, "spectrum": spectrum}
            for t, relaxation in enumerate(path):
                problem = training.replace(tau=int(self.taus[t]))
                ledger.offer(g, t, j, largest(np.abs(relaxation.beta), problem.tau))
                upper = float(ledger.best_objective[g, t, j])
                given = whole[t], upper, *held_out
                bounds = compute_bounds(problem, relaxation, *given, **options)
                enter(t, bounds, relaxation.bound)

    # phase 2

    def solve(self) -> Iterator[Batch]:
        """Solve the fold of widest interval at the τ of least lower bound, again and again."""
        ledger, g, tol, most = self.ledger, self.g, self.settings.tol, self.settings.mio_limit
        while True:
            lower, upper = self.sums()
            t = int(np.argmin(lower))
            if upper.min() - lower[t] <= tol * upper.min():
                return
            if most is not None and ledger.n_mio[g] >= most:
                self.status = Status.MIO_LIMIT
                return
            if (reached := self.limits.reached(0)) is not None:
                self.status = reached
                return
            if self.shared is not None and not self.solved[t]:
                self._solve_all_rows(t)
            elif self.shared is not None and not self.tried[t]:
                self.tried[t] = True
                if ledger.trees[g, t] == 0:  # the tree counts where its problem did not
                    self._count_tree(t)
                yield from self.shared.solve_tau(t, self.limits, branch=False)
                ledger.narrow_by_objective(g, t)
            else:
                left = np.flatnonzero(~ledger.exact[g, t, : self.k] & ~self.given_up[t])
                if left.size == 0:  # searched to the end, but rounding leaves a gap
                    self.status = Status.PRECISION
                    return
                width = ledger.upper[g, t, left] - ledger.lower[g, t, left]
                self._solve_fold(t, int(left[np.argmax(width)]))
            self._note(t)
            self.tell(t)

    def _count_tree(self, t: int) -> None:
        self.ledger.n_mio[self.g] += 1
        self.ledger.trees[self.g, t] += 1

    def _solve_all_rows(self, t: int) -> None:
        """The problem on all rows: its objective bounds every fold's error (Corollary 3)."""
        self.solved[t] = True
        if not self.ledger.exact[self.g, t, self.k]:
            self._count_tree(t)
            solve_problem(self.ledger, (self.g, t, self.k), self.limits)
        if not self.paper:
            model = self.ledger.support(self.g, t, self.k)
            self.ledger.offer(self.g, t, np.arange(self.k), model)
            self.ledger.narrow_by_objective(self.g, t)

    def _solve_fold(self, t: int, j: int) -> None:
        """One training problem to proven optimality."""
        ledger, g, backend = self.ledger, self.g, self.settings.backend
        ledger.n_mio[g] += 1
        own = backend in ("auto", "native")
        if self.shared is not None and (t, j) in self.shared.open and own:
            ledger.searched[g, t, j] = True
            self.shared.solve_fold(t, j, self.limits)
            return
        status = solve_problem(ledger, (g, t, j), self.limits, backend)
        self.given_up[t, j] = status is Status.PRECISION

    def solve_best_model(self) -> Status:
        """Solve the problem of all rows at the most promising τ; how that ended."""
        t = int(np.argmin(self.sums()[1]))
        if self.ledger.exact[self.g, t, self.k]:
            return Status.OPTIMAL
        at = self.g, t, self.k
        return solve_problem(self.ledger, at, self.limits, self.settings.backend, 1e-6)

    def _note(self, t: int) -> None:
        """Enter the bounds of one τ into the history."""
        low, high = (float(side[t]) / self.data.total for side in self.sums())
        count = int(self.ledger.n_mio[self.g])
        self.ledger.history[self.g].append([count, t, low, high])
