"""What proofs of single problems need: forms of the folds, the unit of one fold, one model.

Both provers (``prove_sizes`` and ``prove_cells``) are kinds of :class:`Prover`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer
from ..solvers.relaxation.diagonal import shared_form
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.gram import GramForm
from ..solvers.relaxation.perspective import perspective_relaxation
from .executor import Report, Run
from .fold_bounds import fold_bounds
from .ledger import Ledger
from .needs import Need
from .shared_tree import searched, solve_problem


class FoldForms:
    """Gram forms and eigenvalues of the folds' problems, which every γ and τ share.

    The forms are computed at their first use, and are computed again in another process.
    """

    def __init__(self, data: FoldData) -> None:
        self.data = data
        self._spectra: dict[int, Spectrum] = {}
        self._grams: dict[int, GramForm | None] = {}

    def __reduce__(self) -> Any:
        return FoldForms, (self.data,)

    def gram(self, j: int, problem: SparseRidgeProblem) -> GramForm | None:
        """XᵀX of problem j's rows; None where the rows themselves are used."""
        if j not in self._grams:
            self._grams[j] = shared_form(problem)
        return self._grams[j]

    def spectrum(self, j: int, problem: SparseRidgeProblem) -> Spectrum:
        """Eigenvalues and eigenvectors of problem j's XᵀX."""
        if j not in self._spectra:
            self._spectra[j] = Spectrum.of(problem)
        return self._spectra[j]


def prove_fold(
    folds: FoldForms,
    j: int,
    gamma_and_tau: tuple[float, int],
    upper: float,
    starts: Sequence[NDArray[np.intp]],
    full_bound: float,
    backend: str,
    limits: Limits,
) -> tuple[Answer, float, float]:
    """The unit of one cell and fold j: branch and bound on the fold's training problem.

    gamma_and_tau: γ and τ of the cell.
    upper: Objective of the fold's incumbent.
    starts: Supports that the search starts from; there may be none.
    full_bound: Lower bound on the optimum of all rows at the same γ and τ; 0 where the fold's
        training and held-out rows are not all rows.
    backend: The solver of the problem, or "" for branch and bound.
    Returns: The proof, and lower and upper bounds on the fold's error, which are 0 and ∞ where the
        support is proved optimal, and where the grace of the run is over. Under constraints the
        bounds are those of models without constraints that are as good as the incumbent.
    """
    problem = folds.data.training(j).replace(gamma=gamma_and_tau[0], tau=gamma_and_tau[1])
    gram = None if backend else folds.gram(j, problem)
    found = searched(problem, starts, limits, gram, backend=backend)
    if found.proved or limits.overdue:
        return found, 0.0, np.inf
    support = found.support
    if problem.constraints.plain:
        support = problem.constraints.padded(support, problem.tau)
    upper, free = min(upper, problem.objective(support)), problem.unconstrained()
    # The bounds hold at any coefficients. After the limit the relaxation has as long as the search.
    again = limits.longer(limits.elapsed())
    relaxed = perspective_relaxation(free, extract=True, gram=gram, gap=1e-4, limits=again)
    held_out, spectrum = folds.data.held_out(j), folds.spectrum(j, problem)
    bounds = fold_bounds(free, (relaxed.beta,), full_bound, upper, *held_out, spectrum=spectrum)
    return found, *bounds


class ProofRun(NamedTuple):
    """How proofs are run, and who is told.

    limits: The limits of all proofs together.
    n_jobs: Number of threads, as in joblib.
    run: Runs the units of a batch, enters what they find, and returns how they have ended.
    report: Takes what is being done.
    save: Takes the rows of the ledger whose proofs have changed.
    """

    limits: Limits
    n_jobs: int | None
    run: Run
    report: Report
    save: Callable[[Sequence[int]], None]


class Prover(ABC):
    """Proves pairs (γ, τ) of some rows of a ledger, in which every fold has an incumbent.

    rows: Rows of the ledger, at least one. A cell (g, t) is the γ of row g and the t-th size of the
        ledger, where t counts from 0.
    work: How proofs are run, and within which limits.
    forms: Matrices of the folds' problems, which all proofs share.
    since_report: A clock that began with the last report of a cell, as ``Limits`` count seconds.
    """

    def __init__(self, ledger: Ledger, rows: Sequence[int], work: ProofRun) -> None:
        self.ledger, self.rows, self.work = ledger, np.array(rows, dtype=np.intp), work
        self.forms, self.since_report = FoldForms(ledger.data), Limits()

    @abstractmethod
    def prove(self, need: Need) -> list[int]:
        """Prove what is needed, as far as the limits allow.

        Returns: The rows of the ledger at which something that is needed is still open.
        """

    def prove_model(self, g: int, t: int, limits: Limits) -> bool:
        """Prove the model of all rows at the cell (g, t) within limits; whether it is proved."""
        ledger = self.ledger
        if not ledger.cells.exact[g, t, ledger.k]:
            self.report_cell(g, t, "the model of all rows")
            self.search_model(g, t, limits)
            self.work.save([g])
        return bool(ledger.cells.exact[g, t, ledger.k])

    def search_model(self, g: int, t: int, limits: Limits) -> float:
        """Search the problem of all rows at the cell (g, t); the ledger takes what is found.

        The caller narrows errors by the bound. By Corollary 3 h_j ≥ u* − u_j, with the optimum u*
        of all rows, or a lower bound on it, and the objective u_j of fold j's incumbent, for folds
        whose training and held-out rows are all rows.

        Returns: The lower bound on u* that this search gives. It is 0 without a search, where the
            model is proved already or a limit is reached.
        """
        ledger, k = self.ledger, self.ledger.k
        if ledger.cells.exact[g, t, k] or limits.reached(0) is not None:
            return 0.0
        problem = ledger.problem(g, k).replace(tau=int(ledger.taus[t]))
        options = {"backend": "", "gram": self.forms.gram(k, problem), "n_jobs": self.work.n_jobs}
        return solve_problem(ledger, (g, t, k), limits, **options).lower_bound

    def report_cell(self, g: int, t: int, part: str) -> None:
        """Report the current cell, a part of it, the gap of the least error and the time left.

        The clock ``since_report`` begins anew.

        part: What is being proved of the cell, such as "the model of all rows".
        """
        ledger, known = self.ledger, self.ledger.known(self.rows)
        error = float(known.error.min())
        gap = (error - float(known.lower.min())) / error if error > 0.0 else 0.0
        left = self.work.limits.remaining()
        self.since_report = Limits()
        self.work.report(
            "proving" + ("" if left is None else f", at most {left:.0f} s more"),
            int(known.exact.sum()),
            known.exact.size,
            f"γ = {ledger.gammas[g]:.4g}, τ = {ledger.taus[t]}, {part}, "
            f"gap of the least error {100.0 * gap:.3g} %",
        )
