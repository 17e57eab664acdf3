"""Small supports of many columns, found by visiting every support in a few nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from ..core.problem import SparseRidgeProblem, checked_sizes
from ..kernels.completion import complete, completion_work
from ..kernels.linalg import Array
from ..leaps.all_sizes import prefer
from ..relaxation.gram import GramForm
from ..supports.rounding import pad_support

# More supports than these are not enumerated: they take some 10 ms. Doubling the number doubles the
# longest time of an enumeration.
MAX_SUPPORTS = 5_000_000
# γ has to be at least this share of the longest column's square, so that sums in double precision
# keep nine digits. Doubling the share enumerates fewer problems.
MIN_GAMMA_SHARE = 1e-7
# Enumeration has to beat a start's gain less this share of it, so that a support of an equal gain
# is found in spite of rounding. Doubling the share costs a few more candidates.
RELATIVE_MARGIN = 1e-12
# Where rounding may have overlooked more than this share of an objective, enumeration proves
# nothing. Doubling the share calls less precise results optimal.
MAX_RELATIVE_LOSS = 1e-6


def few_supports(problem: SparseRidgeProblem, sizes: Iterable[int]) -> bool:
    """Whether the supports of these sizes are few, and γ large enough for precise sums.

    problem: Its τ is not used.
    """
    total = 0
    for size in sizes:
        total += comb(problem.p, int(size))
        if total > MAX_SUPPORTS:
            return False
    return problem.gamma >= MIN_GAMMA_SHARE * float(problem.squared_lengths.max())


def enumerated(
    problem: SparseRidgeProblem, sizes: NDArray[np.intp], starts: Sequence[NDArray[np.intp]]
) -> tuple[list[NDArray[np.intp]], Array] | None:
    """Optimal supports of eq. (1), main paper, for every size, found by visiting every support.

    problem: Its τ is not used; :func:`few_supports` holds for the problem.
    sizes: In 1..p.
    starts: Good supports; supports that are not better than the starts are passed over faster.
    Returns: One support and one lower bound per size; None where rounding does not tell objectives
        apart.
    """
    wanted = checked_sizes(problem, sizes)
    p, ridge = problem.p, problem.gamma / 2.0
    gram = GramForm.of(problem, extract=False)
    G, b = np.ascontiguousarray(gram.G), gram.b
    most = max(int(wanted[-1]), 2)
    work = completion_work(most, p, most - 1)
    every, none = np.arange(p, dtype=np.int64), np.empty(0, dtype=np.int64)
    given: dict[int, list[NDArray[np.intp]]] = {}
    for start in starts:
        given.setdefault(start.size, []).append(start)
    found: list[NDArray[np.intp]] = []
    lower = np.empty(wanted.size)
    for i, size in enumerate(wanted.tolist()):
        options = given.get(size, [])
        known = max((problem.fit(s).gain for s in options), default=0.0)
        picks = work.found[:size]
        picks[0] = -1
        known *= 1.0 - RELATIVE_MARGIN
        gain = complete(G, b, ridge, none, 0, every, p, size, known, -np.inf, work)
        if picks[0] >= 0:
            options = [*options, np.sort(picks).astype(np.intp)]
        if not options:  # No column is correlated with y.
            options = [pad_support(np.empty(0, dtype=np.intp), size, p)]
        best = options[prefer([problem.fit(s) for s in options], options)]
        objective, least = problem.objective(best), gram.yy - float(gain)
        lower[i] = min(least, objective) - gram.rounding(ridge, size, least)
        lower[i] -= problem.data_loss(objective, size)
        if objective - lower[i] > MAX_RELATIVE_LOSS * objective:
            return None
        found.append(best)
    return found, np.maximum(lower, 0.0)
