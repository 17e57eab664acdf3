"""The inverse A = (G_S + γ/2 I)⁻¹ of a node of a leaps-and-bounds tree: rows of it, and blocks.

A member is a column, or a group of columns, of the node's support. Its columns leave a node one
after the other. The first leaves by the code for single columns (:func:`~.leaps_node.drop`), the
others by the code here.

A tree serves one problem, or the problems that each lack one row. A problem is open at a node if
the search goes on below for it. The row that problem i lacks is z_i, in the matrix Z; at a node h_i
is the row's leverage, r_i its residual, and W is A Z_Sᵀ.
"""

from __future__ import annotations

import numpy as np

from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import add, dot, has_bit

# A node is factorised afresh, and not updated from its parent, if the update would shrink a
# diagonal entry of A below this share of its value at the last factorisation. At the limit the
# entry has lost four of its sixteen digits. The value is a choice.
LEAST_DIAGONAL_SHARE = 1e-4


@kernel(inner=True)
def unit_loss(chain, beta, diagonal, block, start, width):
    """β_Dᵀ(A_DD)⁻¹β_D for the columns D of a member, and whether all of D were eliminated.

    By this number the least loss rises if the columns D leave the node with coefficients β and
    A = (G_S + γ/2 I)⁻¹. A column is passed over if elimination leaves at most
    ``LEAST_DIAGONAL_SHARE`` of its diagonal entry, too few digits: the number without that column
    is not larger. ``chain.coef`` and ``chain.square`` are overwritten.

    beta, diagonal: The coefficients and the diagonal of A, by the places of columns in the node.
    block: In the row of a column's place, the entries of A that it has with the columns of its
        member before it.
    start, width: D has the places from ``start`` to ``start + width − 1``.
    """
    if width == 1:
        return beta[start] * beta[start] / diagonal[start], True
    # Row by row, L with LLᵀ = A_DD, one over its diagonal in place of that, and L⁻¹β_D.
    L, coef, total, whole = chain.square, chain.coef, 0.0, True
    for d in range(width):
        row = L[d]
        for e in range(d):
            row[e] = (block[start + d, e] - dot(row, L[e], e)) * L[e, e]
        pivot = diagonal[start + d] - dot(row, row, d)
        row[d] = 0.0
        if pivot > LEAST_DIAGONAL_SHARE * diagonal[start + d]:
            row[d] = 1.0 / np.sqrt(pivot)
        else:
            whole = False
        coef[d] = (beta[start + d] - dot(row, coef, d)) * row[d]
        total += coef[d] * coef[d]
    return total, whole


@kernel(inner=True)
def factorised_units(tree, level, v):
    """Write what the v free members add to the loss when they are dropped, and what that needs.

    On entry the node is factorised, so that all rows of its A are known. ``chain.block`` gets the
    part of A below the diagonal between the columns of each member, and ``added_loss`` what
    :func:`unit_loss` says. That may be too small where digits are lost, never too large, and
    ``chain.whole`` says where it is exact.
    """
    chain, first, free = tree.chain, tree.first, tree.free
    for a in range(v):
        start, width = tree.start[level, a], first[free[level, a] + 1] - first[free[level, a]]
        for d in range(1, width):
            for e in range(d):
                chain.block[level, start + d, e] = tree.A[level, start + d, start + e]
        given = tree.beta[level], tree.diagonal[level], chain.block[level], start, width
        tree.added_loss[level, a], whole = unit_loss(chain, *given)
        chain.whole[level, a] = whole


@kernel(inner=True)
def subtract_rest(tree, level, row):
    """Complete a row of the node's A by what columns that left after the first take off.

    On entry the row is that without the first column, and ``chain`` has ``rows``, ``pivot`` and
    ``width`` of the level.

    row: The place of the row's column at the node.
    """
    chain = tree.chain
    for d in range(chain.width[level] - 1):
        left = chain.rows[level, d]
        weight = left[row] * chain.pivot[level, d]
        add(tree.A[level, row], left, -weight, tree.n_columns[level])


@kernel(inner=True)
def inverse_row(tree, level, a):
    """Compute row a of the node's A, unless it is known: A − A_j A_jᵀ/A_jj of the parent's A.

    Where the parent's row is not known either, it is computed first, and so on. Row j of the
    parent's A is known: the step to the node needed it.

    a: Place of the row's column at the node; j is the place at the parent of the column dropped.
    Writes the rows that it computes, and marks them in ``known_row``.
    """
    A, parent_place, known, place = tree.A, tree.parent_place, tree.known_row, tree.path
    now = level
    place[now] = a
    while known[now, place[now]] == 0:
        place[now - 1] = parent_place[now, place[now]]
        now -= 1
    while now < level:
        j, c = tree.dropped[now + 1], place[now]
        weight = A[now, j, c] * (1.0 / A[now, j, j])
        now += 1
        row = place[now]
        for b in range(tree.n_columns[now]):
            other = parent_place[now, b]
            A[now, row, b] = A[now - 1, c, other] - weight * A[now - 1, j, other]
        if tree.wide > 0:  # Other columns of the member that was dropped have left as well.
            subtract_rest(tree, now, row)
        known[now, row] = 1


@kernel(inner=True)
def list_members(tree, level, j, one_path):
    """Write the free members of the child to ``chain.source``, and where their columns begin.

    The child lacks free member j of the level's node. Members are in their order at the node, and
    ``chain.start`` counts places of ``tree.source``.

    one_path: Whether the members before j stay free.
    Returns: The number of members.
    """
    chain, free, first, v, position = tree.chain, tree.free, tree.first, 0, 0
    n = tree.mask.shape[0] - level - tree.fixed[level]
    for a in range(0 if one_path else j + 1, n):
        if a != j:
            chain.source[v], chain.start[v] = a, position
            position += first[free[level, a] + 1] - first[free[level, a]]
            v += 1
    return v


@kernel(inner=True)
def rows_of_dropped(tree, level, j, low):
    """Write the rows of A of the columns of member j that leave after the first, as they leave.

    On entry row A[level, i] of the member's first column i is known. ``chain.leaving`` gets the
    rows, from place ``low`` on, and ``chain.width`` and ``chain.pivot`` of the level below get the
    number of columns and one over their diagonal entries. ``chain.coef`` gets the coefficients that
    the columns have then.

    low: The least place that is needed.
    Returns: False where too many digits cancel.
    """
    chain, A, i, member = tree.chain, tree.A, tree.start[level, j], tree.free[level, j]
    rows, n = chain.leaving, tree.n_columns[level]
    width = chain.width[level + 1] = tree.first[member + 1] - tree.first[member]
    for d in range(width):
        chain.coef[d] = tree.beta[level, i + d]
    for d in range(1, width):
        inverse_row(tree, level, i + d)
        for c in range(low, n):
            rows[d - 1, c] = A[level, i + d, c]
        for e in range(d):
            row = A[level, i] if e == 0 else rows[e - 1]
            weight = row[i + d] / row[i + e]
            add(rows[d - 1, low:n], row[low:n], -weight, n - low)
            chain.coef[d] -= weight * chain.coef[e]
        pivot = rows[d - 1, i + d]
        if not pivot > LEAST_DIAGONAL_SHARE * tree.factorised_diagonal[level, i + d]:
            return False
        chain.pivot[level + 1, d - 1] = 1.0 / pivot
    return True


@kernel(inner=True)
def drop_rest(tree, level, j, u, fresh, one_path):
    """Go on where the first column of member j has left: the other columns of j leave as well.

    On entry ``source`` lists the u free columns of the child, and ``child_beta`` and
    ``child_diagonal`` are those without the first column of j. Both are completed, and the blocks
    and added losses of the child's free members are written.

    fresh: Whether enough digits are left so far.
    Returns: Whether enough digits are left; if not, added losses are those of the parent.
    """
    chain, first, A, source = tree.chain, tree.first, tree.A, tree.source
    i, v = tree.start[level, j], list_members(tree, level, j, one_path)
    fresh = fresh and chain.whole[level, j] > 0
    fresh = fresh and rows_of_dropped(tree, level, j, 0 if one_path else i)
    count = chain.width[level + 1] - 1
    rows, pivots, scaled = chain.leaving, chain.pivot[level + 1], chain.scaled
    for d in range(count if fresh else 0):
        ratio = chain.coef[d + 1] * pivots[d]
        for a in range(u):
            off = rows[d, source[a]]
            tree.child_beta[a] -= off * ratio
            tree.child_diagonal[a] -= off * pivots[d] * off
    for a in range(u):
        least = LEAST_DIAGONAL_SHARE * tree.factorised_diagonal[level, source[a]]
        fresh = fresh and tree.child_diagonal[a] > least
    # One column after the other, so that sums over the columns that leave run along memory.
    root = np.sqrt(1.0 / A[level, i, i])
    for a in range(u if fresh else 0):
        scaled[a, 0] = A[level, i, source[a]] * root
    for d in range(count if fresh else 0):
        root = np.sqrt(pivots[d])
        for a in range(u):
            scaled[a, d + 1] = rows[d, source[a]] * root
    for b in range(v):
        parent, start = chain.source[b], chain.start[b]
        if not fresh:
            tree.child_added_loss[b] = tree.added_loss[level, parent]
            continue
        unit = tree.free[level, parent]
        width = first[unit + 1] - first[unit]
        for a in range(start + 1, start + width):
            for e in range(a - start):
                taken = dot(scaled[a], scaled[start + e], count + 1)
                chain.child_block[a, e] = chain.block[level, source[a], e] - taken
        given = tree.child_beta, tree.child_diagonal, chain.child_block, start, width
        tree.child_added_loss[b], chain.child_whole[b] = unit_loss(chain, *given)
    return fresh


@kernel(inner=True)
def order_columns(tree, level, j, v):
    """Write the order of the child's columns to ``chain.places``, from that of its v members.

    The blocks of members are written for the level below as well, and the rows of the columns that
    have left.
    """
    chain, below, position = tree.chain, level + 1, 0
    for a in range(v):
        b = tree.order[a]
        unit, start = tree.free[level, chain.source[b]], chain.start[b]
        tree.start[below, a], chain.whole[below, a] = position, chain.child_whole[b]
        for d in range(tree.first[unit + 1] - tree.first[unit]):
            chain.places[position] = start + d
            for e in range(d):
                chain.block[below, position, e] = chain.child_block[start + d, e]
            position += 1
    for d in range(chain.width[below] - 1):
        for a in range(position):
            chain.rows[below, d, a] = chain.leaving[d, tree.source[chain.places[a]]]


@kernel(inner=True)
def sum_steps(tree, level, v):
    """Sum ``step`` over the columns of each of the v free members of the child, in place.

    level: That of the child, whose members :func:`list_members` has listed.
    """
    chain = tree.chain
    for b in range(v):
        unit, total = tree.free[level - 1, chain.source[b]], 0.0
        for a in range(chain.start[b], chain.start[b] + tree.first[unit + 1] - tree.first[unit]):
            total += tree.step[a]
        tree.step[b] = total


@kernel(inner=True)
def solve_rows(tree, level, n):
    """Write V = T⁻ᵀZ_Sᵀ to ``tree.V``, with a column for every problem that is open at the node.

    S are the first n entries of ``tree.columns``, the columns that were factorised last. T is their
    triangular factor, the leading block of ``tree.triangle``, and row z_i of Z is the row that
    problem i lacks (``tree.Z`` has it as a column).
    """
    T, V, Z, columns, problem_of = tree.triangle, tree.V, tree.Z, tree.columns, tree.problem_of
    count = tree.n_open[level]
    for a in range(n):
        for i in range(count):
            V[a, i] = Z[columns[a], problem_of[level, i]]
        for c in range(a):
            weight = T[c, a]
            for i in range(count):
                V[a, i] -= weight * V[c, i]
        inverse = 1.0 / T[a, a]
        for i in range(count):
            V[a, i] *= inverse


@kernel(inner=True)
def factor_members(tree, m):
    """Write the factor of the first m of ``members`` to ``triangle``, and their columns.

    Returns: The number of columns.
    """
    T, columns, least, n = tree.triangle, tree.columns, tree.lists.now[0].least_pivot, 0
    for a in range(m):
        for column in range(tree.first[tree.members[a]], tree.first[tree.members[a] + 1]):
            columns[n] = column
            n += 1
    ridge_triangle(
        T, tree.columns_of, columns, n, 0.0, triangular=True, work=tree.work, least_value=0.0
    )
    for c in range(n):  # In exact arithmetic no pivot is smaller than √(γ/2).
        T[c, c] = min(T[c, c], -least)
    return n


@kernel(inner=True)
def copy_problems(tree, level):
    """Begin with the node's losses, 1 − h_i and r_i/(1−h_i) to drop the columns of a member."""
    chain = tree.chain
    for k in range(tree.n_open[level]):
        tree.child_loss[k] = tree.loss[level, k]
        chain.remain[k] = tree.one_minus_leverage[level, k]
        chain.deleted[k] = tree.deleted_residual[level, k]


@kernel(inner=True)
def drop_from_problems(tree, level, pivot, b, W):
    """Drop a column from every open problem, each of which lacks one row.

    Updates ``child_loss``, ``chain.remain``, the 1 − h_i, and ``chain.deleted``, the r_i/(1 − h_i).

    pivot, b, W: The column's diagonal entry of A, coefficient and row of W, as it leaves.
    """
    losses, remain, deleted = tree.child_loss, tree.chain.remain, tree.chain.deleted
    for k in range(tree.n_open[level]):
        w = W[k]
        shifted = b - w * deleted[k]
        losses[k] += shifted * shifted / (pivot + w * w / remain[k])
        grown = remain[k] + w * w / pivot
        deleted[k] = (deleted[k] * remain[k] + w * b / pivot) / grown
        remain[k] = grown


@kernel(inner=True)
def fresh_losses(tree, level, j):
    """Losses of the child without free member j for every open problem, in ``tree.child_loss``.

    They come from the factor of all columns, and no digits cancel. In a triangular factor T of the
    node's columns, those of the member last, the last column has A_jj = 1/T_jj², β_j = t_j/T_jj and
    W_j = v_j/T_jj, with t = T⁻ᵀX_Sᵀy, the column behind those of T, and V = T⁻ᵀZ_Sᵀ. So dropping
    the column adds t_j² to the loss or, without row i, (t_j − v_ji r_i/(1−h_i))² /
    (1 + v_ji²/(1−h_i)). :func:`drop_from_problems` takes 1, t_j and v_j for A_jj, β_j and W_j, as
    these differ by the factors T_jj², T_jj and T_jj, which change no loss.

    Writes, besides, ``triangle``, ``columns`` and ``members`` and, with deleted rows, ``V``,
    ``chain.remain`` and ``chain.deleted``.
    """
    T, first, member = tree.triangle, tree.first, tree.free[level, j]
    m = 0
    for unit in range(tree.mask.shape[0]):
        if unit != member and has_bit(tree.mask, level, unit):
            tree.members[m] = unit
            m += 1
    tree.members[m] = member
    n = factor_members(tree, m + 1)
    width, one_problem = first[member + 1] - first[member], tree.targets.shape[0] == 0
    if one_problem:
        tree.child_loss[0] = tree.loss[level, 0]
    else:
        solve_rows(tree, level, n)
        copy_problems(tree, level)
    for c in range(n - 1, n - 1 - width, -1):
        if one_problem:
            tree.child_loss[0] += T[c, n] * T[c, n]
        else:
            drop_from_problems(tree, level, 1.0, T[c, n], tree.V[c])


@kernel(inner=True)
def evaluate_columns(tree, level, j):
    """Losses of the child without free member j for every open problem, in ``tree.child_loss``.

    The columns of the member leave one after the other, as in ``evaluate``. With deleted rows
    ``chain.W``, ``remain`` and ``deleted`` get what :func:`update_columns` needs. Where too many
    digits would cancel, the losses are those of a fresh factor, and ``chain.whole`` says so.
    """
    chain, W, n = tree.chain, tree.chain.W, tree.n_open[level]
    if chain.whole[level, j] == 0:
        fresh_losses(tree, level, j)
        return
    if tree.targets.shape[0] == 0:
        tree.child_loss[0] = tree.loss[level, 0] + tree.added_loss[level, j]
        return
    member, i, D, coef = tree.free[level, j], tree.start[level, j], chain.square, chain.coef
    width = tree.first[member + 1] - tree.first[member]
    copy_problems(tree, level)
    for d in range(width):
        coef[d], D[d, d] = tree.beta[level, i + d], tree.diagonal[level, i + d]
        for e in range(d):
            D[d, e] = chain.block[level, i + d, e]
        for k in range(n):
            W[d, k] = tree.W[tree.offset[level] + i + d, k]
    for d in range(width):
        pivot, b = D[d, d], coef[d]
        drop_from_problems(tree, level, pivot, b, W[d])
        for e in range(d + 1, width):
            weight = D[e, d] / pivot
            coef[e] -= weight * b
            for f in range(d + 1, e + 1):
                D[e, f] -= weight * D[f, d]
            for k in range(n):
                W[e, k] -= weight * W[d, k]


@kernel(inner=True)
def update_columns(tree, level, j):
    """Compute leverages, residuals and W of the child without free member j from its parent's.

    On entry :func:`evaluate_columns` has evaluated this child, ``drop_rest`` has written the rows
    of A of the member's columns, and all else is as ``update_rows`` says.
    """
    chain, A, place, below = tree.chain, tree.A, tree.parent_place_of, level + 1
    i, n, count = tree.start[level, j], tree.n_open[below], chain.width[below] - 1
    target, origin = tree.offset[below], tree.offset[level]
    for a in range(tree.n_columns[below]):
        c = tree.parent_place[below, a]
        weight = A[level, i, c] / A[level, i, i]
        for k in range(n):
            tree.W[target + a, k] = tree.W[origin + c, place[k]] - weight * chain.W[0, place[k]]
        for d in range(count):
            weight = chain.leaving[d, c] * chain.pivot[below, d]
            for k in range(n):
                tree.W[target + a, k] -= weight * chain.W[d + 1, place[k]]
    for k in range(n):
        tree.one_minus_leverage[below, k] = chain.remain[place[k]]
        tree.deleted_residual[below, k] = chain.deleted[place[k]]
