"""One search for many problems that differ by the rows deleted, and what stays open of each.

The first paper solves or bounds every fold alone. Here the problem of all rows is searched, to a
bound somewhat above its optimum, and the search hands out its leaves: every support lies below one
of them. Each problem is bounded at all leaves, and searched alone from those that stay open for it.
Most problems need no search of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...schedule import MOST_OPEN_LEAVES, NODES_OF_A_JOINT_TREE
from ..core.leaves import IN, Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Answer, Status, Work
from ..core.rounding import BOUND_SHARE
from ..kernels.linalg import Array
from ..relaxation.dual_bound import first_multiplier
from ..supports.rounding import pad_support
from .row_deletion import LeftOut
from .search import MAX_OPEN_BYTES, Search, Tree

# The objectives of one support on the problems of these numbers.
Objectives = Callable[[NDArray[np.intp], NDArray[np.intp]], Array]


def solve_jointly(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    supports: Sequence[NDArray[np.intp]],
    upper: Array,
    objectives: Objectives,
    *,
    limits: Limits | None = None,
    most_nodes: int = NODES_OF_A_JOINT_TREE,
    max_leaves: int = MOST_OPEN_LEAVES,
) -> list[Answer]:
    """Search the problem of all rows, and bound every problem that lacks rows at the leaves.

    As deleted rows take something off the bounds, the search goes on for a while once the problem
    of all rows is solved, below the leaves of least bound.

    problem: The problem on all rows, which gives γ and τ.
    supports: Incumbents of the k problems, and of the problem of all rows, of τ units each.
    upper, shape (k,): Objectives of the problems' incumbents.
    objectives: Computes the objectives of one support on some problems.
    most_nodes: The search ends after this many nodes; the nodes then waiting are leaves, too.
    max_leaves: A problem with more open leaves than this has the root as its only leaf.
    Returns: An answer for every problem, with its open leaves and the nodes of the search of all
        rows.
    """
    limits, k, tau = limits or Limits(), left_out.count, problem.tau
    supports, upper = list(supports), upper.copy()
    tree = Tree(left_out.gram, problem, 0.0, left_out.units)
    tree.enter(tree.numbers(supports[k]), 0)
    most = min(most_nodes, tree.keep_leaves())
    root = left_out.root(first_multiplier(left_out.gram.b, tree.st.terms.w, tau))
    tree.add(root)
    status = Search(tree).run(limits.within(nodes=most))
    if status is Status.OPTIMAL:
        # A bound 1 percent above the optimum, and 8 nodes for each problem, were chosen by times of
        # leave-one-out in experiments/solvers/shared_tree.py.
        tree.go_on(0.01)
        most = min(most, tree.n_nodes + 8 * k)
        status = Search(tree).run(limits.within(nodes=most))
    leaves, work = tree.leaves(), Work(tree.n_nodes)
    m, single = leaves.size, leaves.of_one_support()
    # The leaves of k problems take at most as much memory as a search may.
    held = int(MAX_OPEN_BYTES / (k * tree.bytes_per_node()))
    bounded = partial(left_out.open_leaves, leaves, problem, min(max_leaves, held), limits)
    pairs, known = bounded(upper, np.ones(k, dtype=np.bool_))
    # An open leaf of one support is closed by the support's objective.
    tried, before = pairs[single[pairs % m]], upper.copy()
    for leaf in np.unique(tried % m):
        which = tried[tried % m == leaf] // m
        inside = np.flatnonzero(leaves.state[leaf] == IN)
        support = tree.columns(pad_support(inside, tau, left_out.units.size))
        value = objectives(which, support)
        for j, objective in zip(which.tolist(), value.tolist(), strict=True):
            if objective < upper[j]:
                upper[j], supports[j] = objective, support
    more, again = bounded(upper, upper < before)
    pairs = np.setdiff1d(np.concatenate([pairs[~again[pairs // m]], more]), tried)
    first = np.searchsorted(pairs, m * np.arange(k + 1))
    margin = left_out.gram.overlooked(problem.gamma / 2.0, tau, float(tree.now["upper"][0]))
    rounding = margin + left_out.overlooked(problem.gamma / 2.0, tau, upper)
    answers = []
    for j in range(k):
        at = pairs[first[j] : first[j + 1]] - m * j
        # The bounds of the leaves are those of the problem of all rows.
        nodes = leaves.some(at).afresh() if known[j] else root
        incumbent = Answer(
            size=tau,
            support=supports[j],
            objective=upper[j],
            lower_bound=0.0,
            status=Status.UNPROVED,
            work=work,
            rounding=rounding[j],
        )
        answers.append(_with_leaves(incumbent, nodes, status))
    return answers


def search_alone(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    j: int,
    found: Answer,
    limits: Limits | None = None,
    *,
    branch: bool = False,
) -> Answer:
    """Search the nodes that are open for problem j, with relaxations on the rows of problem j.

    left_out: Gives the Gram form of problem j, one of those without some rows.
    problem: That of all rows, from which γ and τ are taken.
    found: The incumbent and the open nodes of the problem.
    branch: Whether to search until the problem is solved. Otherwise the open nodes are relaxed, and
        none is branched on or enumerated.
    Returns: The answer, with the nodes still open, and the work of this call alone.
    """
    limits = limits or Limits()
    if found.leaves is None:
        return replace(found, work=Work())
    tree = Tree(left_out.form(j), problem, 0.0, left_out.units)
    tree.enter(tree.numbers(found.support), 0)
    if np.isfinite(found.objective):  # Here the support's objective may be rounded to more.
        tree.now["upper"] = np.minimum(tree.now["upper"], found.objective)
    tree.add(found.leaves.afresh())
    # The limits are restarted, as what a search may spend on enumeration grows with its time.
    own, upper = limits.within(), float(tree.now["upper"][0])
    tree.now["only_relax"] = not branch
    status = Search(tree).run(own)
    while tree.kept.size > 0 and status is Status.OPTIMAL and tree.now["upper"][0] < upper:
        upper = float(tree.now["upper"][0])  # A better incumbent may close the nodes kept.
        nodes = tree.open.nodes.some(tree.kept).afresh()
        tree.clear()
        tree.add(nodes)
        status = Search(tree).run(own)
    objective, least = float(tree.now["upper"][0]), float(tree.now["least"][0])
    branched = max(int(tree.now["branched"][0]), int(branch))
    nodes_left = tree.open.nodes.some(np.concatenate([tree.kept, tree.waiting]))
    work = Work(n_nodes=tree.n_nodes, n_branched=branched)
    support = tree.columns(tree.st.support)
    known = replace(found, work=work, support=support, objective=objective)
    return _with_leaves(known, nodes_left, status, least)


def _with_leaves(
    known: Answer, nodes: Leaves, ended: Status | None, least_computed: float = np.inf
) -> Answer:
    """An incumbent with its lower bound, its status and the nodes left as its leaves.

    The bound is the least of the incumbent's objective, of ``least_computed`` and of the bounds of
    the nodes, less tolerance and rounding, as nodes that were pruned hold nothing better.

    known: The incumbent, its objective and rounding, and the work of the search.
    ended: How the search ended, None where it has paused. Without nodes left the status is OPTIMAL
        however it ended. If it ended as OPTIMAL with nodes left, these nodes were kept and not
        branched on, and the status is NODE_LIMIT.
    least_computed: The least objective that enumeration has computed. The support that has it is
        not the incumbent where a second fit of the support has come out larger.
    """
    status, least = Status.OPTIMAL, min(known.objective, least_computed)
    if nodes.size:
        status = Status.NODE_LIMIT if ended in (None, Status.OPTIMAL) else ended
        least = min(least, float(nodes.bound.min()))
    return replace(
        known,
        lower_bound=max(0.0, least * (1.0 - BOUND_SHARE) - known.rounding),
        status=status,
        leaves=nodes if nodes.size else None,
    )
