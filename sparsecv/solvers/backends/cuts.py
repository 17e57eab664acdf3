"""Outer-approximation cuts: linear lower bounds on f(z), one for any coefficients.

f(z) = min ||y − Xβ||² + (γ/2) Σ β_i²/z_i is convex in z (EC.1, first paper). With a diagonal D
moved into the perspective, w = γ/2 + D and Q = XᵀX − D, every β̂ gives

    f(z) ≥ yᵀy − β̂ᵀQβ̂ − Σ z_i g_i²/w_i,  g = Xᵀy − Qβ̂

at every 0–1 z. At the β̂ that attains f(ẑ) the right-hand side is f(ẑ) + ∇f(ẑ)ᵀ(z − ẑ).
"""

from __future__ import annotations

import heapq
import itertools
import warnings
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..relaxation import descent as kernels
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
    gram: Gram matrix of the columns, with the diagonal D that moves into the perspective.
    """

    def __init__(
        self, problem: SparseRidgeProblem, columns: NDArray[np.intp], gram: GramForm
    ) -> None:
        self.problem, self.columns, self.tau = problem, columns, problem.tau
        self.p, ridge = int(columns.size), problem.gamma / 2.0
        # Cuts take no multiple of the residual, and neither do the bounds of the leaves.
        self.Q, self.terms = gram.quadratic(), gram.terms(ridge)._replace(scaled=False)
        self.w, self.b, self.yy = self.terms.w, gram.b, gram.yy
        self.margin = gram.rounding(ridge, problem.tau, gram.yy)

    def cut(self, beta: Array) -> Cut:
        """The cut of any coefficients, shape (p,)."""
        constant, slopes = bound_terms(self.terms, beta, self.b - self.Q @ beta)
        return Cut(float(constant), slopes)

    def at_support(self, support: NDArray[np.intp]) -> Cut:
        """The cut of the ridge fit on a support, at which the cut touches f.

        Where the fit's matrix is singular to working precision the fit is off, but the cut holds.
        """
        beta, inside = np.zeros(self.p), np.ix_(support, support)
        K, b = self.Q[inside] + np.diag(self.w[support]), self.b[support]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sla.LinAlgWarning)
            try:
                found = sla.solve(K, b, assume_a="pos", check_finite=False)
            except sla.LinAlgError:
                found = np.linalg.lstsq(K, b, rcond=None)[0]
        beta[support] = found if np.isfinite(found).all() else 0.0
        return self.cut(beta)


class _Leaf(NamedTuple):
    """A leaf: its bound, its number, and the solution of its relaxation.

    The bound of a leaf that has a single support is ∞, because it is not branched on.
    """

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

    def __init__(self, form: CutForm) -> None:
        self.form, p = form, form.p
        # Descent at a leaf ends after 60 rounds. The number is a choice: a cut is valid after any.
        self._sweeps = kernels.new_sweeps(kernels.gram_arrays(form.Q), p, 1e-7, 60)
        self._number = itertools.count()
        self._leaves: list[_Leaf] = []  # A heap.
        start, nothing = first_multiplier(form.b, form.w, form.tau), np.zeros(p)
        root = _Leaf(-np.inf, 0, np.zeros(p, dtype=np.int8), nothing, start, form.cut(nothing))
        self._push(root, root.state, np.inf)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self._leaves)

    @property
    def bound(self) -> float:
        """Least bound of the leaves that may still be branched on."""
        return self._leaves[0].bound

    def cuts(self) -> list[Cut]:
        """A cut for every leaf."""
        return [leaf.cut for leaf in self._leaves]

    def grow(self, target: float, limits: Limits, most: float = np.inf) -> None:
        """Branch on the leaf of least bound until all reach ``target``, or there are ``most``."""
        w = self.form.w
        while self.bound < target and self.size < most and limits.reached(0) is None:
            leaf = heapq.heappop(self._leaves)
            free = np.flatnonzero(leaf.state == FREE)
            i = int(free[np.argmax(np.abs(leaf.beta[free]) * np.sqrt(w[free]))])
            for value in (IN, OUT):
                state = leaf.state.copy()
                state[i] = value
                self._push(leaf, state, target)

    def _push(self, parent: _Leaf, state: NDArray[np.int8], target: float) -> None:
        """Make a leaf; solve its relaxation, from its parent's, until its bound passes ``target``.

        state: Free, included and excluded columns of the leaf.
        """
        form, bound = self.form, np.inf
        beta, lam = np.where(state == OUT, 0.0, parent.beta), np.array([parent.root_lam])
        left = form.tau - int(np.count_nonzero(state == IN))
        if 0 < left < int(np.count_nonzero(state == FREE)):
            self._sweeps.limits["target"], self._sweeps.best[0] = target, -np.inf
            here = (state, left, beta, np.zeros(form.p), lam, np.zeros(form.tau + EXTRA))
            kernels.relax(self._sweeps, None, form.terms, *here)
            # Sweeps that do not converge may end on coefficients worse than the parent's.
            cut = max((parent.cut, form.cut(beta)), key=lambda cut: self._least(cut, state))
            bound = self._least(cut, state)
        else:
            cut = form.at_support(np.flatnonzero(state == IN if left <= 0 else state != OUT))
        leaf = _Leaf(bound, next(self._number), state, beta, float(lam[0]), cut)
        heapq.heappush(self._leaves, leaf)

    def _least(self, cut: Cut, state: NDArray[np.int8]) -> float:
        """The least value of a cut over the supports of a leaf."""
        inside, free = cut.slopes[state == IN], cut.slopes[state == FREE]
        left = min(self.form.tau - inside.size, free.size)
        return float(cut.constant - inside.sum() - np.sort(free)[free.size - left :].sum())
