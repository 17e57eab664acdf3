"""The numbers that tune a search over included and excluded columns, one record for each search.

Work is counted in *supports*: the time in which enumeration visits one support, some 3 ns. None of
these numbers changes what is proved; they only change how fast a search ends.
"""

from __future__ import annotations

from typing import NamedTuple


class SearchSettings(NamedTuple):
    """Branch and bound of one problem. The values were chosen by measured time on benchmarks."""

    # One node counts as the time of at least this many supports, however fast relaxations are.
    min_supports_per_node: float = 8e3
    # Nodes whose enumeration takes longer than a few relaxations may be enumerated with as many
    # supports in all as the relaxations so far have cost, and besides with the smaller of this
    # number and 30p².
    first_supports: float = 3e5
    # No single node of more supports than this is enumerated within ``first_supports``.
    max_supports_at_once: float = 2e5
    # With more active columns than this no factorisation is formed, and coordinate descent is the
    # whole relaxation.
    max_factored_columns: int = 112
    # The first so many relaxations of a tree are those of rough nodes: coordinate descent ends once
    # the relaxation's value is below the target, and the node is branched on without trials.
    rough_nodes: int = 100
    # In the first tree below the root, after its rough nodes, coordinate descent ends where the
    # relaxation's value exceeds the bound by at most this share of (target − bound). A new tree
    # with another diagonal has the smaller shares of ``search.new_state``.
    rough_undecided_share: float = 0.3
    # Nodes until the first look at the clock, times the number of columns; at least 4 nodes.
    first_chunk_columns: int = 6400
    # Bytes that the open nodes of one thread's tree may take; at that size of the table the search
    # goes depth first.
    max_open_bytes: float = 512e6
    # A tree's table of open nodes begins with this many rows, or the most that ``max_open_bytes``
    # allows where that is fewer, and doubles when it is full.
    first_rows: int = 256
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
    # After a fit at a node this many nodes below it are searched before the next fit; the number
    # doubles with each fit that does not pay, and halves, to this least value, with each that does.
    min_nodes_per_refit: int = 10


SETTINGS = SearchSettings()
