"""Best supports of several sizes at any p: the all-sizes tree, then branch-and-bound per size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..leaps.all_sizes import TREE_ONLY, BestSubsets, best_subsets, checked_sizes, pad_support
from ..leaps.open_nodes import OpenNode
from ..limits import Limits, StopFlag
from ..problem import SparseRidgeProblem
from ..relaxation.gram import GramForm, wants_gram
from ..result import Status, worst
from ..threads import on_one_thread
from .certificate import Certificate, certify
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
    certificates: Mapping[int, Certificate] | None = None,
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
    certificates : mapping of int to Certificate, optional
        Leaves of a neighbouring problem's trees by size (:func:`certificates_of`).

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
    wanted = checked_sizes(problem, sizes)
    known = certificates or {}
    transferred = np.array([int(size) in known for size in wanted])
    given = {start.size: start for start in starts}
    if transferred.all() and all(int(size) in given for size in wanted):
        tree = _unsearched(problem, wanted, [given[int(size)] for size in wanted])
    else:
        tree = best_subsets(
            problem,
            sizes=wanted,
            warm_starts=starts,
            time_limit=share,
            node_limit=FIRST_NODES,
            stop=stop,
        )
    if tree.proved.all() or limits.reached(0) is not None:
        return tree
    return _branch_on(problem, tree, limits, transferred, known)


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
        settled=None,
    )


def _branch_on(
    problem: SparseRidgeProblem,
    tree: BestSubsets,
    limits: Limits,
    transferred: NDArray[np.bool_] | None = None,
    known: Mapping[int, Certificate] | None = None,
    most: int | None = None,
) -> BestSubsets:
    """Branch on every size that is not proved, alone; with ``most`` nodes for each, if given."""
    wanted, known = tree.sizes, known or {}
    transferred = np.zeros(wanted.size, dtype=bool) if transferred is None else transferred
    left = np.flatnonzero(~tree.proved)
    whole = transferred.any() or wants_gram(problem)
    gram = GramForm.of(problem, limits=limits) if whole else None
    supports, proved = list(tree.supports), tree.proved.copy()
    objective, lower = tree.objective.copy(), tree.lower_bound.copy()
    settled = np.zeros(wanted.size, dtype=bool)
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
            neighbour = [supports[i - 1]] if i > 0 and not transferred[i] else []
            share = limits.share(float(len(todo) - done)).remaining()
            found = branch_and_bound(
                problem.replace(tau=int(wanted[i])),
                warm_starts=[supports[i], *neighbour],
                tol=0.0,
                limits=Limits(share, most, limits.stop),
                gram=gram,
                certificate=known.get(int(wanted[i])),
            )
            nodes += found.n_nodes
            if found.objective <= objective[i]:
                supports[i] = pad_support(found.support, int(wanted[i]), problem.p)
                objective[i] = found.objective
            lower[i] = max(lower[i], min(found.lower_bound, objective[i]))
            proved[i] = found.status is Status.OPTIMAL
            failures = 0 if proved[i] else failures + 1
            settled[i] = transferred[i] and proved[i] and found.n_branched == 0
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
        n_trees=int(left.size - settled.sum()) + int(left.size < wanted.size),
        settled=settled,
    )


def _unsearched(
    problem: SparseRidgeProblem, sizes: NDArray[np.intp], supports: list[NDArray[np.intp]]
) -> BestSubsets:
    """Known supports of every size, nothing proved."""
    objective = np.array([problem.objective(support) for support in supports])
    root = OpenNode(np.empty(0, dtype=np.intp), np.arange(problem.p, dtype=np.intp), -1)
    nothing = np.zeros(sizes.size, dtype=bool)
    return BestSubsets(
        sizes, supports, objective, 0.0 * objective, nothing, Status.TIME_LIMIT, 0, 0.0, [root]
    )


def certificates_of(
    problem: SparseRidgeProblem,
    whole: BestSubsets,
    margin: float,
    time_limit: float | None = None,
    stop: StopFlag | None = None,
) -> dict[int, Certificate]:
    """Leaves of the trees of a solved problem, for its neighbours.

    Parameters
    ----------
    problem : SparseRidgeProblem
    whole : BestSubsets
        Its solution.
    margin : float
        As in :func:`certify`.
    time_limit, stop
        Seconds for all sizes together, and a flag another thread may raise.

    Returns
    -------
    dict of Certificate
        By size; sizes that were not proved, or whose tree is too large, are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, certificates_of, solve_sizes
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> certificates_of(problem, solve_sizes(problem), margin=0.1)  # so few columns need none
    {}
    """
    found: dict[int, Certificate] = {}
    if problem.p <= TREE_ONLY or not wants_gram(problem):
        return found
    limits = Limits(time_limit, None, stop)
    gram = GramForm.of(problem, limits=limits)
    for size, support, proved in zip(whole.sizes, whole.supports, whole.proved, strict=True):
        if not proved:
            continue
        one = problem.replace(tau=int(size))
        certificate = certify(one, support, margin=margin, gram=gram, limits=limits)
        if limits.reached(0) is not None:
            break  # the last one was cut short
        if certificate is not None:
            found[int(size)] = certificate
    return found
