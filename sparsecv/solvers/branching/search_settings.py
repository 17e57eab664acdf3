"""The numbers that tune a search over included and excluded columns, one record for each search.

Work is counted in *supports*: the time in which enumeration visits one support, some 3 ns. None of
these numbers changes what is proved; they only change how fast a search ends.
"""

from __future__ import annotations

from typing import NamedTuple


class SearchSettings(NamedTuple):
    """Branch and bound of one problem. The values were chosen by measured time on benchmarks."""

    # A Newton step or a round of sweeps costs this many supports besides its operations. Doubling
    # the number makes relaxations count as dearer, so that larger nodes are enumerated.
    supports_per_step: float = 400.0
    # A floating-point operation of a relaxation costs this many supports. Doubling the number makes
    # relaxations count as dearer, so that larger nodes are enumerated.
    supports_per_operation: float = 0.14
    # A node is enumerated before its relaxation is solved if that takes the time of at most this
    # many nodes. Doubling the number saves relaxations and enumerates more.
    enumerated_unsolved_nodes: float = 0.05
    # A node whose relaxation is solved is enumerated if that takes the time of at most this many
    # nodes. Doubling the number branches less and enumerates more.
    enumerated_nodes: float = 4.0
    # A node counts as worth at least this many supports, however fast relaxations are. Doubling the
    # number enumerates larger nodes on small problems.
    min_supports_per_node: float = 8e3
    # Large nodes may be enumerated with this many supports before any work has been counted.
    # Doubling the number enumerates larger nodes near the root.
    first_supports: float = 3e5
    # No node of more supports is enumerated beyond the allowance of ``enumerated_nodes``. Doubling
    # the number lets one node take twice the time between two looks at the clock.
    max_supports_at_once: float = 2e5
    # A rounded support whose objective is at most this multiple of the incumbent's is improved by
    # swaps. Doubling the excess over 1 spends more time on swaps and finds incumbents earlier.
    max_swapped_ratio: float = 1.02
    # Strong branching solves the relaxations of at most this many columns' exclusions at a node.
    # Doubling the number chooses better columns at up to twice the price of a node.
    max_columns_tried: int = 8
    # A column's expected gain is taken from its past after this many trials. Doubling the number
    # tries columns more often and trusts their past more.
    trials_until_known: int = 2
    # A column that is expected to gain less than this share of the best trial is not tried.
    # Doubling the share tries fewer columns.
    min_expected_share: float = 0.2
    # A Newton relaxation at a node moves its multiplier √λ at most this often. Doubling the number
    # makes bounds of nodes tighter and dearer.
    newton_rounds: int = 2
    # A Newton relaxation ends where Σz is this close to the cardinality. Doubling the number makes
    # bounds of nodes looser and cheaper.
    newton_cardinality_error: float = 0.003
    # Beyond this many active columns a node is first relaxed by coordinate descent. Doubling the
    # number leaves more nodes to Newton steps, whose factorisation costs the cube.
    max_newton_only_columns: int = 25
    # Beyond this many active columns no factorisation is formed. Doubling the number allows Newton
    # steps of eight times the price.
    max_factored_columns: int = 112
    # Coordinate descent may fail on this many nodes before it has to suffice for half of them.
    # Doubling the number sticks to coordinate descent longer where it does not suffice.
    failed_sweeps_allowed: int = 8
    # Rounds of coordinate descent at a node, before Newton steps and where none follow. Doubling
    # the numbers makes bounds of nodes tighter and dearer.
    rounds_before_newton: int = 8
    rounds_alone: int = 20
    # Coordinate descent at a node ends, and no Newton steps follow, if the relaxation's value
    # exceeds the bound by at most this share of (target − bound): with an extracted diagonal, and
    # without. Doubling the shares ends coordinate descent earlier with looser bounds.
    undecided_share: float = 0.1
    scaled_undecided_share: float = 0.03
    # The first so many nodes of a tree are rough nodes: they are relaxed by few rounds of
    # coordinate descent and branched on without trials. Doubling the number delays strong
    # branching, which easy problems do not need.
    rough_nodes: int = 100
    # Coordinate descent at a rough node ends if the relaxation's value exceeds the bound by at most
    # this share of (target − bound). Doubling the share makes rough nodes cheaper and looser.
    rough_undecided_share: float = 0.3
    # Seconds between two looks at the clock, about. Doubling the number makes time limits twice as
    # coarse and saves next to nothing.
    chunk_seconds: float = 0.01
    # Nodes times columns until the first look at the clock. Doubling the number delays it.
    first_chunk_columns: int = 6400
    # Open nodes may take this much memory in each thread; then the search goes depth first.
    # Doubling the bytes lets a search stay best first twice as long.
    max_open_bytes: float = 512e6
    # A table of open nodes begins with this many rows and doubles when it is full.
    first_rows: int = 256
    # Beyond this many columns no more than two columns are chosen by enumeration, as its memory is
    # this number's square for each further column. Doubling the number takes four times the memory.
    max_completion_columns: int = 600
    # Enumeration chooses at most one column more than this number. Adding one level takes the
    # memory of one more matrix and makes enumeration of more columns possible, which seldom pays.
    completion_levels: int = 4
    # The history gets an entry once the gap is below this share of the gap noted before, and the
    # time above this multiple of the time noted before. Squaring both halves the entries.
    history_gap_ratio: float = 0.98
    history_seconds_ratio: float = 1.02
    # Supports of work before a better incumbent and a better diagonal are looked for. Doubling the
    # number leaves more problems to the plain tree, which small problems need alone.
    head_start_supports: float = 5e7
    # Supports of work, times p³, before a better diagonal is tried: ten times what a trial costs.
    # Doubling the number tries diagonals later.
    fitting_supports: float = 20.0
    # Steps of a trial of a better diagonal. Doubling the number makes trials surer and dearer.
    trial_steps: int = 8
    # Seconds of local search for a better incumbent, after the head start. Doubling the number
    # finds better incumbents where time is not short.
    local_search_seconds: float = 0.2
    # The share of the time left that local search may take at most.
    local_search_share: float = 0.3
    # The share of the time left that a converged relaxation may take at most. Doubling it takes
    # time off the tree for a bound that the tree mostly passes.
    relaxation_share: float = 0.05
    # Operations for each entry of a matrix before the first step of a converged relaxation: without
    # the time for these operations the relaxation is left out.
    operations_per_entry: float = 20.0
    # A fitted diagonal is used for a new tree if it closes at least this share of the root's gap
    # and the old tree has not closed ``max_share_closed`` of the gap. Doubling the share keeps the
    # old tree more often.
    min_share_gained: float = 0.03
    # A tree that has closed this share of the root's gap goes on as it is, with what its branching
    # has learnt. Raising the share restarts more trees.
    max_share_closed: float = 0.6
    # A diagonal is fitted again at every node if a fit closes at least this share of the gap there.
    # Doubling the share to 1 never does.
    refit_share: float = 0.5
    # Steps of fitting a diagonal at a node. Doubling the number makes bounds of nodes tighter and
    # nodes dearer.
    refit_steps: int = 4
    # From a node with its own diagonal this many nodes are searched before another diagonal is
    # fitted, twice as many each time that a fit does not pay. Doubling the number fits less often.
    min_nodes_per_refit: int = 10
    # Bytes of a node that waits with its own diagonal, besides coefficients and states.
    bytes_per_refitted_node: float = 500.0


class FamilySettings(NamedTuple):
    """One tree for many problems that differ by the rows deleted."""

    # A node that is open for at most this many problems, or this share of the problems, leaves the
    # shared tree and is searched for each of these problems alone. Doubling the numbers makes the
    # shared tree smaller and the trees of single problems larger.
    max_open_problems: int = 5
    max_open_share: float = 0.01
    # A problem that more nodes have been left to is taken out of the shared tree and searched alone
    # from the root. Doubling the number keeps odd problems in the shared tree longer.
    max_nodes_left: int = 500
    # The shared tree ends after this many nodes, and leaves what is open then to single searches.
    # Doubling the number lets it take twice the time where it does not end.
    max_nodes: int = 20_000
    # Supports that may be enumerated at a node, for all its open problems together: in place of a
    # relaxation, and in place of branching. Doubling the numbers branches less and enumerates more.
    supports_unsolved: float = 2e4
    supports: float = 1e5
    # The relaxation on all rows ends when its bound exceeds the incumbent's objective by this share
    # or, if larger, by ``excess_problems`` over the number of problems, because a deleted row takes
    # about such a share off the bound. Doubling the numbers closes nodes for more problems at once
    # and makes relaxations dearer.
    excess_share: float = 0.01
    excess_problems: float = 4.0
    # Relative gap and rounds of coordinate descent at a node of the shared tree. Doubling the gap,
    # or halving the rounds, makes nodes cheaper and closes them for fewer problems.
    gap: float = 1e-5
    rounds: int = 20


class RowDeletionSettings(NamedTuple):
    """Down-dates of a factorisation by deleted rows D."""

    # Least pivot of I − D(G + γ/2 I)⁻¹Dᵀ: below this pivot a down-date has lost six of its sixteen
    # digits, and the problem is left to a search of its own. Doubling the number leaves out more.
    min_pivot: float = 1e-6
    # If a down-dated objective may be wrong by more than this share of its value, the support is
    # not considered for this problem, whose node stays open. Doubling the number trusts down-dates
    # more.
    max_relative_loss: float = 1e-8
    # A factor of the active columns gets a ridge, and pivots of at least, this share of the mean
    # diagonal entry. The factor only says at which coefficients bounds are tried, so that its
    # errors cannot make a bound wrong. Doubling the number makes these coefficients hardly worse.
    relative_ridge: float = 1e-9
    # The least eigenvalue without one row is bracketed by this many halvings. Doubling the number
    # narrows the bracket below what 64-bit numbers can tell apart.
    bisections: int = 50
    # If 1 less the leverage of a deleted row is at most this number, no spread is bounded, because
    # the row nearly alone determines some direction. Doubling the number bounds fewer spreads.
    min_leverage_left: float = 1e-6


SETTINGS = SearchSettings()
FAMILY = FamilySettings()
ROW_DELETION = RowDeletionSettings()
