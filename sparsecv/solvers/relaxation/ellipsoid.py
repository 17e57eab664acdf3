"""Where the optimal coefficients can lie: Theorems 1–2 and Corollary 1 of the main paper.

Write eq. (5) as q(β) + r(β), q(β) = ||y − Xβ||² + (ε/2)||β||² and r the perspective term with the
weight w = (γ − ε)/2. For ANY point β̂ put g = Xᵀ(y − Xβ̂) − (ε/2)β̂. Then, for every β of at most τ
non-zeros, r(β) ≥ 2gᵀβ − (sum of the τ largest g_i²)/w, and q is a quadratic whose gradient at β̂ is
−2g, so that

    objective(β) ≥ bound(β̂) + (β − β̂)ᵀ(XᵀX + (ε/2)I)(β − β̂),
    bound(β̂) = yᵀy − β̂ᵀ(XᵀX + (ε/2)I)β̂ − (sum of the τ largest g_i²)/w.

At the relaxation's optimum bound(β̂) is its value and this is Theorem 1; elsewhere the centre need
not be optimal for the ellipsoid to be valid, only for it to be small. ε < 0 is allowed while
XᵀX + (ε/2)I ⪰ 0: the ellipsoid is flatter, its radius much smaller where n > p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike, NDArray

from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import EPS, Array
from .dual_bound import FREE, IN, BoundTerms, bound_terms, relative_rounding
from .gram import GramForm
from .perspective import perspective_relaxation
from .screening import checked_beta

# A singular value of at most this share of the largest one counts as 0: its direction is bounded
# by the ridge instead. Rounding alone puts (p + n)·2⁻⁵⁰ of the largest into each. Twice the share
# counts more directions as 0, whose ranges are then wider and as valid.
ZERO_SHARE = 1e-11
# Every range is widened by this share of its width: the formulas take some hundred operations of a
# relative error of 2⁻⁵³ each, a hundred thousandth of that. Twice as much is not noticed.
WIDENED_SHARE = 1e-9


@dataclass(frozen=True)
class Spectrum:
    """Singular values of the training rows, but those near 0, and their right singular vectors."""

    squares: Array  # lower bounds on the squared singular values
    directions: Array  # (rank, p)
    top: float
    full_rank: bool

    @classmethod
    def of(cls, problem: SparseRidgeProblem) -> Spectrum:
        """One singular value decomposition for every γ, τ and ε: the problem gives its rows."""
        X = problem._base[:, : problem.p]
        _, s, Vt = sla.svd(X, full_matrices=False, check_finite=False)
        top = float(s[0]) if s.size else 0.0
        kept = s > ZERO_SHARE * top
        lost = 8.0 * (problem.p + X.shape[0]) * EPS * top
        squares = np.maximum(s[kept] - lost, 0.0) ** 2
        return cls(squares, Vt[kept], top, int(kept.sum()) == problem.p)

    @classmethod
    def of_gram(cls, gram: GramForm, n: int) -> Spectrum:
        """The spectrum by Gram matrices of ``n`` rows: half of the digits, a third of the time."""
        values, vectors = np.linalg.eigh(gram.G)
        most = float(np.diag(gram.G).sum() if gram.before is None else gram.before[0].sum())
        lost = 4.0 * (n + values.size + 16) * EPS * max(most, 0.0)
        kept = values > ZERO_SHARE * max(most, 0.0)
        squares = np.maximum(values[kept] - lost, 0.0)
        return cls(squares, vectors.T[kept], float(np.sqrt(most)), bool(kept.all()))

    def least(self) -> float:
        """A lower bound on the least eigenvalue of XᵀX."""
        return float(self.squares.min()) if self.full_rank else 0.0

    def image(self, rows: Array, shift: float) -> tuple[Array, Array]:
        """A and o: A Aᵀ = rows (XᵀX + shift·I)⁻¹ rowsᵀ on the directions kept, o the lengths left.

        A is (r, rank), o (r,) the length of each row outside these directions.

        rows, shape (r, p).
        Returns A, o, shape (r, rank) and (r,).
        """
        inside = rows @ self.directions.T
        length = np.linalg.norm(rows, axis=1)
        noise = 8.0 * (rows.shape[1] + 8) * EPS * length
        flat = self.squares + shift <= 0.0  # nothing bounds these directions
        scale = np.where(flat, 1e150, 1.0 / np.sqrt(np.where(flat, 1.0, self.squares + shift)))
        grown = np.sign(inside) * (np.abs(inside) + noise[:, None])
        left = np.linalg.norm(rows - inside @ self.directions, axis=1)
        return grown * scale, left + noise


@dataclass(frozen=True)
class Ellipsoid:
    """Every optimal β has (β − centre)ᵀ(XᵀX + (ε/2)I)(β − centre) ≤ radius² (Theorem 1).

    Attributes
    ----------
    centre : ndarray, shape (p,)
    radius : float
        Square root of the right-hand side, in the units of y.
    epsilon : float
        ε of eq. (5).
    ball : float
        Bound on ||β − centre||, from γ/2 ||β||² ≤ the incumbent's objective.
    spectrum : Spectrum
    """

    centre: Array
    radius: float
    epsilon: float
    ball: float
    spectrum: Spectrum

    def _image(self, rows: Array) -> tuple[Array, Array]:
        """Directions the rows' predictions can move in, and how far they can besides."""
        A, left = self.spectrum.image(rows, self.epsilon / 2.0)
        besides = left * self.ball
        if self.epsilon > 0.0:  # the ridge bounds what XᵀX does not see
            besides = np.minimum(besides, left * self.radius / np.sqrt(self.epsilon / 2.0))
        return A * self.radius, besides

    def prediction_range(self, rows: ArrayLike) -> tuple[Array, Array]:
        """Ranges [low, high] of xᵀβ for each row x, shape (r, p): Theorem 2, main paper.

        Parameters
        ----------
        rows : array, shape (r, p)

        Returns
        -------
        low, high : ndarrays, shape (r,)
        """
        H = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        A, besides = self._image(H)
        centre = H @ self.centre
        rounding = 2.0 * (H.shape[1] + 8) * EPS * (np.abs(H) @ np.abs(self.centre))
        reach = (np.linalg.norm(A, axis=1) + besides) * (1.0 + WIDENED_SHARE) + rounding
        reach = reach + WIDENED_SHARE * 1e-3 * np.abs(centre)
        return centre - reach, centre + reach

    def spread_bound(self, W: ArrayLike) -> float:
        """Upper bound on ||W(β − centre)||² for W (m, p): Corollary 1, main paper.

        Parameters
        ----------
        W : array, shape (m, p)

        Returns
        -------
        float
        """
        A, besides = self._image(np.atleast_2d(np.asarray(W, dtype=np.float64)))
        return float((np.linalg.norm(A) + np.linalg.norm(besides)) ** 2 * (1.0 + WIDENED_SHARE))

    def error_range(self, rows: ArrayLike, targets: ArrayLike) -> tuple[float, float]:
        """Least and greatest Σ (t − xᵀβ)² over the ellipsoid: problem (9), main paper.

        Both by one eigendecomposition of the rows' m × m kernel and a root of a secular equation.
        What is returned are values of the Lagrangian duals, valid wherever the root-finding ends.

        Parameters
        ----------
        rows : array, shape (r, p)
        targets : array, shape (r,)

        Returns
        -------
        low, high : float
        """
        H = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        goal = np.asarray(targets, dtype=np.float64)
        e = goal - H @ self.centre
        size = np.linalg.norm(np.abs(H) @ np.abs(self.centre) + np.abs(goal))
        A, besides = self._image(H)
        if not np.isfinite(A).all():
            return 0.0, np.inf
        if H.shape[0] > A.shape[1]:
            U, s, _ = sla.svd(A, full_matrices=False, check_finite=False)
        else:
            U, s, _ = sla.svd(A, full_matrices=True, check_finite=False)
            s = np.concatenate([s, np.zeros(U.shape[1] - s.size)])
        along = U.T @ e
        rest = max(float(e @ e - along @ along), 0.0)
        k = s * s
        least, most = least_square(along, k) + rest, greatest_square(along, k) + rest
        widen = float(np.linalg.norm(besides)) + WIDENED_SHARE * (float(np.linalg.norm(s)))
        widen += float(2.0 * (H.shape[0] + H.shape[1] + 8) * EPS * size)  # what e may be off by
        scale = 1.0 + 1e-12 * (H.shape[0] + H.shape[1])
        low = max(np.sqrt(least) / scale - widen, 0.0)
        high = np.sqrt(most) * scale + widen
        return low * low, high * high


def _root(slope: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq  # slow to import

    return float(brentq(slope, low, high, xtol=1e-14 * high, rtol=1e-14))


def least_square(e: Array, k: Array) -> float:
    """Lower bound on min ||e − w||² over Σ w_i²/k_i ≤ 1, tight to rounding.

    The dual: Σ e_i² μ/(μ + k_i) − μ for any μ ≥ 0.

    e, k, shape (m,): k are the squares of the half-axes, at least 0.
    """
    flat = k <= 0.0
    fixed = float(e[flat] @ e[flat])
    e, k = e[~flat], k[~flat]
    if k.size == 0 or float(e * e @ (1.0 / k)) <= 1.0:
        return fixed

    def slope(mu: float) -> float:
        return float((e * e * k) @ (1.0 / (mu + k) ** 2)) - 1.0

    high = float(np.sqrt((e * e * k).sum()))
    mu = high if slope(high) >= 0.0 else _root(slope, 0.0, high)
    return fixed + max(float((e * e * mu) @ (1.0 / (mu + k))) - mu, 0.0)


def greatest_square(e: Array, k: Array) -> float:
    """Upper bound on max ||e − w||² over Σ w_i²/k_i ≤ 1, tight to rounding.

    A trust-region problem; its dual: μ + Σ e_i² μ/(μ − k_i) for any μ > max k.

    e, k, shape (m,): k are the squares of the half-axes, at least 0.
    """
    top = float(k.max(initial=0.0))
    if top <= 0.0:
        return float(e @ e)
    c = e * e * k

    def slope(step: float) -> float:  # at μ = top + step
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(c > 0.0, c / (top - k + step) ** 2, 0.0)
        return 1.0 - float(terms.sum())

    high = float(np.sqrt(c.sum()))
    step = 1e-9 * top
    if high > step and slope(step) < 0.0:
        step = _root(slope, step, high) if slope(high) > 0 else high
    mu = top + step
    terms = (e * e) * (mu / (mu - k))
    return mu + float(terms.sum())


def centre_bound(problem: SparseRidgeProblem, beta: Array, epsilon: float = 0.0) -> float:
    """bound(β̂) of this module's first lines, certified: what rounding may have lost is off.

    beta, shape (p,): Any coefficients.
    epsilon: ε < γ.
    """
    data, p, half = problem._base, problem.p, epsilon / 2.0
    X, y, ridge = data[:, :p], data[:, p], problem.gamma / 2.0
    length = np.sqrt(np.einsum("ij,ij->j", X, X) + ridge)
    yy, w = float(y @ y), np.full(p, ridge - half)
    eps = relative_rounding(X.shape[0], p, problem.distortion)
    terms = BoundTerms(w, length, X.T @ y, yy, float(np.sqrt(yy)), eps)
    constant, values = bound_terms(terms, beta, X.T @ (y - X @ beta) - half * beta)
    chosen = float(np.sort(values)[::-1][: problem.tau].sum())
    return float(constant) - chosen - problem.data_loss(problem.yy)


def node_bounds(
    gram: GramForm,
    leaves: NDArray[np.int8],
    beta: Array,
    tau: int,
    gamma: float,
    epsilon: float,
) -> Array:
    """bound(β̂) of branch-and-bound nodes at coefficients of their own, certified.

    Every β of at most τ non-zeros that respects a node has an objective of at least the node's
    bound plus (β − β̂)ᵀ(G + (ε/2)I)(β − β̂).

    leaves, shape (m, p): Included (1), excluded (2) and free (0) columns.
    beta, shape (m, p): 0 where excluded.
    gamma, epsilon: As in eq. (5).
    Returns, shape (m,).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, GramForm, node_bounds
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> root, beta = np.zeros((1, 4), dtype=np.int8), np.zeros((1, 4))
    >>> bool(node_bounds(GramForm.of(problem), root, beta, 2, 1.0, 0.0)[0] <= problem.yy)
    True
    """
    half, ridge = epsilon / 2.0, gamma / 2.0
    terms = gram.terms(ridge)._replace(w=np.full(gram.b.size, ridge - half))
    constant, v = bound_terms(terms, beta, gram.b - beta @ gram.G - half * beta)
    inside, free = leaves == IN, leaves == FREE
    ranked = -np.sort(-np.where(free, v, 0.0), axis=1)
    picks = np.clip(tau - inside.sum(axis=1), 0, None)
    chosen = np.where(np.arange(ranked.shape[1]) < picks[:, None], ranked, 0.0).sum(axis=1)
    return np.asarray(constant - np.where(inside, v, 0.0).sum(axis=1) - chosen)


def ellipsoid(
    problem: SparseRidgeProblem,
    upper: float,
    *,
    epsilon: float = 0.0,
    beta: ArrayLike | None = None,
    spectrum: Spectrum | None = None,
) -> Ellipsoid:
    """Build an ellipsoid that holds every optimal β of eq. (1): Theorem 1, main paper.

    Parameters
    ----------
    problem : SparseRidgeProblem
    upper : float
        Objective of any support of at most τ columns.
    epsilon : float
        ε of eq. (5), below γ. Negative values move a part of the least eigenvalue of XᵀX into the
        perspective and must leave XᵀX + (ε/2)I positive semidefinite.
    beta : array, shape (p,), optional
        Centre; by default the relaxation's optimum. Any centre gives a valid ellipsoid.
    spectrum : Spectrum, optional
        Of the same data, to share among calls.

    Returns
    -------
    Ellipsoid

    Raises
    ------
    ValueError
        ε out of range, or a centre that is not p finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, ellipsoid
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> around = ellipsoid(problem, problem.objective([1, 3]))
    >>> low, high = around.prediction_range(X[1:2])  # 2 at the optimum
    >>> bool(low[0] <= 2.0 <= high[0])
    True
    """
    spectrum = spectrum or Spectrum.of(problem)
    if not epsilon < problem.gamma:
        raise ValueError(f"epsilon must be < gamma = {problem.gamma:g}; got {epsilon}")
    if epsilon < 0.0 and -epsilon / 2.0 > spectrum.least():
        raise ValueError(
            f"epsilon = {epsilon:g} leaves XᵀX + (ε/2)I indefinite: at least "
            f"{-2.0 * spectrum.least():g} is possible"
        )
    if beta is None:
        centre = perspective_relaxation(problem, epsilon=max(epsilon, 0.0)).beta
    else:
        centre = checked_beta(problem, beta)
    room = upper - centre_bound(problem, centre, epsilon)
    room = max(room, 0.0) * (1.0 + WIDENED_SHARE) + 1e-13 * problem.yy
    ball = float(np.sqrt(2.0 * max(upper, 0.0) / problem.gamma) + np.linalg.norm(centre))
    return Ellipsoid(centre, float(np.sqrt(room)), epsilon, ball * (1.0 + WIDENED_SHARE), spectrum)
