"""Diagonals D with XᵀX − D ⪰ 0 for the perspective relaxation: for all γ and τ, or for a node."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, OUT, Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.rounding import eigenvalue_loss
from ..kernels.linalg import Array
from .dual_bound import gram_arrays, unit_terms, weights
from .extraction import MAX_COLUMNS, largest_diagonal
from .gram import GramForm, wants_gram
from .relaxer import Relaxer

# A fit of a diagonal to a node ends after this many Newton steps unless the caller gives another
# number. The number is a choice.
STEPS = 30


class Fitted(NamedTuple):
    """A diagonal D for a node, and the node with the solution of its relaxation with D.

    D (p,) has D > 0 on free columns, and G − D ⪰ 0 on the columns that are not excluded.
    """

    D: Array
    node: Leaves

    @property
    def bound(self) -> float:
        """A certified lower bound on the objectives of the node's supports."""
        return float(self.node.bound[0])


def interior(gram: GramForm) -> Array:
    """A diagonal D (p,) for which G − D ⪰ 0 is far from singular: half the mean of two others.

    The first is ``gram.D`` > 0, which also bounds the eigenvalues of G at unit diagonal from below.
    The second is 1/(p·(G⁻¹)_ii), for which G − D ⪰ 0 as G ⪰ e_ie_iᵀ/(G⁻¹)_ii for every i. Half of
    the mean leaves more than rounding takes, as eigenvalues are computed at unit diagonal.
    """
    squares = np.diag(gram.G)
    lengths = np.sqrt(squares)
    values, vectors = np.linalg.eigh(gram.G / lengths / lengths[:, None])
    inverse = vectors**2 @ (1.0 / np.maximum(values, (gram.D / squares).min()))
    return np.asarray(0.25 * (gram.D + squares / (gram.b.size * inverse)))


def shared_diagonal(gram: GramForm) -> Array:
    """A diagonal D (p,) > 0 with G − D ⪰ 0 that gives good bounds at every γ and τ.

    A matrix of many problems is worth the time of :func:`largest_diagonal`. A tenth of
    :func:`interior` keeps entries of D positive, as a search below a root needs.
    """
    if gram.scaled or gram.b.size > MAX_COLUMNS:
        return gram.D
    off = gram.rounding.of_trace(np.diag(gram.G))
    D = 0.9 * largest_diagonal(gram.G, gram.D.min(), off, gram.D) + 0.1 * interior(gram)
    return D if D.min() > 0.0 and D.sum() > gram.D.sum() else gram.D


def shared_form(problem: SparseRidgeProblem) -> GramForm | None:
    """XᵀX with a diagonal for every γ and τ; None where the rows are used (:func:`wants_gram`)."""
    if not wants_gram(problem):
        return None
    form = GramForm.of(problem)
    return replace(form, D=shared_diagonal(form))


def fit_diagonal(
    gram: GramForm,
    ridge: float,
    to_choose: int,
    start: Fitted,
    target: float,
    steps: int = STEPS,
    limits: Limits | None = None,
) -> Fitted:
    """Find a diagonal D that gives a node's relaxation a larger bound.

    The bound φ(D) is concave with ∂φ/∂D_i = β_i²(1/z_i − 1), z_i the share of column i's unit, and
    the equations of the relaxation give the second derivatives. Damped Newton steps raise
    φ(D) + μ·(log det(G − D) + Σ log D_i), μ → 0; the limit is the semidefinite relaxation of the
    node. D is 0 on included columns, and G − D ⪰ 0 is needed without the excluded columns only: in
    deeper nodes free columns get more.

    gram: A form that :attr:`GramForm.fits` says may have such a diagonal.
    ridge: γ/2.
    to_choose: Number of free columns or units still to choose.
    start: A diagonal to start from, and the node, of whose columns or units some are free. The
        node's bound is not used.
    target: The search ends once the bound reaches this objective.
    Returns: The diagonal of the largest bound, which is at least that of ``start.D``.
    """
    node = _Node(gram, ridge, start.node.state[0], to_choose)
    inside, free = node.columns, node.free
    within = start.node._replace(beta=start.node.beta[:, inside])
    best = node.solved(node.of(start.D), within)
    now = best._replace(D=0.98 * best.D)  # The barrier is infinite where G − D is singular.
    factor, mu = node.factor(now.D), np.inf
    if factor is not None and best.bound < target:
        now = node.solved(now.D, now.node)
    for _ in range(steps):
        left = target - best.bound
        if factor is None or (limits is not None and limits.reached(0) is not None):
            break
        # The barrier keeps the bound about 2μ below its best for each free column.
        if not left > 0.0 or 2.0 * mu * free.size < 0.01 * left:
            break
        mu = min(mu, 3.0 * left / free.size)
        rise, curvature = node.derivatives(now, factor, mu)
        step = np.zeros(now.D.size)
        _, step[free], failed = sla.lapack.dposv(curvature, rise)
        if failed:
            break
        slope, value = float(rise @ step[free]), now.bound + mu * node.barrier(factor, now.D)
        # The first length tried is eight times what self-concordance proves to help.
        t = 8.0 / (1.0 + np.sqrt(max(slope, 0.0) / mu))
        t = min(1.0, t, 0.95 / max(float((-step[free] / now.D[free]).max()), 1e-300))
        while t > 0.02:
            D = now.D + t * step
            trial = node.factor(D)
            if trial is not None:
                there = node.solved(D, now.node)
                best = there if there.bound > best.bound else best
                if there.bound + mu * node.barrier(trial, D) >= value + 0.1 * t * slope:
                    now, factor = there, trial
                    break
            t *= 0.5
        if not 0.02 < t <= 0.5:  # No length helps, or nearly the whole step does.
            mu *= 0.25
    D, beta = np.zeros(gram.b.size), np.zeros((1, gram.b.size))
    D[inside], beta[:, inside] = best.D, best.node.beta
    return Fitted(D, best.node._replace(state=start.node.state, beta=beta))


class _Node:
    """A node's matrices on its m columns that are not excluded, and the barrier of a diagonal.

    gram, ridge: The Gram form of the problem, and γ/2.
    state: Free, included and excluded columns, or units of columns, of the node.
    k: Number of free columns, or units, still to choose.
    """

    def __init__(self, gram: GramForm, ridge: float, state: NDArray[np.int8], k: int) -> None:
        units, grouping = np.flatnonzero(state != OUT), gram.grouping
        self.state, self.to_choose, self.ridge = state[units], k, ridge
        self.columns, self.unit, terms = units, np.arange(units.size), gram.terms(ridge)
        self.grouping, self.held = None, np.zeros(units.size, dtype=np.bool_)
        if grouping is not None:
            self.columns, grouping = grouping.columns(units), grouping.on(units)
            self.grouping, self.unit = grouping, grouping.unit
            self.held = np.isfinite(grouping.lower) | np.isfinite(grouping.upper)
            arrays = grouping.first, grouping.lower, grouping.upper
            terms = terms._replace(units=unit_terms(*arrays, np.zeros(self.columns.size)))
        self.free, m = np.flatnonzero(self.state[self.unit] == FREE), self.columns.size
        self.G = gram.G[np.ix_(self.columns, self.columns)]
        self.terms = terms._replace(
            length=terms.length[self.columns], b=gram.b[self.columns], scaled=False
        )
        trace = float(self.terms.length @ self.terms.length)
        # Where Cholesky's method succeeds on an m × m matrix no eigenvalue is below
        # −(m + 2)u·trace, u = 2⁻⁵³ (Rump 2006), of which eight times is taken.
        self.lost = eigenvalue_loss(m + 2, trace) + gram.rounding.eps * trace

    def of(self, D: Array) -> Array:
        """A diagonal (p,) restricted to the node: (m,), 0 on included columns."""
        return np.asarray(np.where(self.state[self.unit] == FREE, D[self.columns], 0.0))

    def less(self, D: Array) -> Array:
        """The matrix G − D, (m, m)."""
        Q = self.G.copy()
        Q.flat[:: D.size + 1] -= D
        return Q

    def factor(self, D: Array) -> Array | None:
        """The Cholesky factor of G − D − lost·I, which proves G − D ⪰ 0; None where it fails."""
        if not D[self.free].min() > 0.0:
            return None
        found, failed = sla.lapack.dpotrf(self.less(D + self.lost), lower=1)
        return None if failed else found

    def barrier(self, factor: Array, D: Array) -> float:
        """log det(G − D) + Σ log D_i."""
        return float(2.0 * np.log(np.diag(factor)).sum() + np.log(D[self.free]).sum())

    def solved(self, D: Array, start: Leaves) -> Fitted:
        """Solve the node's relaxation with D, starting from the β and √λ of another solution.

        The bound holds where G − D ⪰ 0, as :meth:`factor` proves of D unless it returns None.
        """
        terms, Q = self.terms._replace(w=weights(self.ridge, D)), self.less(D)
        if self.grouping is not None:
            terms.units.spread[:] = self.grouping.spread(Q)
        now = Relaxer(gram_arrays(Q), terms, self.state, self.to_choose)
        now.start(start.beta[0], float(start.lam[0]))
        bound = now.relaxed(np.inf, multipliers=20, share=1e-4, rounds=100, gap=1e-7)
        return Fitted(D, now.node._replace(bound=np.array([bound])))

    def derivatives(self, at: Fitted, factor: Array, mu: float) -> tuple[Array, Array]:
        """The gradient of φ + μ·barrier in D on free columns, and minus the matrix of second ones.

        Let S = √(Σ w_jβ_j²) of a unit, over its columns, and v_i = w_iβ_i/S on the columns of
        linear units (0 < z < 1), 0 on others. With W = diag(w), β and s = √λ solve

            (Q + W_quadratic)β + s·v = b,   Σ_linear S = s·(to_choose − #quadratic),

        and ∂φ/∂D_i is ω_i = s·β_i²/S − β_i² on the linear columns, 0 on others. For a single column
        v_i is √w_i·sign β_i, so that v does not change with β.
        """
        beta, s, w, D = at.node.beta[0], at.node.lam[0], self.ridge + at.D, at.D[self.free]
        size, inside = np.sqrt(np.bincount(self.unit, w * beta**2)), self.state == IN
        quadratic = inside | (size >= s) & (size > 0.0)
        linear = ((size > 0.0) & ~quadratic)[self.unit]
        # A coefficient that a bound holds at 0 stays there.
        taken = (linear | quadratic[self.unit]) & ((beta != 0.0) | ~self.held)
        active = np.flatnonzero(taken)
        lines, m = np.flatnonzero(linear[active]), active.size
        i = active[lines]
        S = size[self.unit[i]]
        v, away = w[i] * beta[i] / S, beta[i] ** 2 / S
        K, right = np.zeros((m + 1, m + 1)), np.zeros((m + 1, i.size))
        K[:m, :m] = self.G[np.ix_(active, active)]
        whole = quadratic[self.unit[active]]
        K.flat[: m * (m + 2) : m + 2] += np.where(whole, w[active], 0.0) - at.D[active]
        K[lines, m] = K[m, lines] = v
        K[m, m] = int((quadratic & ~inside).sum()) - self.to_choose
        same = np.equal.outer(self.unit[i], self.unit[i]) / S
        if self.grouping is not None:
            K[np.ix_(lines, lines)] += s * (np.diag(w[i] / S) - same * np.outer(v, v))
        right[lines] = np.diag(beta[i] - s * beta[i] / S) + 0.5 * s * same * np.outer(v, away)
        right[m] = -0.5 * away
        omega, second = np.zeros(beta.size), np.zeros((beta.size, beta.size))
        omega[i] = np.maximum(s * away - beta[i] ** 2, 0.0)
        _, _, solution, failed = sla.lapack.dgesv(K, right)
        if not failed:
            second[np.ix_(i, i)] = 2.0 * right.T @ solution
        second[np.ix_(i, i)] += 0.5 * s * same * np.outer(away, away)
        A = sla.lapack.dpotri(factor, lower=1)[0][np.ix_(self.free, self.free)]
        A = np.tril(A) + np.tril(A, -1).T
        second = second[np.ix_(self.free, self.free)] + mu * A * A
        second.flat[:: D.size + 1] += mu / D**2
        return omega[self.free] + mu * (1.0 / D - np.diag(A)), second
