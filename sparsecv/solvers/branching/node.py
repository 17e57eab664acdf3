"""Compiled steps at one node of the tree over included and excluded columns.

A node is a set of columns that are in every support below the node, a set of columns that are in
none, and free columns. This module rounds a node's relaxation to a support, decides free columns by
the node's bound, and enumerates the supports below a node. ``driver`` takes up nodes and branches.

Where columns are in groups or have bounds, *column* means a unit of columns: a group, which enters
a model as a whole, or a single column. Once every free unit is a single column without bounds, and
no included one has bounds, a node is one of columns: included groups are so many included columns.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, OUT
from ..core.rounding import SUM_SHARE
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.completion import Completion, PartialSupport, complete, order_by_share
from ..kernels.linalg import Array, Ints, add
from ..relaxation.descent import measure, share_of
from ..relaxation.dual_bound import (
    BoundTerms,
    fix_columns,
    gram_bound,
    gram_gradient,
    list_allowed,
    raised,
)
from ..relaxation.relaxer import RelaxationWork
from ..supports.members import Swaps, Units
from ..supports.swaps import swap_search

# What the steps at a node say of the node: it holds nothing better than the incumbent; it is to be
# branched on; it is handed to the caller as it is.
CLOSED, OPEN, KEPT = 0, 1, 2
# What a unit is: a column without bounds, a group without bounds, or a unit with a bound.
COLUMN, GROUP, BOUNDED = 0, 1, 2
NOW = np.dtype(
    [
        ("upper", "f8"),  # objective of the incumbent
        ("least", "f8"),  # least objective that an enumeration computed, by its own rounded sums
        ("pruned", "f8"),  # least bound that pruned a node or decided a column
        # The relative gap at which a node is pruned. Below 0 nodes are searched until their bounds
        # exceed the incumbent's objective by that share.
        ("tolerance", "f8"),
        ("ridge", "f8"),  # γ/2
        # Swaps from the support ``found`` end after so many; −1: no support waits to be entered.
        ("entering", "i8"),
        ("work", "f8"),  # supports that could have been enumerated in the time of all relaxations
        ("spent", "f8"),  # supports of large nodes that were enumerated
        # The current node has these numbers of columns that are included, that are free, and that
        # are still to be chosen.
        ("n_included", "i8"),
        ("n_free", "i8"),
        ("to_choose", "i8"),
        ("nodes", "i8"),  # nodes whose bound was computed
        ("branched", "i8"),  # nodes that were branched on
        # Coordinate descent ends where the relaxation's value exceeds the bound by at most this
        # share of (target − bound).
        ("open_share", "f8"),
        ("rough_left", "i8"),  # nodes still to be relaxed roughly, before strong branching begins
        ("n_swept", "i8"),  # nodes on which coordinate descent was tried before Newton steps
        ("n_sufficed", "i8"),  # nodes that needed no Newton steps after coordinate descent
        ("only_relax", "i8"),  # 1: nodes are neither branched on nor enumerated, but kept if open
        # 1: closed nodes are kept, and no node is enumerated or screened, so that the nodes kept
        # and the nodes waiting hold every support together
        ("keep_closed", "i8"),
        ("enumerates", "i8"),  # 1: rounding allows that nodes of columns are enumerated
    ]
)


@by_reference()
class SearchState(NamedTuple):
    """A problem, its incumbent, what branching has learnt, and work space: m units of p columns.

    ``capacity`` is the largest number of columns of a support.
    """

    G: Array  # (p, p) XᵀX
    terms: BoundTerms
    alone: BoundTerms  # the same terms, of columns that are units of their own without bounds
    support: NDArray[np.int64]  # (τ,) the incumbent
    now: NDArray[np.void]  # (1,) of NOW
    relaxation: RelaxationWork  # its quadratic part is Q = G − D
    g: Annotated[Array, "p"]  # b − Qβ of a node that is branched on
    share: Annotated[Array, "m"]  # z of the free columns of a node that is branched on
    gain: Annotated[Array, "m"]  # sum of raises by excluding a column, each divided by its z
    trials: Annotated[Ints, "m"]  # how many raises were added up
    relaxed: Annotated[NDArray[np.int8], "m"]  # 1 for a column whose exclusion was relaxed here
    columns: Annotated[Ints, "m"]  # free columns
    kind: NDArray[np.int8]  # (m,) COLUMN, GROUP or BOUNDED
    decided: Annotated[NDArray[np.int8], "1 p"]  # the node's decisions, of single columns
    chosen: Annotated[Ints, "tau"]  # included columns
    inside: Annotated[Ints, "capacity+1"]  # the single columns of these
    listed: Annotated[Ints, "m"]  # the single columns that are free
    work: Completion
    found: Annotated[Ints, "tau+1"]  # a support to enter
    tried: NDArray[np.int64]  # (τ,) the support that was rounded last
    units: Units  # the units of columns, for swaps
    swaps: Swaps  # a support and its arrays


@kernel(inner=True)
def combinations(n, k, most):
    """C(n, k), or some number above ``most`` where C(n, k) is above ``most``.

    Callers only ask whether there are more than ``most``, and C(n, k) itself may overflow.
    """
    k = min(k, n - k)
    total = 1.0
    for a in range(k):
        total = total * (n - a) / (a + 1)
        if total > most:
            return total
    return total


@kernel(inner=True)
def enter(st, most):
    """Improve the support ``st.found`` by at most ``most`` swaps; a better one is the incumbent.

    On entry the first τ of ``st.found`` are distinct units. The kernel writes ``st.units`` and
    ``st.swaps``.

    Returns: The objective of the support after the swaps.
    """
    now, tau = st.now[0], st.support.shape[0]
    for a in range(tau):
        st.units.of[a].member = st.found[a]
    gain = swap_search(st.swaps, st.units, now.ridge, tau, most)
    value = st.terms.yy - gain
    if value < now.upper:
        now.upper = value
        for a in range(tau):
            st.support[a] = st.units.of[a].member
    return value


@kernel(inner=True)
def fill_up(chosen, m, tau):
    """Fill the m chosen columns up to τ columns, with the first columns not chosen yet.

    The state has no columns but those that may be chosen, and at least τ of them.
    """
    i = 0
    while m < tau:
        taken = False
        for e in range(m):
            taken = taken or chosen[e] == i
        if not taken:
            chosen[m] = i
            m += 1
        i += 1


@kernel(inner=True)
def enter_node(st, m):
    """Enter the m chosen columns, filled up to τ columns, as they are; return the objective.

    More columns never raise the objective, so that the filled support is at least as good.
    """
    tau = st.support.shape[0]
    fill_up(st.chosen, m, tau)
    for a in range(tau):
        st.found[a] = st.chosen[a]
    return enter(st, 0)


@kernel(inner=True)
def sort_free_columns(st, node):
    """Write z_i = min(1, |β_i|√(w_i/λ)) of free columns, and sort ``st.columns`` by falling |β|√w.

    On entry β and √λ are those of the node's relaxation, and ``st.columns`` lists the free columns.
    A unit has √(Σ w_jβ_j²) in place of |β|√w, and z that its bounds need if that is more.
    """
    n, terms, size, sorted_sizes = (
        st.now[0].n_free,
        st.terms,
        st.relaxation.size,
        st.relaxation.scratch,
    )
    measure(terms, st.columns, n, node.beta[0], size)
    for f in range(n):
        i = st.columns[f]
        sorted_sizes[f], st.share[i] = size[i], 0.0
        if size[i] > 0.0:
            st.share[i] = share_of(terms.units, i, size, node.lam[0])
    order_by_share(st.columns, sorted_sizes, n)


@kernel(inner=True)
def try_rounding(st):
    """Round the relaxation to the support of the included columns and the first free columns.

    On entry the free columns are sorted by :func:`sort_free_columns`. A support at most 1.02 times
    as bad as the incumbent is improved by up to 20 swaps. Both numbers are choices.
    """
    m, tau, new = st.now[0].n_included, st.support.shape[0], False
    for a in range(tau):
        i = st.chosen[a] if a < m else st.columns[a - m]
        new = new or st.tried[a] != i
        st.chosen[a] = st.tried[a] = i
    if new and enter_node(st, tau) <= st.now[0].upper * 1.02:
        enter(st, 20)


@kernel(inner=True)
def bound_here(st, node, k):
    """Certified bound at the node's β; the largest g²/w are left in ``top`` of the relaxation.

    On entry ``st.relaxation.g`` is b − Qβ, computed from β in one go. k: Columns still to choose.
    """
    count = list_allowed(node.state[0], st.relaxation.columns)
    return gram_bound(st.terms, node, st.relaxation, count, k)


@kernel(inner=True)
def of_columns(st, node):
    """Whether a node is one of columns; if so, its decisions of columns go to ``st.decided``.

    On entry some units have several columns (``units.single`` is 0).
    """
    units, state = st.terms.units, node.state[0]
    for u in range(state.shape[0]):
        free_group = st.kind[u] == GROUP and state[u] == FREE
        if free_group or (st.kind[u] == BOUNDED and state[u] != OUT):
            return False
    for u in range(state.shape[0]):
        for j in range(units.first[u], units.first[u + 1]):
            st.decided[0, j] = state[u]
    return True


@kernel(inner=True)
def list_columns(st, m, n):
    """Write the columns of the m chosen units and of the n free ones to ``inside``, ``listed``.

    Returns: How many columns the chosen units have.
    """
    units, count = st.terms.units, 0
    for a in range(m):
        u = st.chosen[a]
        first = u if units.single else units.first[u]
        last = u + 1 if units.single else units.first[u + 1]
        for j in range(first, last):
            st.inside[count] = j
            count += 1
    for f in range(n):
        u = st.columns[f]
        st.listed[f] = u if units.single else units.first[u]
    return count


@kernel(inner=True)
def share_out(st, node, k, n):
    """Order the free columns by their shares s²g_i²/w_i of the dual bound at the node's β.

    With the k largest shares replaced by the shares of any k columns, the bound holds for supports
    with these columns (EC.1, first paper, for k columns at once). Adding up at most 2k + 1 numbers
    loses at most 2k + 1 roundings of the sum (Higham 2002, eq. 4.4); ``SUM_SHARE`` is taken off.

    k, n: Numbers of columns still to choose and of free columns.
    Returns: The sum of shares up to which that bound is at least the incumbent's objective.
    """
    now, terms, top, share = st.now[0], st.terms, st.relaxation.top, st.work.free.share
    bound, total, g = bound_here(st, node, k), 0.0, st.relaxation.g
    for c in range(k):
        total += top[c]
    list_columns(st, 0, n)
    for f in range(n):
        i = st.listed[f]
        share[f] = top[k + 1] * raised(g[i], terms.length[i], terms.w[i], top[k + 2])
    order_by_share(st.columns, share, n)
    return bound + total - now.upper - SUM_SHARE * (abs(bound) + total + now.upper)


@kernel(inner=True)
def enumerate_node(st, node, m, k, n):
    """Make the best support of the m included and k of the n free columns the incumbent, if better.

    All choices of k free columns are looked at but those whose dual bound is at least the
    incumbent's objective. On entry ``st.chosen[:m]`` and ``st.columns[:n]`` list the included and
    the free columns of the node, and no unit has several columns. For k > 1 ``node.beta`` and the
    gradient ``st.relaxation.g`` are those of the node's relaxation. The kernel reorders
    ``st.columns``, and changes ``st.chosen``, ``st.work`` and the incumbent.
    """
    now = st.now[0]
    before = st.terms.yy - now.upper
    least = share_out(st, node, k, n) if k > 1 else -np.inf
    which = PartialSupport(st.inside, list_columns(st, m, n), st.listed, n, k)
    gain = complete(st.G, st.terms.b, now.ridge, which, before, least, st.work)
    if gain > before:
        now.least = min(now.least, st.terms.yy - gain)
        for a in range(k):
            st.chosen[m + a] = st.columns[st.work.free.found[a]]
        # A fresh factorisation of the support loses fewer digits than the enumeration's sums.
        enter_node(st, m + k)


@kernel(inner=True)
def exclude(st, node, i):
    """Exclude unit i from a node, the one row of ``node``: its coefficients become 0.

    On entry ``st.relaxation.g`` is b − Qβ at the node's β, and so it is afterwards. The next
    relaxation of the node starts there.
    """
    units, Q, beta, g = st.terms.units, st.relaxation.form.Q, node.beta[0], st.relaxation.g
    node.state[0, i] = OUT
    first = i if units.single else units.first[i]
    last = i + 1 if units.single else units.first[i + 1]
    for j in range(first, last):
        if beta[j] != 0.0:
            add(g, Q[j], beta[j], g.shape[0])
            beta[j] = 0.0


@kernel(inner=True)
def clear_excluded(st, node):
    """Set the coefficients of the node's excluded columns to 0, and compute b − Qβ anew."""
    state, beta, units = node.state[0], node.beta[0], st.terms.units
    for i in range(state.shape[0]):
        if state[i] == OUT and units.single:
            beta[i] = 0.0
        elif state[i] == OUT:
            for j in range(units.first[i], units.first[i + 1]):
                beta[j] = 0.0
    gram_gradient(st.relaxation.form.Q, st.terms.b, beta, st.relaxation.g)


@kernel(inner=True)
def screen_node(st, node, bound, target, k):
    """Include or exclude free columns whose other decision has a bound of at least ``target``.

    bound: What :func:`bound_here` has returned for the node's present β, whose g and largest worths
        are read. ``node.bound`` may come from other coefficients, and does not serve.
    k: Columns still to choose. Returns: How many were decided.
    """
    now = st.now[0]
    fixed, least = fix_columns(st.terms, node, st.relaxation, k, bound, target, including=True)
    now.pruned = min(now.pruned, least)
    if fixed > 0:
        clear_excluded(st, node)
    return fixed


@kernel(inner=True)
def decide_all(node, value):
    """Include or exclude every free column, where the number of columns leaves no other choice."""
    state = node.state[0]
    for i in range(state.shape[0]):
        if state[i] == FREE:
            state[i] = value


@kernel(inner=True)
def enumerable(st, node):
    """Whether the supports below a node may be enumerated.

    They may if all units are single columns; otherwise if rounding allows Gram fits of the data
    (``now.enumerates``), and all units that are not excluded at the node are single columns.
    """
    return st.terms.units.single or (st.now[0].enumerates > 0 and of_columns(st, node))


@kernel(inner=True)
def small_enough(st, node, n, k, solved):
    """Whether all choices of k of a node's n free columns are to be enumerated; if so, counts them.

    They are if enumeration takes the time of at most 4 nodes, or of 0.05 nodes where the node's
    relaxation is not ``solved``. One node counts as the time of at least 8,000 supports. A larger
    node, of up to 200,000 supports, is enumerated as long as such nodes have taken no more work
    than all relaxations and besides 30p² or 300,000 supports, whichever is less, because the tree
    below the node might take longer still. With k = 2, enumeration takes about the time of one
    relaxation. The numbers were chosen by measured time on benchmarks.
    """
    if k == 0 or not enumerable(st, node):
        return k == 0
    if k == 1:
        return True
    products = st.work.free.C
    if k > products.shape[0] + 1 or n > products.shape[1]:
        return False
    now, budget, p = st.now[0], 0.0, node.state.shape[1]
    few = max(8e3, now.work / max(now.nodes, 1)) * (4.0 if solved else 0.05)
    if solved:
        budget = now.work + min(3e5, 30.0 * p * p) - now.spent
    count = combinations(n, k, max(few, budget))
    if count <= few or (k == 2 and solved):
        return True
    if count > min(budget, 2e5):
        return False
    now.spent += count
    return True


@kernel(inner=True)
def count_node(st, node):
    """List the included and the free columns, and write how many there are of each.

    The included columns go to ``st.chosen``, no more than fit there, and the free columns to
    ``st.columns``: what enumeration and rounding of the node choose from.
    """
    m, n, state = 0, 0, node.state[0]
    for i in range(state.shape[0]):
        if state[i] == IN:
            if m < st.chosen.shape[0]:
                st.chosen[m] = i
            m += 1
        elif state[i] == FREE:
            st.columns[n] = i
            n += 1
    now = st.now[0]
    now.n_included, now.n_free, now.to_choose = m, n, st.support.shape[0] - m
