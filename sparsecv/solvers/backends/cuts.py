"""Outer-approximation cuts: linear lower bounds on f(z), one for any coefficients.

f(z) = min ||y − Xβ||² + (γ/2) Σ β_i²/z_i is convex in z (EC.1, first paper). With a diagonal D
moved into the perspective, w = γ/2 + D and Q = XᵀX − D, every β̂ gives

    f(z) ≥ yᵀy − β̂ᵀQβ̂ − Σ z_i g_i²/w_i,  g = Xᵀy − Qβ̂

at every 0–1 z; at β̂ = β(ẑ) the right-hand side is f(ẑ) + ∇f(ẑ)ᵀ(z − ẑ).
"""

from __future__ import annotations

import heapq
import itertools
import warnings
from dataclasses import replace
from typing import NamedTuple

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


class Cut(NamedTuple):
    """f(z) ≥ constant − slopesᵀz."""

    constant: float
    slopes: Array

    def at(self, z: Array) -> float:
        """Value of the right-hand side at one z of shape (p,)."""
        return float(self.constant - self.slopes @ z)


class CutForm:
    """A problem on some of its columns in the form that cuts are made from.

    columns: The columns that z has an entry for; all other columns are excluded.
    gram: Gram matrix of the columns.
    extract: Move a diagonal into the perspective; otherwise D = 0.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        columns: NDArray[np.intp],
        gram: GramForm,
        *,
        extract: bool = True,
    ) -> None:
        self.problem, self.columns, self.tau = problem, columns, problem.tau
        self.p, ridge = int(columns.size), problem.gamma / 2.0
        D = largest_diagonal(gram.G, ridge, gram.eps) if extract else np.zeros(self.p)
        gram = replace(gram, D=D)
        # Cuts take no multiple of the residual, and neither do the bounds of the leaves.
        self.Q, self.terms = gram.quadratic(), gram.terms(ridge)._replace(scaled=False)
        self.w, self.b, self.yy = self.terms.w, gram.b, gram.yy
        self.margin = gram.rounding(ridge, problem.tau, gram.yy)

    def cut(self, beta: Array) -> Cut:
        """The cut of any coefficients, shape (p,)."""
        constant, slopes = bound_terms(self.terms, beta, self.b - self.Q @ beta)
        return Cut(float(constant), slopes)

    def at_support(self, support: NDArray[np.intp]) -> Cut:
        """The cut of the ridge fit on a support, at which the cut touches f."""
        S, beta = support, np.zeros(self.p)
        beta[S] = _solve(self.Q[np.ix_(S, S)] + np.diag(self.w[S]), self.b[S])
        return self.cut(beta)

    def at_point(self, z: Array) -> Cut:
        """The cut at a z of shape (p,) in [0, 1]: f(z), and its gradient."""
        # In the scaled variables √(w/z)·β nothing is divided by a z_i of 0.
        root = np.sqrt(np.maximum(z, 0.0) / self.w)
        K = np.eye(self.p) + root[:, None] * self.Q * root
        return self.cut(root * _solve(K, root * self.b))


def _solve(K: Array, b: Array) -> Array:
    """K⁻¹b, or nearly where K is singular to working precision: any coefficients give a cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sla.LinAlgWarning)
        try:
            found = sla.solve(K, b, assume_a="pos", check_finite=False)
        except sla.LinAlgError:
            found = np.linalg.lstsq(K, b, rcond=None)[0]
    return np.asarray(found) if np.isfinite(found).all() else np.zeros_like(b)


class _Leaf(NamedTuple):
    """A leaf that may be branched on: its bound, its number, and the solution of its relaxation."""

    bound: float
    number: int
    state: NDArray[np.int8]
    beta: Array
    root_lam: float
    cut: Cut


class FrontierCuts:
    """Cuts at the relaxations of a tree's leaves, below which a master's bound is as tight.

    A cut at the root's relaxation alone leaves the master's bound loose as soon as the master
    branches. The tree may be grown further at any time, and need not be finished: the master
    proves.
    """

    # Coordinate descent at a leaf ends after so many passes over the columns. The number is a
    # choice: a cut is valid after any number of passes.
    max_sweeps = 60

    def __init__(self, form: CutForm) -> None:
        self.form, p = form, form.p
        self._top = np.zeros(form.tau + EXTRA)
        gram = kernels.gram_arrays(form.Q)
        self._sweeps = kernels.new_sweeps(gram, p, 1e-7, self.max_sweeps)
        self._number = itertools.count()
        start = first_multiplier(form.b, form.w, form.tau)
        self._open: list[_Leaf] = []
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
        """A cut for every leaf."""
        return [leaf.cut for leaf in self._open] + self._closed

    def grow(self, target: float, most: int, limits: Limits) -> None:
        """Branch on the leaf of least bound until all reach ``target`` or there are ``most``."""
        form = self.form
        while self.bound < target and self.size < most and limits.reached(0) is None:
            leaf = heapq.heappop(self._open)
            free = np.flatnonzero(leaf.state == FREE)
            i = int(free[np.argmax(np.abs(leaf.beta[free]) * np.sqrt(form.w[free]))])
            for value in (IN, OUT):
                state = leaf.state.copy()
                state[i] = value
                left = form.tau - int(np.count_nonzero(state == IN))
                if 0 < left < int(np.count_nonzero(state == FREE)):
                    self._push(state, leaf.beta, leaf.root_lam, leaf.cut, target)
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
        """Solve the relaxation of a new leaf until its bound passes ``target``."""
        form = self.form
        beta = np.where(state == OUT, 0.0, beta)
        lam, left = np.array([root_lam]), form.tau - int(np.count_nonzero(state == IN))
        self._sweeps.limits["target"], self._sweeps.best[0] = target, -np.inf
        here = (state, left, beta, np.zeros(form.p), lam, self._top)
        kernels.relax(self._sweeps, form.terms, *here)
        # Sweeps that do not converge may end on coefficients worse than the parent's.
        bound, cut = max(
            ((self._bound(cut, state), cut) for cut in (parent, form.cut(beta))),
            key=lambda pair: pair[0],
        )
        leaf = _Leaf(bound, next(self._number), state, beta, float(lam[0]), cut)
        heapq.heappush(self._open, leaf)

    def _bound(self, cut: Cut, state: NDArray[np.int8]) -> float:
        """The least value of a cut over the supports of a leaf."""
        inside, free = cut.slopes[state == IN], cut.slopes[state == FREE]
        left = min(self.form.tau - inside.size, free.size)
        return float(cut.constant - inside.sum() - np.sort(free)[free.size - left :].sum())
