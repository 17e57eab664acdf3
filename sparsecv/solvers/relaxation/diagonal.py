"""Diagonals XᵀX allows to be moved into the perspective: of largest trace, or fitted to (γ, τ)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.limits import Limits
from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array
from .descent import gram_arrays
from .dual_bound import weights
from .gram import GramForm, extraction
from .relaxer import Relaxer

# Beyond so many columns the least eigenvalue of G must do: a diagonal of largest trace takes
# O(p³) operations a sweep, twice as many columns eight times the time.
MOST_COLUMNS = 300
STEPS = 30  # Newton steps that fit a diagonal at the root, at most; the best one found is kept


class DiagonalSettings(NamedTuple):
    """Tuning numbers of both searches for a diagonal.

    They decide how tight a bound gets and what time that takes. Whether G − D ⪰ 0 is checked.
    """

    # Weights μ of the barrier log det(G − D), one after the other, in units of the mean diagonal
    # entry of G: the last one is about what the trace lacks of its maximum, for each column.
    trace_barriers: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    # Passes over all columns with each of these weights.
    trace_sweeps: int = 3
    # A fit starts from this share of the diagonal at hand, off the boundary of G − D ⪰ 0, where
    # the barrier is infinite.
    interior_share: float = 0.98
    # The barrier's weight is at most this share of the gap for each free column, and falls by the
    # factor after a step that needed no shortening, or found none that helps.
    most_barrier: float = 3.0
    barrier_factor: float = 0.25
    # A fit ends where the barrier may keep at most this share of the gap from the bound.
    kept_share: float = 0.01
    # A step is first tried at so many times the length that self-concordance allows for certain,
    # then shortened by the factor, until it is shorter than this share of the full step.
    length_ratio: float = 8.0
    shortening: float = 0.5
    least_step: float = 0.02


SETTINGS = DiagonalSettings()


def largest_diagonal(G: Array, ridge: float, eps: float) -> Array:
    """Diagonal D with G − D ⪰ 0 and Σ D_ii about as large as it can be.

    Coordinate steps maximise Σ D_ii + μ·log det(G − D), μ → 0. Columns on which G is singular get
    next to nothing and the others keep their share: where every level of a factor is coded the
    least eigenvalue alone would give nothing to any column.

    ridge: γ/2; entries of D may be negative by rounding, by less than a thousandth of γ/2.
    eps: The exact G differs from the one at hand by at most this share of its trace.
    """
    p = G.shape[0]
    plain = extraction(G, p, eps)
    if p > MOST_COLUMNS:
        return plain
    shift = min(1e-8 * float(np.linalg.norm(G, 2)), 5e-4 * ridge)
    D = np.zeros(p)
    try:
        inverse = np.linalg.inv(G + shift * np.eye(p))
    except np.linalg.LinAlgError:
        return plain
    ascend(
        inverse,
        D,
        float(np.trace(G)) / p * np.array(SETTINGS.trace_barriers),
        SETTINGS.trace_sweeps,
    )
    if not np.isfinite(D).all():
        return plain
    D = allowed(G, D, eps)
    return D if D.min() > -1e-3 * ridge and D.sum() > plain.sum() else plain


def allowed(G: Array, D: Array, eps: float) -> Array:
    """D, lowered where the exact G − D ⪰ 0 would not be certain.

    With u = 2⁻⁵³ computed eigenvalues of a symmetric p × p matrix A are off by at most a modest
    multiple of p·u·‖A‖ (backward stability; Higham 2002, Section 3.5 for the products): 4p·2u·‖A‖
    is taken, ‖A‖ being bounded by the eigenvalues and the largest diagonal entry of G. The exact G
    differs by at most ``eps`` of its trace. Lowering D by so much and the least eigenvalue's
    deficit makes G − D ⪰ 0.
    """
    values = sla.eigvalsh(G - np.diag(D), check_finite=False)
    scale = float(np.abs(values).max()) + float(np.diag(G).max())
    lost = 4.0 * D.size * EPS * scale + eps * float(np.trace(G))
    return np.asarray(D + min(float(values[0]) - lost, 0.0))


class Fitted(NamedTuple):
    """A node's diagonal D, and the solution of its relaxation with that D.

    D, beta, shape (p,): D > 0 on free columns; G − D ⪰ 0 on the columns that are not excluded.
    root_lam: √λ.
    bound: A certified lower bound on the node's objective.
    """

    D: Array
    beta: Array
    root_lam: float
    bound: float


def interior(gram: GramForm) -> Array:
    """A diagonal D well inside G − D ⪰ 0, G of positive diagonal: half the mean of two allowed.

    The first is ``gram.D`` > 0, which also bounds the eigenvalues of G at unit diagonal from below.
    The second is 1/(p·(G⁻¹)_ii), which is allowed as G ⪰ e_ie_iᵀ/(G⁻¹)_ii for every i. The half
    that is left is more than rounding takes, because eigenvalues are computed at unit diagonal.
    """
    squares = np.diag(gram.G)
    lengths = np.sqrt(squares)
    values, vectors = np.linalg.eigh(gram.G / lengths / lengths[:, None])
    inverse = vectors**2 @ (1.0 / np.maximum(values, (gram.D / squares).min()))
    return np.asarray(0.25 * (gram.D + squares / (gram.b.size * inverse)))


def fit_diagonal(
    gram: GramForm,
    ridge: float,
    state: NDArray[np.int8],
    picks: int,
    start: Fitted,
    target: float,
    steps: int = STEPS,
    limits: Limits | None = None,
) -> Fitted:
    """Raise a node's bound by the diagonal that is taken from its free columns.

    The bound φ(D) is concave; ∂φ/∂D_i is ω_i = β_i²(1/z_i − 1), and the relaxation's own equations
    give its second derivatives. Damped Newton steps climb φ(D) + μ·(log det(G − D) + Σ log D_i),
    μ → 0: the limit is the semidefinite relaxation of the node. Columns left out do not count, and
    nothing is taken from included ones, so that the deeper a node the more its free ones get.

    ridge: γ/2.
    state, shape (p,): Free (0), included (1) and excluded (2) columns, some free.
    picks: Free columns still to choose.
    start: Its bound is not used.
    target: An objective: the bound at which to stop.
    Returns: Of the largest bound found: at least that of the start's D.
    """
    node = _Node(gram, ridge, state, picks)
    inside, free = node.columns, node.free
    best = node.solved(node.of(start.D), start.beta[inside], start.root_lam)
    now = best._replace(D=SETTINGS.interior_share * best.D)
    factor, mu = node.factor(now.D), np.inf
    if factor is not None and best.bound < target:
        now = node.solved(now.D, now.beta, now.root_lam)
    for _ in range(steps):
        left = target - best.bound
        if factor is None or not left > 0.0 or 2.0 * mu * free.size < SETTINGS.kept_share * left:
            break
        if limits is not None and limits.reached(0) is not None:
            break
        mu = min(mu, SETTINGS.most_barrier * left / free.size)
        rise, curvature = node.derivatives(now, factor, mu)
        step = np.zeros(now.D.size)
        _, step[free], failed = sla.lapack.dposv(curvature, rise)
        if failed:
            break
        slope, value = float(rise @ step[free]), now.bound + mu * node.barrier(factor, now.D)
        t = SETTINGS.length_ratio / (1.0 + np.sqrt(max(slope, 0.0) / mu))
        t = min(1.0, t, 0.95 / max(float((-step[free] / now.D[free]).max()), 1e-300))
        while t > SETTINGS.least_step:
            D = now.D + t * step
            trial = node.factor(D)
            if trial is not None:
                there = node.solved(D, now.beta, now.root_lam)
                best = there if there.bound > best.bound else best
                if there.bound + mu * node.barrier(trial, D) >= value + 0.1 * t * slope:
                    now, factor = there, trial
                    break
            t *= SETTINGS.shortening
        if not SETTINGS.least_step < t <= SETTINGS.shortening:
            mu *= SETTINGS.barrier_factor
    D, beta = np.zeros(state.size), np.zeros(state.size)
    D[inside], beta[inside] = best.D, best.beta
    return Fitted(D, beta, best.root_lam, best.bound)


class _Node:
    """A node's matrices on its columns that are not excluded, and the barrier of a diagonal."""

    def __init__(self, gram: GramForm, ridge: float, state: NDArray[np.int8], picks: int) -> None:
        self.columns = np.flatnonzero(state != 2)
        self.state, self.picks, self.ridge = state[self.columns], picks, ridge
        self.free = np.flatnonzero(self.state == 0)
        self.G = gram.G[np.ix_(self.columns, self.columns)]
        terms, m = gram.terms(ridge), self.columns.size
        self.terms = terms._replace(length=terms.length[self.columns], b=gram.b[self.columns])
        trace = float(self.terms.length @ self.terms.length)
        # Where Cholesky's method succeeds on an m × m matrix no eigenvalue is below
        # −(m + 2)u·trace, u = 2⁻⁵³ (Rump 2006); eight times that is taken, EPS being 2u.
        self.lost = (4.0 * (m + 2) * EPS + gram.eps) * trace

    def of(self, D: Array) -> Array:
        """The entries of a diagonal of all columns that belong to this node's free columns."""
        return np.asarray(np.where(self.state == 0, D[self.columns], 0.0))

    def less(self, D: Array) -> Array:
        """G − D."""
        Q = self.G.copy()
        Q.flat[:: D.size + 1] -= D
        return Q

    def factor(self, D: Array) -> Array | None:
        """Cholesky factor of G − D − (rounding)·I, which proves G − D ⪰ 0; None where it fails."""
        if not D[self.free].min() > 0.0:
            return None
        found, failed = sla.lapack.dpotrf(self.less(D + self.lost), lower=1)
        return None if failed else found

    def barrier(self, factor: Array, D: Array) -> float:
        """log det(G − D) + Σ log D_i."""
        return float(2.0 * np.log(np.diag(factor)).sum() + np.log(D[self.free]).sum())

    def solved(self, D: Array, beta: Array, root_lam: float) -> Fitted:
        """The relaxation with D."""
        terms = self.terms._replace(w=weights(self.ridge, D))
        now = Relaxer(gram_arrays(self.less(D)), terms, False, self.state, self.picks)
        now.start(beta, root_lam)
        bound, _ = now.newton(np.inf, 20, 1e-4)
        return Fitted(D, now.beta, float(now.root_lam[0]), bound)

    def derivatives(self, at: Fitted, factor: Array, mu: float) -> tuple[Array, Array]:
        """First derivatives of φ + μ·barrier in the free columns' D, and the second's negative.

        With v_i = √w_i·sign β_i on the linear columns, 0 on others, β and s = √λ solve

            (Q + W_quadratic)β + s·v = b,   vᵀβ = s·(picks − #quadratic),

        and ω_i = |β_i|s/√w_i − β_i² on the linear columns, 0 on others.
        """
        beta, s, w, D = at.beta, at.root_lam, self.ridge + at.D, at.D[self.free]
        size, inside = np.sqrt(w) * np.abs(beta), self.state == 1
        quadratic = inside | (size >= s) & (size > 0.0)
        linear = (size > 0.0) & ~quadratic
        active = np.flatnonzero(quadratic | linear)
        lines, m = np.flatnonzero(linear[active]), active.size
        i = active[lines]
        v, away = np.sqrt(w[i]) * np.sign(beta[i]), np.abs(beta[i]) / np.sqrt(w[i])
        K, right = np.zeros((m + 1, m + 1)), np.zeros((m + 1, i.size))
        K[:m, :m] = self.G[np.ix_(active, active)]
        K.flat[: m * (m + 2) : m + 2] += np.where(quadratic, w, 0.0)[active] - at.D[active]
        K[lines, m] = K[m, lines] = v
        K[m, m] = int((quadratic & ~inside).sum()) - self.picks
        right[lines, np.arange(i.size)] = beta[i] - 0.5 * s / v
        right[m] = -0.5 * away
        omega, second = np.zeros(beta.size), np.zeros((beta.size, beta.size))
        omega[i] = np.maximum(s * away - beta[i] ** 2, 0.0)
        _, _, solution, failed = sla.lapack.dgesv(K, right)
        if not failed:
            second[np.ix_(i, i)] = 2.0 * right.T @ solution
        second[i, i] += 0.5 * away * s / w[i]
        A = sla.lapack.dpotri(factor, lower=1)[0][np.ix_(self.free, self.free)]
        A = np.tril(A) + np.tril(A, -1).T
        second = second[np.ix_(self.free, self.free)] + mu * A * A
        second.flat[:: D.size + 1] += mu / D**2
        return omega[self.free] + mu * (1.0 / D - np.diag(A)), second


@kernel
def ascend(A, D, barrier, sweeps):  # type: ignore[no-untyped-def]
    """Coordinate steps up Σ D_ii + μ·log det(G − D); A = (G − D)⁻¹ by rank-one updates."""
    p = D.shape[0]
    for mu in barrier:
        for _ in range(sweeps):
            for i in range(p):
                if not 0.0 < A[i, i] < np.inf:
                    continue  # rounding has left nothing of the inverse for this column
                step = max(1.0 / A[i, i] - mu, -D[i])
                left = 1.0 - step * A[i, i]
                if step == 0.0 or left <= 0.0:
                    continue
                D[i] += step
                factor = step / left
                for j in range(p):
                    if j != i:
                        change = factor * A[j, i]
                        for q in range(p):
                            if q != i:
                                A[j, q] += change * A[i, q]
                for j in range(p):
                    if j != i:
                        A[j, i] /= left
                        A[i, j] = A[j, i]
                A[i, i] /= left
