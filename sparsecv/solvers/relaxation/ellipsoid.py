"""An ellipsoid that holds the optimal coefficients: Theorems 1–2 and Corollary 1, first paper.

Write the objective of eq. (5) as q(β) + r(β), where q(β) = ‖y − Xβ‖² + (ε/2)‖β‖² and r is the
perspective term with the weight w = (γ − ε)/2. For ANY point β̂ let g = Xᵀ(y − Xβ̂) − (ε/2)β̂. Every
β of at most τ non-zeros has r(β) ≥ 2gᵀβ − (sum of the τ largest g_i²)/w, and q is a quadratic with
gradient −2g at β̂, so that

    objective(β) ≥ bound(β̂) + (β − β̂)ᵀ(XᵀX + (ε/2)I)(β − β̂),
    bound(β̂) = yᵀy − β̂ᵀ(XᵀX + (ε/2)I)β̂ − (sum of the τ largest g_i²)/w.

If β̂ solves the relaxation, bound(β̂) is the relaxation's value and this is Theorem 1. Any other
centre β̂ gives a valid, larger ellipsoid. ε < 0 is allowed while XᵀX + (ε/2)I ⪰ 0: the radius is
then much smaller where n > p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike

from ..core.problem import SparseRidgeProblem
from ..core.result import Answer
from ..core.rounding import (
    BOUND_SHARE,
    SUM_SHARE,
    UNSEEN_SHARE,
    WIDENED_SHARE_OF_CENTRE,
    WIDENED_SHARE_OF_YY,
    eigenvalue_loss,
    share_of_products,
)
from ..kernels.linalg import Array
from .dual_bound import BoundTerms, bound_terms, relative_rounding
from .gram import GramForm
from .perspective import checked_beta, checked_upper, perspective_relaxation

# The best μ of a bound on a square is looked for from this share of the largest k on: a choice.
END_TOLERANCE = 1e-9
# Where the least eigenvalue λ of XᵀX is positive, this share of λ‖β‖² is moved from the loss to the
# ridge term, whose relaxation (the perspective) then is tighter; this is ε < 0 in `epsilons`. Every
# share gives an ellipsoid that holds the optimal β, and so an interval of the fold's error. The
# intervals of all shares are intersected. The numbers are choices.
EIGENVALUE_SHARES = (0.9, 0.6, 0.3)
# Shares of γ that are kept out of the perspective (ε > 0), where XᵀX is singular. Every share
# gives an ellipsoid and takes one factorisation. The numbers are choices.
GAMMA_SHARES = (1e-3, 0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Spectrum:
    """A lower bound on XᵀX by the singular values of X that are not nearly 0.

    For every d, ‖Xd‖² ≥ Σ squares_i (v_iᵀd)² − lost ‖d − Σ (v_iᵀd) v_i‖², rounding included.

    squares: (rank,), above 0; about the squared singular values.
    directions: (rank, p), the right singular vectors v_i, of length 1 and orthogonal to each other.
    lost: What the bound takes off for the part of d that the directions do not see.
    """

    squares: Array
    directions: Array
    lost: float

    @classmethod
    def of(cls, problem: SparseRidgeProblem) -> Spectrum:
        """The bound from a problem's rows, which serves every γ, τ and ε.

        The matrix A whose decomposition is computed differs from X by E with a norm of at most
        ``off``: the decomposition loses 4(p + m) roundings of the largest singular value, m the
        rows of the factor, and the factor moves columns by ``data.lost``/2 of their lengths. For
        any share θ, ‖(A + E)d‖² ≥ (1 − θ)‖Ad‖² − off²/θ ‖d‖². Here θ is ``off`` over the least
        singular value that is kept, so that this one loses as little as the others.
        """
        X = problem.triangle[:, : problem.p]
        _, s, Vt = sla.svd(X, full_matrices=False, check_finite=False)
        top = float(s[0]) if s.size else 0.0
        off = eigenvalue_loss(problem.p + X.shape[0], top)
        off += 0.5 * problem.data.lost * float(np.linalg.norm(X))
        kept = s > max(UNSEEN_SHARE * top, 2.0 * off)
        least = float(s[kept].min(initial=top))
        theta = off / least if kept.any() else 0.0
        return cls((1.0 - theta) * s[kept] ** 2 - off * least, Vt[kept], off * least)

    @classmethod
    def of_gram(cls, gram: GramForm, n: int) -> Spectrum:
        """The bound from the Gram matrix of n rows, which takes less time than :meth:`of`.

        A Gram matrix has the squares of the singular values, so that half of their digits are lost.
        An eigenvalue of XᵀX is off by at most ``off``, which every kept eigenvalue loses.
        """
        values, vectors = np.linalg.eigh(gram.G)
        most = max(float(gram.rounding.squares.sum()), 0.0)
        off = eigenvalue_loss(n + values.size + 16, most)
        kept = values > max(UNSEEN_SHARE * most, off)
        # The computed eigenvalues of the other directions are at least −off, as those of XᵀX are
        # not below 0, and off by at most ``off``. So 2·off covers these directions.
        return cls(values[kept] - off, vectors.T[kept], 2.0 * off)

    @property
    def full_rank(self) -> bool:
        """Whether the directions span all β."""
        rank, p = self.directions.shape
        return bool(rank == p)

    def unseen(self, shift: float, ball: ArrayLike) -> Array:
        """What a bound R² on dᵀ(XᵀX + shift·I)d lacks as a bound on Σ (squares_i + shift)(v_iᵀd)².

        ball: Bounds on ‖d‖, of any shape; the result has their shape.
        """
        return np.asarray(max(self.lost - shift, 0.0) * np.square(ball))

    def least(self) -> float:
        """A lower bound on the least eigenvalue of XᵀX."""
        return float(self.squares.min()) if self.full_rank else 0.0

    def epsilons(self, gamma: float) -> list[float]:
        """The ε whose ellipsoids are intersected: 0, and shares of γ or of an eigenvalue.

        Where XᵀX is singular, ε > 0 are shares of γ; where its least eigenvalue λ is positive,
        ε < 0 are shares of −2λ, lowered for rounding.
        """
        least = 2.0 * self.least() * (1.0 - BOUND_SHARE)
        below = [] if least <= 0.0 else [-share * least for share in EIGENVALUE_SHARES]
        above = [] if self.full_rank else [share * gamma for share in GAMMA_SHARES]
        return [*below, 0.0, *above]

    def regions(
        self, gram: GramForm, problem: SparseRidgeProblem, found: Answer, epsilon: float
    ) -> NodeRegions:
        """The ellipsoids around the open nodes of a search: Theorem 1, first paper.

        An optimal solution is the incumbent, or lies below an open node in the node's ellipsoid.

        gram: The rows of the search, to which this spectrum belongs.
        problem: A problem that has the γ and τ of the search.
        found: The incumbent and the open nodes, of which there are some.
        """
        upper, leaves = found.objective, found.leaves
        assert leaves is not None
        length = problem.given_length(upper)
        ball = (length + np.linalg.norm(leaves.beta, axis=1)) * (1.0 + BOUND_SHARE)
        upper += problem.added_at_given(upper)
        bound = leaves.bounds(ShiftedForm(gram, problem.gamma, epsilon), problem.tau)
        gap = np.maximum(upper - bound, 0.0) * (1.0 + BOUND_SHARE)
        gap = gap + WIDENED_SHARE_OF_YY * gram.yy + found.rounding
        radius = np.sqrt(gap + self.unseen(epsilon / 2.0, ball))
        return NodeRegions(leaves.beta, radius, epsilon, ball, self)

    def image(self, rows: Array, shift: float) -> tuple[Array, Array]:
        """A (r, rank) with A Aᵀ = rows (XᵀX + shift·I)⁻¹ rowsᵀ on the directions, for rows (r, p).

        Also returns the length (r,) of the part of each row that is orthogonal to the directions.
        Products are off by at most p + 8 roundings of a row's length, for which 8(p + 8)·EPS of the
        length is added.
        """
        inside = rows @ self.directions.T
        length = np.linalg.norm(rows, axis=1)
        noise = 4.0 * share_of_products(rows.shape[1]) * length
        flat = self.squares + shift <= 0.0  # along these directions there is no bound
        scale = np.where(flat, 1e150, 1.0 / np.sqrt(np.where(flat, 1.0, self.squares + shift)))
        grown = np.copysign(np.abs(inside) + noise[:, None], inside)
        left = np.linalg.norm(rows - inside @ self.directions, axis=1)
        return grown * scale, left + noise


@dataclass(frozen=True)
class Ellipsoid:
    """Every optimal β has (β − centre)ᵀ(XᵀX + (ε/2)I)(β − centre) ≤ radius² (Theorem 1).

    Attributes
    ----------
    centre : ndarray, shape (p,)
        Coefficients in the middle of the ellipsoid.
    radius : float
        How far the ellipsoid reaches, in the norm of the inequality.
    epsilon : float
        The ε of the inequality.
    ball : float
        Every optimal β also has ‖β − centre‖ ≤ ``ball``, see ``given_length`` of the problem.
    spectrum : Spectrum
        Singular values and right singular vectors of X.
    """

    centre: Array
    radius: float
    epsilon: float
    ball: float
    spectrum: Spectrum

    def _image(self, rows: Array) -> tuple[Array, Array]:
        """How far predictions of rows (r, p) can be from those of the centre.

        Along the directions of ``spectrum`` the inequality of the class bounds β − centre. Across
        them ``ball`` does, and so does the ridge if the inequality keeps some of it there.

        Returns A (r, rank) and o (r,): a row's prediction differs by a row of A times a vector of
        length at most 1, and besides by at most the row's entry of o.
        """
        A, left = self.spectrum.image(rows, self.epsilon / 2.0)
        besides, ridge = left * self.ball, self.epsilon / 2.0 - self.spectrum.lost
        if ridge > 0.0:  # The ridge bounds what the directions do not see.
            besides = np.minimum(besides, left * self.radius / np.sqrt(ridge))
        return A * self.radius, besides

    def prediction_range(self, rows: ArrayLike) -> tuple[Array, Array]:
        """The least and greatest xᵀβ for each row x of (r, p): Theorem 2, first paper.

        With M = XᵀX + (ε/2)I the range is xᵀcentre ± radius·√(xᵀM⁻¹x).
        """
        H = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        A, besides = self._image(H)
        centre = H @ self.centre
        rounding = share_of_products(H.shape[1]) * (np.abs(H) @ np.abs(self.centre))
        reach = (np.linalg.norm(A, axis=1) + besides) * (1.0 + BOUND_SHARE) + rounding
        reach = reach + BOUND_SHARE * 1e-3 * np.abs(centre)
        return centre - reach, centre + reach

    def spread_bound(self, W: ArrayLike) -> float:
        """An upper bound on ‖W(β − centre)‖² for W (m, p): Corollary 1, first paper.

        With M = XᵀX + (ε/2)I the bound is radius²·trace(W M⁻¹ Wᵀ).
        """
        A, besides = self._image(np.atleast_2d(np.asarray(W, dtype=np.float64)))
        return float((np.linalg.norm(A) + np.linalg.norm(besides)) ** 2 * (1.0 + BOUND_SHARE))

    def error_range(self, rows: ArrayLike, targets: ArrayLike) -> tuple[float, float]:
        """The least and greatest Σ (t − xᵀβ)² over the ellipsoid: problem (9), first paper.

        The sum is over rows x of (r, p) with targets t (r,). Both values come from one singular
        value decomposition and a root of a secular equation. The values returned are those of the
        Lagrangian duals, which are bounds wherever the search for the root ends.
        """
        H = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        goal = np.asarray(targets, dtype=np.float64)
        e = goal - H @ self.centre
        size = np.linalg.norm(np.abs(H) @ np.abs(self.centre) + np.abs(goal))
        A, besides = self._image(H)
        if not np.isfinite(A).all():
            return 0.0, np.inf
        U, s, _ = sla.svd(A, full_matrices=H.shape[0] <= A.shape[1], check_finite=False)
        s = np.pad(s, (0, U.shape[1] - s.size))
        along = U.T @ e
        rest = max(float(e @ e - along @ along), 0.0)
        k = s * s
        least, most = (extreme_square(along, k, greatest) + rest for greatest in (False, True))
        widen = float(np.linalg.norm(besides)) + BOUND_SHARE * (float(np.linalg.norm(s)))
        widen += float(share_of_products(H.shape[0] + H.shape[1]) * size)  # the rounding of e
        scale = 1.0 + SUM_SHARE * (H.shape[0] + H.shape[1])
        low = max(np.sqrt(least) / scale - widen, 0.0)
        high = np.sqrt(most) * scale + widen
        return low * low, high * high


class NodeRegions(NamedTuple):
    """An :class:`Ellipsoid` for every one of k nodes, of the same ε.

    centre, radius, ball: Those of the ellipsoids, shape (k, p), (k,) and (k,).
    """

    centre: Array
    radius: Array
    epsilon: float
    ball: Array
    spectrum: Spectrum

    def one(self, i: int) -> Ellipsoid:
        """The ellipsoid of a node."""
        own = float(self.radius[i]), self.epsilon, float(self.ball[i])
        return Ellipsoid(self.centre[i], *own, self.spectrum)

    def prediction_ranges(self, rows: Array) -> tuple[Array, Array]:
        """The least and greatest xᵀβ of every node and row x of (r, p), shape (k, r): Theorem 2.

        The ellipsoid moves predictions by its radius times the length of the row's image. Where
        XᵀX + ε/2 is singular the rest of the row sees the ball alone.
        """
        predicted = self.centre @ rows.T
        image, unseen_length = self.spectrum.image(rows, self.epsilon / 2.0)
        width = self.radius[:, None] * np.linalg.norm(image, axis=1)
        width = (width + self.ball[:, None] * unseen_length) * (1.0 + BOUND_SHARE)
        width += WIDENED_SHARE_OF_CENTRE * np.abs(predicted)
        return predicted - width, predicted + width


def extreme_square(e: Array, k: Array, greatest: bool) -> float:
    """A bound on ‖e − w‖² over Σ w_i²/k_i ≤ 1, for e and k ≥ 0 (m,), which is nearly attained.

    Where k_i = 0, w_i is 0.
    The dual value Σ e_i² μ/(μ + k_i) − μ is a lower bound on the least square for any μ ≥ 0, and an
    upper bound on the greatest for any μ < −max k. At the best μ, Σ e_i²k_i/(μ + k_i)² = 1.

    greatest: Whether to bound the greatest square from above, and not the least from below.
    """
    moves = k > 0.0
    fixed, e, k = float(e[~moves] @ e[~moves]), e[moves], k[moves]
    if k.size == 0:
        return fixed
    sign, end, low = (
        (-1.0, float(k.max()), END_TOLERANCE * float(k.max())) if greatest else (1.0, 0.0, 0.0)
    )
    c = e * e * k

    def excess(step: float) -> float:  # at μ = sign·(end + step)
        return float((c / (sign * (end + step) + k) ** 2).sum()) - 1.0

    step, high = low, float(np.sqrt(c.sum()))
    if high > low and excess(low) > 0.0:
        step = high
        if excess(high) < 0.0:
            from scipy.optimize import brentq  # the import is slow

            step = float(brentq(excess, low, high, xtol=1e-14 * high, rtol=1e-14))
    mu = sign * (end + step)
    value = float((e * e * (mu / (mu + k))).sum()) - mu
    return fixed + (value if greatest else max(value, 0.0))


def centre_bound(problem: SparseRidgeProblem, beta: Array, epsilon: float = 0.0) -> float:
    """The bound(β̂) of this module's docstring, less what rounding may have added, for ε < γ.

    β̂ = ``beta`` (p,) may be any coefficients.
    """
    data, p, half = problem.triangle, problem.p, epsilon / 2.0
    X, y, ridge = data[:, :p], data[:, p], problem.gamma / 2.0
    length = np.sqrt(np.einsum("ij,ij->j", X, X) + ridge)
    yy, w = float(y @ y), np.full(p, ridge - half)
    eps = relative_rounding(X.shape[0], p, problem.data.lost)
    terms = BoundTerms(
        w=w, length=length, b=X.T @ y, yy=yy, reach_y=float(np.sqrt(yy)), eps=eps, scaled=True
    )
    constant, values = bound_terms(terms, beta, X.T @ (y - X @ beta) - half * beta)
    chosen = float(np.sort(values)[::-1][: problem.tau].sum())
    return float(constant) - chosen - problem.data_loss(problem.yy)


class ShiftedForm(NamedTuple):
    """The dual bound of a problem with a multiple of I moved between its parts, for leaves.

    With :meth:`Leaves.bounds` for this form, every β of at most τ non-zeros that agrees with a leaf
    has an objective of at least the leaf's bound plus (β − β̂)ᵀ(G + (ε/2)I)(β − β̂), β̂ the leaf's
    coefficients.

    gamma, epsilon: γ and ε of eq. (5).
    """

    gram: GramForm
    gamma: float
    epsilon: float

    def parts(self, beta: Array) -> tuple[Array, Array]:
        """The dual bound at some coefficients, as a constant and worths of columns, less rounding.

        See :class:`~sparsecv.solvers.core.leaves.DualForm`. On entry ε < γ and XᵀX + (ε/2)I ⪰ 0.
        Bounds on coefficients are passed over, which keeps the bound.

        beta, shape (m, columns of the form): Coefficients of m nodes.
        """
        gram, half, ridge = self.gram, self.epsilon / 2.0, self.gamma / 2.0
        terms = gram.terms(ridge)._replace(w=np.full(gram.b.size, ridge - half))
        constant, worth = bound_terms(terms, beta, gram.b - beta @ gram.G - half * beta)
        return constant, gram.by_unit(worth)


def ellipsoid(
    problem: SparseRidgeProblem,
    upper: float,
    *,
    epsilon: float = 0.0,
    beta: ArrayLike | None = None,
    spectrum: Spectrum | None = None,
) -> Ellipsoid:
    """Compute an ellipsoid that holds every optimal β of eq. (1): Theorem 1, first paper.

    The ellipsoid is (β − β̂)ᵀ(XᵀX + (ε/2)I)(β − β̂) ≤ upper − bound(β̂), with the certified lower
    bound of the perspective relaxation at the centre β̂.

    Parameters
    ----------
    problem : SparseRidgeProblem
    upper : float
        Objective of any support of at most τ columns.
    epsilon : float
        ε of eq. (5), below γ. A negative ε moves a part of the least eigenvalue of XᵀX into the
        perspective term, and must leave XᵀX + (ε/2)I positive semidefinite.
    beta : array, shape (p,), optional
        The centre, by default the relaxation's optimum. Any centre gives a valid ellipsoid.
    spectrum : Spectrum, optional
        The spectrum of the same data, to share among calls.

    Returns
    -------
    Ellipsoid

    Raises
    ------
    ValueError
        ε out of range, a centre that is not p finite numbers, or an ``upper`` that is NaN.
    InputError
        The problem has constraints.

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
    problem.refuse_constraints("ellipsoid")
    upper = checked_upper(upper)
    spectrum = spectrum or Spectrum.of(problem)
    if not epsilon < problem.gamma:
        raise ValueError(f"epsilon must be < gamma = {problem.gamma:g}; got {epsilon}")
    if epsilon < 0.0 and -epsilon / 2.0 > spectrum.least():
        raise ValueError(
            f"epsilon = {epsilon:g} leaves XᵀX + (ε/2)I indefinite; epsilon must be at least "
            f"{-2.0 * spectrum.least():g}"
        )
    if beta is None:
        centre = perspective_relaxation(problem, epsilon=max(epsilon, 0.0)).beta
    else:
        centre = checked_beta(problem, beta)
    length = problem.given_length(upper)
    upper += problem.added_at_given(upper)
    square = upper - centre_bound(problem, centre, epsilon)
    square = max(square, 0.0) * (1.0 + BOUND_SHARE) + WIDENED_SHARE_OF_YY * problem.yy
    ball = (length + float(np.linalg.norm(centre))) * (1.0 + BOUND_SHARE)
    radius = float(np.sqrt(square + spectrum.unseen(epsilon / 2.0, ball)))
    return Ellipsoid(centre, radius, epsilon, ball, spectrum)
