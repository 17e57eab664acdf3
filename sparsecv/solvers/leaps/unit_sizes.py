"""Best supports of every size under constraints, by one tree over units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..kernels.linalg import Array, from_mask
from . import unit_tree as kernels
from .unit_node import UnitTree, new_unit_tree

Support = NDArray[np.intp]


class UnitSettings(NamedTuple):
    """Numbers that limit a tree over units."""

    # Bytes of the matrices of a tree, one of p × p numbers for each unit, p being the number of
    # columns. With more no tree is made.
    max_bytes: float = 5e8
    # Supports of a size with equal losses that are kept, to be compared by fresh fits. The value is
    # a choice.
    ties: int = 16
    # Operations between two looks at the clock: some tens of milliseconds.
    operations_per_look: float = 2e7


SETTINGS = UnitSettings()


class UnitSizes(NamedTuple):
    """What a tree over units has found.

    candidates: For every wanted size the supports of least loss, tied up to rounding.
    bound: For every wanted size a lower bound on the objective; rounding is not taken off.
    reach: Σ ℓ_j|β_j| + |y| is at most this number times |y| in the fits of all nodes.
    """

    candidates: list[list[Support]]
    bound: Array
    reach: float
    status: Status
    n_nodes: int


def fits_memory(problem: SparseRidgeProblem) -> bool:
    """Whether a tree over the units of a problem has room."""
    m = problem.constraints.n_units
    return 8.0 * (m + 1.0) * problem.p**2 <= SETTINGS.max_bytes


def search_units(
    problem: SparseRidgeProblem,
    sizes: NDArray[np.intp],
    starts: Sequence[Support],
    limits: Limits,
    n_best: int = 1,
) -> UnitSizes:
    """Search for the best allowed support of every size, a number of units.

    n_best: With more than 1, this many best supports of exactly every size are among the
        candidates, and a bound is that of the supports that are not.
    """
    asked = problem.constraints
    left, place, columns, *_, included = asked.left
    tree = new_unit_tree(problem, sizes, SETTINGS.ties + n_best - 1, n_best)
    full = float(tree.rules[0].full)
    kernels.begin_units(tree, included)
    for start in [np.empty(0, dtype=np.intp), *starts]:
        keep = np.zeros(left.size, dtype=np.int8)
        keep[place[asked.units(start)]] = 1
        kernels.drop_one_by_one(tree, keep)
    tree.counts[0].level = 0
    tree.cursor[0] = left.size - int(tree.n_fixed[0]) - 1
    nodes_per_look = max(int(SETTINGS.operations_per_look / (columns.size + 10.0) ** 2), 1)
    while True:
        nodes = int(tree.counts[0].nodes)
        status = limits.reached(nodes)
        if status is not None:
            break
        if kernels.advance_units(tree, limits.nodes_left(nodes, nodes_per_look)):
            status = Status.OPTIMAL
            break
    bound, reach = _open_loss(tree, sizes), float(tree.options[0].reach)
    if n_best > 1:
        found = [[from_mask(mask) for mask in _listed(tree, int(s))] for s in sizes]
        candidates = [[asked.columns_of(left[units]) for units in some] for some in found]
        return UnitSizes(candidates, full + bound, reach, status, int(tree.counts[0].nodes))
    bound = np.minimum(tree.least_bound[sizes], bound)
    if asked.bounded:
        bound = np.minimum(bound, np.minimum.accumulate(tree.max_searched)[sizes])
    found = [[asked.columns_of(left[units]) for units in _tied(tree, int(s))] for s in sizes]
    least = asked.columns_of(np.flatnonzero(asked.least))
    found = [some or [asked.padded(least, int(s))] for some, s in zip(found, sizes, strict=True)]
    return UnitSizes(found, full + bound, reach, status, int(tree.counts[0].nodes))


def _listed(tree: UnitTree, size: int) -> NDArray[np.uint64]:
    """All supports of exactly ``size`` units that are kept, as bit masks of units."""
    return np.asarray(tree.found[size, 0, : int(tree.found_n[size, 0])])


def _tied(tree: UnitTree, size: int) -> list[NDArray[np.intp]]:
    """The units of supports of at most ``size`` units whose losses tie with the least."""
    best = min(range(1, size + 1), key=lambda s: (float(tree.best[s]), -s))
    n = int(tree.found_n[best, 0])
    window = tree.best[best] * (1.0 + 2.0 * float(tree.options[0].tie))
    kept = np.flatnonzero(tree.found_loss[best, 0, :n] <= window)
    return [from_mask(tree.found[best, 0, t]) for t in kept]


def _open_loss(tree: UnitTree, sizes: NDArray[np.intp]) -> Array:
    """Least bound of an open child for every size; ∞ where no open child has such supports."""
    bound = np.full(sizes.size, np.inf)
    for level in range(int(tree.counts[0].level) + 1):
        for j in range(int(tree.cursor[level]) + 1):
            unit = tree.order[level, j]
            rises = (
                tree.loss[level] + tree.added[level, unit],
                tree.own_bound[level] + tree.rise[level, unit],
            )
            loss = max(*rises, tree.bound[level])
            below = (max(tree.n_fixed[level] + j, 1) <= sizes) & (sizes < tree.n_units[level])
            bound[below] = np.minimum(bound[below], loss)
    return bound
