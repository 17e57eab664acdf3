"""Outer-approximation cuts: linear lower bounds on f(z) that any coefficients give.

f(z) = min ||y − Xβ||² + (γ/2) Σ β_i²/z_i is convex in z (EC.1, main paper). With a diagonal D moved
into the perspective, w = γ/2 + D and Q = XᵀX − D, every β̂ gives

    f(z) ≥ yᵀy − β̂ᵀQβ̂ − Σ z_i g_i²/w_i,  g = Xᵀy − Qβ̂

at every 0–1 z; at β̂ = β(ẑ) it is the cut f(ẑ) + ∇f(ẑ)ᵀ(z − ẑ).
"""

from __future__ import annotations

import heapq
import itertools
import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..relaxation import descent as kernels
from ..relaxation.diagonal import largest_diagonal
from ..relaxation.dual_bound import EXTRA, FREE, IN, OUT, bound_terms, first_multiplier
from ..relaxation.gram import GramForm

ROUNDS = 60  # of coordinate descent at a node


@dataclass(frozen=True)
class Cut:
    """f(z) ≥ constant − slopesᵀz."""

    constant: float
    slopes: Array

    def at(self, z: Array) -> float:
        """Value at one z.

        z, shape (p,).
        """
        return float(self.constant - self.slopes @ z)


class CutForm:
    """A problem on some of its columns in the form that cuts are made from.

    columns: z has an entry for each; the other columns are out.
    gram: Of those columns.
    extract: Move a diagonal into the perspective; without it D = 0.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        columns: NDArray[np.intp],
        gram: GramForm,
        *,
        extract: bool = True,
    ) -> None:
        self.problem, self.columns, self.picks = problem, columns, problem.tau
        ridge = problem.gamma / 2.0
        D = largest_diagonal(gram.G, ridge, gram.eps) if extract else np.zeros(gram.b.size)
        self.gram = replace(gram, D=D)
        self.Q = self.gram.quadratic()
        self.terms = self.gram.terms(ridge)
        self.w, self.b, self.yy = self.terms.w, gram.b, gram.yy
        self.margin = self.gram.rounding(ridge, problem.tau, gram.yy)

    @property
    def p(self) -> int:
        """Length of z."""
        return int(self.b.size)

    def cut(self, beta: Array) -> Cut:
        """The cut of any coefficients, shape (p,).

        beta, shape (p,).
        """
        constant, slopes = bound_terms(self.terms, beta, self.b - self.Q @ beta)
        return Cut(float(constant), slopes)

    def at_support(self, support: NDArray[np.intp]) -> Cut:
        """The cut of the ridge fit on a support: f there, and its gradient."""
        S = support
        beta = np.zeros(self.p)
        K = self.Q[np.ix_(S, S)] + np.diag(self.w[S])
        beta[S] = _solve(K, self.b[S])
        return self.cut(beta)

    def at_point(self, z: Array) -> Cut:
        """The cut at a fractional z.

        z, shape (p,): In [0, 1].
        """
        # in the scaled variables √(w/z)·β nothing is divided by a z of 0
        root = np.sqrt(np.maximum(z, 0.0) / self.w)
        K = np.eye(self.p) + root[:, None] * self.Q * root
        inner = _solve(K, root * self.b)
        return self.cut(root * inner)


def _solve(K: Array, b: Array) -> Array:
    """K⁻¹b, or nearly where K is singular to working precision: any coefficients give a cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sla.LinAlgWarning)
        try:
            found = sla.solve(K, b, assume_a="pos", check_finite=False)
        except sla.LinAlgError:
            found = np.linalg.lstsq(K, b, rcond=None)[0]
    return np.asarray(found) if np.isfinite(found).all() else np.zeros_like(b)


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    state: NDArray[np.int8]
    beta: Array
    root_lam: float
    cut: Cut


class FrontierCuts:
    """Cuts at the relaxations of a tree's leaves: a master is as tight below its nodes as here.

    A cut at the root's relaxation alone leaves the master's bound loose as soon as it branches.
    The tree may be grown further at any time; it need not be finished, the master proves.
    """

    def __init__(self, form: CutForm) -> None:
        self.form = form
        p = form.p
        self._top = np.zeros(form.picks + EXTRA)
        self._sweeps = kernels.new_sweeps(kernels.gram_arrays(form.Q), p, 1e-7, ROUNDS)
        self._number = itertools.count()
        start = first_multiplier(form.b, form.w, form.picks)
        self._open: list[_Node] = []
        self._closed: list[Cut] = []
        nothing = np.zeros(p)
        self._push(np.zeros(p, dtype=np.int8), nothing, start, form.cut(nothing), np.inf)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self._open) + len(self._closed)

    @property
    def bound(self) -> float:
        """Least bound of the leaves that may still be branched on."""
        return self._open[0].bound if self._open else np.inf

    def cuts(self) -> list[Cut]:
        """One cut for every leaf."""
        return [node.cut for node in self._open] + self._closed

    def grow(self, target: float, most: int, limits: Limits) -> None:
        """Branch on the leaf of least bound until none is below ``target`` or ``most`` are left.

        target: Leaves whose bound reaches it are not branched on.
        most: Leaves.
        """
        form = self.form
        while self._open and self.size < most and limits.reached(0) is None:
            if self._open[0].bound >= target:
                return
            node = heapq.heappop(self._open)
            free = np.flatnonzero(node.state == FREE)
            i = int(free[np.argmax(np.abs(node.beta[free]) * np.sqrt(form.w[free]))])
            for value in (IN, OUT):
                state = node.state.copy()
                state[i] = value
                left = form.picks - int(np.count_nonzero(state == IN))
                if 0 < left < int(np.count_nonzero(state == FREE)):
                    self._push(state, node.beta, node.root_lam, node.cut, target)
                else:  # a single support
                    inside = np.flatnonzero(state == IN if left <= 0 else state != OUT)
                    self._closed.append(form.at_support(inside))

    def _push(
        self,
        state: NDArray[np.int8],
        beta: Array,
        root_lam: float,
        parent: Cut,
        target: float,
    ) -> None:
        """Solve a node's relaxation until its bound passes ``target``."""
        form = self.form
        beta = np.where(state == OUT, 0.0, beta)
        lam, picks = np.array([root_lam]), form.picks - int(np.count_nonzero(state == IN))
        self._sweeps.limits["target"], self._sweeps.best[0] = target, -np.inf
        here = (state, picks, beta, np.zeros(form.p), lam, self._top)
        kernels.relax(self._sweeps, form.terms, *here)
        # sweeps that do not converge may end on coefficients worse than the parent's
        bound, cut = max(
            ((self._bound(cut, state), cut) for cut in (parent, form.cut(beta))),
            key=lambda pair: pair[0],
        )
        node = _Node(bound, next(self._number), state, beta, float(lam[0]), cut)
        heapq.heappush(self._open, node)

    def _bound(self, cut: Cut, state: NDArray[np.int8]) -> float:
        """The least value of a cut over the supports of a node."""
        inside, free = cut.slopes[state == IN], cut.slopes[state == FREE]
        left = min(self.form.picks - inside.size, free.size)
        return float(cut.constant - inside.sum() - np.sort(free)[free.size - left :].sum())
