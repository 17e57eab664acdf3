"""What every search may take: first budgets, what they grow by, and shares of the time.

The numbers stand here and nowhere else, so that one page says how long a fit may take and what it
takes the time for. The searches read them; :mod:`sparsecv.solvers.core.plan` says which searches
prove a problem, and :mod:`sparsecv.cv.plan` what a run does. A share of a time is a number between
0 and 1. Parts are equal pieces of the time that is left, of which a search gets one.
"""


# The time of a call, and what each part of it may take.

# The time limit of a call in which the user names none, in seconds. The estimators and the commands
# pass it; :class:`Settings` that are made without a time limit have none. The number is a choice.
DEFAULT_SECONDS = 20.0
# Work that an answer cannot do without may go on after a time limit for this share of the limit, or
# for this many seconds where that is longer. It is half of the time by which a call may be late:
# the rest is for the unit of work that is being done then. The numbers are a choice.
GRACE_SHARE, GRACE_SECONDS = 0.05, 0.5
# Estimates of CV errors, and then their proofs, leave this share of the time that remains when they
# begin. It belongs to the model that is chosen in the end, whose support is then proved on all
# rows. The number is a choice.
SHARE_OF_THE_MODEL = 0.1
# Once the choice is made, proofs that it does not need end after this many seconds: what waits for
# them is an answer that they do not change. The number is a choice.
MAX_SECONDS_OF_THE_REST = 1.0
# The intervals of one fold at one γ, for all τ at once, take about min(n, p) p² floating-point
# operations, with n rows and p columns. Intervals of fewer operations than this number count as
# cheap. So many operations take a twentieth of a second. The number is a choice.
MAX_OPERATIONS_OF_CHEAP_INTERVALS = 5e7
# Folds get cheap intervals for this many seconds after the time limit, too. It is a choice.
SECONDS_OF_CHEAP_INTERVALS = 1.0
# Where the time is up before the first γ, swaps of columns still have this many seconds there, as
# the searches at all other γ start from the supports of the first. It is a choice.
LEAST_SECONDS_AT_FIRST_GAMMA = 0.05
# The n best subsets of each size are searched for by trees, and are then cross-validated. The trees
# may take this share of the time limit. It is a choice.
SHARE_OF_TREES = 0.9
# A search that is followed by another one, which needs about as long, gets one of two parts of the
# time.
HALVES = 2.0
# The work after all partitions of a fit counts as so many surfaces h(γ, τ) when the time is shared
# out. It is that of the inner folds and projections of the rule "projected", and of the models
# without pairs of folds of the rule "stability". The numbers are choices.
SURFACES_OF_AN_AVERAGE, SURFACES_OF_STABILITY = 2.0, 1.0
# A question of an audit gets one of so many parts of the time that is left. The questions are asked
# in about this order, and what is left in the end is for the certificate. The numbers are choices.
PARTS_OF_AN_AUDIT = {
    "near_best": 10.0,
    "inference": 8.0,
    "row_influence": 7.0,
    "removals": 6.0,
    "importance": 6.0,
    "rules": 5.0,
    "nested": 4.5,
    "peers": 4.0,
    "partitions": 3.0,
}
# Where the folds' models were not proved, as sparse ridge has more than 20 columns, the search for
# the final model of all rows ends after this many seconds with the best model it has found. A fit
# has one such search. The number is a choice.
REFIT_SECONDS = 10.0
# Seconds that one tree may take before the certificate is given up: a choice.
SECONDS_OF_A_CERTIFIED_TREE = 600.0

# Estimates, and proofs of all sizes by one tree.

# Nodes of a tree of all sizes, some 5 ms at 40 columns (measured), after which other searches are
# tried.
FIRST_NODES = 200_000
# The first number is what a tree may have of nodes in the first round. The second is what every
# later round multiplies the nodes by. Within bounds on coefficients a tree has a share of these
# nodes (``share_of_nodes``). Later rounds begin the tree anew. Most trees of up to 40 columns end
# within the first number of nodes, a sixth of a second. With half of the nodes, and fifteen times
# as many in the next round, two tables of 100 x 40 took 1.2 times the nodes in all
# (``experiments/scale/narrow.py``, seeds 2 and 9145).
NODES_OF_FIRST_ROUND, GROWTH_OF_ROUNDS = 8_000_000, 8
# Where all sizes are to be proved, the tree of one γ takes turns with other searches from this many
# nodes on, which take about half a second at 35 columns (measured).
NODES_OF_A_PROOF = 20_000_000
# With more units than the first number, the tree has this many times these nodes: of 100 x 45
# tables with ten true columns, trees of 60,000,000 nodes prove a fold's sizes, and lists of these
# trees other γ, where sizes alone took more than twice as long (measured).
UNITS_OF_LARGER_TREES, MORE_NODES = 40, 3
# After a tree that was left open, the next trees get this share of its nodes until one of them
# ends. Where the searches at a γ have reached a limit of nodes, all searches at the next γ get this
# share of the limit. So where all trees of a problem are large, ten γ take about twice the time of
# one: a choice.
SHARE_OF_NODES_AFTER_AN_OPEN_TREE = 0.1
# Where the fit has a time limit, the proof of an inner model or of a projection ends after this
# many nodes at one γ, and at later γ after a tenth of them. So what a default fit finds seldom
# depends on the clock. The first number is for at most so many columns or groups as the second
# says: it certifies three tables of 100 x 40 (``experiments/scale/narrow.py``), of which a third of
# it certifies one, in as much time. A table of 100 x 45 is certified by neither number, and takes
# 1.4 times as long with the first.
NODES_OF_AVERAGED_PROOFS, UNITS_OF_AVERAGED_PROOFS = 30_000_000, 40
NODES_OF_AVERAGED_PROOFS_BEYOND = 10_000_000
# Beyond 45 columns a tree of all sizes gets so many nodes, some 2 ms, and this share of the time: a
# choice.
NODES_OF_A_SHORT_TREE, SHARE_OF_A_SHORT_TREE = 20_000, 0.25
# From 17 to 45 columns two searches take turns: the tree of all sizes, and branch and bound for
# each size alone. Nothing tells beforehand which of the two ends first: where many columns are
# worth nearly the same, the tree is large, and a few hundred nodes of branch and bound prove a
# size. Both go on where they have stopped, and both have taken about as long at the end of a turn:
# this many nodes of the tree in the first turn, some 50 ms, and half as many again in each turn
# after. So the two together take about 2.5 times as long as the quicker one would alone.
NODES_OF_FIRST_TURN = 2_000_000
GROWTH_OF_TURNS = 1.5
# There are at most this many turns. The last one allows the tree some days: a choice.
TURNS = 40
# Within bounds on coefficients a tree of all sizes gets this share of the nodes that it gets
# without, as its nodes take at least ten times as long (measured at 20 to 40 columns).
SHARE_OF_NODES_WITHIN_BOUNDS = 0.1
# Trees make lists for other γ once a tree of the problem has had more nodes than the first number.
# With more units than the second number they make lists from the first γ on, as most such trees are
# that large. Where trees are smaller it is faster to search another: lists take a quarter more
# nodes to make, and a look at them takes as long as 30,000 nodes. Both numbers are measured, on
# default fits of 18 to 40 columns.
NODES_OF_LARGE_TREES, UNITS_OF_LARGE_TREES = 100_000, 31
# A tree gets a diagonal D after so many nodes, as D takes as long as 150,000 nodes (measured at 34
# to 45 columns). Trees of estimates have fewer nodes, so that no estimate depends on D.
NODES_WITHOUT_DIAGONAL = 1_000_000
# Nodes after which a tree learns what the supports that it has handed out leave of the lines, a
# choice.
NODES_BETWEEN_LOOKS = 20_000
# The tree over the rows that may be removed has at most so many nodes for a support. The number is
# a choice. Proofs on the tables of experiments/selection/rows_that_decide.py took at most some 70.
NODES_OF_REMOVED_ROWS = 100

# Proofs of one pair (γ, τ) after the other.

# The first round gives a problem (one fold, or all rows, at one γ and τ) this many seconds. After
# them its search waits for the next round, and so do the folds of the same cell that have not
# begun. The number was chosen by timing tables of data/.
FIRST_ROUND_SECONDS = 0.05
# Every later round gives a problem this many times the seconds of the round before: a choice.
ROUND_GROWTH = 4.0
# After the first round, raising the least lower bound takes at most this share of the seconds that
# have passed. Where folds are many, the bound is not raised. The number is a choice.
BOUNDING_SHARE = 0.5
# A search that raises the bound of a cell (γ, τ) by less than this share of the cell's gap takes a
# quarter off the share of seconds that such searches get (BOUNDING_SHARE at first). A search that
# raises it by more sets that share to BOUNDING_SHARE again. The number is a choice. It is below
# what useful searches reached: with four times the seconds they closed a tenth to a third of the
# gap. With more columns than rows and a small γ no bound rises, and the seconds go to proofs.
MIN_CLOSED_SHARE = 0.05
# After a search of little use, which closes a smaller share of the gap than MIN_CLOSED_SHARE, the
# share of seconds that such searches get is multiplied by this number: a choice.
BOUNDING_DECAY = 0.75
# The least lower bound is left alone where a better bound on the optimum of all rows could raise it
# by at most this share of its cell's error. The number is a choice.
MIN_RISE_SHARE = 0.1
# One tree can prove a fold at every τ at once. Such a tree is first tried once all proofs of the
# run have taken this many seconds: shorter runs end sooner without it. The number is a choice.
FIRST_TRIAL_SECONDS = 0.1
# If a tree for all sizes of a fold reaches a limit when the proofs have taken s seconds in all, the
# next such tree is tried once they have taken this many times s seconds. The number is a choice.
TRIAL_GROWTH = 4.0
# The trial tree of the first fold may have this many nodes for every second that the proofs have
# taken. Where trees of other folds have ended, it may have twice the nodes of the largest of them.
# Once the trial tree has ended, the tree of every other fold may have four times its nodes. Under
# constraints the tree has a share of these nodes. The number is a choice.
TRIAL_NODES_PER_SECOND = 3_000_000
# Where trees of other folds have ended, the trial tree of a fold may have so many times the nodes
# of the largest of them, and once it has ended, the tree of every other fold so many times its
# nodes.
TIMES_OF_THE_LARGEST_TREE, TIMES_OF_A_TRIAL = 2, 4
# One tree that serves all k folds gets the seconds of so many folds, or of this share of all folds
# if these are more. Both numbers are choices.
FOLDS_OF_A_JOINT_TREE, SHARE_OF_FOLDS_OF_A_JOINT_TREE = 10.0, 0.1
# The search of all rows ends after so many nodes, and a problem that more leaves stay open for is
# searched from the root. Both numbers are choices.
NODES_OF_A_JOINT_TREE, MOST_OPEN_LEAVES = 20_000, 2000

# One problem: every support, branch and bound, and diagonals.

# At most this many supports are visited one by one where no other search keeps enough digits. They
# take up to half a minute. The number is a choice.
MOST_SUPPORTS = 5e9
# At most this many supports, which take some 50 ms, are visited one by one before anything else is
# tried. The number is a choice.
QUICK_SUPPORTS = 5e6
# Under constraints at most this many supports are fitted one by one, some .2 ms each: a choice.
MOST_MODELS = 20_000
# The root of a size takes as long as this many nodes of branch and bound: 1 to 1.5 ms (measured).
NODES_PER_ROOT = 30
# A node of branch and bound takes as long as visiting this many supports: some 40 µs (measured).
SUPPORTS_PER_NODE = 12_000
# Where branch and bound ends without a proof for want of digits, searches on a triangular factor
# follow. A tree then has so many nodes, about two seconds: a choice.
NODES_FOR_DIGITS = 20_000_000
# Before enumeration on a triangular factor, branch and bound gets so many times the time that
# enumeration takes, and at least so many seconds. Both numbers are choices.
TIMES_OF_ENUMERATION_BEFORE_DIGITS, LEAST_SECONDS_BEFORE_DIGITS = 2.0, 2.0
# Visiting every support takes so many seconds for each, and for each row of supports with all but
# the last column in common: measured, on one core.
SECONDS_OF_A_SUPPORT, SECONDS_OF_A_ROW = 0.4e-9, 70e-9
# The search for a first incumbent under constraints gets one of so many parts of the time left.
PARTS_OF_A_FIRST_INCUMBENT = 5.0
# The first so many relaxations of a plain tree are those of rough nodes: coordinate descent ends
# once the relaxation's value is below the target, and the node is branched on without trials.
# Without rough nodes trees of solver_benchmark.py below 30 ms took 1.1 times as long, and larger
# ones as long, but for one that took 2.5 times as long and one that took .4 times.
ROUGH_NODES = 100
# The plain tree alone works until its relaxations have taken the time in which enumeration visits
# this many supports, some 3 ns each. Only then is local search for a better incumbent begun.
HEAD_START_SUPPORTS = 5e7
# A better diagonal is tried once the relaxations of the plain tree have taken the time of this many
# supports times p³, where the root has left p columns: ten times what a trial costs. The smaller of
# this and ``HEAD_START_SUPPORTS`` counts.
FITTING_SUPPORTS = 20.0
# After the head start, a tree whose bound has closed at least this share of the root's gap goes on
# as it is. The root's gap is the incumbent's objective less the root's bound. When every tree went
# on, gaps of five hard problems (frontier.py) were 1.4 to 2.7 times as large after 12,000 nodes;
# when none did, a tree of 9,000 nodes took twice the time.
MAX_SHARE_CLOSED = 0.6
# Seconds of local search for a better incumbent; a share of a short time. A choice.
HEURISTIC_SECONDS = 0.2
# That search takes at most so large a share of the time left: for a search on a triangular factor,
# and after the head start of a tree. The numbers are choices.
SHARE_OF_A_START, SHARE_OF_BETTER_INCUMBENTS = 0.2, 0.3
# A converged relaxation, by which a finished search may get a larger bound, gets one of so many
# parts of the time left: a choice.
PARTS_OF_A_LAST_BOUND = 20.0
# If the fit of a diagonal at the root closes more than this share of the root's gap, diagonals are
# fitted at nodes, too. A fit at a node pays if it closes more than this share of the node's (target
# − bound). The number is a choice.
REFIT_SHARE = 0.5
# After a fit at a node this many nodes below it are searched before the next fit. The number
# doubles with each fit that does not pay, and halves, to this least value, with each that does.
MIN_NODES_PER_REFIT = 10
