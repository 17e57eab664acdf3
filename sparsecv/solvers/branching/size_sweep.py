"""Best supports of several sizes at any p: the all-sizes tree, then branch-and-bound per size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.result import Status, worst
from ..core.threads import on_one_thread
from ..leaps.all_sizes import TREE_ONLY, BestSubsets, best_subsets, certain, only_support
from ..relaxation.gram import GramForm, wants_gram
from ..supports.rounding import pad_support
from ..supports.unit_steps import UnitSteps
from .enumeration import enumerated, few_supports
from .single import branch_and_bound

# Beyond ``TREE_ONLY`` (45) columns the all-sizes tree gets this many nodes, some 2 ms, or a quarter
# of the time left where that ends earlier, before the sizes that it has not proved are searched
# alone. In ``solvers.paths`` a tree of so many nodes follows the supports found at each γ.
FIRST_NODES = 20_000
# Up to this many columns the all-sizes tree cannot be large, and has no limit of nodes but the
# caller's.
MAX_COLUMNS_OF_SMALL_TREES = 16
# Up to ``TREE_ONLY`` columns the sizes left are tried alone after this many nodes of the all-sizes
# tree, some 40 ms. ``solvers.api`` and ``solvers.paths`` stop the tree after as many nodes before
# they try other searches.
HANDOVER = 200_000
# Nodes that branch and bound gets for each size tried alone there, and how many sizes in a row may
# fail before the all-sizes tree goes on.
MAX_NODES_OF_TRIAL, MAX_FAILED_TRIALS = 200, 3


@on_one_thread
def solve_sizes(
    problem: SparseRidgeProblem,
    *,
    sizes: ArrayLike | None = None,
    warm_starts: Iterable[ArrayLike] = (),
    limits: Limits | None = None,
) -> BestSubsets:
    """Solve eq. (1), first paper, for every size in ``sizes``, whatever the number of columns.

    Up to 45 columns (or groups of columns) this is :func:`best_subsets`. Where its tree is large,
    as for large γ and many columns that are worth nearly the same, every size is first tried alone
    by branch and bound. With more columns the all-sizes tree is cut short: the tree proves the
    sizes near p and gives every other size an incumbent, and each size left is solved alone by
    branch and bound, started from the support of the size below.

    Parameters
    ----------
    problem, sizes, warm_starts
        As in :func:`best_subsets`.
    limits : Limits, optional
        Seconds for all sizes together, and a flag that another thread may raise.

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
    limits, problem = (limits or Limits()).within(), problem.at_unit_length()
    asked, starts = problem.constraints, [np.asarray(s) for s in warm_starts]
    few = asked.n_units <= TREE_ONLY
    if not asked.plain:
        wanted = checked_sizes(problem, sizes)
        free = problem.replace(tau=asked.max_size).reduced()
        if free is not None:
            return _reduced_sizes(problem, free, wanted, starts, limits)
        if not few:
            starts += (
                UnitSteps(problem).supports(wanted.tolist(), starts, limits.share(8.0)).values()
            )
    first: int | None = HANDOVER if few else FIRST_NODES
    if asked.n_units <= MAX_COLUMNS_OF_SMALL_TREES:
        first = None
    share = (limits if few else limits.share(4.0)).within(nodes=first)
    tree = best_subsets(problem, sizes=sizes, warm_starts=starts, limits=share)
    if tree.status is Status.PRECISION:  # Another tree would lose the same digits.
        return _few_supports_enumerated(problem, tree, limits) if asked.plain else tree
    if tree.proved.all() or first is None or limits.reached(0) is not None:
        return tree
    tree = _each_alone(problem, tree, limits, MAX_NODES_OF_TRIAL if few else None)
    left = np.flatnonzero(~tree.proved)
    if not few or left.size == 0 or limits.reached(0) is not None:
        return tree
    rest = best_subsets(
        problem,
        sizes=tree.sizes[left],
        warm_starts=[tree.supports[i] for i in left],
        limits=limits,
    )
    for i, *found in zip(left, rest.supports, rest.objective, rest.lower_bound, strict=True):
        _enter(tree, int(i), *found)
    tree.proved[left] = rest.proved
    return replace(
        tree,
        status=rest.status,
        n_nodes=tree.n_nodes + rest.n_nodes,
        seconds=limits.elapsed(),
        open_nodes=rest.open_nodes,
    )


def _few_supports_enumerated(
    problem: SparseRidgeProblem, tree: BestSubsets, limits: Limits
) -> BestSubsets:
    """Enumerate sizes of few supports where rounding has left a finished tree without proof.

    tree: Its arrays are changed in place.
    """
    left = [i for i in np.flatnonzero(~tree.proved) if few_supports(problem, tree.sizes[[i]])]
    for i in left:
        proof = enumerated(problem, tree.sizes[[i]], [tree.supports[i]], limits)[0]
        _enter(tree, int(i), proof.support, proof.objective, proof.lower_bound)
        tree.proved[i] = proof.status is Status.OPTIMAL
    status = Status.OPTIMAL if tree.proved.all() else limits.reached(0) or Status.PRECISION
    return replace(tree, status=status, seconds=limits.elapsed())


def _reduced_sizes(
    problem: SparseRidgeProblem,
    free: SparseRidgeProblem,
    wanted: NDArray[np.intp],
    warm_starts: list[NDArray[np.intp]],
    limits: Limits,
) -> BestSubsets:
    """Every size of a problem in which single columns must be in or out.

    free: What :meth:`SparseRidgeProblem.reduced` makes of the problem.
    """
    included = np.flatnonzero(problem.constraints.include[problem.constraints.unit])
    inner = wanted - included.size
    found = solve_sizes(
        free,
        sizes=np.maximum(inner, 1),
        warm_starts=[free.positions(start) for start in warm_starts],
        limits=limits,
    )
    at = np.searchsorted(found.sizes, np.maximum(inner, 1))
    chosen = [
        found.supports[i] if size > 0 else found.supports[i][:0]
        for i, size in zip(at, inner, strict=True)
    ]
    supports = [free.given_columns(support) for support in chosen]
    objective = np.array([problem.objective(support) for support in supports])
    lower, proved = np.minimum(found.lower_bound[at], objective), found.proved[at]
    if inner[0] == 0:  # The included columns are the only support of their size.
        lower[0] = only_support(problem, included, 0.0).lower_bound
        proved[0] = True
    # Projecting included columns out takes digits of the others.
    proved &= certain(objective, objective - lower, problem.yy)
    status = found.status
    if status is Status.OPTIMAL and not proved.all():
        status = Status.PRECISION
    return replace(
        found,
        sizes=wanted,
        supports=supports,
        objective=objective,
        lower_bound=lower,
        proved=proved,
        status=status,
        open_nodes=[],
    )


def _enter(
    tree: BestSubsets, i: int, support: NDArray[np.intp], objective: float, bound: float
) -> None:
    """Take over a support of size i if it is as good, and a lower bound."""
    if objective <= tree.objective[i]:
        tree.supports[i], tree.objective[i] = support, objective
    tree.lower_bound[i] = min(max(tree.lower_bound[i], bound), tree.objective[i])


def _by_units(problem: SparseRidgeProblem, tree: BestSubsets, i: int, limits: Limits) -> bool:
    """Whether leaps and bounds over units proves size i within some nodes; enters what it finds.

    It is the faster search of sizes near the number of units.
    """
    found = best_subsets(
        problem,
        sizes=[int(tree.sizes[i])],
        warm_starts=tree.supports[max(i - 1, 0) : i + 2],
        limits=limits.share(4.0).within(nodes=HANDOVER),
    )
    _enter(tree, i, found.supports[0], float(found.objective[0]), float(found.lower_bound[0]))
    tree.proved[i] = found.proved[0]
    return bool(found.proved[0])


def _each_alone(
    problem: SparseRidgeProblem, tree: BestSubsets, limits: Limits, most: int | None
) -> BestSubsets:
    """Solve every size that is not proved alone, by branch and bound.

    tree: Its arrays are changed in place.
    most: Nodes for each size; then sizes are given up after some failures in a row.
    """
    todo = np.flatnonzero(~tree.proved).tolist()
    plain = problem.constraints.plain
    gram = GramForm.of(problem, limits=limits) if plain and wants_gram(problem) else None
    n_left, nodes, failures = len(todo), tree.n_nodes, 0
    statuses: dict[int, Status] = {}
    while todo:
        for done, i in enumerate(todo):
            reached = limits.reached(0)
            if most is not None and failures == MAX_FAILED_TRIALS:
                reached = reached or Status.NODE_LIMIT
            if reached is not None:
                statuses[-1] = reached
                break
            size, share = int(tree.sizes[i]), limits.share(float(len(todo) - done)).remaining()
            within = Limits(share, most, limits.stop)
            if not plain and most is None and _by_units(problem, tree, i, within):
                statuses[i] = Status.OPTIMAL
                continue
            found = branch_and_bound(
                problem.replace(tau=size),
                warm_starts=tree.supports[max(i - 1, 0) : i + 1][::-1],
                tol=0.0,
                limits=within,
                gram=gram,
            )
            nodes += found.n_nodes
            support = found.support
            if plain:
                support = pad_support(support, size, problem.p)
            _enter(tree, i, support, found.objective, found.lower_bound)
            statuses[i] = found.status
            tree.proved[i] = found.status is Status.OPTIMAL
            failures = 0 if tree.proved[i] else failures + 1
        # The time that easy sizes have left goes to sizes whose own time was up.
        todo = [i for i in todo if statuses.get(i) is Status.TIME_LIMIT]
        if most is not None or limits.reached(0) is not None:
            break
    return replace(
        tree,
        status=worst(statuses.values()),
        n_nodes=nodes,
        seconds=limits.elapsed(),
        # The all-sizes tree counts as a tree where it proved something.
        n_trees=n_left + int(n_left < tree.sizes.size),
    )
