"""Running a branch-and-bound tree: chunks of nodes, threads, memory, the history of its gap."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, OUT, Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status, relative_gap
from ..core.rounding import BOUND_SHARE, support_bound
from ..core.threads import threads_of
from ..kernels.completion import completion_work
from ..kernels.linalg import REGULAR_SHARE, allocated, record
from ..relaxation.dual_bound import SINGLE_COLUMNS, gram_arrays
from ..relaxation.gram import GramForm
from ..relaxation.relaxer import relaxation_work
from ..supports.members import new_swaps, new_units
from ..supports.rounding import pad_support
from . import driver, node

# Bytes that the open nodes of one thread's tree may take; a table of that size is searched depth
# first.
MAX_OPEN_BYTES = 512e6
# A tree's table of open nodes begins with this many rows, or with the most that ``MAX_OPEN_BYTES``
# allows where that is fewer. A full table doubles. The number is a choice.
FIRST_ROWS = 256
# Nodes until the first look at the clock, times the number of columns; at least 4 nodes. A choice.
FIRST_CHUNK_COLUMNS = 6400


class Tree:
    """The open nodes of one thread, the incumbent, and the work space of the thread's search.

    gram: The Gram form of some units of the problem: of single columns, or under a grouping.
    problem: Gives γ, τ and what is asked of the columns.
    tol: Relative gap at which a node is pruned.
    units: Which units of the problem the form has, increasing; by default all.
    """

    st: Any

    def __init__(
        self,
        gram: GramForm,
        problem: SparseRidgeProblem,
        tol: float,
        units: NDArray[np.intp] | None = None,
    ) -> None:
        self.gram, self.problem, self.tol = gram, problem, tol
        self.units = np.arange(gram.n_units) if units is None else units
        self.st = new_state(gram, problem, tol, self.units)
        self._open()
        self.incumbent, self.objective = self.st.support.copy(), np.full(1, np.inf)

    def _open(self) -> None:
        """Make the table of nodes, which holds no node."""
        self.open = self._table(min(FIRST_ROWS, self._most()))
        self.now, self.counts = self.st.now, self.open.counts

    def _table(self, rows: int) -> driver.OpenNodes:
        """A table of so many rows, none of which holds a node."""
        nodes = Leaves.rows(rows, self.gram.n_units, self.gram.b.size)
        spare, counts = np.arange(rows), record(driver.COUNTS, spare=rows)
        lengths = {"rows": rows}
        return allocated(driver.OpenNodes, lengths, nodes=nodes, spare=spare, counts=counts)

    def beside(self) -> Tree:
        """A tree without nodes that has this tree's incumbent and work space for its own."""
        other = Tree.__new__(Tree)
        other.__dict__.update(self.__dict__)
        other._open()
        return other

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Rows of the nodes in the heap."""
        return self.open.heap[: self.counts["waiting"][0]]

    @property
    def n_open(self) -> int:
        """How many nodes wait."""
        return self.waiting.size

    @property
    def n_nodes(self) -> int:
        """How many nodes' bounds were computed."""
        return int(self.now["nodes"][0])

    @property
    def kept(self) -> NDArray[np.int64]:
        """Rows of the open nodes that are kept and not branched on."""
        return self.open.kept[: self.counts["kept"][0]]

    @property
    def bound(self) -> float:
        """Least bound of the nodes that were pruned or wait; ∞ without any.

        Nodes that are kept do not count, unless a bound that closed them was noted as pruning.
        """
        least = float(self.open.nodes.bound[self.waiting].min(initial=np.inf))
        return min(least, float(self.now["pruned"][0]))

    def add(self, nodes: Leaves) -> NDArray[np.int64]:
        """Put nodes in the heap, which takes copies of them; return their rows in the table.

        Three rows stay spare, as :func:`~.driver.explore` needs them for the children of a node.
        """
        count = nodes.size
        while self.counts["spare"][0] < count + 3:
            self.grow(2 * self.open.nodes.size)
        first = int(self.counts["spare"][0]) - count
        rows = self.open.spare[first : first + count].copy()
        self.counts["spare"] = first
        self.open.nodes.write(rows, nodes)
        self.open.key[rows] = np.maximum(nodes.bound, 0.0)
        waiting = np.concatenate([self.waiting, rows])
        self.counts["waiting"] += count
        # Rows in the order of their keys are a heap.
        self.waiting[:] = waiting[np.argsort(self.open.key[waiting], kind="stable")]
        return rows

    def free(self, row: int) -> None:
        """Let a row of the table hold no node; the row is not in the heap."""
        self.open.spare[int(self.counts["spare"][0])] = row
        self.counts["spare"] += 1

    def learn_from(self, other: Tree) -> None:
        """Copy the incumbent and the gains of branching of a tree of the same problem."""
        self.take_incumbent(other)
        self.st.gain[:], self.st.trials[:] = other.st.gain, other.st.trials
        for name in ("n_swept", "n_sufficed", "open_share", "enumerates"):
            self.now[name] = other.now[name]

    def take_incumbent(self, other: Tree) -> None:
        """Copy the incumbent of a tree of the same problem if that incumbent is better."""
        if self.now["upper"] > other.now["upper"]:
            self.now["upper"] = other.now["upper"]
            self.st.support[:] = other.st.support
            self.incumbent[:], self.objective[:] = other.incumbent, other.objective

    def aim_below(self, objective: float) -> None:
        """Close nodes that hold nothing better than this objective of some support."""
        self.objective[:] = np.minimum(self.objective, objective)
        self.now["upper"] = np.minimum(self.now["upper"], objective)

    def keep_leaves(self) -> int:
        """Let the search keep its leaves, and go depth first, which leaves few nodes at a limit.

        Returns: The number of nodes after which the search has to end, as the table is then full.
        """
        self.now["keep_closed"], self.counts["depth_first"] = 1, driver.ALWAYS
        return self._most() // 2 - 2 * self.gram.b.size

    def go_on(self, raised: float) -> None:
        """Let a search that keeps its leaves go on below those of least bound, under a new target.

        raised: Nodes are closed by bounds of (1 + raised) times the incumbent's objective.
        """
        nodes = self.leaves()
        self.clear()
        self.now["tolerance"] = -raised
        self.add(nodes)

    def leaves(self) -> Leaves:
        """Nodes that together hold every support, after :meth:`keep_leaves` and a search.

        The search may have ended early: nodes that wait are leaves, too. A leaf that holds one
        support has no free column, and its coefficients are those of the support's fit; a ridge of
        ``REGULAR_SHARE`` of the largest diagonal entry of G keeps the fit solvable. Bounds hold at
        any coefficients.
        """
        nodes = self.open.nodes.some(np.concatenate([self.kept, self.waiting]))
        state, beta = nodes.state, nodes.beta
        included, free = (np.count_nonzero(state == way, axis=1) for way in (IN, FREE))
        full, few = included == self.problem.tau, included + free <= self.problem.tau
        state[(state == FREE) & few[:, None]] = IN
        state[(state == FREE) & full[:, None]] = OUT
        added = self.problem.gamma / 2.0 + REGULAR_SHARE * float(self.st.G.diagonal().max())
        for at in np.flatnonzero(full | few):
            columns = self.gram.columns_of(np.flatnonzero(state[at] == IN))
            M = self.st.G[np.ix_(columns, columns)] + added * np.eye(columns.size)
            beta[at] = 0.0
            beta[at, columns] = np.linalg.solve(M, self.st.terms.b[columns])
        return nodes

    def clear(self) -> None:
        """Forget every node."""
        rows = self.open.nodes.size
        self.counts["waiting"], self.counts["kept"], self.counts["spare"] = 0, 0, rows
        self.open.spare[:] = np.arange(rows)

    def emptied(self) -> Leaves:
        """Take every open node out, the least bound first."""
        rows = self.waiting
        nodes = self.open.nodes.some(rows[np.argsort(self.open.nodes.bound[rows], kind="stable")])
        self.clear()
        return nodes

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes, and then fit afresh what compiled fits have found.

        Returns: ``driver.DONE`` where no node is open, ``driver.PAUSED`` after the nodes, or
            ``driver.FULL`` where the table of nodes was full. The table is then larger, unless it
            has the most rows that it may have; the caller goes on by another call.
        """
        code, rows = int(driver.explore(self.st, self.open, nodes)), self.open.nodes.size
        if code == driver.FULL and rows < self._most():
            self.grow(min(2 * rows, self._most()))
        self._fit_afresh()
        return code

    def _fit_afresh(self) -> None:
        """Fit the incumbent, and nodes of one support that their bounds did not close, from rows.

        Compiled fits are those of Gram matrices. Where they are within bounds, which may end early,
        or lose digits, they only say which supports are worth a fit.
        """
        if self.now["enumerates"][0] > 0 and not self.problem.constraints.bounded:
            return
        if not np.array_equal(self.st.support, self.incumbent):
            self._offer(self.st.support)
        for row in self.kept.tolist():
            units = np.flatnonzero(self.open.nodes.state[row] == IN)
            self._offer(pad_support(units, self.problem.tau, self.gram.n_units))
            least = support_bound(self.problem, self.columns(units))
            bound = max(float(self.open.nodes.bound[row]), least)
            self.now["pruned"] = np.minimum(self.now["pruned"], bound)
            self.free(row)
        self.counts["kept"] = 0
        self.st.support[:], self.now["upper"] = self.incumbent, self.objective

    def _offer(self, support: NDArray[np.integer[Any]]) -> None:
        """Take τ units for the incumbent if their fit from the rows is better."""
        objective = self.problem.objective(self.columns(support))
        if objective < self.objective[0]:
            self.incumbent[:], self.objective[:] = support, objective

    def numbers(self, support: NDArray[np.intp]) -> NDArray[np.intp]:
        """The tree's numbers of the units of a support of the problem, of those that it has."""
        units = self.problem.constraints.units(support)
        numbers = np.minimum(np.searchsorted(self.units, units), self.units.size - 1)
        return np.asarray(numbers[self.units[numbers] == units])

    def columns(self, support: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """The problem's columns that units of the tree stand for, increasing."""
        return self.problem.constraints.columns_of(self.units[support])

    def grow(self, rows: int) -> None:
        """Make the table of nodes larger."""
        old, table = self.open.nodes.size, self._table(rows)
        table.nodes.write(slice(old), self.open.nodes)
        for name in ("key", "heap", "spare", "kept"):
            getattr(table, name)[:old] = getattr(self.open, name)
        self.open = table._replace(counts=self.counts)
        spare = int(self.counts["spare"][0])
        self.open.spare[spare : spare + rows - old] = np.arange(old, rows)
        self.counts["spare"] += rows - old
        if rows >= self._most() and self.counts["depth_first"][0] == driver.NEVER:
            self.counts["depth_first"] = driver.WHEN_FULL

    def enter(self, support: NDArray[np.intp], swaps: int = 100) -> None:
        """Improve a support by swaps, and make the result the incumbent if its objective is less.

        A swap exchanges a column of the support for a column outside, and lowers the objective.

        support: At most τ distinct columns or units of the tree. Where they are fewer, the first
            that the support lacks are added until it has τ, which never raises the objective.
        swaps: The search ends after at most this many swaps.
        """
        tau = self.problem.tau
        self.st.found[:tau] = pad_support(support, tau, self.gram.n_units)
        self.now["entering"] = swaps
        driver.explore(self.st, self.open, 0)
        self._fit_afresh()

    @property
    def n_bytes(self) -> float:
        """Memory of the tree: about three matrices of its columns, and the table of nodes."""
        rows, p = self.open.nodes.size, self.gram.b.size
        return 24.0 * p * p + rows * self.bytes_per_node()

    def bytes_per_node(self) -> float:
        """Memory of one row of the table: 9 bytes for each column, and 48 for numbers and lists."""
        return 9.0 * self.gram.b.size + 48.0

    def _most(self) -> int:
        """Most rows that the table may have; a search depth first needs at most 4p + 64 rows."""
        return max(int(MAX_OPEN_BYTES / self.bytes_per_node()), 4 * self.gram.b.size + 64)


class Search:
    """The search of one tree by one thread, or by several threads with open nodes of their own.

    n_jobs: Number of threads, as in joblib; 1 by default.
    since: Has run since the history of the gap began; by default from now on.
    after: A search of the same problem, whose nodes and history come before those of this one. Its
        tree may be the same.
    """

    def __init__(
        self,
        tree: Tree,
        n_jobs: int | None = None,
        *,
        since: Limits | None = None,
        after: Search | None = None,
    ) -> None:
        self.trees, self.since = [tree], since or Limits()
        self.nodes_before = 1  # The root counts.
        self.jobs = threads_of(n_jobs)
        self.chunk = max(4, FIRST_CHUNK_COLUMNS // tree.gram.b.size)
        # Seconds, the incumbent's objective and a lower bound, the earliest entry first.
        self.history: list[tuple[float, float, float]] = []
        if after is not None:
            self.since, self.history = after.since, after.history
            self.nodes_before += 0 if after.trees[0] is tree else after.n_nodes

    @property
    def n_nodes(self) -> int:
        """Nodes whose bound was computed."""
        return sum(tree.n_nodes for tree in self.trees)

    @property
    def n_branched(self) -> int:
        """Nodes that were branched on."""
        return sum(int(tree.now["branched"][0]) for tree in self.trees)

    @property
    def best(self) -> Any:
        """The tree with the best incumbent."""
        return min(self.trees, key=lambda tree: float(tree.now["upper"][0]))

    @property
    def support(self) -> NDArray[np.int64]:
        """The incumbent."""
        return np.asarray(self.best.st.support)

    @property
    def bound(self) -> float:
        """Least bound of the nodes that were pruned or are still open."""
        return min(tree.bound for tree in self.trees)

    @property
    def work(self) -> float:
        """Supports that enumeration visits in the time that the relaxations took."""
        return sum(float(tree.now["work"][0]) for tree in self.trees)

    def run(self, limits: Limits, pause: float = np.inf) -> Status | None:
        """Search until no node is open or a limit is reached; a further call goes on from there.

        limits: A limit of nodes counts those of earlier calls, too, and the root for one. Every
            thread gets the nodes that are left, so that threads may go beyond it by a chunk each.
        pause: The search returns None once its relaxations have taken the time in which enumeration
            visits this many supports.
        Returns: OPTIMAL where no node is open, the limit that was reached, or None.
        """
        with ExitStack() as stack:
            pool: ThreadPoolExecutor | None = None
            while True:
                self._note(self.since.elapsed())
                reached = limits.reached(self.nodes_before + self.n_nodes)
                if reached is not None:
                    return reached
                if self.work > pause:
                    return None
                if self.jobs > 1 and pool is None:
                    if len(self.trees) == 1 and self.trees[0].n_open >= 4 * self.jobs:
                        self._split()
                    if len(self.trees) > 1:
                        pool = stack.enter_context(ThreadPoolExecutor(self.jobs))
                left = limits.nodes_left(self.nodes_before + self.n_nodes, self.chunk)
                started = limits.elapsed()
                if pool is None:
                    codes = [self.trees[0].advance(left)]
                else:
                    codes = list(pool.map(methodcaller("advance", left), self.trees))
                if not any(codes):
                    return Status.OPTIMAL
                seconds = limits.elapsed() - started
                if codes[0] == driver.PAUSED and left == self.chunk:
                    scale = 0.01 / max(seconds, 1e-6)  # seconds between two looks at the clock
                    self.chunk = max(1, int(self.chunk * min(2.0, max(0.5, scale))))
                self._share()

    def _note(self, seconds: float) -> None:
        """Add seconds, incumbent and bound to the history, if there was enough progress.

        An entry is added if 2 percent more time has passed than at the last entry, and the gap has
        shrunk by more than 2 percent since. The first call adds an entry in any case.
        """
        if self.history and seconds < 1.02 * self.history[-1][0]:
            return
        upper, bound = float(self.best.now["upper"][0]), self.bound
        gap = relative_gap(upper, min(bound, upper))
        if not self.history or gap < 0.98 * relative_gap(*self.history[-1][1:]):
            self.history.append((seconds, upper, min(bound, upper)))

    def _split(self) -> None:
        """Deal the open nodes out to one tree per thread."""
        first = self.trees[0]
        nodes = first.emptied()
        for _ in range(1, self.jobs):
            tree = type(first)(first.gram, first.problem, first.tol, first.units)
            tree.learn_from(first)
            self.trees.append(tree)
        for number, tree in enumerate(self.trees):
            tree.add(nodes.some(slice(number, None, self.jobs)))
        self._share()

    def _share(self) -> None:
        """Give every tree the best incumbent, and a tree without nodes half of another tree's."""
        if len(self.trees) == 1:
            return
        best = self.best
        for tree in self.trees:
            tree.take_incumbent(best)
        for idle in self.trees:
            if idle.n_open > 0:
                continue
            full = max(self.trees, key=lambda tree: tree.n_open)
            if full.n_open < 2:
                continue
            nodes = full.emptied()
            full.add(nodes.some(slice(0, None, 2)))
            idle.add(nodes.some(slice(1, None, 2)))


def new_state(
    gram: GramForm, problem: SparseRidgeProblem, tol: float, units: NDArray[np.intp]
) -> node.SearchState:
    """The state of a search that knows no support and no node yet; the arguments as of a tree."""
    p, tau, ridge, grouping = gram.b.size, problem.tau, problem.gamma / 2.0, gram.grouping
    kept = problem.constraints.include[units].astype(np.int8)
    kind, capacity, terms = (
        np.zeros(units.size, dtype=np.int8),
        gram.most_columns(tau),
        gram.terms(ridge),
    )
    if grouping is None:
        swapped = new_units(np.arange(p + 1), kept)
    else:
        bounds = grouping.lower, grouping.upper
        held = np.isfinite(bounds).any(axis=0)
        kind[grouping.widths > 1] = node.GROUP
        kind[grouping.unit[held]] = node.BOUNDED
        swapped = new_units(grouping.first, kept, bounds if held.any() else None, gram.b)
    # Enumeration chooses at most 5 columns more, and 2 of more than 600 columns, as each further
    # column takes a p × p matrix. Nodes that lack more columns are branched on.
    levels = 1 if p > 600 else min(max(tau - 1, 1), 4)
    unknown = {"upper": np.inf, "least": np.inf, "pruned": np.inf}
    # Both were chosen by times of solver_benchmark.py. With 0.3 the gaps of three of five hard
    # problems (frontier.py) were 1.5 times as large after 12,000 nodes.
    share = 0.03 if gram.scaled else 0.1
    tolerance, lengths = max(tol, BOUND_SHARE), {"m": units.size, "p": p, "tau": tau}
    alone, form = (
        terms._replace(units=SINGLE_COLUMNS, scaled=gram.scaled),
        gram_arrays(gram.quadratic()),
    )
    relaxation = relaxation_work(form, alone, tau, driver.MAX_FACTORED_COLUMNS)
    relaxation.limits["gap"] = 1e-4 if grouping is None else 1e-5
    swaps = new_swaps(gram.G, gram.b.copy(), capacity)  # Within bounds swaps write to b.
    return allocated(
        node.SearchState,
        lengths | {"capacity": capacity},
        G=swaps.G,
        relaxation=relaxation,
        terms=terms,
        alone=alone,
        kind=kind,
        support=np.arange(tau, dtype=np.int64),
        now=record(
            node.NOW,
            tolerance=tolerance,
            ridge=ridge,
            entering=-1,
            open_share=share,
            enumerates=not problem.constraints.bounded,
            **unknown,
        ),
        work=completion_work(capacity, p, levels),
        tried=np.full(tau, -1, dtype=np.int64),
        units=swapped,
        swaps=swaps,
    )
