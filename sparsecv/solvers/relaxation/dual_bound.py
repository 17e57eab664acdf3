"""The dual bound of a node's relaxation, less all that rounding can lose.

A node has included columns I, free columns F, and k free columns still to choose. With a diagonal
D, weights w_i = γ/2 + D_ii and Q = XᵀX − D ⪰ 0, every β of the node satisfies, for ANY coefficients
β̂ and g = Xᵀy − Qβ̂,

    ‖y − Xβ‖² + (γ/2)‖β‖² ≥ yᵀy − β̂ᵀQβ̂ − Σ_I g_i²/w_i − (sum of the k largest g_i²/w_i over F).

The proof uses that βᵀQβ is convex, and then minimises over each column by itself. Where D = 0 the
residual v = y − Xβ̂ may be replaced by any multiple sv, s > 0. With A = vᵀy, and B = vᵀv plus the
two sums, the bound is then 2sA − s²B, and A²/B at the best s = A/B. (Where D ≠ 0 this does not
hold, as Xᵀy need not lie in the range of Q.)

**What rounding can lose.** Write ℓ_i = √(x_iᵀx_i + γ/2), ℓ_y = |y| and reach = ℓ_y + Σ ℓ_i|β̂_i|.

*Gram form.* The given matrices are off: G_ij by at most η ℓ_iℓ_j, (Xᵀy)_i by η ℓ_iℓ_y, yᵀy by
η ℓ_y². For sums of n products η ≤ nu/(1 − nu), u = 2⁻⁵³ (Higham 2002, Section 3.1). The diagonal of
Q adds rounding of the order of u ℓ_i², as 0 ≤ w_i ≤ ℓ_i² whenever −γ/2 ≤ D_ii ≤ G_ii. A g that is
computed from β̂ in one go, m being the number of coefficients, adds (m + 2)u to η, so that with
ε ≥ 4(η + (m + 8)u)

    |g_i − its exact value| ≤ ε ℓ_i · reach,
    |yᵀy − β̂ᵀQβ̂ − its exact value| ≤ ε reach²,

and the second also holds for A and for B without its sums. Every |g_i| is therefore raised by
ε ℓ_i · reach before it is squared, which bounds every sum of squares from above. ε reach² is
subtracted from yᵀy − β̂ᵀQβ̂ and from A, and added to B. Adding up the squares costs ε times their
sum. Nothing is divided by a difference that may be near 0: B plus its error is at least B.

*Residual form* (D = 0). The bound holds for ANY vector v, so also for the computed residual, and
only products with v are off: x_iᵀv by ε ℓ_i |v|, vᵀy by ε |v| ℓ_y, and B by ε B. These errors are
relative to |v| and not to reach, so that this form keeps its digits where y is almost in the span
of the columns, or columns are nearly dependent. A term eI in Q counts as one more row √e for each
column, with the residual −√e β̂.

*Units.* A unit is a group of columns that enter a model together and count once, or a single
column, and coefficients may have bounds low ≤ 0 ≤ high. A unit's worth c_u takes the place of
g_i²/w_i in every bound above:

    c_u = Σ_{j∈u} max {2g_jβ − w_jβ² : low_j ≤ β ≤ high_j},

which is g_j²/w_j for a single column without bounds. It is a convex function of every g_j, so that
the larger of both ends of |g_j| ± ε ℓ_j · reach is taken. A multiple of the residual gives a bound,
too, where D = 0 and every bound on a coefficient is 0 or infinite, as c_u is then a quadratic form.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, OUT
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array, add, allocated, most_worth


@by_reference()
class UnitTerms(NamedTuple):
    """The units of a relaxation: groups of columns sorted by unit, bounds, and work space.

    Where every unit is one column without bounds, ``single`` is true and no array is read.
    """

    single: bool
    first: NDArray[np.int64]  # (m+1,) columns of unit u are first[u] … first[u+1] − 1
    lower: Array  # (p,) bounds on the coefficients
    upper: Array  # (p,)
    spread: Array  # (p,) Σ |Q_jc| over the columns c of column j's unit
    least_share: Annotated[Array, "m"]  # the least z_u for which β_u is within z_u times its bounds
    theta: Annotated[Array, "p"]  # β_u/z_u of the unit that descent has come to
    rho: Annotated[Array, "p"]  # the slopes that its columns have at β_u = 0


def unit_terms(first: NDArray[np.int64], lower: Array, upper: Array, spread: Array) -> UnitTerms:
    """The units of grouped columns, or of columns with bounds; the arrays as in the record."""
    lengths = {"m": first.size - 1, "p": lower.size}
    arrays = {"first": first, "lower": lower, "upper": upper, "spread": spread}
    return allocated(UnitTerms, lengths, single=False, **arrays)


_NONE = np.zeros(0)
SINGLE_COLUMNS = UnitTerms(
    single=True,
    first=np.zeros(0, np.int64),
    lower=_NONE,
    upper=_NONE,
    spread=_NONE,
    least_share=_NONE,
    theta=_NONE,
    rho=_NONE,
)


@by_reference()
class QuadraticForm(NamedTuple):
    """The quadratic part Q of a relaxation: in Gram form Q itself, in residual form Q = XXᵀ + eI.

    In residual form the matrix Q is (0, 0); in Gram form everything else is empty.
    """

    Q: Array  # (p, p)
    X: Array  # (p, n), one row for each column of the data
    y: Array  # (n,)
    residual: Array  # (n,) y − Xᵀβ
    extra: float  # e
    diagonal: Array  # (p,) of Q


def gram_arrays(Q: Array) -> QuadraticForm:
    """A quadratic part in Gram form, for Q (p, p)."""
    none = np.zeros(0)
    return QuadraticForm(Q=Q, X=np.zeros((0, 0)), y=none, residual=none, extra=0.0, diagonal=none)


@by_reference()
class BoundTerms(NamedTuple):
    """What the dual bound needs to know of a problem at one γ.

    w: (p,), γ/2 + D_ii > 0 as stored; D means w − γ/2, and G − D ⪰ 0 must hold for the exact G.
    length: (p,), ℓ_i = √(G_ii + γ/2) of the data G was formed from, before rows were subtracted.
    b, yy: Xᵀy (p,) and yᵀy.
    reach_y: ℓ_y = |y| of the data b was formed from.
    eps: ε, from :func:`relative_rounding`.
    scaled: Whether D = 0, so that multiples of the residual give bounds. With bounds on
        coefficients each of these must be 0 or infinite, too.
    units: What the states and lists of a node count; by default the columns.
    """

    w: Array
    length: Array
    b: Array
    yy: float
    reach_y: float
    eps: float
    scaled: bool
    units: UnitTerms = SINGLE_COLUMNS


def relative_rounding(terms: int, columns: int, data: float = 0.0) -> float:
    """The ε = 4((n + m + 16)u + data) of this module's docstring, at least 4(η + (m + 8)u).

    terms: n, the rows of the data that G was formed from, or the length of the residual.
    columns: m, the largest number of coefficients that a gradient is computed from.
    data: What G and b are off by before they are formed, in units of ℓ_iℓ_j.
    """
    return 2.0 * (terms + columns + 16) * EPS + 4.0 * data


def weights(ridge: float, D: Array) -> Array:
    """w = γ/2 + D (p,) for ridge = γ/2, rounded down where D ≠ 0, so that w − γ/2 ≤ D.

    The sum is off by at most u = EPS/2 of itself, and the product by as much: 2·EPS is taken off.
    """
    return np.asarray(np.where(D == 0.0, ridge, (ridge + D) * (1.0 - 2.0 * EPS)))


def first_multiplier(b: Array, w: Array, k: int) -> float:
    """√λ to start a relaxation at from β = 0: half of the k-th largest |b_i|/√w_i.

    A column gets a coefficient where |b_i| > √(λw_i), and so at least k columns do.
    """
    share = np.sort(b * b / w)[::-1]
    return 0.5 * float(np.sqrt(share[min(k, share.size) - 1]))


@kernel(inner=True)
def list_allowed(state, columns):
    """Write the columns or units that are not excluded to ``columns`` (m,); returns their number.

    state: (m,), FREE, IN or OUT. Bounds and relaxations run over this list only.
    """
    count = 0
    for i in range(state.shape[0]):
        if state[i] != OUT:
            columns[count] = i
            count += 1
    return count


@kernel(inner=True)
def gram_gradient(Q, b, beta, g):
    """Write b − Qβ to ``g``, computed from β in one go as :func:`gram_bound` requires."""
    p = b.shape[0]
    for j in range(p):
        g[j] = b[j]
    for i in range(p):
        if beta[i] != 0.0:
            add(g, Q[i], -beta[i], p)


@kernel(inner=True)
def raised(g, length, w, raise_by):
    """An upper bound on g²/w where |g| may be off by ``raise_by``·length."""
    size = abs(g) + raise_by * length
    return size * size / w


@kernel(inner=True)
def insert(top, k, value):
    """Put a value in its place before entry k of ``top``, whose first k entries fall.

    The old entry k is lost: it is no larger than the value, or holds nothing yet.
    """
    while k > 0 and top[k - 1] < value:
        top[k] = top[k - 1]
        k -= 1
    top[k] = value


@kernel(inner=True)
def unit_worth(terms, i, g, raise_by):
    """An upper bound on the c_u of unit i, where every |g_j| may be off by raise_by·ℓ_j."""
    units, value = terms.units, 0.0
    for j in range(units.first[i], units.first[i + 1]):
        off = raise_by * terms.length[j]
        value += most_worth(g[j], off, terms.w[j], units.lower[j], units.upper[j])
    return value


@kernel(inline=True)
def worth(terms, i, g, raise_by):
    """An upper bound on what column i, or the columns of unit i, take off the dual bound at most.

    Every |g_j| may be off by raise_by·ℓ_j. A single column without bounds takes off g²/w.
    """
    if terms.units.single:
        return raised(g[i], terms.length[i], terms.w[i], raise_by)
    return unit_worth(terms, i, g, raise_by)


@kernel(inner=True)
def sum_largest(terms, state, columns, count, k, g, raise_by, top):
    """An upper bound on Σ worth over included columns and the ``k`` of most worth among free ones.

    ``top`` takes the k + 1 largest worths of free columns, falling, and 0 for each that is lacking.
    Each |g_i| may be off by raise_by·ℓ_i, which :func:`worth` adds to it. The sum is ∞ where the
    worth of a free column is not a number; then ``top`` is not finished.

    columns, count: The first ``count`` of ``columns`` are the columns that are not excluded.
    """
    total = 0.0
    for c in range(k + 1):
        top[c] = 0.0
    for a in range(count):
        i = columns[a]
        value = worth(terms, i, g, raise_by)
        if state[i] == IN:
            total += value
        elif value > top[k]:
            insert(top, k, value)
        elif not value >= 0.0:
            return np.inf
    for c in range(k):
        total += top[c]
    return total


@kernel(inner=True)
def best_multiple(plain, above, below):
    """The larger of two values of the bound 2sA − s²B, at s = 1 and at s = A/B, and the s² of it.

    plain: The value at s = 1. At s = A/B the value is A²/B.
    above, below: A lower bound on A, and an upper bound on B. The bound 2sA − s²B grows with A and
        falls with B for every s > 0, and so holds for the quotient of these two. 4·EPS is taken
        off for the rounding of a quotient and a product.
    """
    bound, square = plain, 1.0
    if above > 0.0 and below > 0.0:
        scale = above / below
        if scale < np.inf and scale * above * (1.0 - 4.0 * EPS) > plain:
            bound, square = scale * above * (1.0 - 4.0 * EPS), scale * scale
    return bound, square


@kernel(inner=True)
def fill_top(bound, square, k, raise_by, top):
    """Multiply the k + 1 worths in ``top`` by s², and write s² and ``raise_by`` behind them.

    square: s². Returns: The bound, or −∞ where the bound is NaN.
    """
    for c in range(k + 1):
        top[c] *= square
    top[k + 1], top[k + 2] = square, raise_by
    return bound if bound > -np.inf else -np.inf


@kernel(inner=True)
def bound_of_parts(yy, linear, quadratic, total, lost, scaled):
    """The bound yᵀy − βᵀQβ − total − lost, or A²/B if that is larger; and the s² of the larger.

    linear, quadratic, lost: bᵀβ, βᵀQβ, and what these and yᵀy are off by together.
    total: An upper bound on the sum of g²/w over included columns and the k largest of free ones.
    scaled: Whether D = 0, so that A²/B is a bound.
    """
    bound, square = yy - quadratic - total - lost, 1.0
    if scaled:
        above = yy - linear
        below = above - linear + quadratic + total + lost
        bound, square = best_multiple(bound, above - lost, below)
    return bound, square


@kernel(inner=True)
def products(terms, beta, g):
    """bᵀβ, βᵀQβ and reach = ℓ_y + Σ ℓ_i|β_i| at coefficients β with g = b − Qβ."""
    b, length, linear, quadratic, reach = terms.b, terms.length, 0.0, 0.0, terms.reach_y
    for i in range(beta.shape[0]):
        if beta[i] != 0.0:
            reach += length[i] * abs(beta[i])
            linear += beta[i] * b[i]
            quadratic += beta[i] * (b[i] - g[i])
    return linear, quadratic, reach


@kernel(inner=True)
def gram_bound(terms, node, work, count, k):
    """The dual bound of a node in Gram form, less all that rounding can lose; −∞ where NaN occurs.

    node: ``Leaves`` of one node; its coefficients are any that are 0 on excluded columns.
    work: A ``RelaxationWork``. On entry ``work.g`` is b − Qβ, computed from β in one go, with one
        product and one sum per coefficient, and the first ``count`` of ``work.columns`` are the
        columns that are not excluded. ``work.top`` (at least k + 3,) is overwritten for
        :func:`fix_columns` by s² times the k + 1 largest worths of free columns, s², and by how
        much |g_i|/ℓ_i was raised.
    k: Number of free columns still to choose, ≥ 0.
    """
    g, top = work.g, work.top
    linear, quadratic, reach = products(terms, node.beta[0], g)
    raise_by = terms.eps * reach
    lost = raise_by * reach
    total = sum_largest(terms, node.state[0], work.columns, count, k, g, raise_by, top)
    total *= 1.0 + terms.eps
    bound, square = bound_of_parts(terms.yy, linear, quadratic, total, lost, terms.scaled)
    return fill_top(bound, square, k, raise_by, top)


@kernel(inner=True)
def residual_bound(terms, node, work, count, k):
    """The dual bound of a node in residual form, where D = 0; otherwise as :func:`gram_bound`.

    ``work.form`` has any vector in place of the residual r, and e ≥ 0. On entry ``work.g`` is
    Xr − eβ.
    """
    y, r, extra, beta = work.form.y, work.form.residual, work.form.extra, node.beta[0]
    eps, along, square = terms.eps, 0.0, 0.0
    for t in range(r.shape[0]):
        along += r[t] * y[t]
        square += r[t] * r[t]
    if extra > 0.0:
        for a in range(count):
            square += extra * beta[work.columns[a]] * beta[work.columns[a]]
    raise_by = eps * np.sqrt(square)
    columns = work.columns
    total = sum_largest(terms, node.state[0], columns, count, k, work.g, raise_by, work.top)
    above = along - raise_by * terms.reach_y
    below = (square + total) * (1.0 + eps)
    plain = 2.0 * above - below - eps * (abs(above) + below)
    bound, scale = best_multiple(plain, above, below)
    return fill_top(bound, scale, k, raise_by, work.top)


@kernel(inner=True)
def fix_columns(terms, node, work, k, bound, target, including):
    """Exclude or include every free column for which the opposite has a bound ≥ ``target``.

    The dual bound subtracts the k largest values v_i of free columns, s² times the worth of each
    (EC.1, first paper, in the scaling of eq. 1). If column i is included, v_i takes the place of
    the k-th largest value; if column i is excluded, the next largest value takes the place of v_i:

        bound + v_(k) − v_i  with column i included, if v_i < v_(k);
        bound + v_i − v_(k+1)  with column i excluded, if v_i > v_(k+1).

    On entry ``work.g`` and ``work.top`` are those of ``bound``, which :func:`gram_bound` or
    :func:`residual_bound` has returned. In ``node.state`` columns become OUT where including them
    has such a bound, and IN, where ``including`` is true, if excluding them has.

    Returns: The number of columns decided, and the least of the bounds that did so (∞ for none).
    """
    fixed, least, state, top = 0, np.inf, node.state[0], work.top
    last, following, square = top[k - 1], top[k], top[k + 1]
    for i in range(state.shape[0]):
        if state[i] != FREE:
            continue
        value = square * worth(terms, i, work.g, top[k + 2])
        if value < last and bound + last - value >= target:
            state[i], fixed, least = OUT, fixed + 1, min(least, bound + last - value)
        elif including and value > following and bound + value - following >= target:
            state[i], fixed, least = IN, fixed + 1, min(least, bound + value - following)
    return fixed, least


def bound_terms(terms: BoundTerms, beta: Array, g: Array) -> tuple[Array, Array]:
    """The dual bound's parts for many coefficients at once: a bound is constant − Σ values.

    terms: Of single columns without bounds.
    beta, g: (..., p), coefficients and b − Qβ.
    Returns: A lower bound on yᵀy − βᵀQβ (...,), and upper bounds on g_i²/w_i (..., p), whose sums
        may be subtracted without a further margin.
    """
    w, length, b, yy, reach_y = terms.w, terms.length, terms.b, terms.yy, terms.reach_y
    eps = terms.eps
    reach = reach_y + np.abs(beta) @ length
    size = np.abs(g) + np.multiply.outer(eps * reach, length)
    values = size * size / w * (1.0 + eps)
    constant = yy - np.einsum("...i,...i->...", beta, b - g) - eps * reach * reach
    return np.asarray(constant), np.asarray(values)
