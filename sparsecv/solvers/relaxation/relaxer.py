"""The relaxation of one node, with the arrays that its compiled solvers improve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, OUT
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from . import descent as kernels
from .dual_bound import EXTRA, BoundTerms, Node, QuadraticForm, first_multiplier, fix_columns
from .gram import GramForm, residual_form
from .newton import ACTIVE_COLUMNS, MOST_STEPS, newton, newton_work


class Relaxer:
    """A node with its relaxation, whose coefficients solvers overwrite.

    The relaxation has an indicator z of every column or unit, between 0 and 1, and the sum of the z
    of those that are free is at most ``to_choose``; λ is the multiplier of that constraint.

    form, terms: The quadratic part, and the terms of the bound.
    state: (m,), free (0), included (1) and excluded (2) columns or units.
    to_choose: Number of free columns or units still to choose.
    """

    def __init__(
        self,
        form: QuadraticForm,
        terms: BoundTerms,
        state: NDArray[np.int8],
        to_choose: int,
    ) -> None:
        self.form, self.terms, self.to_choose = form, terms, to_choose
        self.columns = np.flatnonzero(state != OUT)
        # √λ is 0 until a solver has started.
        beta, top = np.zeros(terms.b.size), np.zeros(to_choose + EXTRA)
        self.node = Node(state=state, beta=beta, g=terms.b.copy(), lam=np.zeros(1), top=top)
        self.sweeps = kernels.new_sweeps(form, beta.size, 0.0)

    @property
    def beta(self) -> Array:
        """The coefficients."""
        return self.node.beta

    @property
    def g(self) -> Array:
        """b − Qβ."""
        return self.node.g

    @property
    def root_lam(self) -> float:
        """√λ."""
        return float(self.node.lam[0])

    @classmethod
    def of(
        cls,
        problem: SparseRidgeProblem,
        gram: GramForm | None,
        columns: NDArray[np.intp],
        half: float = 0.0,
        state: NDArray[np.int8] | None = None,
    ) -> Relaxer:
        """The relaxation of a problem on some columns, at β = 0 with √λ not chosen yet.

        columns: Increasing positions among the problem's columns, or numbers of its units. All
            arrays of the result count these only.
        gram: The Gram form of these columns or units, on which the relaxation is then computed; the
            problem only gives γ and τ. With None it is computed in residual form, from the rows.
        half: ε/2 of eq. (5), the part of γ/2 that stays in the quadratic part and is no part of
            the weights w.
        state: (columns.size,), free (0), included (1) and excluded (2); by default all are free.
        """
        if gram is None:
            form, terms = residual_form(problem, columns, half)
        else:
            form = kernels.gram_arrays(gram.quadratic(half))
            terms = gram.terms(problem.gamma / 2.0, half)
        state = np.zeros(columns.size, dtype=np.int8) if state is None else state
        to_choose = min(problem.tau - int((state == IN).sum()), int((state == FREE).sum()))
        return cls(form, terms, state, to_choose)

    def start(self, beta: Array, root_lam: float) -> None:
        """Go on from other coefficients β (p,), and from another √λ unless that is 0."""
        self.beta[:] = beta
        if root_lam > 0.0:
            self.node.lam[0] = root_lam
        self.evaluated()

    def evaluated(self) -> tuple[float, float, float]:
        """Compute g, and in residual form y − Xβ, anew from β; write ``top`` for :meth:`decided`.

        β and the √λ of the node stay as they are.

        Returns: The certified dual bound at β, the √λ at which Σz is as large as allowed, and the
            relaxation's objective at β.
        """
        _, X, y, r, _, _ = self.form
        if X.shape[0] > 0:
            r[:] = y - self.beta @ X
        bound = self._relaxed(-np.inf, 0.0, 1, 0.0)
        _, value, root_lam = self.sweeps.best.tolist()
        return bound, root_lam, value

    def bound(self) -> float:
        """The certified dual bound at β; writes ``top``, from which :meth:`decided` reads."""
        return self.evaluated()[0]

    def decided(
        self, bound: float, target: float, including: bool = True
    ) -> tuple[NDArray[np.int8], float]:
        """Decide free columns on a copy of the states.

        A column is excluded if the bound with the column in the support reaches ``target`` and,
        where ``including``, included if the bound without the column does. ``bound``, ``g`` and
        ``top`` have to belong to the present β.

        Returns: The new states (m,), and the least bound that decided a column; ∞ without one.
        """
        node = self.node._replace(state=self.node.state.copy())
        _, least = fix_columns(self.terms, node, self.to_choose, bound, target, including)
        return node.state, float(least)

    def newton(
        self, target: float, rounds: int, tolerance: float, most_active: int = ACTIVE_COLUMNS
    ) -> tuple[float, bool]:
        """Improve β, g and √λ by active-set Newton steps, and write ``top`` for :meth:`decided`.

        Q has to be in Gram form, of single columns without bounds, and g has to belong to β. At
        most ``rounds`` values of √λ are tried, until Σz deviates from the number of columns still
        to choose by at most the share ``tolerance``, or the bound reaches ``target``. One compiled
        call ends after ``MOST_STEPS`` steps; at most ten calls follow one another.

        Returns: The bound at β, and whether at most ``most_active`` columns were active throughout;
            the compiled call says by a negative number of steps that they were not.
        """
        here = (self.form[0], self.terms, self.node, self.to_choose)
        work = newton_work(self.terms.w, most_active)
        for _ in range(10):
            bound, steps = newton(*here, target, rounds, tolerance, work)
            if abs(steps) < MOST_STEPS:
                break
        return float(bound), bool(steps >= 0)

    def descend(
        self, target: float, gap: float, rounds: int, shortfall_share: float = 0.0
    ) -> float:
        """Improve β and √λ by coordinate descent.

        It ends where a bound reaches ``target``, where the relaxation's value is at most the share
        ``gap`` above the bound, after ``rounds`` bounds, or where the value is below ``target`` and
        above the bound by at most ``shortfall_share`` of what the bound lacks to the target.

        Returns: The best bound of this call, which may belong to an earlier β.
        """
        if not self.root_lam > 0.0:
            b, w, k = self.terms.b, self.terms.w, max(self.to_choose, 1)
            if self.terms.units.single and self.to_choose > 0:
                free = self.node.state == FREE
                b, w = b[free], w[free]
            self.node.lam[0] = first_multiplier(b, w, k)
        return self._relaxed(target, gap, rounds, shortfall_share)

    def _relaxed(self, *limits: float) -> float:
        """The best bound of a descent within limits, which are those of ``descent.LIMITS``."""
        self.sweeps.limits[0], self.sweeps.best[0] = limits, -np.inf
        kernels.relax(self.sweeps, self.terms, self.node, self.to_choose)
        return float(self.sweeps.best[0])

    def on(self, columns: NDArray[np.intp]) -> Relaxer:
        """The relaxation on some columns, in Gram form, with the other coefficients fixed at 0."""
        terms = self.terms
        terms = terms._replace(w=terms.w[columns], length=terms.length[columns], b=terms.b[columns])
        to_choose = min(self.to_choose, columns.size)
        Q, X, _, _, e, _ = self.form
        if X.shape[0] > 0:
            block = X[columns] @ X[columns].T + e * np.eye(columns.size)
        else:
            block = Q[np.ix_(columns, columns)]
        part = Relaxer(kernels.gram_arrays(block), terms, self.node.state[columns], to_choose)
        part.start(self.beta[columns], self.root_lam)
        return part
