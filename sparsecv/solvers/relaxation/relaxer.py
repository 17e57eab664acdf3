"""The relaxation of one node with all that its compiled solvers work on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from . import descent as kernels
from .dual_bound import EXTRA, FREE, OUT, BoundTerms, first_multiplier, fix_columns
from .gram import GramForm, gram_form, residual_form
from .newton import ACTIVE_COLUMNS, newton, newton_path, newton_work


class Relaxer:
    """Coefficients β, their gradient g = b − Qβ and √λ, improved in place by the solvers.

    form, terms: From :func:`~.gram.gram_form` or :func:`~.gram.residual_form`.
    scaled: Whether D = 0, so that the dual bound may take multiples of the residual.
    state, shape (p,): Free (0), included (1) and excluded (2) columns.
    picks: Free columns still to choose.
    """

    def __init__(
        self,
        form: tuple[Any, ...],
        terms: BoundTerms,
        scaled: bool,
        state: NDArray[np.int8],
        picks: int,
    ) -> None:
        self.form, self.terms, self.scaled = form, terms, scaled
        self.state, self.picks = state, picks
        self.columns = np.flatnonzero(state != OUT)
        self.root_lam = np.zeros(1)  # until a solver starts
        self.beta, self.g = np.zeros(state.size), terms.b.copy()
        self.top, self.scratch = np.zeros(picks + EXTRA), np.zeros(state.size)
        self.sweeps: kernels.Sweeps | None = None

    @classmethod
    def of(
        cls,
        problem: SparseRidgeProblem,
        gram: GramForm | None,
        columns: NDArray[np.intp],
        half: float = 0.0,
        state: NDArray[np.int8] | None = None,
    ) -> Relaxer:
        """The relaxation on some columns, by ``gram`` of them or, without it, in residual form.

        half: ε/2 of eq. (5).
        state: Of the columns; all of them are free by default.
        """
        if gram is None:
            form, terms = residual_form(problem, columns, half)
        else:
            form, terms = gram_form(gram, problem.gamma / 2.0, half)
        state = np.zeros(columns.size, dtype=np.int8) if state is None else state
        picks = min(problem.tau, int((state == FREE).sum()))
        return cls(form, terms, gram is None or gram.scaled, state, picks)

    def start(self, beta: Array, root_lam: float) -> None:
        """Go on from other coefficients, and from their √λ unless that is 0."""
        self.beta[:] = beta
        if root_lam > 0.0:
            self.root_lam[0] = root_lam
        self.refresh()

    def refresh(self) -> None:
        """Form g, and in residual form y − Xβ, anew from β."""
        _, X, y, r, _, _ = self.form
        if X.shape[0] > 0:
            r[:] = y - self.beta @ X
        columns = self.columns
        kernels.gradient(self.form, self.terms.b, self.beta, columns, columns.size, self.g)

    def bound(self) -> float:
        """The certified dual bound at β; ``top`` then says what the bound decides of columns."""
        where = (self.state, self.columns, self.columns.size, self.picks)
        return float(
            kernels.dual_bound(
                self.form, self.terms, self.scaled, *where, self.beta, self.g, self.top
            )
        )

    def decided(
        self, bound: float, target: float, including: bool = True
    ) -> tuple[NDArray[np.int8], float]:
        """States with columns decided by the ``bound`` at β, and the least bound that did so.

        target, including: As :func:`~.dual_bound.fix_columns` takes them.
        """
        state, at = self.state.copy(), (self.picks, self.g, bound, target, self.top, including)
        _, least = fix_columns(self.terms, state, *at)
        return state, float(least)

    def fit(self) -> tuple[float, float]:
        """√λ that fits β, and the relaxation's objective at β with the best z."""
        terms, here = self.terms, (self.state, self.columns, self.columns.size)
        root_lam, penalty = kernels.fit_multiplier(
            terms.w, *here, self.picks, self.beta, self.scratch
        )
        value = kernels.relaxed_value(terms, *here, penalty, self.beta, self.g)
        return float(root_lam), float(value)

    def newton(
        self, target: float, rounds: int, tolerance: float, most_active: int = ACTIVE_COLUMNS
    ) -> tuple[float, bool]:
        """Active-set Newton steps in Gram form; the bound, and whether the columns had room.

        target, rounds, tolerance: As :func:`~.newton.newton` takes them.
        most_active: Active columns there is room for.
        """
        Q, terms = self.form[0], self.terms
        problem = (Q, terms, np.sqrt(terms.w), self.scaled, self.state, self.picks)
        here = (self.beta, self.g, self.root_lam, target)
        work = newton_work(self.beta.size, most_active)
        if self.beta.any():
            bound, steps = newton(*problem, *here, rounds, tolerance, self.top, work)
        else:
            bound, steps = newton_path(*problem, *here, tolerance, self.top, work)
        return float(bound), bool(steps >= 0)

    def descend(self, target: float, gap: float, rounds: int, hopeless: float = 0.0) -> float:
        """Coordinate descent; the best bound on the way.

        target, gap, rounds, hopeless: As ``descent.LIMITS`` has them.
        """
        if not self.root_lam[0] > 0.0:
            free = self.state == FREE
            b, w = self.terms.b[free], self.terms.w[free]
            self.root_lam[0] = first_multiplier(b, w, self.picks)
        if self.sweeps is None:
            self.sweeps = kernels.new_sweeps(self.form, self.beta.size, gap, scaled=self.scaled)
        limits = self.sweeps.limits
        limits["target"], limits["gap"] = target, gap
        limits["rounds"], limits["hopeless"] = rounds, hopeless
        self.sweeps.best[0] = -np.inf
        here = (self.state, self.picks, self.beta, self.g, self.root_lam, self.top)
        kernels.relax(self.sweeps, self.terms, *here)
        return float(self.sweeps.best[0])

    def block(self, columns: NDArray[np.intp]) -> Array:
        """Rows and columns of Q, shape (m, m)."""
        Q, X, _, _, e, _ = self.form
        if X.shape[0] == 0:
            return np.asarray(Q[np.ix_(columns, columns)])
        return np.asarray(X[columns] @ X[columns].T + e * np.eye(columns.size))

    def on(self, columns: NDArray[np.intp]) -> Relaxer:
        """The same relaxation in Gram form with every other column at 0."""
        terms = self.terms
        terms = terms._replace(w=terms.w[columns], length=terms.length[columns], b=terms.b[columns])
        picks = min(self.picks, columns.size)
        form = kernels.gram_arrays(self.block(columns))
        part = Relaxer(form, terms, self.scaled, self.state[columns], picks)
        part.start(self.beta[columns], float(self.root_lam[0]))
        return part
