"""Best supports of several sizes at any p: the all-sizes tree, then branch-and-bound per size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.limits import Limits, StopFlag
from ..core.problem import SparseRidgeProblem
from ..core.result import Status, worst
from ..core.threads import on_one_thread
from ..leaps.all_sizes import TREE_ONLY, BestSubsets, best_subsets
from ..relaxation.gram import GramForm, wants_gram
from ..supports.rounding import pad_support
from .single import branch_and_bound

FIRST_NODES = 20_000  # nodes it gets beyond that: some 2 ms
SURELY = 16  # columns whose tree cannot be large
HANDOVER = 200_000  # nodes after which sizes are tried alone, up to 45 columns: some 40 ms
BRANCHES, FAILURES = 200, 3  # nodes each of them gets, and how many may fail in a row


@on_one_thread
def solve_sizes(
    problem: SparseRidgeProblem,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    time_limit: float | None = None,
    stop: StopFlag | None = None,
) -> BestSubsets:
    """Solve eq. (1), main paper, for every size in ``sizes``, whatever the number of columns.

    Up to 45 columns this is :func:`best_subsets`; where its tree is large, as where γ is and many
    columns are worth nearly the same, sizes are first tried alone. Beyond, the tree is cut short:
    it proves the sizes near p and gives every other an incumbent, and each size left is branched
    on alone, started from its neighbour's support.

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

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, solve_sizes
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> [support.tolist() for support in solve_sizes(problem, sizes=[1, 2]).supports]
    [[1], [1, 3]]
    """
    starts = [np.asarray(start, dtype=np.intp) for start in warm_starts]
    if problem.p <= TREE_ONLY:
        return _few_columns(problem, sizes, starts, Limits(time_limit, None, stop))
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
    if tree.proved.all() or limits.reached(0) is not None:
        return tree
    return _branch_on(problem, tree, limits)


def _few_columns(
    problem: SparseRidgeProblem,
    sizes: ArrayLike | None,
    starts: list[NDArray[np.intp]],
    limits: Limits,
) -> BestSubsets:
    """One tree for all sizes, with an attempt at each size alone once it has grown large."""
    first = HANDOVER if problem.p > SURELY else None
    tree = best_subsets(
        problem,
        sizes=sizes,
        warm_starts=starts,
        time_limit=limits.remaining(),
        node_limit=first,
        stop=limits.stop,
    )
    if tree.proved.all() or first is None or limits.reached(0) is not None:
        return tree
    tree = _branch_on(problem, tree, limits, most=BRANCHES)
    left = np.flatnonzero(~tree.proved)
    if left.size == 0 or limits.reached(0) is not None:
        return tree
    rest = best_subsets(
        problem,
        sizes=tree.sizes[left],
        warm_starts=[tree.supports[i] for i in left],
        time_limit=limits.remaining(),
        stop=limits.stop,
    )
    supports, proved = list(tree.supports), tree.proved.copy()
    objective, lower = tree.objective.copy(), tree.lower_bound.copy()
    for i, support in zip(left, rest.supports, strict=True):
        supports[i] = support
    objective[left], proved[left] = rest.objective, rest.proved
    lower[left] = np.minimum(np.maximum(lower[left], rest.lower_bound), rest.objective)
    return replace(
        tree,
        supports=supports,
        objective=objective,
        lower_bound=lower,
        proved=proved,
        status=rest.status,
        n_nodes=tree.n_nodes + rest.n_nodes,
        seconds=limits.elapsed(),
        open_nodes=rest.open_nodes,
    )


def _branch_on(
    problem: SparseRidgeProblem, tree: BestSubsets, limits: Limits, most: int | None = None
) -> BestSubsets:
    """Branch on every size that is not proved, alone; with ``most`` nodes for each, if given."""
    wanted = tree.sizes
    left = np.flatnonzero(~tree.proved)
    gram = GramForm.of(problem, limits=limits) if wants_gram(problem) else None
    supports, proved = list(tree.supports), tree.proved.copy()
    objective, lower = tree.objective.copy(), tree.lower_bound.copy()
    nodes, failures = tree.n_nodes, 0
    statuses: dict[int, Status] = {}
    todo = left.tolist()
    while todo:
        for done, i in enumerate(todo):
            reached = limits.reached(0)
            if reached is None and most is not None and failures == FAILURES:
                reached = Status.NODE_LIMIT
            if reached is not None:
                statuses[-1] = reached
                break
            neighbour = [supports[i - 1]] if i > 0 else []
            share = limits.share(float(len(todo) - done)).remaining()
            found = branch_and_bound(
                problem.replace(tau=int(wanted[i])),
                warm_starts=[supports[i], *neighbour],
                tol=0.0,
                limits=Limits(share, most, limits.stop),
                gram=gram,
            )
            nodes += found.n_nodes
            if found.objective <= objective[i]:
                supports[i] = pad_support(found.support, int(wanted[i]), problem.p)
                objective[i] = found.objective
            lower[i] = max(lower[i], min(found.lower_bound, objective[i]))
            proved[i] = found.status is Status.OPTIMAL
            failures = 0 if proved[i] else failures + 1
            statuses[i] = found.status
        # what easy sizes left of their time goes to the hard ones
        todo = [i for i in todo if statuses.get(i) is Status.TIME_LIMIT]
        if most is not None or limits.reached(0) is not None:
            break
    return replace(
        tree,
        supports=supports,
        objective=objective,
        lower_bound=lower,
        proved=proved,
        status=worst(statuses.values()),
        n_nodes=nodes,
        seconds=limits.elapsed(),
        # the all-sizes tree counts where it proved something
        n_trees=int(left.size) + int(left.size < wanted.size),
    )
