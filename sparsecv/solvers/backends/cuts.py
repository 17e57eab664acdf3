"""Outer-approximation cuts: linear lower bounds on f(z), one for any coefficients.

f(z) = min ||y − Xβ||² + (γ/2) Σ β_i²/z_i is convex in z (EC.1, first paper). With a diagonal D
moved into the perspective, w = γ/2 + D and Q = XᵀX − D, every β̂ gives

    f(z) ≥ yᵀy − β̂ᵀQβ̂ − Σ z_i g_i²/w_i,  g = Xᵀy − Qβ̂

at every 0–1 z. At the β̂ that attains f(ẑ) the right-hand side is f(ẑ) + ∇f(ẑ)ᵀ(z − ẑ).
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..branching import driver
from ..branching.search import Tree
from ..core.leaves import IN, Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..relaxation.dual_bound import bound_terms, first_multiplier
from ..relaxation.gram import GramForm


class Cut(NamedTuple):
    """f(z) ≥ constant − slopesᵀz."""

    constant: float
    slopes: Array  # (p,), at least 0

    def at(self, z: Array) -> float:
        """Value of the right-hand side at one z of shape (p,)."""
        return float(self.constant - self.slopes @ z)


class CutForm:
    """A problem on some of its columns in the form that cuts are made from.

    columns: The columns that z has an entry for; all other columns are excluded.
    gram: Gram matrix of the columns, with the diagonal D that moves into the perspective.
    margin: Rounding may let a tree of cuts pass over an objective that is better by this.
    """

    def __init__(
        self, problem: SparseRidgeProblem, columns: NDArray[np.intp], gram: GramForm
    ) -> None:
        self.problem, self.columns, self.gram, self.tau = problem, columns, gram, problem.tau
        self.p, ridge = int(columns.size), problem.gamma / 2.0
        # A bound may take the best multiple of a residual; that depends on z, and is no cut.
        self.Q, self.terms = gram.quadratic(), gram.terms(ridge)._replace(scaled=False)
        self.w, self.b, self.yy = self.terms.w, gram.b, gram.yy
        self.margin = gram.overlooked(ridge, problem.tau, gram.yy)

    def parts(self, beta: Array) -> tuple[Array, Array]:
        """Constants (...,) and slopes (..., p) of the cuts at some coefficients, (..., p).

        What rounding can lose is taken off: each constant less the slopes of a support is at most
        the support's objective.
        """
        return bound_terms(self.terms, beta, self.b - beta @ self.Q)

    def cut(self, beta: Array) -> Cut:
        """The cut of any coefficients, shape (p,)."""
        constant, slopes = self.parts(beta)
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


class FrontierCuts:
    """Cuts at the relaxations of a tree's leaves, below which a master's bound is as tight.

    A cut at the root's relaxation alone leaves the master's bound loose as soon as the master
    branches. The tree may be grown further at any time, and need not be finished: the master
    proves.
    """

    def __init__(self, form: CutForm) -> None:
        self.form, self.tree = form, Tree(form.gram, form.problem, 0.0)
        self.tree.st = self.tree.st._replace(terms=form.terms)
        self.tree.now["keep_closed"] = 1  # Every support is then below one of the leaves.
        lam = first_multiplier(form.b, form.w, form.tau)
        self.tree.add(Leaves.root(form.p, form.p, lam))

    @property
    def size(self) -> int:
        """Number of leaves."""
        return self.tree.kept.size + self.tree.n_open

    @property
    def support(self) -> NDArray[np.intp]:
        """The best support that the tree has come by, as increasing positions."""
        return np.sort(self.tree.st.support).astype(np.intp)

    def cuts(self) -> list[Cut]:
        """A cut for every leaf."""
        leaves = self.tree.leaves()
        constants, slopes = self.form.parts(leaves.beta)
        found = [Cut(*cut) for cut in zip(constants.tolist(), slopes, strict=True)]
        for leaf in np.flatnonzero(leaves.of_one_support()):
            found[leaf] = self.form.at_support(np.flatnonzero(leaves.state[leaf] == IN))
        return found

    def grow(self, target: float, limits: Limits, most: float = np.inf) -> None:
        """Branch on the leaf of least bound until all reach ``target``, or there are ``most``.

        The tree is also left as it is at a limit, or once its table of nodes is full.

        target: In the units of objectives.
        """
        tree = self.tree
        tree.now["upper"] = target
        while tree.n_open and self.size < most and limits.reached(0) is None:
            rows = tree.open.nodes.size
            if tree.advance(8) == driver.FULL and tree.open.nodes.size == rows:
                return
