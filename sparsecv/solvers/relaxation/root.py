"""The root of a branch-and-bound search: incumbent, relaxation, screening, and the columns left.

Screening at the root takes columns out for good, so the search goes on with smaller matrices; and
once fewer columns than rows are left a diagonal can be extracted from their Gram matrix, which
tightens the relaxation and screens more. The rounds end when little more goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..supports.beam import LocalSearch
from ..supports.greedy import complete_support, forward_order
from ..supports.rounding import largest, pad_support
from . import descent as kernels
from .dual_bound import EXTRA, first_multiplier, fix_columns, gram_gradient
from .gram import TOLERANCE, GramForm, residual_form
from .newton import newton, newton_path, newton_work

SHRINK = 0.9  # another round where this share of columns or fewer is left
ROUNDS = 200
SEARCHED = 600  # columns the root's local search looks at


@dataclass
class Root:
    """What is known before branching.

    ``columns`` may be in a support better than ``upper`` by more than the tolerance; every support
    with another column has an objective of at least ``slack``. ``bound`` holds for all supports
    within ``columns``; ``beta`` and ``root_lam`` (√λ) solve the relaxation on them.
    """

    columns: NDArray[np.intp]
    beta: Array
    root_lam: float
    bound: float
    slack: float

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Go on with some of the columns.

        mask: Over the columns left.
        """
        self.columns, self.beta = self.columns[mask], self.beta[mask]


class Relaxer:
    """The root relaxation in Gram or residual form, and what its dual excludes.

    root: Changed as more is known.
    gram: On the root's columns; without it in residual form.
    """

    def __init__(self, problem: SparseRidgeProblem, root: Root, gram: GramForm | None) -> None:
        self.root, self.gram, ridge = root, gram, problem.gamma / 2.0
        self.picks = min(problem.tau, root.columns.size)
        p = root.columns.size
        if gram is not None:
            self.form = kernels.gram_arrays(gram.quadratic())
            self.terms, self.scaled = gram.terms(ridge), gram.scaled
        else:
            X = np.ascontiguousarray(problem._base[:, root.columns].T)
            y = np.ascontiguousarray(problem._base[:, problem.p])
            self.form, self.terms = residual_form(problem, X, y, y - root.beta @ X, 0.0)
            self.scaled = True
        self.g = np.zeros(p)
        self.state = np.zeros(p, dtype=np.int8)
        self.top = np.zeros(self.picks + EXTRA)
        self.nt = newton_work(p)

    def relax(self, target: float) -> None:
        """Solve until the bound passes ``target`` or nothing more is to be had."""
        root = self.root
        lam = np.array([root.root_lam])
        if self.gram is not None and self._newton(target, lam):
            return
        if root.root_lam <= 0.0:
            lam[0] = first_multiplier(self.terms.b, self.terms.w, self.picks)
        sweeps = kernels.new_sweeps(self.form, self.g.size, 1e-5, ROUNDS, 0.03, self.scaled)
        sweeps.limits["target"] = target
        here = (self.state, self.picks, root.beta, self.g, lam, self.top)
        kernels.relax(sweeps, self.terms, *here)
        root.root_lam = float(lam[0])
        root.bound = max(root.bound, float(sweeps.best[0]))

    def _newton(self, target: float, lam: Array) -> bool:
        """The same by active-set Newton steps; whether there was room for the active columns."""
        root, terms = self.root, self.terms
        problem = (self.form[0], terms, np.sqrt(terms.w), self.scaled, self.state, self.picks)
        gram_gradient(self.form[0], terms.b, root.beta, self.g)
        here = (root.beta, self.g, lam, target)
        if root.root_lam > 0.0:
            bound, steps = newton(*problem, *here, 20, 1e-4, self.top, self.nt)
        else:
            bound, steps = newton_path(*problem, *here, 1e-4, self.top, self.nt)
        root.root_lam = float(lam[0])
        root.bound = max(root.bound, float(bound))
        return bool(steps >= 0)

    def excluded(self, target: float) -> NDArray[np.bool_]:
        """Columns no support below ``target`` holds; the slack is lowered to what proves it.

        Returns: Over the root's columns.
        """
        root, every, state = self.root, np.arange(self.g.size), self.state.copy()
        where = (self.terms, self.scaled, self.state, every, every.size, self.picks)
        bound = kernels.dual_bound(self.form, *where, root.beta, self.g, self.top)
        at = (self.picks, self.g, bound, target, self.top)
        _, least = fix_columns(self.terms, state, *at, False)
        root.slack = min(root.slack, least)
        return np.asarray(state == kernels.OUT)

    def rounded(self) -> NDArray[np.intp]:
        """The columns of largest β√w, by their number in the problem.

        Returns: Increasing.
        """
        w = self.terms.w
        size = np.abs(self.root.beta) * np.sqrt(w)
        size = np.where(size > 0.0, size, -1.0 / (1.0 + self.g * self.g / w))
        return self.root.columns[largest(size, self.picks)]

    def promising(self, count: int) -> NDArray[np.intp]:
        """The columns of largest g²/w, by their number in the problem.

        Returns: Increasing.
        """
        return self.root.columns[largest(self.g * self.g / self.terms.w, count)]


class Incumbent:
    """The best support known, by a fresh fit.

    gram: Of the same data, for forward selection.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        starts: Sequence[NDArray[np.intp]],
        gram: GramForm | None = None,
    ) -> None:
        self.problem, self.gram = problem, gram
        self.support, self.objective = np.empty(0, dtype=np.intp), np.inf
        for start in starts:
            self.offer(start)

    def select_forward(self) -> None:
        """Offer what forward selection finds."""
        problem, p, tau = self.problem, self.problem.p, self.problem.tau
        if self.gram is None:
            base = problem._base
            self.offer(forward_order(base[:, :p], base[:, p], tau, problem.gamma))
        else:
            none, ridge = np.empty(0, dtype=np.intp), problem.gamma / 2.0
            self.offer(complete_support(self.gram.G, self.gram.b, ridge, none, tau))

    def offer(self, support: NDArray[np.intp]) -> bool:
        """Keep a support, cut or filled to τ columns, if it is better.

        Returns: Whether it is.
        """
        tau, p = self.problem.tau, self.problem.p
        chosen = pad_support(np.unique(support)[:tau], tau, p, self.support)
        if np.array_equal(chosen, self.support):
            return False
        objective = self.problem.objective(chosen)
        if objective < self.objective:
            self.support, self.objective = chosen, objective
            return True
        return False


def reduced_root(
    problem: SparseRidgeProblem,
    incumbent: Incumbent,
    tol: float,
    gram: GramForm | None,
    limits: Limits,
) -> tuple[Root, GramForm | None]:
    """Relax and screen at the root until little more is screened.

    incumbent: Improved on the way.
    tol: Relative gap.
    gram: Of all columns.
    Returns: Of the columns left; None where the relaxation alone settles it, or the time is up.
    """
    p = problem.p
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    while True:
        relaxer = Relaxer(problem, root, gram)
        target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
        relaxer.relax(target)
        if root.bound < target and limits.reached(0) is None:
            improve_incumbent(problem, incumbent, relaxer)
            target = incumbent.objective * (1.0 - max(tol, TOLERANCE))
        if root.bound >= target or limits.reached(0) is not None:
            return root, gram
        out = relaxer.excluded(target)
        left = int(out.size - out.sum())
        shrunk = left <= SHRINK * out.size
        if shrunk:
            root.keep(~out)
        if left <= problem.tau:
            return root, gram
        if gram is None:
            gram = GramForm.of(problem, root.columns, limits=limits)
        elif shrunk:
            gram = gram.on(np.flatnonzero(~out), problem.rank_bound, limits)
        else:
            return root, gram


def improve_incumbent(problem: SparseRidgeProblem, incumbent: Incumbent, relaxer: Relaxer) -> None:
    """Round the relaxation, and search around it and the incumbent among promising columns.

    relaxer: Its relaxation solved.
    """
    columns = np.union1d(relaxer.promising(SEARCHED), incumbent.support)
    if relaxer.gram is not None and columns.size == relaxer.root.columns.size:
        G, b = relaxer.gram.G, relaxer.gram.b
    else:
        rows = problem._rows  # products only: a long table need not be factored for them
        head = rows[:, columns]
        G, b = head.T @ head, head.T @ rows[:, problem.p]
    search = LocalSearch(G, b, problem.gamma / 2.0, problem.tau)
    for start in (incumbent.support, relaxer.rounded()):
        search.enter(np.searchsorted(columns, start))
    incumbent.offer(columns[search.best])
