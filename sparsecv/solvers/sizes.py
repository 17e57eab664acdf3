"""Best supports of several sizes at any p: the all-sizes tree, then branch-and-bound per size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .all_sizes import BestSubsets, best_subsets, pad_support
from .branch_and_bound import branch_and_bound
from .limits import Limits, StopFlag
from .problem import SparseRidgeProblem
from .root import GramForm, wants_gram
from .solution import Status

TREE_ONLY = 45  # columns up to which the all-sizes tree is searched to its end
FIRST_NODES = 20_000  # nodes it gets beyond that: some 2 ms


def solve_sizes(
    problem: SparseRidgeProblem,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    time_limit: float | None = None,
    stop: StopFlag | None = None,
) -> BestSubsets:
    """Solve eq. (1), main paper, for every size in ``sizes``, whatever the number of columns.

    Up to 45 columns this is :func:`best_subsets`. Beyond, its tree is cut short: it proves the
    sizes near p and gives every other an incumbent, and each size left is branched on alone,
    started from its neighbour's support.

    Parameters
    ----------
    problem, sizes, warm_starts, stop
        As in :func:`best_subsets`.
    time_limit : float, optional
        Seconds for all sizes together.

    Returns
    -------
    BestSubsets
        ``proved`` says which sizes are optimal. The open nodes are those of the all-sizes tree.
    """
    starts = list(warm_starts)
    if problem.p <= TREE_ONLY:
        return best_subsets(
            problem, sizes=sizes, warm_starts=starts, time_limit=time_limit, stop=stop
        )
    limits = Limits(time_limit, None, stop)
    share = None if time_limit is None else time_limit / 4.0
    tree = best_subsets(
        problem,
        sizes=sizes,
        warm_starts=starts,
        time_limit=share,
        node_limit=FIRST_NODES,
        stop=stop,
    )
    left = np.flatnonzero(~tree.proved)
    if left.size == 0 or limits.reached(0) is not None:
        return tree
    gram = GramForm.of(problem) if wants_gram(problem) else None
    supports, proved = list(tree.supports), tree.proved.copy()
    objective, lower = tree.objective.copy(), tree.lower_bound.copy()
    nodes, status = tree.n_nodes, Status.OPTIMAL
    for done, i in enumerate(left):
        reached = limits.reached(nodes)
        if reached is not None:
            status = reached
            break
        remaining = limits.remaining()
        one = Limits(None if remaining is None else remaining / (left.size - done), None, stop)
        neighbour = [supports[i - 1]] if i > 0 else []
        found = branch_and_bound(
            problem.replace(tau=int(tree.sizes[i])),
            warm_starts=[supports[i], *neighbour],
            tol=0.0,
            limits=one,
            gram=gram,
        )
        nodes += found.n_nodes
        if found.objective <= objective[i]:
            supports[i] = pad_support(found.support, int(tree.sizes[i]), problem.p)
            objective[i] = found.objective
        lower[i] = max(lower[i], min(found.lower_bound, objective[i]))
        proved[i] = found.status is Status.OPTIMAL
        if not proved[i]:
            status = found.status
    return replace(
        tree,
        supports=supports,
        objective=objective,
        lower_bound=lower,
        proved=proved,
        status=status,
        n_nodes=nodes,
        seconds=limits.elapsed(),
        # the all-sizes tree counts where it proved something
        n_trees=int(left.size) + int(left.size < tree.sizes.size),
    )
