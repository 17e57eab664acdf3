"""The n best supports of every size of one problem, in one tree of leaps and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.result import Status
from ..core.threads import on_one_thread
from ..kernels.linalg import Array, from_mask
from ..supports.rounding import pad_support
from .all_sizes import (
    MAX_COLUMNS,
    active_columns,
    certain,
    coefficient_spread,
    open_loss,
    root_state,
    rounding_margin,
    run,
    seed,
)
from .open_nodes import RELATIVE_ROUNDING
from .tree_kernels import TREE
from .unit_sizes import fits_memory, search_units


class RankedSupports(NamedTuple):
    """The best supports of one size, the best first.

    supports: Increasing columns of each.
    objective, shape (m,): Their objectives, increasing.
    n_proved: So many of them are proved to be the best: no other support has a smaller objective,
        up to rounding.
    """

    supports: list[NDArray[np.intp]]
    objective: Array
    n_proved: int


@on_one_thread
def n_best_subsets(
    problem: SparseRidgeProblem,
    sizes: Sequence[int] | NDArray[np.intp],
    n: int,
    *,
    known: Sequence[NDArray[np.intp]] = (),
    limits: Limits | None = None,
) -> list[RankedSupports]:
    """The n best supports of every size, or all where there are fewer, from one tree.

    Up to 168 columns (with constraints, as long as a tree's matrices fit into memory) the tree
    prunes by the n-th best support of a size. Where a limit ends the search, a support is proved to
    be among the best if no open node can hold a better one. With more columns nothing is searched,
    and the known supports are ranked.

    problem: Its τ is not used. Columns that are zero in every row never enter, but with constraints
        or to fill a support up to its size. Under constraints a size is a number of units, columns
        or groups of columns, and only supports that obey the constraints count.
    known: Good supports of any size.
    Returns: For every size, in the order of :func:`checked_sizes`; of supports whose objectives are
        equal the lexicographically first comes first.
    """
    limits = (limits or Limits()).within()
    problem = problem.at_unit_length()
    wanted, active, asked = (
        checked_sizes(problem, sizes),
        active_columns(problem),
        problem.constraints,
    )
    inner = np.minimum(wanted, active.size)
    candidates: list[set[tuple[int, ...]]] = [
        {tuple(s.tolist()) for s in known if asked.units(s).size == size and asked.allowed(s)}
        for size in wanted
    ]
    bound, reach = np.zeros(wanted.size), 1.0
    if not asked.plain:
        if fits_memory(problem):
            starts = [s for s in known if asked.allowed(s)]
            units = search_units(problem, wanted, starts, limits, max(n, 2))
            for found, more in zip(candidates, units.candidates, strict=True):
                found.update(tuple(s.tolist()) for s in more)
            bound = units.bound if units.status is not Status.OPTIMAL else bound + np.inf
            reach = units.reach
    elif active.size <= MAX_COLUMNS:
        state = root_state(problem, active, np.unique(inner), n_best=n)
        seed(state, active, [s for s in known if 0 < s.size <= inner.max()], int(inner.max()))
        status = run(state, limits, TREE.nodes_per_look)
        tree = state.tree
        for found, size, full in zip(candidates, inner, wanted, strict=True):
            for t in range(int(tree.found_n[size, 0])):
                columns = active[from_mask(tree.found[size, 0, t])]
                found.add(tuple(pad_support(columns, int(full), problem.p).tolist()))
        bound = open_loss(state, inner) + tree.columns_of[-1, -1] ** 2
        if status is Status.OPTIMAL:
            bound[:] = np.inf
        reach = float(tree.options[0].reach)
    return [
        _ranked(problem, found, n, float(one), reach)
        for found, one in zip(candidates, bound, strict=True)
    ]


def _ranked(
    problem: SparseRidgeProblem, found: set[tuple[int, ...]], n: int, bound: float, reach: float
) -> RankedSupports:
    """Rank supports of one size by fresh fits; supports elsewhere are no better than ``bound``.

    reach: As :func:`rounding_margin` takes it.
    """
    supports = [np.array(s, dtype=np.intp) for s in sorted(found)]
    fits = [problem.fit(s) for s in supports]
    objective = np.array([fit.objective for fit in fits])
    # Where yᵀy less the objective is the smaller number, it keeps more digits (`prefer`).
    by_gain = bool(fits) and fits[int(objective.argmin())].gain < objective.min()
    values = -np.array([fit.gain for fit in fits]) if by_gain else objective
    order = np.argsort(values, kind="stable")
    # Values that follow each other within 1e-12, the error of a fit, tie: there the order of the
    # supports, which is lexicographic, decides.
    steps = np.diff(values[order], prepend=values[order[:1]])
    group = np.cumsum(steps > 1e-12 * np.abs(values[order]))
    order = order[np.lexsort((order, group))][:n]
    kept = objective[order]
    spread = coefficient_spread(problem)
    margin = rounding_margin(kept, problem.yy, reach, spread)
    margin += [problem.zero_loss(f) for f in kept.tolist()]
    proved = (bound > kept * (1.0 + RELATIVE_ROUNDING)) & certain(kept, margin, problem.yy)
    count = int(np.logical_and.accumulate(proved).sum())
    return RankedSupports([supports[i] for i in order], np.maximum.accumulate(kept), count)
