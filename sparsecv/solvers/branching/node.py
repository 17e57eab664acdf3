"""Compiled steps at one node of the tree over included and excluded columns.

A node's included and free columns, its incumbents by rounding, what its bound fixes, and its
completion by enumeration. The order of nodes and their branching are ``driver``'s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.completion import Completion, complete, order_by_share
from ..kernels.linalg import Array
from ..relaxation.dual_bound import (
    BoundTerms,
    fix_columns,
    gram_bound,
    gram_gradient,
    list_allowed,
    raised,
)
from ..supports.swaps import swap_search

# a step of a node's relaxation in supports enumerated at the same time: by itself, per operation
STEP, OPERATION = 400.0, 0.14
CHEAP, SMALL = 0.05, 4.0  # nodes: enumerated before any relaxation, enumerated after it
LEAST_NODE = 8e3  # supports a node is worth at least
FREE_WORK, AT_ONCE = 3e5, 2e5  # supports: what setting up a search takes, the largest node
ADDED_UP = 1e-13  # relative: what adding up a few shares may lose
NEAR = 1.02  # of the record: a rounded support this good is improved by swaps
FREE, IN, OUT = 0, 1, 2
# what becomes of nodes that are not pruned at once: branch; branch and keep the leaves; neither
# branch nor enumerate, keep what stays open
SEARCH, RECORD, SETTLE = 0, 1, 2

NOW = np.dtype(
    [
        ("upper", "f8"),  # objective of the record
        ("least", "f8"),  # objective that enumeration came upon
        ("slack", "f8"),  # least bound that pruned a node or fixed a column
        ("tolerance", "f8"),  # relative gap at which a node is pruned
        ("ridge", "f8"),
        ("scaled", "i8"),  # whether D = 0: the dual bound may scale the residual
        ("work", "f8"),  # of all relaxations, in supports
        ("spent", "f8"),  # supports of large nodes that were enumerated
        ("nodes", "i8"),  # whose bound was computed
        ("branched", "i8"),
        # of the gap to the target: what sweeps may leave between bound and value, Newton steps next
        ("undecided", "f8"),
        ("wide", "f8"),  # the same where too many columns are active for Newton steps
        ("quick", "i8"),  # nodes left to relax roughly: easy problems end with them
        ("swept", "i8"),  # nodes relaxed by coordinate descent,
        ("sufficed", "i8"),  # and those of them where that was enough
        ("mode", "i8"),  # SEARCH, RECORD or SETTLE
    ]
)


class SearchState(NamedTuple):
    """Problem, record, the node at hand and its work space."""

    G: Array
    Q: Array
    terms: BoundTerms  # w, length, b, yᵀy and what the dual bound asks besides
    root_w: Array
    support: NDArray[np.int64]  # (tau,) record
    now: NDArray[np.void]  # (1,) of NOW
    state: NDArray[np.int8]  # (p,) free, in or out
    beta: Array  # (p,)
    g: Array  # (p,) b − Qβ
    lam: Array  # (1,) √λ
    top: Array  # (tau + 3,) as gram_bound leaves it
    columns: NDArray[np.int64]  # (p,) free
    chosen: NDArray[np.int64]  # (tau,) included
    scratch: Array  # (p,)
    work: Completion
    found: NDArray[np.int64]  # (tau + 1,) a support to enter
    tried: NDArray[np.int64]  # (tau,) the support rounded last
    anywhere: NDArray[np.int8]  # (p,) ones: swaps may use any column


@kernel(inner=True)
def combinations(n, k, most):  # type: ignore[no-untyped-def]
    """C(n, k), or more than ``most`` once it passes that."""
    k = min(k, n - k)
    total = 1.0
    for a in range(k):
        total = total * (n - a) / (a + 1)
        if total > most:
            return total
    return total


@kernel
def enter(st, most):  # type: ignore[no-untyped-def]
    """Enter ``st.found`` after at most ``most`` swaps; returns its objective."""
    now, tau, work = st.now[0], st.support.shape[0], st.work
    here = (st.anywhere, work.L, st.scratch, work.V, work.c, work.d)
    gain = swap_search(st.G, st.terms.b, now.ridge, st.found, tau, *here, most)
    value = st.terms.yy - gain
    if value < now.upper:
        now.upper = value
        for a in range(tau):
            st.support[a] = st.found[a]
    return value


@kernel(inner=True)
def is_chosen(chosen, first, last, i):  # type: ignore[no-untyped-def]
    """Whether column i is among ``chosen[first:last]``."""
    taken = False
    for e in range(first, last):
        taken = taken or chosen[e] == i
    return taken


@kernel(inner=True)
def fill_up(chosen, m, tau):  # type: ignore[no-untyped-def]
    """Fill the m chosen columns up to τ with anything."""
    i = 0
    while m < tau:
        if not is_chosen(chosen, 0, m, i):
            chosen[m] = i
            m += 1
        i += 1


@kernel(inner=True)
def enter_node(st, m):  # type: ignore[no-untyped-def]
    """Enter the m chosen columns, filled up to τ with anything; returns the objective."""
    tau = st.support.shape[0]
    fill_up(st.chosen, m, tau)
    for a in range(tau):
        st.found[a] = st.chosen[a]
    return enter(st, 0)


@kernel(inner=True)
def largest_share(columns, n, beta, root_w, chosen, first, last):  # type: ignore[no-untyped-def]
    """The column of largest β√w, and so of largest z, that is not among ``chosen[first:last]``."""
    most, which = -1.0, -1
    for f in range(n):
        i = columns[f]
        size = root_w[i] * abs(beta[i])
        if size > most and not is_chosen(chosen, first, last, i):
            most, which = size, i
    return which


@kernel(inner=True)
def round_node(st, m, k, n):  # type: ignore[no-untyped-def]
    """Choose the k free columns of largest z as well; whether that differs from last time."""
    new, chosen, tried = False, st.chosen, st.tried
    for a in range(m, m + k):
        chosen[a] = largest_share(st.columns, n, st.beta, st.root_w, chosen, m, a)
    for a in range(m + k):
        new = new or tried[a] != chosen[a]
        tried[a] = chosen[a]
    return new


@kernel(inner=True)
def try_rounding(st, m, k, n):  # type: ignore[no-untyped-def]
    """Greedy rounding, then swaps."""
    if round_node(st, m, k, n) and enter_node(st, m + k) <= st.now[0].upper * NEAR:
        enter(st, 20)  # close to the record: worth searching around


@kernel(inner=True)
def choose_all(chosen, m, k, columns, n):  # type: ignore[no-untyped-def]
    """Choose free columns as well, where there is no choice; how many are chosen then."""
    for f in range(min(n, k)):
        chosen[m + f] = columns[f]
    return m + max(min(n, k), 0)


@kernel(inner=True)
def bound_here(st, columns, k):  # type: ignore[no-untyped-def]
    """Certified bound and the largest g²/w at the node's β."""
    count, scaled = list_allowed(st.state, columns), st.now[0].scaled > 0
    return gram_bound(st.terms, st.state, columns, count, k, st.beta, st.g, scaled, st.top)


@kernel(inner=True)
def share_out(st, allowed, k, n):  # type: ignore[no-untyped-def]
    """Order the free columns by their shares of the dual bound at the node's β.

    The k largest replaced by those of any others it is still a bound (EC.1, main paper, for k
    columns at once): returns the sum of shares up to which it is no less than the record.
    """
    now, terms, top, share = st.now[0], st.terms, st.top, st.work.share
    bound, total = bound_here(st, allowed, k), 0.0
    for c in range(k):
        total += top[c]
    for f in range(n):
        i = st.columns[f]
        share[f] = top[k + 1] * raised(st.g[i], terms.length[i], terms.w[i], top[k + 2])
    order_by_share(st.columns, share, n)
    return bound + total - now.upper - ADDED_UP * (abs(bound) + total + now.upper)


@kernel(inner=True)
def finish(st, allowed, m, k, n):  # type: ignore[no-untyped-def]
    """Complete a node by enumeration; its best support is kept if it beats the record."""
    now = st.now[0]
    before = st.terms.yy - now.upper
    least = share_out(st, allowed, k, n) if k > 1 else -np.inf
    gain = complete(
        st.G,
        st.terms.b,
        now.ridge,
        st.chosen,
        m,
        st.columns,
        n,
        k,
        before,
        least,
        st.work,
    )
    if gain > before:
        now.least = min(now.least, st.terms.yy - gain)
        for a in range(k):
            st.chosen[m + a] = st.columns[st.work.found[a]]
        # the enumeration's own gain is rounded: enter what a fresh factorisation gives
        enter_node(st, m + k)


@kernel(inner=True)
def screen(st, bound, target, k):  # type: ignore[no-untyped-def]
    """Fix free columns whose other value is ruled out by the bound; number fixed."""
    now = st.now[0]
    fixed, least = fix_columns(st.terms, st.state, k, st.g, bound, target, st.top, True)
    now.slack = min(now.slack, least)
    if fixed > 0:
        for i in range(st.state.shape[0]):
            if st.state[i] == OUT:
                st.beta[i] = 0.0
        gram_gradient(st.Q, st.terms.b, st.beta, st.g)
    return fixed


@kernel(inner=True)
def exclude(Q, beta, g, i):  # type: ignore[no-untyped-def]
    """Take column i out of β."""
    if beta[i] != 0.0:
        for j in range(g.shape[0]):
            g[j] += Q[i, j] * beta[i]
        beta[i] = 0.0


@kernel(inner=True)
def small_enough(st, n, k, nodes):  # type: ignore[no-untyped-def]
    """Whether choosing k of n columns is enumerated in the time of so many nodes.

    Two picks are about the price of one relaxation. What is larger is enumerated as long as that
    has taken no more work than all relaxations: the tree below it might.
    """
    if k <= 1:
        return True
    if k > st.work.C.shape[0] + 1 or n > st.work.C.shape[1]:
        return False
    now, node = st.now[0], LEAST_NODE
    if now.mode != RECORD:  # leaves for another problem: it must be able to enumerate them as well
        node = max(node, now.work / max(now.nodes, 1))
    budget = 0.0
    if nodes >= 1.0 and now.mode != RECORD:
        p = st.state.shape[0]
        budget = now.work + min(FREE_WORK, 30.0 * p * p) - now.spent
    count = combinations(n, k, max(nodes * node, budget))
    if count <= nodes * node or (k == 2 and nodes >= 1.0):
        return True
    if count > min(budget, AT_ONCE):
        return False
    now.spent += count
    return True


@kernel(inner=True)
def count_node(st):  # type: ignore[no-untyped-def]
    """List included and free columns; (included, free)."""
    m, n = 0, 0
    for i in range(st.state.shape[0]):
        if st.state[i] == IN:
            if m < st.chosen.shape[0]:
                st.chosen[m] = i
            m += 1
        elif st.state[i] == FREE:
            st.columns[n] = i
            n += 1
    return m, n
