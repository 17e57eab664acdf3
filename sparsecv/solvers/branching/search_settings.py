"""The numbers that tune a search over included and excluded columns, one record for each search.

Work is counted in *supports*: the time in which enumeration visits one support, some 3 ns. None of
these numbers changes what is proved; they only change how fast a search ends.
"""

from __future__ import annotations

from typing import NamedTuple


class SearchSettings(NamedTuple):
    """Branch and bound of one problem. The values were chosen by measured time on benchmarks."""

    # A Newton step or a round of coordinate descent costs this many supports besides its
    # operations.
    supports_per_step: float = 400.0
    # A floating-point operation of a relaxation costs this many supports.
    supports_per_operation: float = 0.14
    # A node is enumerated before its relaxation is solved if it has at most this many times the
    # supports that count as the time of one node: the mean cost of a relaxation so far, or
    # ``min_supports_per_node`` where that is more.
    enumerated_unsolved_nodes: float = 0.05
    # A node whose relaxation is solved is enumerated if it has at most this many times the supports
    # that count as the time of one node, as above; ``first_supports`` says when larger ones are.
    enumerated_nodes: float = 4.0
    # One node counts as the time of at least this many supports, however fast relaxations are.
    min_supports_per_node: float = 8e3
    # Nodes too large for ``enumerated_nodes`` may be enumerated with as many supports in all as the
    # relaxations so far have cost, and besides with the smaller of this number and 30p².
    first_supports: float = 3e5
    # No single node of more supports is enumerated by that further allowance.
    max_supports_at_once: float = 2e5
    # A relaxation rounded to a support whose objective is at most this multiple of the incumbent's
    # has its support improved by swaps.
    max_swapped_ratio: float = 1.02
    # Strong branching solves the relaxations of at most this many columns' exclusions at a node.
    max_columns_tried: int = 8
    # A column's expected gain is the mean of its past gains for each unit of z. Once a column has
    # been tried this often, it is tried again only if it is expected to beat the best trial at the
    # node, and that trial is then the last.
    trials_until_known: int = 2
    # Trials at a node end at the first column that is expected to gain less than this share of the
    # best trial there.
    min_expected_share: float = 0.2
    # A round is one value of √λ, the multiplier of the cardinality constraint, with the Newton
    # steps that it takes. A Newton relaxation at a node tries at most this many values.
    newton_rounds: int = 2
    # A Newton relaxation ends where Σz deviates from the number of free columns still to choose by
    # at most this share of that number.
    newton_cardinality_error: float = 0.003
    # An active column is one with a coefficient. A node with more active columns than this is first
    # relaxed by coordinate descent, as long as that suffices often enough (see
    # ``failed_sweeps_allowed``).
    max_newton_only_columns: int = 25
    # With more active columns than this no factorisation is formed, and coordinate descent is the
    # whole relaxation.
    max_factored_columns: int = 112
    # Coordinate descent comes before Newton steps while the nodes where it has sufficed are at
    # least half of the nodes where it was tried less this many.
    failed_sweeps_allowed: int = 8
    # A round of coordinate descent is one dual bound and up to 8 passes over the active columns. A
    # node gets at most ``rounds_before_newton`` where Newton steps may follow; and at most
    # ``rounds_alone`` where none do, or where Newton steps ran out of room.
    rounds_before_newton: int = 8
    rounds_alone: int = 20
    # Coordinate descent at a node ends, and no Newton steps follow, where the relaxation's value
    # exceeds the bound by at most this share of (target − bound), the target being the bound that
    # closes the node: ``undecided_share`` with an extracted diagonal (D ≠ 0), and
    # ``scaled_undecided_share`` without. The first share is 1 with more than
    # ``max_factored_columns`` active columns.
    undecided_share: float = 0.1
    scaled_undecided_share: float = 0.03
    # The first so many relaxations of a tree are those of rough nodes: relaxed by at most
    # ``rounds_alone`` rounds of coordinate descent, with 1 in place of the shares above, and
    # branched on without trials.
    rough_nodes: int = 100
    # In the first tree below the root, after its rough nodes, this share takes the place of both
    # shares above, and is 1 with more than ``max_factored_columns`` active columns; a new tree with
    # another diagonal has the shares above.
    rough_undecided_share: float = 0.3
    # The seconds between two looks at the clock that the number of nodes in between is fitted to.
    chunk_seconds: float = 0.01
    # Nodes until the first look at the clock, times the number of columns; at least 4 nodes.
    first_chunk_columns: int = 6400
    # Bytes that the open nodes of one thread's tree may take; at that size of the table the search
    # goes depth first. Trees whose nodes have their own diagonals hold a second list of nodes to
    # the same limit (see ``bytes_per_refitted_node``).
    max_open_bytes: float = 512e6
    # A tree's table of open nodes begins with this many rows, or the most that ``max_open_bytes``
    # allows where that is fewer, and doubles when it is full.
    first_rows: int = 256
    # With more columns than this, enumeration at a node chooses at most two columns more, as its
    # memory is the square of the number of columns for each further column; nodes that lack more
    # columns are branched on.
    max_completion_columns: int = 600
    # Enumeration at a node chooses at most one column more than this number; nodes that lack more
    # columns are branched on. Each unit takes one more p × p matrix.
    completion_levels: int = 4
    # The history gets an entry where the relative gap is below ``history_gap_ratio`` times the gap
    # noted last, and the time at least ``history_seconds_ratio`` times the time noted last.
    # Squaring both about halves the number of entries.
    history_gap_ratio: float = 0.98
    history_seconds_ratio: float = 1.02
    # The plain tree alone works until its relaxations have cost this many supports; only then is
    # local search for a better incumbent, with a new tree, begun. It also caps ``fitting_supports``
    # times p³.
    head_start_supports: float = 5e7
    # A better diagonal is tried once the relaxations of the plain tree have cost this many supports
    # times p³, p the columns left by the root: ten times what a trial costs. The smaller of this
    # and ``head_start_supports`` counts.
    fitting_supports: float = 20.0
    # A trial of a better diagonal takes at most this many Newton steps; a full fit follows where
    # the trial's bound exceeds that of the tree.
    trial_steps: int = 8
    # Local search for a better incumbent, after the head start, takes at most this many seconds, or
    # ``local_search_share`` of the time left where that is less.
    local_search_seconds: float = 0.2
    # Local search takes at most this share of the seconds left to the search's time limit, and the
    # smaller of this and ``local_search_seconds`` counts; without a time limit this has no effect.
    local_search_share: float = 0.3
    # A converged relaxation of all columns, with an extracted diagonal or without, takes at most
    # this share of the seconds left when the first of the two begins; without a time limit it has
    # no limit.
    relaxation_share: float = 0.05
    # A converged relaxation is left out where the seconds it may take do not suffice for this many
    # floating-point operations for each of the p² entries of a matrix.
    operations_per_entry: float = 20.0
    # After the head start, a new tree gets the fitted diagonal if that closes more than this share
    # of the root's gap, which is the incumbent's objective less the root's bound; else it gets the
    # root's diagonal.
    min_share_gained: float = 0.03
    # After the head start, a tree whose bound has closed at least this share of the root's gap goes
    # on as it is, with what its branching has learnt; else a new tree begins at the root.
    max_share_closed: float = 0.6
    # Diagonals are fitted at nodes, not only at the root, if the fit at the root closes more than
    # this share of the root's gap. At a node a fit pays if it closes more than this share of
    # (target − bound) there; ``min_nodes_per_refit`` says what follows.
    refit_share: float = 0.5
    # A fit of a diagonal at a node takes at most this many Newton steps.
    refit_steps: int = 4
    # After a fit at a node this many nodes below it are searched before the next fit; the number
    # doubles with each fit that does not pay, and halves, to this least value, with each that does.
    min_nodes_per_refit: int = 10
    # A node that waits with its own diagonal is taken to hold this many bytes, besides 9 for each
    # column. The sum over the nodes waiting is held against ``max_open_bytes``; beyond it no node
    # is added, and the node at hand is searched to its end.
    bytes_per_refitted_node: float = 500.0


class FamilySettings(NamedTuple):
    """One search of all rows for many problems that differ by the rows deleted."""

    # Once the problem of all rows is solved, its search goes on for at most ``nodes_per_problem``
    # nodes for each problem, and prunes at a bound that exceeds the incumbent's objective by the
    # share ``raised_by`` of it. Both numbers were chosen by times of leave-one-out of the tables in
    # experiments/solvers/shared_tree.py at γ = 10, 100 and 1,000.
    raised_by: float = 0.01
    nodes_per_problem: int = 8
    # The search of all rows ends after this many nodes in all, or at the node limit of its caller
    # where that is less. The number is a choice.
    max_nodes: int = 20_000
    # A problem that more leaves than this stay open for is searched from the root, and so is one
    # with more leaves than ``max_open_bytes`` have room for, divided by the problems. The number is
    # a choice.
    max_leaves: int = 2000


SETTINGS = SearchSettings()
FAMILY = FamilySettings()
