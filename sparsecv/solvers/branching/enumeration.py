"""Small supports of many columns by looking at every one: a few nanoseconds each."""

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

MOST = 5_000_000  # supports: some 10 ms
SOUND = 1e-7  # least share of the longest column's square that γ may be: nine digits are left
SLACK = 1e-12  # of a start's gain: rounding must not hide its equal
PRECISE = 1e-6  # of an objective: rounding may overlook no more


def few_supports(problem: SparseRidgeProblem, sizes: Iterable[int]) -> bool:
    """Whether :func:`enumerated` is quick here, and likely to be precise.

    problem: Its τ is not used.
    """
    total = 0
    for size in sizes:
        total += comb(problem.p, int(size))
        if total > MOST:
            return False
    return problem.gamma >= SOUND * float(problem.squared_lengths.max())


def enumerated(
    problem: SparseRidgeProblem, sizes: NDArray[np.intp], starts: Sequence[NDArray[np.intp]]
) -> tuple[list[NDArray[np.intp]], Array] | None:
    """Optimal supports of eq. (1), main paper, for every size, every support looked at.

    problem: Its τ is not used; γ as :func:`few_supports` wants it.
    sizes: In 1..p.
    starts: Good ones; what is not better than they are is passed over faster.
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
        record = max((problem.fit(s).gain for s in options), default=0.0)
        picks = work.found[:size]
        picks[0] = -1
        record *= 1.0 - SLACK
        gain = complete(G, b, ridge, none, 0, every, p, size, record, -np.inf, work)
        if picks[0] >= 0:
            options = [*options, np.sort(picks).astype(np.intp)]
        if not options:  # nothing explains y
            options = [pad_support(np.empty(0, dtype=np.intp), size, p)]
        best = options[prefer([problem.fit(s) for s in options], options)]
        objective, least = problem.objective(best), gram.yy - float(gain)
        lower[i] = min(least, objective) - gram.rounding(ridge, size, least)
        lower[i] -= problem.data_loss(objective, size)
        if objective - lower[i] > PRECISE * objective:
            return None
        found.append(best)
    return found, np.maximum(lower, 0.0)
