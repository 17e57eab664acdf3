"""Compiled exchange of two members of a support for the best other two."""

from __future__ import annotations

import numpy as np

from ..kernels.compiled import kernel
from ..kernels.completion import complete


@kernel
def pair_swap(G, b, ridge, support, k, gain, number, offered, work):  # type: ignore[no-untyped-def]
    """Pair ``number`` of the k(k−1)/2 members exchanged for the best other pair, if that helps.

    Columns with ``offered`` 0 are not added. Returns the new gain, with ``support[:k]``
    overwritten, or ``gain``.
    """
    completion, chosen, columns = work
    p = b.shape[0]
    first, second = 0, number + 1
    while second >= k:  # rows of the strict upper triangle, one after the other
        second -= k - first - 2
        first += 1
    m = 0
    for a in range(k):
        if a != first and a != second:
            chosen[m] = support[a]
            m += 1
    n = 0
    for i in range(p):
        member = offered[i] == 0
        for a in range(m):
            member = member or chosen[a] == i
        if not member:
            columns[n] = i
            n += 1
    record = gain * (1.0 + 1e-10)
    new = complete(G, b, ridge, chosen, m, columns, n, 2, record, -np.inf, completion)
    if new <= record:
        return gain
    for a in range(m):
        support[a] = chosen[a]
    support[m] = columns[completion.found[0]]
    support[m + 1] = columns[completion.found[1]]
    return new
