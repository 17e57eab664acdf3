"""Algorithm 1 of the first paper: the best τ at one γ, by bounds first and few problems solved.

Phase 1 brackets h_j(γ, τ) for every fold and τ by relaxations alone. Phase 2 takes the τ of least
lower bound and solves its fold of widest interval, until the best τ is known to the tolerance.

With ``bounds="paper"`` a fold is bracketed by Algorithm 2 around its own relaxation and every step
of phase 2 is one problem; with "paper-exact" Corollary 3 has the optimum on all rows in place of
its relaxation, as eq. (19) does, at the price of one problem per τ. With ``bounds="best"`` phase 1
intersects the ellipsoids of several ε (problem 9), and phase 2 begins each τ with ONE search, that
of all rows, whose leaves prove most folds without any search of single folds
(:mod:`sparsecv.solvers.branching.family`); a fold for which leaves stay open gets an interval from
these leaves before the fold is solved.

The module adds the method "search". Without it the best τ is still found and proved, as all h(γ, τ)
are, at the price of every size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.core.rounding import BOUND_SHARE
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.perspective import Relaxation, relaxation_path
from ..solvers.supports.path import heuristic_support
from .bounds import compute_bounds
from .executor import Report, Run
from .fold_bounds import fold_bounds
from .ledger import Ledger
from .results import least
from .settings import Settings
from .shared_tree import SharedTree, solve_problem


def search_tau(
    ledger: Ledger, g: int, settings: Settings, limits: Limits, run: Run, report: Report
) -> None:
    """Run Algorithm 1 on the γ of row g.

    ``ledger.history[g]`` gets the bounds on h(γ, τ) after every step: [problems solved so far,
    index of τ, lower, upper]. The first entries, one for every τ, come from phase 1; every later
    entry replaces the bounds of one τ.

    Supports, proofs, intervals and counts of work are entered into the ledger. The status of row g
    becomes OPTIMAL, or the worst status by which phase 2 or the search for the model has ended.

    g: A row of the ledger at which every problem has an answer at every τ.
    settings: Those whose bounds, backend and tolerance of the search count.
    limits: The limits of the whole search.
    run: Runs units of work.
    report: Is told after every step how many folds of a τ are exact.
    """
    ledger.status[g], ledger.history[g] = Status.OPTIMAL, []
    ledger.work.n_mio[g] = ledger.work.n_nodes[g] = ledger.work.trees[g] = 0
    search = _Search(ledger, g, settings, limits, report)
    search.report_folds()
    search.bracket()
    status = limits.reached(0) or search.solve(run)
    ledger.worsen_status(g, Status.worst([status, search.solve_best_model()]))


class _Search:
    """One run of Algorithm 1 at the γ of row g.

    full: The training problem of all rows.
    shared: The tree of all rows that is searched for all folds; None where each fold is searched
        by itself.
    given_up: Under (index of τ, fold) the status of a search of the fold alone that ended without
        a proof, although no limit was reached. The search would end like that again.
    solved[t]: Whether the problem of all rows is solved at that τ.
    tried[t]: Whether the tree of all rows has been searched for all folds at that τ.
    positions: The positions of the sizes above 0; the size 0 is proved by its estimate.
    """

    def __init__(
        self, ledger: Ledger, g: int, settings: Settings, limits: Limits, report: Report
    ) -> None:
        self.ledger, self.g, self.settings, self.limits = ledger, g, settings, limits
        self.full, self._report = ledger.problem(g, ledger.k), report
        # Phase 2 searches every fold alone by the paper's bounds, and with fewer than 8 folds: the
        # bounds of a tree of all rows are too weak for a fold that leaves out more than an eighth
        # of the rows. The number is a choice.
        alone = self.paper or ledger.k < 8
        self.shared = None if alone else SharedTree.of(ledger, g)
        self.given_up: dict[tuple[int, int], Status] = {}
        self.solved, self.tried = np.zeros((2, ledger.taus.size), dtype=bool)
        self.positions = np.flatnonzero(ledger.taus).tolist()

    @property
    def paper(self) -> bool:
        """Whether only the bounds of the first paper are used."""
        return self.settings.bounds != "best"

    def report_folds(self, t: int = 0) -> None:
        """Report how many folds are exact at the t-th τ, as progress of the search at this γ."""
        ledger, g = self.ledger, self.g
        done = ledger.cells.exact[g, t, : ledger.k].sum() if ledger.history[g] else 0
        where = f"γ = {ledger.gammas[g]:.4g}"
        self._report("searching for the size", int(done), ledger.k, where)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds on Σ_j h_j, the sum of all folds' squared errors, shape (τ,)."""
        ledger, g = self.ledger, self.g
        return ledger.sums(ledger.cells.lower)[g], ledger.sums(ledger.cells.upper)[g]

    @property
    def ended(self) -> bool:
        """Whether the bounds on the least error over τ differ by the tolerance at most."""
        lower, upper = self.sums()
        return bool(lower.min() >= upper.min() * (1.0 - self.settings.search_tolerance))

    # phase 1

    def bracket(self) -> None:
        """Phase 1: solve relaxations of all rows and of every fold, and enter their bounds.

        Every problem has an answer at every τ on entry, as its estimate is made before. For
        leave-one-out with a shared tree the relaxations of all rows bracket all folds in one pass,
        and no fold has relaxations of its own.
        """
        ledger, g, everyone = self.ledger, self.g, np.arange(self.ledger.k)
        pairs = list(zip(self.positions, *self._relaxations(self.full), strict=True))
        for t, *pair in pairs:
            self._bound_all_rows(t, *pair)
        if self.shared is not None and ledger.data.folds.leave_one_out:
            for t, plain, tight in pairs:
                ledger.offer(g, t, everyone, ledger.support(g, t, ledger.k))
                self.shared.bracket_rows(t, plain, extract=False)
                self.shared.bracket_rows(t, tight, extract=True)
                ledger.narrow_by_objective(g, t)
        else:
            for j in everyone.tolist():
                if self.limits.reached(0) is None:
                    self._bracket_fold(j)
        for t in self.positions:
            ledger.offer(g, t, everyone, ledger.support(g, t, ledger.k))
        ledger.bracket_the_rest([g])
        for t in self.positions:
            self._note(t)

    def _bound_all_rows(self, t: int, plain: Relaxation, tight: Relaxation) -> None:
        """Enter a support and a lower bound of the problem of all rows at the t-th τ.

        plain, tight: Its relaxations, as of :meth:`_relaxations`.
        """
        ledger, at = self.ledger, (self.g, t, self.ledger.k)
        problem = self.full.replace(tau=int(ledger.taus[t]))
        support = ledger.support(*at)  # The estimate found it by forward steps and swaps.
        if problem.constraints.plain:
            support = plain.rounded(problem.tau)
            if not self.paper and self.limits.reached(0) is None:
                left = self.limits.share(float(ledger.taus.size - t)).remaining()
                support = heuristic_support(problem, warm_starts=[support], time_limit=left)
        bound = max(plain.bound, tight.bound)
        ledger.enter_support(at, support, problem.objective(support), bound, proved=False)
        objective, bound = ledger.answer.objective[at], ledger.cells.bound[at]
        if bound >= objective * (1.0 - BOUND_SHARE):
            ledger.enter_support(at, ledger.support(*at), objective, bound, proved=True)
        if self.settings.bounds == "paper-exact":
            self._solve_all_rows(t)

    def _relaxations(self, problem: SparseRidgeProblem) -> tuple[list[Relaxation], ...]:
        """Two lists of relaxations, one for each τ: without and with a diagonal taken from XᵀX.

        A diagonal D with XᵀX − D positive semidefinite joins the ridge, which raises the bound of a
        relaxation. Where X has fewer than p independent columns, and with the paper's bounds, both
        results are without extraction. Constraints are left out: where columns form groups, τ
        becomes the most columns that τ groups have.
        """
        plain, free = self._path(problem), problem.unconstrained()
        if self.paper or free.rank_bound < free.p:
            return plain, plain
        return plain, self._path(problem, extract=True)

    def _path(self, problem: SparseRidgeProblem, **options: Any) -> list[Relaxation]:
        """The problem's relaxation at every τ."""
        sizes = self.ledger.taus[self.positions]
        taus = [problem.replace(tau=int(tau)).unconstrained().tau for tau in sizes]
        return relaxation_path(problem.unconstrained(), taus, limits=self.limits, **options)

    def _bracket_fold(self, j: int) -> None:
        """Bound the error of fold j at every τ by the fold's own relaxations.

        This is the first phase of Algorithm 1: the fold's optimal coefficients lie in an ellipsoid
        around those of a relaxation (Theorem 1 of the first paper), in which the held-out error has
        a least and a largest value. ε is the part of γ that the relaxation leaves in its quadratic
        part. A fold whose relaxation is as good as its incumbent is proved without a search.

        The bounds on the optimum of all rows are in the ledger on entry.
        """
        ledger, g = self.ledger, self.g
        training, (H, targets) = ledger.problem(g, j), ledger.data.held_out(j)
        spectrum = Spectrum.of(training)
        # Corollary 3 needs the optimum on the fold's training and held-out rows together, which is
        # known only where they are all rows; elsewhere 0 is the bound.
        whole = ledger.cells.bound[g, :, ledger.k] if ledger.data.covers(j) else 0.0 * ledger.taus
        shares, paths = [0.0], self._relaxations(training)
        if self.paper:
            # The paper takes ε = 0 where n > p. Elsewhere XᵀX may be singular. The ellipsoid of
            # ε = 0 then has no end, and several ε > 0 are taken, too. The paper takes no ε < 0.
            if training.n is not None and training.n <= training.p:
                shares = [e for e in spectrum.epsilons(ledger.gammas[g]) if e >= 0.0]
            paths = tuple(self._path(training, epsilon=epsilon) for epsilon in shares)
        for t, *found in zip(self.positions, *paths, strict=True):
            problem = training.replace(tau=int(ledger.taus[t]))
            if not self.paper:
                ledger.offer(g, t, j, ledger.support(g, t, ledger.k))
            if problem.constraints.plain:
                # Without the paper's bounds the fold has incumbents from its estimate and from all
                # rows. Of its two relaxations only the plain one is rounded then: a choice.
                for one in found if self.paper else found[:1]:
                    ledger.offer(g, t, j, one.rounded(problem.tau))
            upper, free = float(ledger.incumbent.objective[g, t, j]), problem.unconstrained()
            lowest = float(whole[t])
            if self.paper:
                for epsilon, one in zip(shares, found, strict=True):
                    interval = compute_bounds(
                        free, one, lowest, upper, H, targets, epsilon=epsilon, spectrum=spectrum
                    )
                    ledger.narrow(g, t, j, *interval)
            else:
                centres = [one.beta for one in found]
                interval = fold_bounds(free, centres, lowest, upper, H, targets, spectrum=spectrum)
                ledger.narrow(g, t, j, *interval)
            if max(one.bound for one in found) >= upper * (1.0 - BOUND_SHARE):
                ledger.prove_incumbents(g, t, j)

    # phase 2

    def solve(self, run: Run) -> Status:
        """Phase 2: solve the fold of widest interval at the τ of least lower bound, repeatedly.

        Returns: OPTIMAL once the least error is known to the tolerance, or the limit that was
            reached. Where every fold at that τ is proved or given up, it is the worst status of
            the searches that were given up.
        """
        ledger, g = self.ledger, self.g
        while not self.ended:
            t = int(np.argmin(self.sums()[0]))
            if (reached := self.limits.reached(0)) is not None:
                return reached
            if self.shared is not None and not self.solved[t]:
                self._solve_all_rows(t)
            elif self.shared is not None and not self.tried[t]:
                self.tried[t] = True
                if ledger.work.trees[g, t] == 0:  # the tree counts where its problem did not
                    ledger.work.n_mio[g] += 1
                    ledger.work.trees[g, t] += 1
                self.shared.solve_tau(t, self.limits, run, branch=False)
                ledger.narrow_by_objective(g, t)
            else:
                unproved = np.flatnonzero(~ledger.cells.exact[g, t, : ledger.k]).tolist()
                left = [j for j in unproved if (t, j) not in self.given_up]
                if not left:
                    return Status.worst(self.given_up[t, j] for j in unproved)
                width = ledger.cells.upper[g, t, left] - ledger.cells.lower[g, t, left]
                self._solve_fold(t, left[int(np.argmax(width))])
            self._note(t)
            self.report_folds(t)
        return Status.OPTIMAL

    def _solve_all_rows(self, t: int) -> None:
        """Solve the problem of all rows at the t-th τ, as its objective bounds every fold's error.

        Corollary 3: h_j ≥ u* − u_j, with the optimum u* of all rows and any objective u_j of fold
        j's training problem.
        """
        ledger, g = self.ledger, self.g
        self.solved[t] = True
        if not ledger.cells.exact[g, t, ledger.k]:
            ledger.work.n_mio[g] += 1
            ledger.work.trees[g, t] += 1
            solve_problem(ledger, (g, t, ledger.k), self.limits)
        if not self.paper:
            ledger.offer(g, t, np.arange(ledger.k), ledger.support(g, t, ledger.k))
            ledger.narrow_by_objective(g, t)

    def _solve_fold(self, t: int, j: int) -> None:
        """Solve fold j's training problem at the t-th τ, within the limits.

        A fold that has open nodes in the shared tree is searched from these nodes. They are gone
        afterwards, unless a limit was reached. If rounding leaves the fold without a proof even so,
        the fold is taken again: it is then solved from its own rows, and counts twice in ``n_mio``.
        A fold that its own rows leave without a proof, with no limit reached, is given up.
        """
        ledger, g, backend = self.ledger, self.g, self.settings.backend
        ledger.work.n_mio[g] += 1
        own = backend in ("auto", "native")
        if self.shared is not None and (t, j) in self.shared.open and own:
            ledger.cells.searched[g, t, j] = True  # ``solve_problem`` notes that itself.
            self.shared.solve_fold(t, j, self.limits)
            return
        found = solve_problem(ledger, (g, t, j), self.limits, backend=backend)
        if not found.proved and self.limits.reached(0) is None:
            self.given_up[t, j] = found.status

    def solve_best_model(self) -> Status:
        """Solve the problem of all rows at the τ that will be chosen; return the status.

        The support counts as proved at a relative gap of 1e-6. Where upper bounds tie, the choice
        is made as in :meth:`CVResult.best`.
        """
        ledger, g, backend = self.ledger, self.g, self.settings.backend
        upper = np.maximum(self.sums()[1], ledger.sums(ledger.answer.error)[g])
        rounding = ledger.data.rounding * ledger.data.total
        _, t = least(upper[None], ledger.taus, np.array([ledger.gammas[g]]), rounding)
        if ledger.cells.exact[g, t, ledger.k]:
            return Status.OPTIMAL
        return solve_problem(
            ledger, (g, t, ledger.k), self.limits, backend=backend, tol=1e-6
        ).status

    def _note(self, t: int) -> None:
        """Enter the bounds on h at the t-th τ, and the problems solved by now, into the history."""
        ledger, g = self.ledger, self.g
        low, high = (float(side[t]) / ledger.data.total for side in self.sums())
        ledger.history[g].append([int(ledger.work.n_mio[g]), t, low, high])
