"""How a problem is proved: its searches in order, when each applies, and the limits of each.

A search is chosen by the size of the problem, and by whether its columns nearly depend on each
other. The modules that choose read it here. The tables of docs/limits.md are compared with what
:func:`ways` returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from math import comb
from typing import NamedTuple

from ...errors import InputError
from ...schedule import (
    GROWTH_OF_TURNS,
    LEAST_SECONDS_BEFORE_DIGITS,
    MOST_MODELS,
    MOST_SUPPORTS,
    NODES_FOR_DIGITS,
    NODES_OF_A_SHORT_TREE,
    NODES_OF_FIRST_TURN,
    QUICK_SUPPORTS,
    SECONDS_OF_A_ROW,
    SECONDS_OF_A_SUPPORT,
    SHARE_OF_A_SHORT_TREE,
    SHARE_OF_NODES_WITHIN_BOUNDS,
    TIMES_OF_ENUMERATION_BEFORE_DIGITS,
    TURNS,
)
from .constraints import UnitConstraints
from .limits import Limits
from .problem import SparseRidgeProblem
from .rounding import SIX_DIGITS_OF_SQUARES
from .rows import MAX_COLUMNS

# With at most this many columns, or groups of columns, all sizes are proved by one tree, which ends
# within seconds on most tables (measured). With more columns a tree may take hours, and proofs are
# made one by one in the order in which they matter for the choice of γ and τ.
TREE_ONLY = 45
# Sizes are searched in windows, 1..16, 17..32, 33..64 and so on. So a size's support is the same
# however many sizes are wanted, up to the end of its window. The number is a choice.
FIRST_WINDOW = 16
# Where a working γ may take more than this share of yᵀy off bounds, few trees prove anything.
HOPELESS_SHARE = 1e-6

# Branch and bound forms the products of every two columns that screening has left. Where the
# products take more bytes than this, the search ends with the best support known. The number is a
# choice.
MAX_BYTES_OF_A_MATRIX = 1_500_000_000

LEAPS = "leaps and bounds"
BRANCH = "branch and bound"
EVERY = "every support"
ALONE = "each size alone"


class Way(NamedTuple):
    """A search that may prove sizes of a problem, and where it ends for the next one to begin.

    search: ``LEAPS`` searches one tree for all sizes, and goes on where that tree has stopped.
        ``ALONE`` proves one size after the other as :func:`ways_of_one_size` says.
    nodes: It ends after this many nodes, earlier turns included; for ``ALONE`` of all sizes, with
        ``NODES_PER_ROOT`` more for each size.
    seconds: It ends after this many seconds, unless the caller limits nodes.
    share: It ends after this share of the time left.
    supports: ``EVERY`` leaves out sizes with more supports than this.
    grown: ``LEAPS`` begins with good supports that are grown for it, for half of its time.
    """

    search: str
    nodes: int | None = None
    seconds: float | None = None
    share: float = 1.0
    supports: float = MOST_SUPPORTS
    grown: bool = False

    def within(self, limits: Limits) -> Limits:
        """What is left of a caller's limits, and the limits of this search."""
        times = [] if self.seconds is None or limits.node_limit is not None else [self.seconds]
        left = limits.remaining()
        if left is not None:
            times.append(self.share * left)
        return limits.within(min(times, default=None), self.nodes)


def ways(problem: SparseRidgeProblem, sizes: Collection[int]) -> tuple[Way, ...]:
    """The searches that prove sizes of a problem at its γ, in order.

    A search has the supports and bounds of those before it. Where a tree of all sizes has ended,
    and rounding leaves sizes without a proof, only ``EVERY`` follows.
    """
    units, one, plain = problem.constraints.n_units, len(sizes) == 1, problem.constraints.plain
    weighted = problem.constraints.weighted  # Branch and bound counts no unit more than once.
    # One size alone takes branch and bound less time from 36 columns on (measured).
    if one and not weighted and (units > 35 or not problem.holds_tree()):
        return (Way(ALONE),)
    every = Way(EVERY, supports=MOST_SUPPORTS if one else QUICK_SUPPORTS)
    found: tuple[Way, ...]
    if units <= 16 or weighted:  # No tree of so few columns is large.
        found = Way(LEAPS), every
    elif one_tree_proves(problem.constraints):
        found = *turns(units, share_of_nodes(problem.constraints)), Way(LEAPS), every
    else:
        # A short tree proves the sizes near p, and finds every other size a support.
        found = short_tree()._replace(grown=not plain), Way(ALONE), every
        if plain and few_supports(problem, sizes, QUICK_SUPPORTS):
            return every, *found
    lost = HOPELESS_SHARE * problem.yy
    if not plain and loses_digits(problem) and not problem.zero_loss(problem.yy) <= lost:
        # Bounds of trees are mostly 0, so that sizes of few supports are enumerated first.
        return every, *found[:-1]
    return found


@cache
def turns(units: int, share: float) -> tuple[Way, ...]:
    """The searches that take turns from 17 to 45 columns, with the nodes that each turn allows.

    They are kept, as making them takes 50 µs, as long as 2,000 nodes of a tree.

    units: Columns or groups of columns.
    share: What :func:`share_of_nodes` says of the constraints.
    """
    found = []
    for turn in range(TURNS):
        nodes = NODES_OF_FIRST_TURN * GROWTH_OF_TURNS**turn
        # A node of branch and bound takes as long as about p² nodes of the tree: measured at 35 to
        # 45 columns, as 30 to 60 µs and 24 ns.
        found.append(Way(LEAPS, nodes=int(share * nodes)))
        found.append(Way(ALONE, nodes=int(nodes / units**2)))
    return tuple(found)


def short_tree() -> Way:
    """A tree of all sizes that is left soon."""
    return Way(LEAPS, nodes=NODES_OF_A_SHORT_TREE, share=SHARE_OF_A_SHORT_TREE)


def share_of_nodes(constraints: UnitConstraints) -> float:
    """The share of a number of nodes that a tree of all sizes gets under constraints."""
    return SHARE_OF_NODES_WITHIN_BOUNDS if constraints.bounded else 1.0


def ways_of_one_size(problem: SparseRidgeProblem) -> tuple[Way, ...]:
    """The searches that prove the problem's τ without a tree of all sizes, in order.

    Those after branch and bound follow where it ends without a proof. They work on a triangular
    factor of X, which keeps twice as many digits as XᵀX.
    """
    p, tau = problem.p, problem.tau
    # A path of enumeration takes matrices of 64 MB at 2,000 columns.
    few = p <= 2000 and few_supports(problem, [tau], MOST_SUPPORTS)
    if not problem.constraints.plain:
        return (Way(EVERY),) if few and loses_digits(problem) else (Way(BRANCH),)
    if few:
        digits = (Way(EVERY),)
    elif p <= MAX_COLUMNS:
        digits = (Way(LEAPS, nodes=NODES_FOR_DIGITS),)
    else:
        return (Way(BRANCH),)
    if loses_digits(problem):
        return digits
    seconds = None
    if few:
        every = seconds_of_every_support(p, tau)
        seconds = max(LEAST_SECONDS_BEFORE_DIGITS, TIMES_OF_ENUMERATION_BEFORE_DIGITS * every)
    return (Way(BRANCH, seconds=seconds), *digits)


def one_tree_proves(constraints: UnitConstraints) -> bool:
    """Whether one tree is meant to prove all sizes, of at most ``TREE_ONLY`` columns or groups."""
    return constraints.n_units <= TREE_ONLY


def estimates_search(problem: SparseRidgeProblem, sizes: Iterable[int]) -> bool:
    """Whether a search of few nodes is worth its time where a good support would do."""
    rules = problem.constraints
    return one_tree_proves(rules) or (rules.plain and few_supports(problem, sizes))


def refuse_many_columns(p: int, what: str) -> None:
    """Raise an InputError where trees of all sizes are needed and there are too many columns.

    what: What needs the trees, as the subject of a message.
    """
    if p > TREE_ONLY:
        raise InputError(f"{what} takes at most {TREE_ONLY} columns; there are {p}")


def has_room(columns: int) -> bool:
    """Whether branch and bound may form the products of every two of so many columns."""
    return 8 * columns**2 <= MAX_BYTES_OF_A_MATRIX


def few_supports(
    problem: SparseRidgeProblem, sizes: Iterable[int], most: float = QUICK_SUPPORTS
) -> bool:
    """Whether there are at most ``most`` supports of these sizes; the problem's τ is not used.

    Under constraints these are the supports that obey them, at most ``MOST_MODELS``. With a ridge
    weight none counts as few there, as trees need no enumeration to end.
    """
    rules = problem.constraints
    if not rules.plain:
        models = sum(rules.count_models(int(size)) for size in sizes)
        return has_no_ridge(problem) and models <= min(most, MOST_MODELS)
    return sum(comb(problem.p, int(size)) for size in sizes) <= most


def window_ends(largest_size: int) -> list[int]:
    """The last sizes of windows, of which the last one is ``largest_size``.

    Examples
    --------
    >>> window_ends(40)
    [16, 32, 40]
    """
    ends = [FIRST_WINDOW]
    while ends[-1] < largest_size:
        ends.append(2 * ends[-1])
    return [*ends[:-1], largest_size]


def seconds_of_every_support(p: int, size: int) -> float:
    """How long visiting every support of a size takes: measured, on one core."""
    rows = comb(p, size) * size / p
    return SECONDS_OF_A_SUPPORT * comb(p, size) + SECONDS_OF_A_ROW * rows


def has_no_ridge(problem: SparseRidgeProblem) -> bool:
    """Whether the given γ is 0, or lost beside the columns, so that searches work with another."""
    return problem.gamma > problem.given_gamma


def loses_digits(problem: SparseRidgeProblem) -> bool:
    """Whether XᵀX has lost the digits that a proof by the relaxation needs."""
    # With fewer rows than columns the relaxation works on the rows, which keep their digits. But at
    # γ = 0 its bound is 0.
    if problem.p > problem.rank_bound and has_no_ridge(problem):
        return True
    if problem.p > max(MAX_COLUMNS, problem.rank_bound):
        return False
    # With the columns before it projected out, a column keeps less than 1e-5 of its length, the
    # ridge γ/2 counted with both squared lengths. Its square leaves XᵀX six digits.
    squares = problem.squared_lengths
    left = squares * problem.data.unit.left
    ridge = problem.gamma / 2.0
    lost = left + ridge < SIX_DIGITS_OF_SQUARES * (squares + ridge)
    return bool((lost & (squares > 0.0)).any())
