"""The dual bound less all that rounding can lose: relaxations, trees and screening rules ask it.

With weights w_i = γ/2 + d_i and Q = XᵀX − D ⪰ 0 every β of a node (included columns I, free
columns F, k of them still to choose) has, for ANY coefficients β̂ and g = Xᵀy − Qβ̂,

    objective(β) ≥ yᵀy − β̂ᵀQβ̂ − Σ_I g_i²/w_i − (sum of the k largest g_i²/w_i over F):

convexity of βᵀQβ, then one minimisation per column. Where D = 0 the residual v = y − Xβ̂ may be
replaced by any multiple of it; with A = vᵀy and B = vᵀv + the sums, the best multiple s = A/B gives
A²/B, and any s > 0 gives 2sA − s²B. (With D there are no such multiples: Xᵀy need not lie in the
range of Q.)

**What rounding can lose.** Write ℓ_i = √(x_iᵀx_i + γ/2), ℓ_y = |y| and reach = ℓ_y + Σ ℓ_i|β̂_i|.

*Gram form.* The matrices at hand are off: G_ij by at most η ℓ_iℓ_j, (Xᵀy)_i by η ℓ_iℓ_y, yᵀy by
η ℓ_y². For sums of n products η ≤ nu/(1 − nu), u = 2⁻⁵³; the diagonal of Q adds rounding of the
order of u ℓ_i², as 0 ≤ w_i ≤ ℓ_i² whenever −γ/2 ≤ d_i ≤ G_ii. A g formed from β̂ in one go adds
(m + 2)u to η, m the number of coefficients, so that with ε ≥ 4(η + (m + 8)u)

    |g_i − its exact value| ≤ ε ℓ_i · reach,
    |yᵀy − β̂ᵀQβ̂ − its exact value| ≤ ε reach²,  and so for A and for B without its sums.

Every |g_i| is therefore raised by ε ℓ_i · reach before it is squared, which bounds every sum of
squares from above column by column, and ε reach² is taken off yᵀy − β̂ᵀQβ̂ and off A, and added to
B. Adding up the squares costs ε times their sum once more. Nothing divides by a difference that is
not bounded away from 0: B plus its error is at least its exact value.

*Residual form* (D = 0). ANY vector v is a dual point, the computed residual as well, so that only
its products can be off: |x_iᵀv − its exact value| ≤ ε ℓ_i |v|, vᵀy by ε |v|ℓ_y, vᵀv + the sums by ε
times itself. These are relative to |v|, not to reach: this form keeps its digits where y is almost
in the span of the columns or the columns are nearly dependent. A multiple eI in Q is one more row
√e per column, with the residual −√e β̂.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array, add

FREE, IN, OUT = 0, 1, 2  # states of a column at a node: free, included, excluded
EXTRA = 3  # entries of ``top`` beside the picks: the next largest, s², and the raise of |g|/ℓ


class BoundTerms(NamedTuple):
    """What bounds ask of a problem at one γ.

    w, shape (p,): γ/2 + d_i > 0 as it is stored; the D that is meant is w − γ/2, and G − D ⪰ 0 must
        hold for the exact G.
    length, shape (p,): ℓ_i = √(G_ii + γ/2), of the data G was formed from (before rows were
        subtracted).
    b, yy, shape (p,), and float: Xᵀy and yᵀy.
    reach_y: ℓ_y = |y|, of the data b was formed from.
    eps: From :func:`relative_rounding`: of rows of the data, columns, and what else G is off by; in
        residual form with the length of the residual.
    """

    w: Array
    length: Array
    b: Array
    yy: float
    reach_y: float
    eps: float


def relative_rounding(terms: int, columns: int, data: float = 0.0) -> float:
    """ε of this module's first lines.

    terms: Rows of the data the Gram matrix was formed from, or the length of the residual.
    columns: Most coefficients a gradient is formed from.
    data: What the matrices are off by besides, in units of ℓ_iℓ_j.

    Examples
    --------
    >>> relative_rounding(100, 10) < 1e-13
    True
    """
    return 2.0 * (terms + columns + 16) * EPS + 4.0 * data


def weights(ridge: float, D: Array) -> Array:
    """w = γ/2 + D, rounded down where D is not 0: what w − γ/2 takes off G is never above D.

    ridge: γ/2.
    D, shape (p,).
    Returns, shape (p,).
    """
    return np.asarray(np.where(D == 0.0, ridge, (ridge + D) * (1.0 - 2.0 * EPS)))


def first_multiplier(b: Array, w: Array, picks: int) -> float:
    """√λ to start a relaxation at from β = 0: half of the ``picks``-th largest |b_i|/√w_i.

    A column enters where |b_i| > √(λw_i), so that at least ``picks`` columns enter at once.
    """
    share = np.sort(b * b / w)[::-1]
    return 0.5 * float(np.sqrt(share[min(picks, share.size) - 1]))


@kernel(inner=True)
def list_allowed(state, columns):  # type: ignore[no-untyped-def]
    """List the columns that are not out; how many."""
    count = 0
    for i in range(state.shape[0]):
        if state[i] != 2:
            columns[count] = i
            count += 1
    return count


@kernel
def gram_gradient(Q, b, beta, g):  # type: ignore[no-untyped-def]
    """g = b − Qβ in one go, as :func:`gram_bound` wants it."""
    p = b.shape[0]
    for j in range(p):
        g[j] = b[j]
    for i in range(p):
        if beta[i] != 0.0:
            add(g, Q[i], -beta[i], p)


@kernel(inner=True)
def raised(g, length, w, raise_by):  # type: ignore[no-untyped-def]
    """g²/w from above: |g| may be off by ``raise_by``·length."""
    size = abs(g) + raise_by * length
    return size * size / w


@kernel(inner=True)
def sum_largest(w, length, state, columns, count, picks, g, raise_by, top):  # type: ignore[no-untyped-def]
    """Σ over included columns and the ``picks`` largest over free ones of g²/w, from above.

    ``top[:picks + 1]`` are the picks + 1 largest over free columns, in order.
    """
    total = 0.0
    for c in range(picks + 1):
        top[c] = 0.0
    for a in range(count):
        i = columns[a]
        value = raised(g[i], length[i], w[i], raise_by)
        if state[i] == 1:
            total += value
        elif value > top[picks]:
            c = picks
            while c > 0 and top[c - 1] < value:
                top[c] = top[c - 1]
                c -= 1
            top[c] = value
        elif not value >= 0.0:
            return np.inf  # not a number: no bound
    for c in range(picks):
        total += top[c]
    return total


@kernel(inner=True)
def best_multiple(plain, above, below):  # type: ignore[no-untyped-def]
    """The larger of ``plain`` and A²/B, and the square of the multiple s that gives it.

    ``above`` bounds A from below and ``below`` bounds B from above: 2sA − s²B grows with A and
    falls with B at every s > 0, so it holds for the s of the two bounds.
    """
    bound, square = plain, 1.0
    if above > 0.0 and below > 0.0:
        scale = above / below
        if scale < np.inf and scale * above * (1.0 - 4.0 * EPS) > plain:
            bound, square = scale * above * (1.0 - 4.0 * EPS), scale * scale
    return bound, square


@kernel(inner=True)
def settle_top(bound, square, picks, raise_by, top):  # type: ignore[no-untyped-def]
    """Leave in ``top`` what screening asks for; −∞ in place of a bound that is not a number."""
    for c in range(picks + 1):
        top[c] *= square
    top[picks + 1], top[picks + 2] = square, raise_by
    return bound if bound > -np.inf else -np.inf


@kernel(inner=True)
def bound_of_parts(yy, linear, quadratic, total, lost, scaled):  # type: ignore[no-untyped-def]
    """The bound yᵀy − βᵀQβ − total − lost, or with D = 0 the best multiple's; and s².

    linear, quadratic: bᵀβ and βᵀQβ, off by ``lost`` together with yᵀy.
    total: The sums of g²/w, from above.
    """
    bound, square = yy - quadratic - total - lost, 1.0
    if scaled:
        above = yy - linear
        below = above - linear + quadratic + total + lost
        bound, square = best_multiple(bound, above - lost, below)
    return bound, square


@kernel(inner=True)
def gram_bound(terms, state, columns, count, picks, beta, g, scaled, top):  # type: ignore[no-untyped-def]
    """Certified lower bound at a node, Gram form; no allocation, O(count + picks·entries).

    state, int8 (p,): 0 free, 1 included, 2 out.
    columns, count, int64 (≥ count,), int: ``columns[:count]`` are all columns that are not out.
    picks: Free columns still to choose, ≥ 0.
    beta, float64 (p,): Any coefficients; 0 on columns that are out.
    g, float64 (p,): b − Qβ̂ formed from β̂ in one go: at most one product and sum per coefficient
        and column.
    scaled: D = 0: multiples of the residual are allowed.
    top, float64 (≥ picks + 3,): Overwritten: the picks + 1 largest s²g²/w over free columns
        (raised), s², and what |g|/ℓ was raised by: what :func:`fix_columns` asks.
    Returns: Less all that rounding can lose; −∞ where nothing can be said.
    """
    w, length, b, yy, reach, eps = terms
    linear, quadratic = 0.0, 0.0
    for a in range(count):
        i = columns[a]
        if beta[i] != 0.0:
            reach += length[i] * abs(beta[i])
            linear += beta[i] * b[i]
            quadratic += beta[i] * (b[i] - g[i])
    raise_by = eps * reach
    total = sum_largest(w, length, state, columns, count, picks, g, raise_by, top)
    total *= 1.0 + eps
    lost = raise_by * reach
    bound, square = bound_of_parts(yy, linear, quadratic, total, lost, scaled)
    return settle_top(bound, square, picks, raise_by, top)


@kernel(inner=True)
def residual_bound(terms, y, r, extra, state, columns, count, picks, beta, g, top):  # type: ignore[no-untyped-def]
    """Certified lower bound at a node, residual form with D = 0; no allocation.

    y, r, float64 (n,): Response and any vector in place of the residual.
    extra: e ≥ 0 of Q = XᵀX + eI.
    beta, float64 (p,): Used where e > 0.
    g, float64 (p,): Xᵀr − eβ̂.
    """
    w, length, eps = terms.w, terms.length, terms.eps
    above, square = residual_parts(y, r, extra, columns, count, beta, eps)
    raise_by = eps * np.sqrt(square)
    total = sum_largest(w, length, state, columns, count, picks, g, raise_by, top)
    bound, scale = residual_multiple(above, square, total, eps)
    return settle_top(bound, scale, picks, raise_by, top)


@kernel
def residual_parts(y, r, extra, columns, count, beta, eps):  # type: ignore[no-untyped-def]
    """A = vᵀy from below, and vᵀv as computed."""
    along, square, size = 0.0, 0.0, 0.0
    for t in range(r.shape[0]):
        along += r[t] * y[t]
        square += r[t] * r[t]
        size += y[t] * y[t]
    if extra > 0.0:
        for a in range(count):
            square += extra * beta[columns[a]] * beta[columns[a]]
    return along - eps * np.sqrt(square) * np.sqrt(size), square


@kernel
def residual_multiple(above, square, total, eps):  # type: ignore[no-untyped-def]
    """The bound from A, vᵀv and the sum of squares, and s²."""
    below = (square + total) * (1.0 + eps)
    plain = 2.0 * above - below - eps * (abs(above) + below)
    return best_multiple(plain, above, below)


@kernel
def fix_columns(terms, state, picks, g, bound, target, top, including):  # type: ignore[no-untyped-def]
    """Decide every free column whose other decision has a bound of at least ``target``.

    The bound Σ counts the ``picks`` largest values v_i = s²g_i²/w_i over free columns (EC.1 of the
    main paper, in the scaling of eq. 1). Where column i has to be in, v_i stands in place of the
    ``picks``-th largest value; where column i has to be out, the next largest value stands in place
    of v_i:

        bound + v_(picks) − v_i  for i in, if v_i < v_(picks);
        bound + v_i − v_(picks+1)  for i out, if v_i > v_(picks+1).

    state, int8 (p,): Overwritten: a column that cannot be in becomes 2, and where ``including``
        one that cannot be out becomes 1.
    g, bound, top: As :func:`gram_bound` or :func:`residual_bound` had or left them.
    Returns: How many columns were decided, and the least bound that decided one (∞ for none).
    """
    fixed, least = 0, np.inf
    last, following, square = top[picks - 1], top[picks], top[picks + 1]
    for i in range(state.shape[0]):
        if state[i] != 0:
            continue
        value = square * raised(g[i], terms.length[i], terms.w[i], top[picks + 2])
        if value < last and bound + last - value >= target:
            state[i], fixed, least = 2, fixed + 1, min(least, bound + last - value)
        elif including and value > following and bound + value - following >= target:
            state[i], fixed, least = 1, fixed + 1, min(least, bound + value - following)
    return fixed, least


def bound_terms(terms: BoundTerms, beta: Array, g: Array) -> tuple[Array, Array]:
    """The Gram form's two parts, for many coefficients at once: a bound is constant − Σ values.

    beta, g, shape (..., p): Coefficients and b − Qβ.
    Returns constant, shape (...): yᵀy − β̂ᵀQβ̂, from below.
    Returns values, shape (..., p): g_i²/w_i, from above; sums of them need no further margin.
    """
    w, length, b, yy, reach_y, eps = terms
    reach = reach_y + np.abs(beta) @ length
    size = np.abs(g) + np.multiply.outer(eps * reach, length)
    values = size * size / w * (1.0 + eps)
    constant = yy - np.einsum("...i,...i->...", beta, b - g) - eps * reach * reach
    return np.asarray(constant), np.asarray(values)
