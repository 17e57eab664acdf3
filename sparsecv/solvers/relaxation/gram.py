"""The root of a branch-and-bound search: incumbent, relaxation, screening, and the columns left.

Screening at the root takes columns out for good, so the search goes on with smaller matrices; and
once fewer columns than rows are left a diagonal can be extracted from their Gram matrix, which
tightens the relaxation and screens more. The rounds end when little more goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..kernels.completion import elimination_loss
from ..kernels.linalg import Array
from ..limits import Limits
from ..problem import SparseRidgeProblem
from ..supports.beam import LocalSearch
from ..supports.greedy import complete_support, forward_order
from . import descent as kernels
from .dual_bound import EXTRA, BoundTerms, raised_all, relative_rounding, weights
from .newton import gradient, newton, newton_path, newton_work

RESIDUAL_FORM = 2  # columns per row of data from which the root avoids the Gram matrix
GRAM_COLUMNS = 400  # up to which it does not
SHRINK = 0.9  # another round where this share of columns or fewer is left
ROUNDS = 200
TOLERANCE = 1e-9  # least relative gap a node is pruned at
SEARCHED = 600  # columns the root's local search looks at
BLOCK = 400  # active columns of a relaxation that are gathered


@dataclass(frozen=True)
class GramForm:
    """Gram matrices of a problem and the diagonal extracted from them, for any γ and τ.

    ``D`` (p,) is a diagonal with G − D ⪰ 0: moved into the separable part of the objective it
    makes the perspective relaxation far tighter where n > p. ``eps`` is what bounds from these
    matrices lose (:func:`~.dual_bound.relative_rounding`). Where rows of the problem have been left
    out ``before`` holds diag(G) and yᵀy with them: what rounding is relative to.
    """

    G: Array
    b: Array
    yy: float
    D: Array
    eps: float
    before: tuple[Array, float] | None = None

    @classmethod
    def of(
        cls,
        problem: SparseRidgeProblem,
        columns: NDArray[np.intp] | None = None,
        extract: bool = True,
        limits: Limits | None = None,
    ) -> GramForm:
        """Form the matrices of all or some columns; O(np²) and one symmetric eigenproblem.

        Without ``extract``, or where its time is not left, D is 0 and the eigenproblem is saved.
        """
        head, y = problem._rows[:, : problem.p], problem._rows[:, problem.p]
        if columns is not None:
            head = head[:, columns]
        G = np.asarray(head.T @ head)
        eps = gram_rounding(problem)
        extract = extract and _affordable(G.shape[0], limits)
        D = extraction(G, problem.rank_bound, eps) if extract else np.zeros(G.shape[0])
        return cls(G, head.T @ y, problem.yy, D, eps)

    def on(self, columns: NDArray[np.intp], rank: int, limits: Limits) -> GramForm:
        """The same of some of its columns, with a diagonal of their own where there is time."""
        G = np.ascontiguousarray(self.G[np.ix_(columns, columns)])
        affordable = _affordable(columns.size, limits)
        D = extraction(G, rank, self.eps) if affordable else self.D[columns]
        return GramForm(G, self.b[columns], self.yy, D, self.eps)

    def without(self, rows: Array, targets: Array) -> GramForm:
        """The same with some rows of the data left out, and a diagonal of its own.

        A down-date: X is not copied, and digits are lost where the rows left out are most of it.
        """
        G = self.G - rows.T @ rows
        yy = max(self.yy - float(targets @ targets), 0.0)
        b = self.b - rows.T @ targets
        length, most = self.before or (np.diag(self.G).copy(), self.yy)
        # the subtraction's own products, and digits of G that are lost beside what is left
        eps = self.eps + relative_rounding(rows.shape[0], 0)
        lost = eps * float(length.sum())
        D = np.maximum(extraction(G, G.shape[0], eps) - lost, 0.0)
        return GramForm(G, b, yy, D, eps, (length, most))

    @property
    def scaled(self) -> bool:
        """Whether multiples of the residual are dual points as well: D = 0."""
        return not self.D.any()

    def quadratic(self) -> Array:
        """Q = G − D, a new array."""
        Q = np.array(self.G, order="C")
        Q.flat[:: Q.shape[0] + 1] -= self.D
        return Q

    def terms(self, ridge: float) -> BoundTerms:
        """What the dual bound asks at γ = 2·``ridge``."""
        squares, yy = self.before or (np.diag(self.G), self.yy)
        length = np.sqrt(np.maximum(squares, 0.0) + ridge)
        reach_y = float(np.sqrt(max(yy, 0.0)))
        return BoundTerms(weights(ridge, self.D), length, self.b, self.yy, reach_y, self.eps)

    def rounding(self, ridge: float, tau: int, upper: float) -> float:
        """What enumeration may overlook below ``upper``: :func:`~.completion.elimination_loss`."""
        terms = self.terms(ridge)
        yy = terms.reach_y**2
        return elimination_loss(terms.length**2, terms.w, ridge, yy, self.eps, tau, upper)


def gram_rounding(problem: SparseRidgeProblem) -> float:
    """ε of bounds from the problem's Gram matrices."""
    return relative_rounding(problem._rows.shape[0], problem.p, problem.distortion)


def _affordable(p: int, limits: Limits | None) -> bool:
    """Whether there is time for the eigenvalues of a p × p matrix."""
    return limits is None or limits.affords(2.0 * p**3)


def wants_gram(problem: SparseRidgeProblem) -> bool:
    """Whether the Gram matrix of all columns is the better form to start from."""
    p = problem.p
    return p <= GRAM_COLUMNS or p <= RESIDUAL_FORM * problem.rank_bound


def extraction(G: Array, rank: int, eps: float) -> Array:
    """Diagonal D with G − D ⪰ 0, from the least eigenvalue; 0 where G is singular by shape.

    The exact G is meant, which the one at hand may differ from by ``eps`` of its trace.
    """
    p = G.shape[0]
    if rank < p:
        return np.zeros(p)
    values = sla.eigvalsh(G, check_finite=False)
    least = values[0] - max(1e-9 * values[-1], 2.0 * eps * float(np.trace(G)))
    return np.full(p, max(0.0, float(least)))


def relaxation_work(p: int) -> tuple[Any, ...]:
    """Work space of the relaxation's kernel."""
    m = min(p, BLOCK)
    columns = np.zeros(p, dtype=np.int64)
    return columns.copy(), columns, np.zeros(p), np.empty((m, m)), np.empty((2, m))


def residual_form(
    problem: SparseRidgeProblem, X: Array, y: Array, r: Array, extra: float
) -> tuple[tuple[Any, ...], BoundTerms]:
    """What the relaxation's kernel and the bound ask in residual form.

    Parameters
    ----------
    X : ndarray, shape (q, m)
        One row for every column of the problem that is left.
    y, r : ndarray, shape (m,)
        Response and residual, the latter kept up to date by the kernel.
    extra : float
        e of Q = XᵀX + eI, a part of γ/2.
    """
    ridge, yy = problem.gamma / 2.0, float(y @ y)
    squares = np.einsum("ij,ij->i", X, X)
    form = (np.zeros((0, 0)), X, y, r, extra, squares + extra)
    eps = relative_rounding(y.size, 0, problem.distortion)
    w = np.full(X.shape[0], ridge - extra)
    return form, BoundTerms(w, np.sqrt(squares + ridge), X @ y, yy, float(np.sqrt(yy)), eps)


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
        """Go on with some of the columns."""
        self.columns, self.beta = self.columns[mask], self.beta[mask]


class Relaxer:
    """The root relaxation in Gram or residual form, and what its dual excludes."""

    def __init__(self, problem: SparseRidgeProblem, root: Root, gram: GramForm | None) -> None:
        self.root, self.gram, ridge = root, gram, problem.gamma / 2.0
        self.picks = min(problem.tau, root.columns.size)
        p, none = root.columns.size, np.zeros(0)
        if gram is not None:
            self.form = (gram.quadratic(), np.zeros((0, 0)), none, none, 0.0, none)
            self.terms, self.scaled = gram.terms(ridge), gram.scaled
        else:
            X = np.ascontiguousarray(problem._base[:, root.columns].T)
            y = np.ascontiguousarray(problem._base[:, problem.p])
            self.form, self.terms = residual_form(problem, X, y, y - root.beta @ X, 0.0)
            self.scaled = True
        self.g = np.zeros(p)
        self.state = np.zeros(p, dtype=np.int8)
        self.top = np.zeros(self.picks + EXTRA)
        self.work, self.nt = relaxation_work(p), newton_work(p)

    def relax(self, target: float) -> None:
        """Solve until the bound passes ``target`` or nothing more is to be had."""
        root, w, b = self.root, self.terms.w, self.terms.b
        lam = np.array([root.root_lam])
        if self.gram is not None and self._newton(target, lam):
            return
        if root.root_lam <= 0.0:
            level = np.sort(b * b / w)[::-1]
            lam[0] = 0.5 * np.sqrt(level[self.picks - 1])
        best = np.array([-np.inf, np.inf])
        limits = np.array([target, 1e-5, float(ROUNDS), 0.03, float(self.scaled)])
        kernels.relax(
            self.form,
            self.terms,
            self.state,
            self.picks,
            root.beta,
            self.g,
            limits,
            lam,
            best,
            self.top,
            self.work,
        )
        root.root_lam = float(lam[0])
        root.bound = max(root.bound, float(best[0]))

    def _newton(self, target: float, lam: Array) -> bool:
        """The same by active-set Newton steps; whether there was room for the active columns."""
        root, terms = self.root, self.terms
        problem = (self.form[0], terms, np.sqrt(terms.w), self.scaled, self.state, self.picks)
        gradient(self.form[0], terms.b, root.beta, self.g)
        here = (root.beta, self.g, lam, target)
        if root.root_lam > 0.0:
            bound, steps = newton(*problem, *here, 20, 1e-4, self.top, self.nt)
        else:
            bound, steps = newton_path(*problem, *here, 1e-4, self.top, self.nt)
        root.root_lam = float(lam[0])
        root.bound = max(root.bound, float(bound))
        return bool(steps >= 0)

    def excluded(self, target: float) -> NDArray[np.bool_]:
        """Columns no support below ``target`` holds; the slack is lowered to what proves it."""
        root, terms, top = self.root, self.terms, self.top
        every = np.arange(root.columns.size)
        here = kernels.dual_bound(
            self.form,
            terms,
            self.scaled,
            self.state,
            every,
            every.size,
            self.picks,
            root.beta,
            self.g,
            top,
        )
        value = raised_all(self.g, terms.length, terms.w, top, self.picks)
        last = top[self.picks - 1]
        forced = here + last - value
        out = (value < last) & (forced >= target)
        if out.any():
            root.slack = min(root.slack, float(forced[out].min()))
        return np.asarray(out)

    def rounded(self) -> NDArray[np.intp]:
        """The columns of largest β√w, by their number in the problem."""
        w = self.terms.w
        size = np.abs(self.root.beta) * np.sqrt(w)
        size = np.where(size > 0.0, size, -1.0 / (1.0 + self.g * self.g / w))
        return np.sort(self.root.columns[np.argsort(-size, kind="stable")[: self.picks]])

    def promising(self, count: int) -> NDArray[np.intp]:
        """The columns of largest g²/w, by their number in the problem."""
        value = self.g * self.g / self.terms.w
        if value.size <= count:
            return self.root.columns
        return np.sort(self.root.columns[np.argpartition(-value, count)[:count]])


class Incumbent:
    """The best support known, by a fresh fit."""

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
        """Keep a support, cut or filled to τ columns, if it is better."""
        tau, p = self.problem.tau, self.problem.p
        chosen = np.unique(support)[:tau]
        for spare in (self.support, np.arange(p, dtype=np.intp)):
            if chosen.size < tau:
                more = spare[~np.isin(spare, chosen)]
                chosen = np.concatenate([chosen, more])[:tau]
        if np.array_equal(np.sort(chosen), self.support):
            return False
        objective = self.problem.objective(chosen)
        if objective < self.objective:
            self.support, self.objective = np.sort(chosen).astype(np.intp), objective
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

    Returns the root and the matrices of the columns left; no matrices where the relaxation alone
    settles it, or the time is up.
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
    """Round the relaxation, and search around it and the incumbent among promising columns."""
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
