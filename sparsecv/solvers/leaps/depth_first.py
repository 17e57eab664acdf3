"""Depth-first search of a leaps-and-bounds tree (Furnival & Wilson 1974), on XᵀX + γ/2 I.

The objective f_S of the ridge fit on a node S is a lower bound for every support below the node.
Objectives are kept as the loss above the full ridge fit: f_S − f_full is a sum of positive terms
β_j²/A_jj, so that it keeps its digits whether γ is 1e-8 or 1e8.

One tree answers one problem, or the n problems that each lack one row. Then the Gram matrices of
problem i are those of the full problem less row (z_i, t_i). On a node S with ridge fit β,
A = (G_S + γ/2 I)⁻¹, W = A Z_Sᵀ, residuals r and leverages h, the objective of problem i is
f_S − r_i²/(1 − h_i); dropping member m adds (β_m − W_mi r_i/(1−h_i))² / (A_mm + W_mi²/(1−h_i)).
A child is pruned only if no support below the child can improve a problem's incumbent of any size.
Of one problem without deleted rows, sizes are closed one by one (:func:`~.leaps_node.open_sizes`).
"""

from __future__ import annotations

import numpy as np

from ..core.rounding import MOST_TIED, TIED_PER_INFLATION, UPDATED_SHARE
from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, dot, has_bit, order_steps
from .inverse import evaluate_columns
from .leaps_node import (
    drop,
    factorise,
    highest_rank,
    mask_child,
    open_sizes,
    order_key,
    put_in_order,
    size_of_all,
    size_without,
    sum_costs,
)
from .lines import close_lines, hand_out
from .lists import enter_support, forget_supports, is_listed, put_in_list
from .row_updates import fit_rows, list_open_problems, update_rows
from .within import begin_within, bound_members, fit_child, key_members

# The other members of a node determine a column, as it is called here, under two conditions.
# They leave at most a thirtieth of the column's squared length, the penalty included.
# And γ/2 is at least a hundredth of what they leave.
# Trees of columns that are merely correlated grow up to ten times where these leave first; that was
# measured with 60 to 400 rows and 25 to 40 columns.
# The two numbers were the best of 30, 100, 500 and 2,000, and of .001, .01 and of none.
DEPENDENT_INFLATION, DEPENDENT_RIDGE = 30.0, 0.01
# Sizes are closed below nodes (``open_sizes``) where the bound has at least this share of the
# losses that members add, in the mean at the root. With .28 and less it closes too few sizes for
# its time, at 35 to 45 columns (measured).
LEAST_MEAN_SHARE = 0.3


@kernel(inner=True)
def begin(tree):
    """Forget all supports and make the full set of columns the root.

    On entry ``tree.triangle`` holds the upper triangular R with RᵀR = [X y]ᵀ[X y], γ/2 added to the
    first p diagonal entries, and ``now.least_pivot`` is √(γ/2). With M = G + γ/2 I and A = M⁻¹,
    supports are compared by fresh fits where their losses differ by a share of at most
    min(1e-11 + 40u·v, 1e-5) and 4u·full, with v = max_j A_jj M_jj, u the rounding unit and ``full``
    the objective of the fit on all columns: β_j of size √(A_jj·full) is off by about u√v of it, and
    a loss by about 2u√(v·loss·full) ≤ u(v·loss + full). What is proved does not depend on this
    window. As |β_j| ≤ √A_jj |y| on all columns, and A_jj is smaller on fewer columns,
    Σ_j √(A_jj M_jj) bounds Σ ℓ_j|β_j|/|y| for the fits of all nodes.
    """
    lists, now, m, p = tree.lists, tree.lists.now[0], tree.mask.shape[0], tree.scale.shape[0]
    now.level, now.nodes, tree.fixed[0] = 0, 1, 0
    now.full = tree.triangle[p, p] ** 2
    for c in range(p + 1):
        for a in range(p + 1):
            tree.columns_of[c, a] = tree.triangle[a, c]
    tree.columns_of[p, p] = 0.0
    for w in range(tree.mask.shape[1]):
        tree.mask[0, w] = np.uint64(0)
    for a in range(m):
        tree.free[0, a] = a
        tree.mask[0, a >> 6] |= np.uint64(1) << np.uint64(a & 63)
    factorise(tree, 0)
    inflation, now.inflation, now.reach, now.dependent, now.closes = 0.0, 0.0, 1.0, 0.0, 0
    ridge = now.least_pivot**2
    for a in range(p):
        tree.root_diagonal[a] = tree.A[0, a, a]
        column = tree.columns_of[a]
        square = max(dot(column, column, p), tree.scale[a] ** 2)
        factor = tree.A[0, a, a] * square
        tree.dependent_from[a] = max(
            DEPENDENT_INFLATION / max(square, 1e-300), DEPENDENT_RIDGE / max(ridge, 1e-300)
        )
        if not (tree.wide or tree.bounded) and tree.A[0, a, a] >= tree.dependent_from[a]:
            now.dependent = now.full + dot(tree.columns_of[p], tree.columns_of[p], p)
        inflation = max(inflation, factor)
        now.inflation += factor
        # Within bounds on coefficients a fit explains at most ‖Xβ‖ ≤ 2|y|.
        now.reach += (2.0 if tree.bounded > 0 else 1.0) * np.sqrt(factor)
    now.tie, now.tied_loss = (
        min(UPDATED_SHARE + TIED_PER_INFLATION * inflation, MOST_TIED),
        2.0 * EPS * now.full,
    )
    tree.loss[0, 0] = 0.0
    if tree.bounded > 0:
        begin_within(tree)
    # The root is factorised twice: the first time shows in which order its members are to stand.
    order_members(tree)
    factorise(tree, 0)
    if tree.bounded > 0:
        bound_members(tree, 0)
    forget_supports(lists)
    value = tree.within.value[0] if tree.bounded > 0 else 0.0
    most = size_of_all(tree)
    lists.max_kept[most:] = lists.max_searched[most:] = value
    for w in range(tree.mask.shape[1]):
        lists.support[w] = tree.mask[0, w]
    for i in range(lists.n.shape[1]):  # The full set is the only support of its size.
        put_in_list(lists, most, i, value)
    if tree.targets.shape[0] > 0:
        fit_rows(tree, 0)
    if tree.weighted > 0:
        sum_costs(tree, 0, most)
        enter_nothing(tree)


@kernel(inner=True)
def enter_nothing(tree):
    """Enter the support without a column, where no unit must stay.

    It answers the sizes below what any unit counts. The root is complete.
    """
    lists, p, one_problem = tree.lists, tree.scale.shape[0], tree.targets.shape[0] == 0
    explained = dot(tree.columns_of[p], tree.columns_of[p], p)
    for w in range(tree.mask.shape[1]):
        lists.support[w] = np.uint64(0)
    for i in range(lists.n.shape[1] if tree.fixed[0] == 0 else 0):
        loss = explained
        if not one_problem:
            left, deleted = tree.one_minus_leverage[0, i], tree.deleted_residual[0, i]
            loss += deleted * deleted * left - tree.targets[i] * tree.targets[i]
        enter_support(lists, 0, i, max(loss, 0.0))


@kernel(inner=True)
def order_members(tree):
    """List the free members of the root, which are all units, those that add most first.

    Units that are included become fixed.
    """
    now, m, v = tree.lists.now[0], tree.mask.shape[0], 0
    for a in range(m):
        tree.step[a] = tree.least_added[0, a]
        if now.dependent > 0:
            tree.step[a] = order_key(tree, a, tree.A[0, a, a], tree.step[a])
    order_steps(tree.step, m, tree.order, tree.rank)
    for a in range(m):
        unit = tree.free[0, tree.order[a]]
        if tree.included[unit] == 0:
            tree.members[v] = unit
            v += 1
    for a in range(v):
        tree.free[0, a] = tree.members[a]
    tree.fixed[0] = m - v


@kernel(inline=True)
def evaluate(tree, level, j, size, low):
    """Losses of the child without free member j for every open problem, in ``tree.child_loss``.

    size, low: The size of the child, and the least wanted size that the child reaches.
    Returns: How many problems the child improves at its own size, and how many at size ``low`` a
        support below the child may improve.
    """
    W, loss, losses, problem_of = tree.W, tree.loss, tree.child_loss, tree.problem_of
    remain, deleted = tree.one_minus_leverage, tree.deleted_residual
    kept, searched = tree.lists.max_kept, tree.lists.max_searched
    n, better, promising = tree.n_open[level], 0, 0
    one_problem = tree.targets.shape[0] == 0
    if tree.wide > 0 or tree.gathers > 0:
        evaluate_columns(tree, level, j)
    elif one_problem:
        losses[0] = loss[level, 0] + tree.added_loss[level, j]
    else:
        row, b, d = tree.offset[level] + j, tree.beta[level, j], tree.diagonal[level, j]
        for i in range(n):
            w = W[row, i]
            shifted = b - w * deleted[level, i]
            losses[i] = loss[level, i] + shifted * shifted / (d + w * w / remain[level, i])
    if one_problem:
        better += losses[0] <= kept[size, 0]
        promising += losses[0] <= searched[low, 0] or size > tree.pruned_up_to
        return better, promising
    if n == losses.shape[0]:
        for i in range(n):
            better += losses[i] <= kept[size, i]
            promising += losses[i] <= searched[low, i]
    else:
        for i in range(n):
            better += losses[i] <= kept[size, problem_of[level, i]]
            promising += losses[i] <= searched[low, problem_of[level, i]]
    return better, n if size > tree.pruned_up_to else promising


@kernel(inline=True)
def make_child(tree, level, j, low, promising, one_path):
    """Make the child without free member j the node one level below.

    low: Least wanted size that the child reaches.
    promising: How many problems a support below the child may improve at that size.
    one_path: Whether all other free members stay free, and all problems open.
    Returns: False where no support below the child can improve an incumbent: then the child is not
        completed.
    """
    updated = drop(tree, level, j, one_path)
    below, one_problem = level + 1, tree.targets.shape[0] == 0
    if one_problem:
        loss = tree.loss[below, 0] = tree.child_loss[0]
        closes = tree.lists.now[0].closes > 0 and not one_path
        if closes and not open_sizes(tree, below, loss, updated):
            return False
    if tree.bounded > 0:
        key_members(tree, level, tree.mask.shape[0] - below - tree.fixed[below], updated)
    put_in_order(tree, level, j)
    if tree.weighted > 0:
        sum_costs(tree, below, size_without(tree, level, j))
    if not updated:
        factorise(tree, below)
    if tree.bounded > 0:
        bound_members(tree, below)
    if one_problem:
        return True
    fewer = list_open_problems(tree, level, low, tree.n_open[level] if one_path else promising)
    if updated:
        update_rows(tree, level, j, fewer)
    else:
        fit_rows(tree, below)
    return True


@kernel(inner=True)
def enter_child(tree, level, j, size):
    """Enter the child without free member j, whose losses are in ``child_value``, where wanted."""
    mask_child(tree, level, j)
    if tree.gathers > 0:
        hand_out(tree)
        return
    for i in range(tree.n_open[level]):
        enter_support(tree.lists, size, tree.problem_of[level, i], tree.child_value[i])


@kernel(inner=True)
def enter_path(tree, rank):
    """Enter the supports on one path from the root that drops one member after the other.

    rank, shape (≥ m,): The member of highest rank is dropped, of members of equal rank the member
        that adds the least loss, until one member, or those that are fixed, are left.
    """
    m = tree.mask.shape[0]
    for level in range(m - max(tree.fixed[0], 1)):
        j = highest_rank(tree, level, rank)
        size = size_without(tree, level, j)
        evaluate(tree, level, j, size, size)
        if tree.bounded > 0:
            mask_child(tree, level, j)
            fit_child(tree, level, j, size, size)
        enter_child(tree, level, j, size)
        make_child(tree, level, j, size, 0, one_path=True)


@kernel(inner=True)
def close_sizes(tree):
    """Decide whether sizes are closed from now on; if so, all wanted ones are open on the path.

    A member's worth w_j = γ/2 + D_j is a share w_jA_jj ≤ 1 of the loss that it adds. The mean share
    at the root decides.
    """
    now, p, mean = tree.lists.now[0], tree.scale.shape[0], 0.0
    ridge = now.least_pivot**2
    for a in range(p):
        w = ridge + tree.extracted[a]
        mean += w * tree.root_diagonal[a] / p
        # As w_jA_jj ≤ 1, s = Σ w_jβ_j² of d members is off by at most 2u√(v·d·s·full), which is at
        # most u·v·d·s + u·full.
        tree.worth[a] = w * (1.0 - p * now.tie)
    if mean < LEAST_MEAN_SHARE:
        return
    now.closes = 1
    for level in range(now.level + 1):
        for size in range(tree.mask.shape[0]):
            tree.open_from[level, size] = tree.lists.next_wanted[size]


@kernel(inner=True)
def is_pruned(tree, level, j):
    """Whether neither the child without free member j nor a support below it can be better.

    The tree is one of a single problem, in which a unit may count more than once in a size. The
    loss below the child is at least the node's loss and ``least_added`` of the member. It is
    compared with the worst losses that the lists still take: at the child's own size, and at the
    least wanted size that supports below it reach.
    """
    lists, size = tree.lists, size_without(tree, level, j)
    low = lists.next_wanted[tree.counting.low[level, j]]
    least = tree.loss[level, 0] + tree.least_added[level, j]
    return least > max(lists.max_kept[size, 0], lists.max_searched[low, 0])


@kernel(inner=True)
def advance(tree, max_nodes):
    """Search on for at most ``max_nodes`` nodes, depth first, from where the call before left.

    A node's children drop one free member each; ``cursor`` is the member whose child comes next,
    ``loss`` the node's objective less that of the fit on all columns. A child counts as a node,
    whether it is visited or skipped. On entry :func:`begin` has made the root.

    Returns: Whether the tree is exhausted.
    """
    lists, now, m = tree.lists, tree.lists.now[0], tree.mask.shape[0]
    cursor, fixed, least, wanted = tree.cursor, tree.fixed, tree.least_added, lists.next_wanted
    loss, searched, one_problem = tree.loss, lists.max_searched, tree.targets.shape[0] == 0
    level, done = now.level, 0
    # Which sizes are wanted may change until the first node.
    if tree.weighted == 0 and one_problem and (now.closes == 0 or now.nodes == 1):
        close_sizes(tree)
    closes = now.closes > 0
    while level >= 0 and (done < max_nodes or cursor[level] < 0):
        size = m - level - 1
        j = cursor[level]
        if j < 0:
            level -= 1
            continue
        if closes:
            wanted = tree.open_from[level]
        # Children that are pruned are skipped.
        if tree.weighted > 0:
            last = max(j - max_nodes + done + 1, 0)
            while one_problem and j > last and is_pruned(tree, level, j):
                j -= 1
                done += 1
        elif one_problem and size <= tree.pruned_up_to:
            last = max(j - max_nodes + done + 1, 0)
            base, k, high = loss[level, 0], fixed[level], lists.max_kept[size, 0]
            while j > last and base + least[level, j] > max(high, searched[wanted[k + j], 0]):
                j -= 1
                done += 1
        cursor[level] = j - 1
        done += 1
        if size < 1:
            continue
        k = fixed[level] + j
        low = wanted[k]
        deeper = k < size and low < size  # The child has a free member and reaches a wanted size.
        if tree.weighted > 0:
            low, deeper = wanted[tree.counting.low[level, j]], k < size
            size = size_without(tree, level, j)
            # The child alone is as good for its size as any support below it; of several that are
            # wanted, some may be below it.
            deeper = deeper and (low < size or now.rank > 1)
        if not deeper:
            low = size
        better, promising = evaluate(tree, level, j, size, low)
        if tree.gathers > 0 and not one_problem:
            better, promising = close_lines(tree, level, j, size, low)
        if tree.bounded > 0 and better + promising > 0:
            mask_child(tree, level, j)
            better, promising = fit_child(tree, level, j, size, low)
        if better > 0:
            enter_child(tree, level, j, size)
        if deeper and promising > 0 and make_child(tree, level, j, low, promising, one_path=False):
            level += 1
    now.level, now.nodes = level, now.nodes + done
    return level < 0


@kernel(inner=True)
def enter_paths(tree, rank, known):
    """Enter the supports on a path from the root, and those on paths to known supports.

    A path to a known support drops the columns outside the support first, and then those inside. No
    path leads to a support that the list of its size already holds, or that is known twice in a
    row, as one is that answers several sizes.

    rank, int64 (m,): That of the first path, as :func:`enter_path` takes it; it is overwritten.
        Without entries there is no path at all.
    known, int64 (supports, m): Members of supports of any size, ended by −1.
    """
    lists, m, cost, last = tree.lists, rank.shape[0], 1, 0
    if m > 0:
        enter_path(tree, rank)
    for i in range(known.shape[0] if m > 0 else 0):
        count = size = 0
        for w in range(lists.support.shape[0]):
            lists.support[w] = np.uint64(0)
        for a in range(m):
            rank[a] = 1
        while count < m and known[i, count] >= 0:
            unit = known[i, count]
            rank[unit] = 0
            lists.support[unit >> 6] |= np.uint64(1) << np.uint64(unit & 63)
            if tree.weighted > 0:
                cost = tree.counting.cost[unit]
            size += cost
            count += 1
        twice = last < i
        for a in range(known.shape[1]):
            twice = twice and known[last, a] == known[i, a]
        if size > 0 and not (twice or is_listed(lists, size, 0)):
            enter_path(tree, rank)
        if size > 0:
            last = i


@kernel(inner=True)
def write_best(tree, best):
    """Write the members of the best support of every wanted size to the size's row of ``best``.

    Where units count more than once in a size, the support listed first at the size itself is
    written, and the row ends with −1.
    """
    lists, m, most = tree.lists, tree.mask.shape[0], best.shape[0] - 1
    size = lists.next_wanted[1]
    while size <= most:
        position = 0
        for unit in range(m):
            if has_bit(lists.found[size, 0], 0, unit):
                best[size, position] = unit
                position += 1
        if tree.weighted > 0:
            best[size, position:] = -1
        size = lists.next_wanted[size + 1]


@kernel
def proceed(tree, rank, known, max_nodes, best):
    """Begin a tree that has no node yet, enter supports, and search on; whether it is exhausted.

    All three are one kernel, because Python hands over some forty arrays: numba compiles code for
    that, for half a second, in every kernel that Python calls.

    rank, known: As :func:`enter_paths` takes them.
    max_nodes: As :func:`advance` takes it.
    best, int64 (most + 1, m), most the size of all units: Receives the best support of every wanted
        size in the size's row, in the first entries. Without rows nothing is written.
    """
    if tree.lists.now[0].nodes == 0:
        begin(tree)
    enter_paths(tree, rank, known)
    exhausted = advance(tree, max_nodes)
    if best.shape[0] > 0:
        write_best(tree, best)
    return exhausted
