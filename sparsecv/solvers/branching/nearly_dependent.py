"""One size where columns nearly depend on each other: what keeps its digits there proves it.

The relaxation and its tree work on XᵀX, whose entries are known to 1e-16 of their columns' lengths;
they prove little where, with the other columns projected out, a column keeps 1e-5 of its length or
less. Enumeration and leaps and bounds work on a triangular factor of X, which keeps twice as many
digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status, Work
from ..leaps.all_sizes import MAX_COLUMNS, best_subsets
from ..supports.local_search import heuristic_support
from .enumeration import enumerated, expected_seconds, few_supports


class DependenceSettings(NamedTuple):
    """When XᵀX is not trusted, and what is tried in its place, in turn."""

    # XᵀX has lost its digits where, with the columns before it projected out, a column keeps less
    # than this share of its length, the ridge γ/2 counted with both squared lengths: the square of
    # the share, 1e-10, leaves it six digits.
    lost_share: float = 1e-5
    # Problems with at most so many supports of τ columns are enumerated at once, in two to twenty
    # seconds: a tree for so few supports of many columns ends later, if at all.
    first_supports: float = 4e9
    # With more columns than this, this module's ways are not taken even where supports are few, as
    # the matrices of a path of enumeration take 64 MB at 2,000; up to ``MAX_COLUMNS`` they may
    # always be taken.
    most_columns: int = 2000
    # The tree of leaps and bounds gets this many nodes before more supports are enumerated, about
    # two seconds; or half of the time left, or the caller's node limit, where these end earlier.
    tree_nodes: int = 20_000_000
    # If the tree does not end, up to this many supports are enumerated, in about a minute; with
    # more supports the result stays unproved.
    most_supports: float = 5e9
    # Where the relaxation keeps its digits, its tree gets this many times the seconds that
    # enumeration is expected to take, and at least ``tree_seconds``; enumeration follows if the
    # tree has not ended by then.
    tree_share: float = 2.0
    tree_seconds: float = 2.0
    # Heuristic search for the first support takes at most this many seconds, or a fifth of the time
    # left where that is less.
    search_seconds: float = 0.2


SETTINGS = DependenceSettings()


def keeps_digits(problem: SparseRidgeProblem) -> bool:
    """Whether a triangular factor serves: for leaps and bounds, or to enumerate few supports."""
    if problem.p <= MAX_COLUMNS:
        return True
    few = few_supports(problem, [problem.tau], SETTINGS.first_supports)
    return few and problem.p <= SETTINGS.most_columns


def nearly_dependent(problem: SparseRidgeProblem) -> bool:
    """Whether XᵀX has lost the digits that a proof needs, and a triangular factor serves."""
    if not keeps_digits(problem):
        return False
    # With fewer rows than columns the relaxation works on the rows, which keep their digits, but at
    # γ = 0 its bound is 0.
    if problem.p > problem.rank_bound and problem.gamma > problem.given_gamma:
        return True
    if problem.p > max(MAX_COLUMNS, problem.rank_bound):
        return False
    squares = problem.squared_lengths
    left = squares * problem.data.unit.left
    ridge = problem.gamma / 2.0
    lost = left + ridge < SETTINGS.lost_share**2 * (squares + ridge)
    return bool((lost & (squares > 0.0)).any())


def before_enumeration(problem: SparseRidgeProblem, limits: Limits) -> Limits:
    """The limits of the relaxation's tree, after which few supports are enumerated."""
    few = few_supports(problem, [problem.tau], SETTINGS.first_supports)
    if limits.node_limit is not None or not few or problem.p > SETTINGS.most_columns:
        return limits
    expected = SETTINGS.tree_share * expected_seconds(problem.p, problem.tau)
    return limits.within(max(SETTINGS.tree_seconds, expected))


def solve_nearly_dependent(
    problem: SparseRidgeProblem,
    warm_starts: Sequence[NDArray[np.intp]],
    tol: float,
    limits: Limits,
    known: Proof | None = None,
) -> Proof:
    """Minimise ||y − Xβ||² + (γ/2)||β||² over supports of τ columns by enumeration and leaps.

    known: What the relaxation has proved, if it was tried.
    Returns: A proof, or what the limits left: the best support and the largest bound so far.
    """
    tau, left = np.array([problem.tau]), limits.remaining()
    seconds = SETTINGS.search_seconds if left is None else min(SETTINGS.search_seconds, 0.2 * left)
    start = heuristic_support(problem, warm_starts=warm_starts, time_limit=seconds)
    best = Proof(start, problem.objective(start), 0.0, Status.PRECISION, Work())
    best = best if known is None else _better(best, known, limits)
    if not few_supports(problem, tau, SETTINGS.first_supports):
        tree = best_subsets(
            problem,
            sizes=tau,
            warm_starts=[best.support],
            limits=limits.within(None if left is None else 0.5 * left, SETTINGS.tree_nodes),
        )
        best = _better(best, tree.proof(0, Work(tree.n_nodes, tree.seconds)), limits)
        if tree.proved[0] or limits.reached(best.n_nodes) is not None:
            return best
        if not few_supports(problem, tau, SETTINGS.most_supports):
            return replace(best, status=Status.PRECISION)
    return _better(best, enumerated(problem, tau, [best.support], limits)[0], limits)


def _better(known: Proof, found: Proof, limits: Limits) -> Proof:
    """Two results as one: the better support, the larger bound, the status of the later search."""
    return known.joined(found, Work(known.n_nodes + found.n_nodes, limits.elapsed()))
