"""The compiled loop of branch and bound over included and excluded columns.

The search of a single problem takes the open node of least bound, whose relaxation is solved. The
bound decides columns, a node with few supports left is enumerated, and any other node is branched
on the column whose exclusion is expected to raise the bound most: by the mean raise so far
(pseudocosts) or, for columns that were excluded too seldom, by solving the relaxation without the
column (strong branching). When the table of nodes may grow no more, the search goes depth first.

Where columns are in groups or have bounds, *column* means a unit of columns. Relaxations with free
groups, or with bounds, are solved by coordinate descent alone.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.leaves import IN, OUT, Leaves
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints
from ..relaxation.descent import descend
from ..relaxation.dual_bound import gram_gradient
from ..relaxation.newton import newton
from .node import (
    CLOSED,
    KEPT,
    OPEN,
    bound_here,
    clear_excluded,
    count_node,
    decide_all,
    enter,
    enumerable,
    enumerate_node,
    exclude,
    of_columns,
    screen_node,
    small_enough,
    sort_free_columns,
    try_rounding,
)

# What :func:`explore` returns: no node is open; the nodes allowed are used up; the table has no
# free rows.
DONE, PAUSED, FULL = 0, 1, 2

# When children are taken up before all other nodes: never; once few rows are free; always.
NEVER, WHEN_FULL, ALWAYS = 0, 1, 2

# With more active columns than this no factorisation is formed, and coordinate descent is the whole
# relaxation. The value was chosen by measured time on benchmarks.
MAX_FACTORED_COLUMNS = 112

COUNTS = np.dtype(
    [
        ("waiting", "i8"),  # nodes in the heap
        ("spare", "i8"),  # rows of the table that hold no node
        ("kept", "i8"),  # nodes that are kept and not branched on
        ("depth_first", "i8"),  # NEVER, WHEN_FULL or ALWAYS
        ("deep", "i8"),  # nodes so far that were to be taken up before all others
    ]
)


@by_reference()
class OpenNodes(NamedTuple):
    """Nodes in rows of a table; a row is in the heap, kept, or holds no node."""

    nodes: Leaves
    key: Annotated[Array, "rows"]  # the node of least key is taken up first
    heap: Annotated[Ints, "rows"]  # rows whose nodes wait, the row of least key first
    spare: NDArray[np.int64]  # (rows,) rows that hold no node
    kept: Annotated[Ints, "rows"]  # rows whose nodes stay there and are not branched on
    counts: NDArray[np.void]  # (1,) of COUNTS


@kernel(inner=True)
def push(open_nodes, row):
    """Put a row, whose key is written, in the heap, which gives rows back by their keys."""
    heap, key, counts = open_nodes.heap, open_nodes.key, open_nodes.counts[0]
    at = counts.waiting
    counts.waiting += 1
    while at > 0:
        parent = (at - 1) // 2
        if key[heap[parent]] <= key[row]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = row


@kernel(inner=True)
def pop(open_nodes):
    """Take the row of least key out of the heap, which is not empty on entry; returns the row."""
    heap, key, counts = open_nodes.heap, open_nodes.key, open_nodes.counts[0]
    first = heap[0]
    counts.waiting -= 1
    n = counts.waiting
    row = heap[n]
    at = 0
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[row] <= key[heap[child]]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = row
    return first


@kernel(inner=True)
def release(open_nodes, row, keep):
    """Keep the node in a row as a leaf, or let the row hold no node."""
    counts = open_nodes.counts[0]
    if keep:
        open_nodes.kept[counts.kept] = row
        counts.kept += 1
    else:
        open_nodes.spare[counts.spare] = row
        counts.spare += 1


@kernel(inner=True)
def descend_node(st, terms, node, k, target, active, most):
    """Relax a node by at most ``most`` rounds of coordinate descent.

    A round is one dual bound and up to five passes over the active columns. The descent ends where
    the relaxation's value exceeds the bound by at most the share ``now.open_share`` of what the
    bound lacks to the target. At one of the first nodes of a tree (``now.rough_left``), or with
    more than ``MAX_FACTORED_COLUMNS`` active columns, that share is 1: the descent ends where the
    value is below the target. The kernel adds to ``now.work``.

    terms: ``st.terms``, or ``st.alone`` for a node of columns.
    k: Free columns still to choose.
    target: Bound that closes the node.
    active: Number of non-zero coefficients at the start.
    Returns: The node's bound, and whether coordinate descent suffices: the bound reaches
        ``target`` or the relaxation's value shows that Newton steps would raise the bound little.
    """
    now, limits, best = st.now[0], st.relaxation.limits[0], st.relaxation.best
    limits.target, best[0] = target, -np.inf
    rough = now.rough_left > 0 or active > MAX_FACTORED_COLUMNS
    limits.shortfall_share = 1.0 if rough else now.open_share
    limits.rounds = most
    rounds = descend(st.relaxation, terms, node, k)
    operations = (4.0 * active + node.beta.shape[1]) * active
    now.work += abs(rounds) * work_of_step(operations)
    return best[0], rounds > 0 or best[1] - best[0] <= limits.shortfall_share * (target - best[0])


@kernel(inner=True)
def work_of_step(operations):
    """Supports that enumeration visits in the time of one step of a relaxation, as measured.

    operations: About how many products the step takes.
    """
    return 400.0 + 0.14 * operations


@kernel(inner=True)
def relax_node(st, node, k, target):
    """Relax a node, whose b − Qβ is in ``st.relaxation.g``; return the bound of this relaxation.

    Newton steps factorise the matrix of active columns, those with a coefficient, and converge even
    if Q is ill-conditioned. With more than 25 active columns 8 rounds of coordinate descent come
    first, as long as these have sufficed for about half of the nodes; with very many, at rough
    nodes, and where groups are free or units have bounds, 20 rounds are all. The numbers were
    chosen by times of solver_benchmark.py.

    k: Free columns still to choose.
    target: Bound that closes the node.
    """
    now, work, active, p = st.now[0], st.relaxation, 0.0, node.beta.shape[1]
    for i in range(p):
        active += node.beta[0, i] != 0.0
    now.nodes += 1
    terms, single = st.terms, st.terms.units.single
    if not single and of_columns(st, node):
        terms, single = st.alone, True
        node = Leaves(st.decided, node.beta, node.lam, node.bound, node.unsolved)
    if active > work.U.shape[0] or now.rough_left > 0 or not single:
        now.rough_left -= now.rough_left > 0
        return descend_node(st, terms, node, k, target, active, 20)[0]
    if active > 25 and 2 * now.n_sufficed >= now.n_swept - 8:
        bound, enough = descend_node(st, terms, node, k, target, active, 8)
        now.n_swept += 1
        if enough:
            now.n_sufficed += 1
            return bound
    limits = work.limits[0]
    limits.target, limits.multipliers, limits.share = target, 2, 0.003
    bound, steps = newton(work, terms, node, k)
    now.work += abs(steps) * work_of_step((active * active / 6.0 + 2.0 * p) * active + 15.0 * p)
    if steps < 0:  # More columns became active than there is room for.
        bound = max(bound, descend_node(st, terms, node, k, target, active, 20)[0])
    return bound


@kernel(inline=True)
def one_node(nodes, row):
    """The node of a row, as a table of one row that shares the row's memory."""
    end = row + 1
    return Leaves(
        nodes.state[row:end],
        nodes.beta[row:end],
        nodes.lam[row:end],
        nodes.bound[row:end],
        nodes.unsolved[row:end],
    )


@kernel(inner=True)
def load_gradient(st):
    """Let relaxations begin from the b − Qβ of the node that is branched on."""
    for j in range(st.g.shape[0]):
        st.relaxation.g[j] = st.g[j]


@kernel(inner=True)
def exclude_in(st, child, node, i):
    """Write the node with column i excluded to the table's row of the child.

    On entry ``st.g`` is b − Qβ of the node; ``st.relaxation.g`` is that of the child afterwards.
    The child's bound is not written: :func:`enqueue` does that.
    """
    for u in range(node.state.shape[1]):
        child.state[0, u] = node.state[0, u]
    for j in range(node.beta.shape[1]):
        child.beta[0, j] = node.beta[0, j]
    child.lam[0] = node.lam[0]
    load_gradient(st)
    exclude(st, child, i)


@kernel(inner=True)
def most_expected(st, n, mean):
    """The largest raise of the bound expected of excluding a free column, and that column.

    Columns tried at this node do not count. n: Number of free columns. mean: Raise for each unit of
    z, of columns that were never tried. The column is −1 where all were tried at this node.
    """
    most, which = -1.0, -1
    for f in range(n):
        i = st.columns[f]
        if st.relaxed[i] == 0:
            each = st.gain[i] / st.trials[i] if st.trials[i] > 0 else mean
            if each * st.share[i] > most:
                most, which = each * st.share[i], i
    return most, which


@kernel(inner=True)
def branching_column(st, open_nodes, node, n, k, target):
    """The column to branch on, and the bound of the child that excludes it.

    On entry the node's bound is below ``target``, ``st.columns`` lists its free columns, ``st.g``
    is its b − Qβ, and two rows are spare at least. At the end the child that excludes the column
    is in the last spare row of the table.

    At most 8 columns are tried, those of largest expected raise, and none that is expected to raise
    the bound by less than a fifth of the best trial. A column that has been tried twice before is
    tried only if it is expected to be the best, and is then the last. The numbers are choices.

    n, k: Numbers of free columns and of columns still to choose.
    target: The bound that closes a node.
    """
    total, trials, bound, spare = 0.0, 0, node.bound[0], open_nodes.spare
    last = open_nodes.counts[0].spare - 1  # The best trial's row; the row before is the next one's.
    for f in range(n):
        i = st.columns[f]
        st.relaxed[i] = 0
        total += st.gain[i]
        trials += st.trials[i]
    mean = total / trials if total > 0.0 else 1.0
    best, chosen, raised = -1.0, -1, bound
    for _ in range(8):
        expected, i = most_expected(st, n, mean)
        if i < 0 or (chosen >= 0 and expected < 0.2 * best):
            break
        st.relaxed[i] = 1
        known = st.trials[i] >= 2
        if known and expected <= best:
            continue
        child = one_node(open_nodes.nodes, spare[last - 1])
        exclude_in(st, child, node, i)
        value = max(bound, relax_node(st, child, k, target))
        gain = min(value, target) - bound
        if st.share[i] > 1e-3:  # Raises divided by a smaller z would outweigh all others.
            st.gain[i] += gain / st.share[i]
            st.trials[i] += 1
        if gain > best:
            best, chosen, raised = gain, i, value
            spare[last - 1], spare[last] = spare[last], spare[last - 1]
        if known or value >= target:
            break
    return chosen, raised


@kernel(inner=True)
def enqueue(st, open_nodes, row, bound, unsolved):
    """Let the child in a row wait, or prune it if its bound reaches the target.

    unsolved: Whether the child's relaxation is solved only when the child is taken up.
    """
    now, counts, nodes = st.now[0], open_nodes.counts[0], open_nodes.nodes
    nodes.bound[row], nodes.unsolved[row] = bound, unsolved
    if bound >= now.upper * (1.0 - now.tolerance):
        now.pruned = min(now.pruned, bound)
        release(open_nodes, row, now.keep_closed > 0)
        return
    # Below a node at most one row is taken for each column until a row is free again.
    few = counts.depth_first == WHEN_FULL and counts.spare < 2 * nodes.beta.shape[1] + 16
    open_nodes.key[row] = max(bound, 0.0)
    if few or counts.depth_first == ALWAYS:
        counts.deep += 1
        open_nodes.key[row] = -counts.deep
    push(open_nodes, row)


@kernel(inner=True)
def close_last(st, node, k, target):
    """Close the node, which one support is the best of, or hand it to the caller.

    Its free columns are all excluded where k is 0, and else all included, as more columns never
    raise the objective.

    A support that may be enumerated is entered. Any other support is relaxed; where its bound does
    not close it, the caller fits the support afresh.

    k: Number of columns still to choose.
    Returns: CLOSED or KEPT.
    """
    now = st.now[0]
    decide_all(node, OUT if k == 0 else IN)
    if enumerable(st, node):
        if now.keep_closed == 0:
            count_node(st, node)
            enumerate_node(st, node, now.n_included, 0, 0)
        return CLOSED
    clear_excluded(st, node)
    node.bound[0] = max(node.bound[0], relax_node(st, node, 0, target))
    if node.bound[0] < target:
        return KEPT
    now.pruned = min(now.pruned, node.bound[0])
    return CLOSED


@kernel(inner=True)
def close(st, node, target):
    """Try to close a node by its bound, screening and enumeration.

    The kernel raises the node's bound, solves its relaxation if that was not solved yet, and writes
    the numbers of included and free columns and of columns still to choose. A node that stays open
    has its shares z in ``st.share``.

    A search that hands out its leaves (``keep_closed``) closes nodes by their bounds alone: it
    neither screens nor enumerates. A search that only relaxes (``only_relax``) screens, too.

    target: Bound that closes a node.
    Returns: CLOSED, OPEN, or KEPT for a node of one support that the caller is to fit.
    """
    now, work, unsolved = st.now[0], st.relaxation, node.unsolved[0] > 0
    gram_gradient(work.form.Q, st.terms.b, node.beta[0], work.g)
    count_node(st, node)
    fixed = 1  # The loop begins; afterwards it is how many columns screening has decided.
    while fixed > 0:
        m, k, n = now.n_included, now.to_choose, now.n_free
        if k < 0:
            return CLOSED  # More columns are included than a support may have.
        if k == 0 or k >= n:
            return close_last(st, node, k, target)
        may_enumerate = now.only_relax == 0 and now.keep_closed == 0
        if may_enumerate and small_enough(st, node, n, k, not unsolved):
            enumerate_node(st, node, m, k, n)
            return CLOSED
        if unsolved:
            node.bound[0] = max(node.bound[0], relax_node(st, node, k, target))
            if node.bound[0] >= target:
                now.pruned = min(now.pruned, node.bound[0])
                return CLOSED
            unsolved = False
            count_node(st, node)
            continue
        here = bound_here(st, node, k)
        if here >= target:
            now.pruned = min(now.pruned, here)
            return CLOSED
        node.bound[0] = max(node.bound[0], here)
        fixed = 0 if now.keep_closed > 0 else screen_node(st, node, here, target, k)
        count_node(st, node)
        # The relaxation is solved again where at least an eighth of the columns was decided.
        unsolved = fixed * 8 >= now.n_free and 0 < now.to_choose < now.n_free
    sort_free_columns(st, node)
    return OPEN


@kernel(inner=True)
def branch(st, open_nodes, row):
    """Let both children of the node in a row wait: one excludes a column, one includes it.

    The second child takes the node's row. On entry ``st.columns`` lists the free columns by falling
    z, ``st.share`` has their z, b − Qβ is that of the node, and two rows are spare at least. The
    first nodes of a tree (rough nodes) branch on the column of largest z and leave the children's
    relaxations until the children are taken up.
    """
    now, counts, node = st.now[0], open_nodes.counts[0], one_node(open_nodes.nodes, row)
    bound, n, k, rough = node.bound[0], now.n_free, now.to_choose, now.rough_left > 0
    target = now.upper * (1.0 - now.tolerance)
    i, raised = st.columns[0], bound
    for j in range(st.g.shape[0]):
        st.g[j] = st.relaxation.g[j]
    if rough:
        excluded = open_nodes.spare[counts.spare - 1]
        exclude_in(st, one_node(open_nodes.nodes, excluded), node, i)
    else:
        i, raised = branching_column(st, open_nodes, node, n, k, target)
    counts.spare -= 1
    enqueue(st, open_nodes, open_nodes.spare[counts.spare], raised, rough)
    node.state[0, i] = IN
    load_gradient(st)
    later, raised = rough or small_enough(st, node, n - 1, k - 1, solved=False), bound
    if not later:
        raised = max(bound, relax_node(st, node, k - 1, target))
    enqueue(st, open_nodes, row, raised, later)


@kernel
def explore(st, open_nodes, most_nodes):
    """Enter a support if one waits, and search until about ``most_nodes`` more nodes are bounded.

    Nodes are taken from the heap, the node of least key first. A node that a bound or an
    enumeration closes is released, and an open node is branched on. An open node is kept, and not
    branched on, if the search only relaxes nodes. It is kept, too, if columns are in groups or have
    bounds and the node holds a single support, which the caller fits. A closed node is kept if the
    search hands out its leaves.

    Returns: DONE where no node waits, PAUSED after ``most_nodes`` nodes, and FULL where fewer than
        three rows of the table are spare.
    """
    now, counts = st.now[0], open_nodes.counts[0]
    first = now.nodes
    if now.entering >= 0:
        enter(st, now.entering)
        now.entering = -1
    while counts.waiting > 0:
        if now.nodes - first >= most_nodes:
            return PAUSED
        if counts.spare < 3:
            return FULL
        row = pop(open_nodes)
        node = one_node(open_nodes.nodes, row)
        target = now.upper * (1.0 - now.tolerance)
        if node.bound[0] >= target:
            now.pruned = min(now.pruned, node.bound[0])
            release(open_nodes, row, now.keep_closed > 0)
            continue
        found = close(st, node, target)
        if found == OPEN:
            try_rounding(st)
            if node.bound[0] >= now.upper * (1.0 - now.tolerance):  # By the support just found.
                now.pruned = min(now.pruned, node.bound[0])
                found = CLOSED
            elif now.only_relax > 0:
                found = KEPT
        if found == OPEN:
            now.branched += 1
            branch(st, open_nodes, row)
        else:
            release(open_nodes, row, found == KEPT or now.keep_closed > 0)
    return DONE
