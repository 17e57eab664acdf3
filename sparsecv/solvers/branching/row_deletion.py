"""Many problems that each lack some rows of the same data: their Gram matrices and their bounds.

With rows D and responses T deleted, problem j has G − DᵀD, Xᵀy − DᵀT and yᵀy − |T|². At fixed
coefficients β, with e = T − Dβ, the gradient Xᵀ(y − Xβ) of all rows loses Dᵀe: a node of a search
on all rows is bounded for a problem in as many operations as D has entries. Where the bound at β is
not enough, β moves to the relaxation's optimum without the rows. With K the curvature of the
relaxation on the columns A that have a coefficient, one row d after the other is deleted by

    β_A − K⁻¹d_A (t − dᵀβ) / (1 − d_AᵀK⁻¹d_A),    K − d_A d_Aᵀ in place of K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.rounding import (
    BOUND_SHARE,
    DIFFERENCE_SHARE,
    STEP_SHARE,
    WIDENED_SHARE_OF_CENTRE,
    WIDENED_SHARE_OF_YY,
    eigenvalue_loss,
)
from ..core.threads import cached
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import (
    REGULAR_SHARE,
    Array,
    Ints,
    add,
    allocated,
    dot,
    factor_row,
    invert_factor,
)
from ..relaxation.dual_bound import (
    BoundTerms,
    bound_of_parts,
    gram_gradient,
    list_allowed,
    products,
    sum_largest,
)
from ..relaxation.ellipsoid import EIGENVALUE_SHARES, GAMMA_SHARES
from ..relaxation.gram import GramForm, wants_gram
from ..relaxation.gram_rounding import Rounding
from ..relaxation.perspective import Relaxation


@by_reference()
class Deleted(NamedTuple):
    """The problems as kernels take them, and work space for p columns and m rows."""

    G: Array  # (p, p) of all rows
    whole: BoundTerms  # of all rows; γ/2 in place of every weight
    unit: BoundTerms  # of all rows; 1 in place of every weight
    D: Array  # (R, p) the rows deleted, R in all, problem after problem
    T: Array  # (R,) their responses
    start: NDArray[np.int64]  # (k + 1,) problem j lacks rows start[j] to start[j + 1] − 1
    yy: Array  # (k,) yᵀy of every problem
    w: Array  # (k,) every weight of a problem: γ/2 − shift, rounded down
    shift: Array  # (k,) multiple of I that is added to a problem's Gram matrix
    scaled: NDArray[np.bool_]  # (k,) whether multiples of the residual may give a bound (shift 0)
    extracted: float  # d of the nodes' relaxations, whose quadratic part is G − dI
    owner: NDArray[np.int64]  # (p,) the unit of every column
    part: Array  # (p,) 1 over the number of columns of the column's unit
    allowed: Annotated[Ints, "p"]  # the node's units that are not excluded come first
    active: Annotated[Ints, "p"]  # columns with a coefficient, and included ones
    inverse: Annotated[Array, "p p"]  # L⁻¹ of K = LLᵀ on the active columns
    Z: Annotated[Array, "most p"]  # K⁻¹d of every deleted row d, K without the rows before
    left: Annotated[Array, "most"]  # 1 − dᵀK⁻¹d of every deleted row
    e: Annotated[Array, "most"]  # t − dᵀβ of every deleted row
    inside: Annotated[Array, "p"]  # 1 for columns of the node's included units
    free: Annotated[Array, "p"]  # 1 for columns of the node's free units
    c: Annotated[Array, "p"]  # b − Gβ on all rows
    moved: Annotated[Array, "p"]  # coefficients of one problem
    moved_c: Annotated[Array, "p"]  # b − Gβ on all rows at these
    g: Annotated[Array, "p"]  # gradient of one problem
    top: Annotated[Array, "p+3"]


class Sums(NamedTuple):
    """What the bound of a node needs of its coefficients β, on all rows."""

    linear: float  # bᵀβ
    quadratic: float  # βᵀGβ
    reach: float  # |y| + Σ ℓ_i|β_i|, with the lengths ℓ of ``dual_bound``
    square: float  # |β|²


class ToReach(NamedTuple):
    """What the bound of a node is for.

    The largest g² are selected only where a cheaper bound does not reach the target.
    """

    lam: float  # √λ of the node's relaxation
    to_choose: int  # free units still to choose
    target: float


@kernel(inner=True, reorder=True)
def sum_from_above(g, dp, raise_by, k, level):
    """Σ v over included columns plus an upper bound on the sum of v over any k free units.

    Here v_i = (|g_i| + raise_by·length_i)². For any level ≥ 0 the v of k units add up to at most
    k·level + Σ max(v_i − level_i, 0), where the level_i of a unit's columns add up to the level.
    """
    length, inside, free, part = dp.whole.length, dp.inside, dp.free, dp.part
    total, over = 0.0, 0.0
    for i in range(g.shape[0]):
        size = abs(g[i]) + raise_by * length[i]
        v = size * size
        total += inside[i] * v
        over += free[i] * max(v - level * part[i], 0.0)
    return total + k * level + over


@kernel(inner=True, reorder=True)
def deleted_gradient(g, c, shift, beta, D, e, first, m):
    """Write g = c − shift·β − Σ e_r·d over the m deleted rows d from ``first`` on."""
    p = g.shape[0]
    for i in range(p):
        g[i] = c[i] - shift * beta[i]
    for r in range(m):
        error = e[r]
        for i in range(p):
            g[i] -= error * D[first + r, i]


@kernel(inline=True)
def problem_bound(dp, j, state, beta, c, sums, here):
    """The dual bound of a node on problem j, at any β that is 0 on excluded columns.

    On entry ``dp`` holds the node's columns. The kernel writes ``dp.e``, ``dp.g`` and ``dp.top``.

    c: b − Gβ on all rows, computed from β in one go.
    sums, here: A ``Sums`` and a ``ToReach``.
    """
    whole, g, e, first, shift = dp.whole, dp.g, dp.e, dp.start[j], dp.shift[j]
    m, eps = dp.start[j + 1] - first, whole.eps
    linear, reach, k = sums.linear, sums.reach, here.to_choose
    quadratic = sums.quadratic + shift * sums.square
    for r in range(m):
        fitted = dot(dp.D[first + r], beta, beta.shape[0])
        e[r] = dp.T[first + r] - fitted
        quadratic -= fitted * fitted
        linear -= dp.T[first + r] * fitted
    deleted_gradient(g, c, shift, beta, dp.D, e, first, m)
    weight, raise_by = dp.w[j], eps * reach
    level = here.lam * here.lam * (whole.w[0] + dp.extracted)
    total = sum_from_above(g, dp, raise_by, k, level)
    total *= (1.0 + eps) / weight
    lost = raise_by * reach
    bound, _ = bound_of_parts(dp.yy[j], linear, quadratic, total, lost, dp.scaled[j])
    if bound < here.target:
        units = (state, dp.allowed, list_allowed(state, dp.allowed))
        total = sum_largest(dp.unit, *units, k, g, raise_by, dp.top)
        total *= (1.0 + eps) / weight
        bound, _ = bound_of_parts(dp.yy[j], linear, quadratic, total, lost, dp.scaled[j])
    return bound


@kernel(inner=True)
def factor_curvature(dp, beta, lam):
    """Form L⁻¹ of K = LLᵀ, the curvature of a node's relaxation on its active columns.

    K is G + γ/2 I on columns of z = 1 and G − dI on the other active columns, d the multiple of
    I that the relaxation extracts. A unit u of z < 1 and of more than one column adds the
    curvature of its penalty 2√λ·√w|β_u|, which is w/z across β_u and 0 along it, with w = γ/2 +
    d. ``REGULAR_SHARE`` of the mean diagonal entry is added, and pivots are at least as large:
    K only says at which coefficients bounds are tried. On entry ``dp.inside`` holds the node's
    columns. The kernel writes ``dp.active``, ``dp.inverse``, ``dp.g`` and ``dp.top``.

    lam: √λ of the node's relaxation, whose coefficients are ``beta``.

    Returns: The number of active columns.
    """
    n, mean, K, ridge, square = 0, 0.0, dp.inverse, dp.whole.w[0], dp.g
    for i in range(beta.shape[0]):
        square[i] = 0.0
    for i in range(beta.shape[0]):
        square[dp.owner[i]] += beta[i] * beta[i]
        if beta[i] != 0.0 or dp.inside[i] > 0.0:
            dp.active[n] = i
            mean += dp.G[i, i]
            n += 1
    least = REGULAR_SHARE * mean / max(n, 1)
    root_weight = np.sqrt(ridge + dp.extracted)
    for a in range(n):
        i = dp.active[a]
        u = dp.owner[i]
        size = np.sqrt(square[u]) * root_weight
        whole, across, c = dp.inside[i] > 0.0 or size >= lam, -dp.extracted, a - 1
        for b in range(a):
            K[a, b] = dp.G[i, dp.active[b]]
        if not whole and square[u] > 0.0:
            bend = lam * root_weight / np.sqrt(square[u])
            across += bend * (1.0 - beta[i] * beta[i] / square[u])
            while c >= 0 and dp.owner[dp.active[c]] == u:
                K[a, c] -= bend * (beta[i] * beta[dp.active[c]] / square[u])
                c -= 1
        K[a, a] = dp.G[i, i] + (ridge if whole else across) + least
        factor_row(K, a, least)
    invert_factor(K, n, dp.top)
    return n


@kernel(inner=True)
def move(dp, j, beta, n):
    """Write to ``dp.moved`` the relaxation's optimum without problem j's rows.

    The optimum is that of the n active columns of :func:`factor_curvature`, if the same columns
    have z = 1. The rows leave one by one. K is the curvature without the rows before, and z = K⁻¹d
    for the row d that leaves. Then β moves by −z(t − dᵀβ)/(1 − dᵀz) (Sherman and Morrison). On
    entry ``dp.active`` and ``dp.inverse`` are those of :func:`factor_curvature`. The kernel writes
    ``dp.Z``, ``dp.left`` and ``dp.g``, too.

    Returns: Whether the down-dates have kept more than ten of sixteen digits.
    """
    p, moved, u, first = beta.shape[0], dp.moved, dp.g, dp.start[j]
    for i in range(p):
        moved[i] = beta[i]
    for r in range(dp.start[j + 1] - first):
        d, z = dp.D[first + r], dp.Z[r]
        for a in range(n):
            u[a], z[a] = d[dp.active[a]], 0.0
        for a in range(n):
            add(z, dp.inverse[a], dot(dp.inverse[a], u, a + 1), a + 1)
        for s in range(r):
            add(z, dp.Z[s], dot(dp.Z[s], u, n) / dp.left[s], n)
        dp.left[r] = 1.0 - dot(z, u, n)
        if not dp.left[r] >= 1e-6:
            return False
        step = (dp.T[first + r] - dot(d, moved, p)) / dp.left[r]
        for a in range(n):
            moved[dp.active[a]] -= step * z[a]
    return True


@kernel(inner=True)
def moved_bound(dp, j, state, here):
    """The dual bound of a node on problem j at ``dp.moved``; writes ``dp.moved_c`` besides."""
    beta, c = dp.moved, dp.moved_c
    gram_gradient(dp.G, dp.whole.b, beta, c)
    linear, quadratic, reach = products(dp.whole, beta, c)
    sums = Sums(linear, quadratic, reach, dot(beta, beta, beta.shape[0]))
    return problem_bound(dp, j, state, beta, c, sums, here)


@kernel
def bound_nodes(dp, nodes, tau, target, most, left, bounds, betas):
    """Bound nodes of a search on all rows for every problem, until a problem has too many open.

    A bound at a node's own coefficients comes first, and a bound at moved coefficients where the
    first is below the target.

    nodes, tau: ``Leaves`` of a search on all rows, m of them, and τ, the units of a support.
    target, shape (k,): The bound that closes a node for a problem.
    most: A problem with more open nodes than this is bounded no more.
    left, shape (k,): Increased by the number of nodes that stay open for a problem.
    bounds, shape (m, k): Gets the better bound, ∞ where the problem is bounded no more.
    betas, shape (k, p) or (0, p): Gets the coefficients of the bounds at the last node.
    """
    lams = nodes.lam
    for a in range(lams.shape[0]):
        state, beta, n = nodes.state[a], nodes.beta[a], -1
        to_choose = tau
        for u in range(state.shape[0]):
            to_choose -= state[u] == IN
        for i in range(beta.shape[0]):
            u = dp.owner[i]
            dp.inside[i], dp.free[i] = state[u] == IN, state[u] == FREE
        gram_gradient(dp.G, dp.whole.b, beta, dp.c)
        linear, quadratic, reach = products(dp.whole, beta, dp.c)
        sums = Sums(linear, quadratic, reach, dot(beta, beta, beta.shape[0]))
        for j in range(target.shape[0]):
            best, here = np.inf, ToReach(lams[a], to_choose, target[j])
            moved = False
            if left[j] <= most:
                best = problem_bound(dp, j, state, beta, dp.c, sums, here)
                if not best >= target[j]:  # NaN closes no node.
                    n = factor_curvature(dp, beta, lams[a]) if n < 0 else n
                    if move(dp, j, beta, n):
                        value = moved_bound(dp, j, state, here)
                        moved = value > best
                        best = value if moved else best
                    left[j] += not best >= target[j]
            bounds[a, j] = best
            if betas.shape[0] > 0:
                for i in range(beta.shape[0]):
                    betas[j, i] = dp.moved[i] if moved else beta[i]


@dataclass(frozen=True)
class LeftOut:
    """The Gram matrix of all rows, and the rows that each problem lacks.

    Coefficients have no bounds.

    gram: Gram matrix of all rows, on the units of columns that are not excluded.
    units, shape (m,): The numbers of these units among all units.
    include, shape (m,): 1 for those that must be in.
    rows, targets, shape (R, p) and (R,): The rows deleted, problem after problem, in the columns of
        ``gram``, scaled so that deleting rows D subtracts DᵀD from G.
    start, shape (k + 1,): Problem j lacks ``rows[start[j]:start[j + 1]]``.
    n: Number of rows of the data; sums over the rows lose up to n roundings.
    """

    gram: GramForm
    units: NDArray[np.intp]
    include: NDArray[np.int8]
    rows: Array
    targets: Array
    start: NDArray[np.int64]
    n: int

    @staticmethod
    def serves(problem: SparseRidgeProblem) -> bool:
        """Whether a search of all rows can answer problems that each lack some of them.

        It cannot where coefficients have bounds, nor where the Gram matrix costs more than the rows
        (:func:`wants_gram`). Nor can it where the problem replaces γ by a larger one because γ is 0
        or too small to count. What is proved at the larger γ holds at the given γ by a bound on the
        coefficients, which every problem has to compute for itself.
        """
        bounded, enlarged = problem.constraints.bounded, problem.gamma > problem.given_gamma
        return not (bounded or enlarged) and wants_gram(problem)

    @classmethod
    def of(
        cls,
        problem: SparseRidgeProblem,
        rows: Array,
        targets: Array,
        start: NDArray[np.int64],
        n: int,
    ) -> LeftOut:
        """The record of a problem and of the problems that each lack some of its rows.

        rows, shape (R, p): The deleted rows in the columns of ``problem``.
        targets, start, n: The fields of the record.
        """
        left = problem.constraints.left
        gram = GramForm.of_units(problem, left.units)
        left_out = cls(gram, left.units, left.include, rows, targets, start, n)
        return replace(left_out, rows=left_out.turned(rows))

    def turned(self, rows: Array) -> Array:
        """Rows of the data, (r, all columns), in the columns of ``gram``."""
        if self.gram.grouping is None:
            return rows if rows.shape[1] == self.units.size else rows[:, self.units].copy()
        return self.gram.grouping.turned(rows)

    def root(self, lam: float) -> Leaves:
        """The node below which every support lies, with ``lam`` for √λ and coefficients of 0."""
        state = np.where(self.include, IN, FREE).astype(np.int8)
        return Leaves.at_zero(state[None], self.gram.b.size, lam)

    @property
    def count(self) -> int:
        """Number of problems."""
        return int(self.start.size - 1)

    @cached
    def off(self) -> float:
        """What a Gram matrix, and eigenvalues computed from it, are off by in the spectral norm.

        Every entry is off by at most ε/4 of the lengths of two columns, and the computed
        eigenvalues by at most 4p roundings of the largest, which is at most the trace.
        """
        trace = max(float(self.rounding.squares.sum()), 0.0)
        return self.rounding.eps * trace + eigenvalue_loss(self.gram.b.size, trace)

    @cached
    def eigen(self) -> tuple[Array, Array]:
        """Eigenvalues of G, rounded down, and the eigenvectors."""
        values, vectors = np.linalg.eigh(self.gram.G)
        return values - self.off, vectors

    @cached
    def _turned(self) -> Array:
        """``rows`` in the basis of the eigenvectors."""
        return np.asarray(self.rows @ self.eigen[1])

    @cached
    def rounding(self) -> Rounding:
        """What the matrices of every problem are off by."""
        return self.gram.rounding.without_rows(self.n)

    @cached
    def least(self) -> Array:
        """Lower bounds ≥ 0 on the least eigenvalue of every problem's Gram matrix, shape (k,).

        A problem that lacks one row d has G − ddᵀ ⪰ μI as long as dᵀ(G − μI)⁻¹d ≤ 1. 50 steps of
        bisection find nearly the largest such μ. A problem that lacks several rows has its own
        eigenvalues computed. Data of at most as many rows as columns count as singular.
        """
        k, values = self.count, self.eigen[0]
        if self.n <= self.gram.b.size or not values[0] > 0.0:
            return np.zeros(k)
        largest, single = float(values[-1]), np.diff(self.start) == 1
        squares = self._turned[self.start[:-1][single]] ** 2
        low, below = np.zeros(k), np.zeros(squares.shape[0])
        above = np.full(squares.shape[0], values[0] * (1.0 - BOUND_SHARE))
        for _ in range(50):
            middle = 0.5 * (below + above)
            fits = np.sum(squares / (values - middle[:, None]), axis=1) <= 1.0 - BOUND_SHARE
            below, above = np.where(fits, middle, below), np.where(fits, above, middle)
        low[single] = below
        for j in np.flatnonzero(~single).tolist():
            fold = sla.eigvalsh(self.form(j, extract=False).G, check_finite=False)
            low[j] = max(0.0, float(fold[0]) - BOUND_SHARE * largest)
        return np.asarray(np.maximum(low - self.off, 0.0))

    def overlooked(self, ridge: float, tau: int, upper: Array) -> Array:
        """By how much a support that enumeration overlooks may be better than ``upper``.

        ridge: γ/2.
        upper, shape (k,): Objective of every problem's incumbent; the result has the same shape.
        """
        w, most = ridge + self.least[:, None], np.minimum(upper, self.gram.yy)
        return self.rounding.overlooked(w, ridge, self.gram.most_columns(tau), most)

    def form(self, j: int, extract: bool = True) -> GramForm:
        """The Gram form of problem j, whose part D may move from G to the penalty.

        extract: Whether D is ``least[j]`` for every column; else it is 0, and ``least``, which is
            computed from these forms, is not needed.
        """
        gram, at = self.gram, slice(int(self.start[j]), int(self.start[j + 1]))
        rows, t = self.rows[at], self.targets[at]
        return GramForm(
            G=gram.G - rows.T @ rows,
            b=gram.b - rows.T @ t,
            yy=max(float(gram.yy - t @ t), 0.0),  # Rounding may leave less than 0.
            D=np.full(gram.b.size, self.least[j] if extract else 0.0),
            rounding=self.rounding,
            grouping=gram.grouping,
        )

    def problems(self, ridge: float, shift: Array, extracted: float, multiples: bool) -> Deleted:
        """The record that compiled bounds of these problems work on.

        ridge: γ/2.
        shift, shape (k,): Multiple of I added to every problem's G and taken off γ/2.
        extracted: d of the relaxation's Q = G − dI at the nodes to come.
        multiples: Whether multiples of the residual may give bounds where the shift is 0.
        """
        gram, p = self.gram, self.gram.b.size
        most, whole = max(int(np.diff(self.start).max(initial=1)), 1), gram.terms(ridge)
        squares = np.append(0.0, np.cumsum(self.targets**2))
        owner = np.arange(p) if gram.grouping is None else gram.grouping.unit
        return allocated(
            Deleted,
            {"p": p, "most": most},
            G=np.ascontiguousarray(gram.G),
            whole=whole._replace(eps=self.rounding.eps, w=np.full(p, ridge)),
            unit=whole._replace(eps=self.rounding.eps, w=np.ones(p)),
            D=np.ascontiguousarray(self.rows),
            T=self.targets,
            start=self.start,
            owner=owner,
            part=1.0 / np.bincount(owner)[owner],
            yy=gram.yy - np.diff(squares[self.start]),
            w=np.where(shift == 0.0, ridge, (ridge - shift) * (1.0 - STEP_SHARE)),
            shift=shift,
            scaled=(shift == 0.0) & multiples,
            extracted=extracted,
        )

    def open_leaves(
        self,
        leaves: Leaves,
        problem: SparseRidgeProblem,
        most: int,
        limits: Limits,
        upper: Array,
        asked: NDArray[np.bool_],
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The leaves of a search on all rows that may hold a better support of a problem.

        leaves: Of a search at the γ and τ of ``problem``.
        problem: The problem on all rows.
        most: A problem with more open leaves than this has none in the result.
        limits: Where one is reached, no problem has leaves in the result.
        upper, shape (k,): Objectives of the problems' incumbents.
        asked, shape (k,): Whether a problem is bounded.
        Returns: Increasing numbers m·problem + leaf for the open ones of m leaves; and for every
            problem whether all its open leaves are among these.
        """
        target = upper * (1.0 - BOUND_SHARE)
        # The leaves' coefficients belong to a relaxation with a diagonal D. One number stands for D
        # here, and the bound holds for any number.
        extracted = float(np.median(self.gram.D))
        dp = self.problems(problem.gamma / 2.0, -self.least, extracted, multiples=True)
        # A count of most + 1 marks a problem whose leaves stay unknown.
        left, found = np.where(asked, 0, most + 1), [np.zeros(0, dtype=np.intp)]
        p = self.gram.b.size
        # Problems with too many open leaves are given up early: leaves of low bounds come first.
        order, none = np.argsort(leaves.bound, kind="stable"), np.empty((0, p))
        # A block takes some milliseconds between two looks at the clock.
        block = max(1, 4_000_000 // (self.count * p))
        for first in range(0, order.size, block):
            if limits.reached(0) is not None:
                left[:] = most + 1
                break
            at = order[first : first + block]
            bounds = np.empty((at.size, self.count))
            nodes = leaves.some(at)
            bound_nodes(dp, nodes, problem.tau, target, most, left, bounds, none)
            which, problems = np.nonzero(~(bounds >= target))
            found.append(order.size * problems + at[which])
        pairs, known = np.sort(np.concatenate(found)), left <= most
        return pairs[known[pairs // leaves.size]], known

    def centres(
        self, relaxation: Relaxation, ridge: float, tau: int, shift: Array
    ) -> tuple[Array, Array]:
        """Coefficients near the optimum of every problem's relaxation, and bounds there.

        relaxation: The solved relaxation on all rows and columns, at any of the shifts: its
            coefficients only decide how large the bounds are, and not whether they hold.
        ridge: γ/2.
        shift, shape (k,): ε/2 of the first paper's eq. (5), a multiple of I that is added to the
            problem's G and taken off the perspective; no multiple is below −:attr:`least`.
        Returns: β in the columns of ``gram``, shape (k, p), and bounds, shape (k,), with
            objective(β') ≥ bound + (β' − β)ᵀ(G_j + shift_j I)(β' − β) for every β' of at most τ
            units.
        """
        p, k = self.gram.b.size, self.count
        # A multiple of a residual would raise the bounds, but would not belong to β.
        dp = self.problems(ridge, shift, -float(np.median(shift)), multiples=False)
        # Without a target every problem gets coefficients moved to its own optimum.
        root = self.root(float(np.sqrt(relaxation.multiplier)))
        nodes = root._replace(beta=np.ascontiguousarray(self.turned(relaxation.beta[None])))
        beta, bound, never = np.empty((k, p)), np.empty((1, k)), np.full(k, np.inf)
        bound_nodes(dp, nodes, tau, never, 1, np.zeros(k, dtype=np.intp), bound, beta)
        return beta, bound[0]

    def prediction_ranges(
        self,
        relaxation: Relaxation,
        ridge: float,
        tau: int,
        H: Array,
        upper: Array,
        *,
        extract: bool,
    ) -> Iterator[tuple[Array, Array, NDArray[np.bool_]]]:
        """Yield ranges of the prediction of row H[j] in problem j, by Theorem 2 of the first paper.

        The theorem puts problem j's optimal coefficients into an ellipsoid around coefficients that
        follow from the relaxation of all rows by deleting a row. Every problem has to lack one row.
        Each shift, ε/2, gives another ellipsoid, and so other ranges.

        relaxation, ridge, tau: As of :meth:`centres`.
        H, shape (k, p): In the columns of ``gram``.
        upper, shape (k,): Objectives of the problems' incumbents; it is read for every shift.
        extract: Whether a share of the least eigenvalue of XᵀX is moved into the perspective
            (ε < 0).
        Yields: Low and high ends, shape (k,), and whether the incumbents are proved.
        """
        shares = EIGENVALUE_SHARES if extract else (0.0,)
        if extract and not self.least.any():
            return
        # A single shift for all problems, the least that any problem allows, needs one pass over
        # the rows. Where XᵀX is or may be singular ε = 0 bounds nothing, and ε > 0 does.
        shifts = [-share * float(self.least.min()) for share in shares]
        if not extract and (self.n <= relaxation.beta.size or self.eigen[0][0] <= 0.0):
            shifts = [share * ridge for share in GAMMA_SHARES]
        every, reserve = np.arange(self.count), 1.0 + BOUND_SHARE
        for shift in shifts:
            beta, bound = self.centres(relaxation, ridge, tau, np.full(self.count, shift))
            gap = np.maximum(upper - bound, 0.0) * reserve
            square = (gap + WIDENED_SHARE_OF_YY * self.gram.yy) * self.spreads(H, shift, every)
            radius, predicted = np.sqrt(square) * reserve, np.einsum("ij,ij->i", H, beta)
            width = radius + WIDENED_SHARE_OF_CENTRE * np.abs(predicted)
            finite = np.isfinite(radius)
            low = np.where(finite, predicted - width, -np.inf)
            high = np.where(finite, predicted + width, np.inf)
            yield low, high, bound >= upper * (1.0 - BOUND_SHARE)

    def spreads(self, H: Array, shift: float, of: NDArray[np.intp]) -> Array:
        """Upper bounds on xᵀ(G_j + shift·I)⁻¹x for row x = H[i] and problem j = of[i].

        The root of such a number times the radius of an ellipsoid around some coefficients is how
        far the predictions xᵀβ of all β in the ellipsoid reach: it gives a fold's interval.
        Every problem has to lack one row.

        By the Sherman–Morrison formula, with d the one row that the problem lacks and M the matrix
        with d, the value is xᵀM⁻¹x + (xᵀM⁻¹d)²/(1 − dᵀM⁻¹d).

        H, shape (r, p), in the columns of ``gram``; of, shape (r,).
        Returns, shape (r,): ∞ where 1 − dᵀM⁻¹d is too small.
        """
        values, vectors = self.eigen
        scale = values + shift
        if scale.min() <= 0.0:
            return np.full(of.size, np.inf)
        row, inner = self._turned[self.start[:-1][of]], H @ vectors
        hh = np.sum(inner * inner / scale, axis=1)
        hd = np.sum(inner * row / scale, axis=1)
        left = 1.0 - np.sum(row * row / scale, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A row with less leverage left than this nearly alone determines some direction.
            grown = np.where(left > 1e-6, hh + hd * hd / left, np.inf)
        lost = DIFFERENCE_SHARE * np.sum(H * H, axis=1) / float(scale.min())
        return np.asarray(grown * (1.0 + 1e-7) + lost)
