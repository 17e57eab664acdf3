"""Running a branch-and-bound tree: chunks of nodes, threads, memory, the history of its gap."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from operator import methodcaller
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status, relative_gap
from ..kernels.completion import completion_work
from ..kernels.linalg import Array, record
from ..relaxation.descent import gram_arrays, new_sweeps
from ..relaxation.dual_bound import EXTRA
from ..relaxation.gram import TOLERANCE, GramForm
from ..relaxation.newton import newton_work
from ..supports.rounding import pad_support
from . import driver, node
from .search_settings import SETTINGS

# states, β, √λ, bounds, and 1 where the relaxation has not been solved
Nodes = tuple[NDArray[np.int8], Array, Array, Array, NDArray[np.int8]]


class Tree:
    """The open nodes of one thread, and the state its search works with.

    problem: Gives γ and τ.
    tol: Relative gap at which a node is pruned.
    """

    family: Any = None  # which problems nodes are open for, in a tree of many problems

    def __init__(self, gram: GramForm, problem: SparseRidgeProblem, tol: float) -> None:
        self.gram, self.problem, self.tol = gram, problem, tol
        self.st = new_state(gram, problem, tol)
        p = gram.b.size
        self.nt = newton_work(p, SETTINGS.max_factored_columns)
        self.ch = _children(self.st, gram.scaled)
        self.open = _rows(min(SETTINGS.first_rows, self._most()), p)
        # Plain arrays of the counters: numpy is slow at the names of a record array.
        self.now = self.st.now.view(np.ndarray)
        self.counts = self.open.counts.view(np.ndarray)

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Rows of the open nodes."""
        heap = self.open.heap[: self.counts["waiting"][0]]
        return np.concatenate([heap, self.open.stack[: self.counts["diving"][0]]])

    @property
    def n_open(self) -> int:
        """How many nodes are open."""
        return self.waiting.size

    @property
    def n_nodes(self) -> int:
        """How many nodes' bounds were computed."""
        return int(self.now["nodes"][0])

    @property
    def has_room(self) -> bool:
        """Whether the table has free rows for the next node's children."""
        return bool(self.counts["spare"][0] >= 3)

    @property
    def kept(self) -> NDArray[np.int64]:
        """Rows of the leaves kept."""
        return self.open.kept[: self.counts["kept"][0]]

    @property
    def bound(self) -> float:
        """Least bound of the nodes that were pruned or are still open."""
        least = float(self.open.bound[self.waiting].min(initial=np.inf))
        return min(least, float(self.now["pruned"][0]))

    def add(
        self,
        state: NDArray[np.int8],
        beta: Array,
        lam: Array,
        bound: Array | float = -np.inf,
        fresh: NDArray[np.int8] | int = 1,
    ) -> None:
        """Let nodes wait in the heap.

        state, shape (m, p): Free (0), included (1) and excluded (2) columns.
        beta, shape (m, p).
        lam, shape (m,): √λ.
        bound: Lower bounds on the objectives of the nodes' supports.
        fresh: 1 where the relaxation is to be solved when the node is taken up.
        """
        m = state.shape[0]
        while self.counts["spare"][0] < m + 3:
            self.grow(2 * self.open.state.shape[0])
        first = int(self.counts["spare"][0]) - m
        rows = self.open.spare[first : first + m].copy()
        self.counts["spare"] = first
        self.open.state[rows], self.open.beta[rows] = state, beta
        self.open.lam[rows], self.open.bound[rows] = lam, bound
        self.open.fresh[rows] = fresh
        for row in rows:
            driver.push(self.open, row)

    def start(self, beta: Array, root_lam: float, bound: float) -> None:
        """Begin at the root, whose relaxation is solved by β (p,) and √λ."""
        free = np.zeros((1, beta.size), dtype=np.int8)
        self.add(free, beta[None], np.array([root_lam]), bound, fresh=0)

    def learn_from(self, other: Tree) -> None:
        """Take over the incumbent of a tree of the same problem, and its gains of branching."""
        self.take_incumbent(other)
        self.ch.gain[:], self.ch.trials[:] = other.ch.gain, other.ch.trials
        for name in ("swept", "sufficed", "undecided", "wide"):
            self.now[name] = other.now[name]

    def take_incumbent(self, other: Tree) -> None:
        """Take over the incumbent of a tree of the same problem if it is better."""
        if self.now["upper"] > other.now["upper"]:
            self.now["upper"] = other.now["upper"]
            self.st.support[:] = other.st.support

    def take(self, rows: NDArray[np.int64]) -> Nodes:
        """The nodes in some rows."""
        at = self.open
        return at.state[rows], at.beta[rows], at.lam[rows], at.bound[rows], at.fresh[rows]

    def clear(self) -> None:
        """Forget every node."""
        rows = self.open.state.shape[0]
        self.counts[0] = (0, 0, rows, 0, 0)
        self.open.spare[:] = np.arange(rows)

    def emptied(self) -> Nodes:
        """Take every open node out, the least bound first."""
        rows = self.waiting
        nodes = self.take(rows[np.argsort(self.open.bound[rows], kind="stable")])
        self.clear()
        return nodes

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes.

        Returns: ``driver.DONE``, ``PAUSED`` (the nodes are used up) or ``FULL`` (the rows were).
        """
        code = int(driver.explore(self.st, self.nt, self.ch, self.open, self.family, nodes))
        rows = self.open.state.shape[0]
        if code == driver.FULL and rows < self._most():
            self.grow(min(2 * rows, self._most()))
        if rows == self._most():
            self.counts["deep"] = self.counts["spare"] < 2 * self.gram.b.size + 16
        return code

    def grow(self, rows: int) -> None:
        """Make the table of nodes larger."""
        self.open = _grown(self.open, rows)

    def enter(self, support: NDArray[np.intp], swaps: int = 100) -> None:
        """Make a support of at most τ columns the incumbent if it is better, after some swaps."""
        st = self.st
        st.found[: st.support.size] = pad_support(support, st.support.size, st.state.size)
        node.enter(st, swaps)

    def bytes_per_node(self) -> float:
        """Memory of one row of the table."""
        return 9.0 * self.gram.b.size + 48.0

    def _most(self) -> int:
        """Most rows the table may have; always room for a search depth first."""
        return max(int(SETTINGS.max_open_bytes / self.bytes_per_node()), 4 * self.gram.b.size + 64)


class Search:
    """One tree searched best bound first, by one thread or several with open nodes of their own.

    n_jobs: Threads, as in joblib; 1 by default.
    """

    def __init__(self, tree: Tree, n_jobs: int | None = None) -> None:
        self.trees = [tree]
        self.jobs = 1 if n_jobs is None else effective_n_jobs(n_jobs)
        self.chunk = max(4, SETTINGS.first_chunk_columns // tree.gram.b.size)
        self.history: list[tuple[float, float, float]] = []

    @property
    def n_nodes(self) -> int:
        """Nodes whose bound was computed."""
        return sum(tree.n_nodes for tree in self.trees)

    @property
    def n_branched(self) -> int:
        """Nodes that were branched on."""
        return sum(int(tree.now["branched"][0]) for tree in self.trees)

    @property
    def _best(self) -> Tree:
        return min(self.trees, key=lambda tree: float(tree.now["upper"][0]))

    @property
    def support(self) -> NDArray[np.int64]:
        """The incumbent."""
        return self._best.st.support

    @property
    def bound(self) -> float:
        """Least bound of the nodes that were pruned or are still open."""
        return min(tree.bound for tree in self.trees)

    @property
    def work(self) -> float:
        """Supports that enumeration visits in the time that the relaxations took."""
        return sum(float(tree.now["work"][0]) for tree in self.trees)

    def run(self, limits: Limits, pause: float = np.inf) -> Status | None:
        """Search until no node is open or a limit is reached.

        pause: Work, in supports, after which the search returns None.
        """
        with ExitStack() as stack:
            pool: ThreadPoolExecutor | None = None
            while True:
                self._note(limits.elapsed())
                reached = limits.reached(1 + self.n_nodes)
                if reached is not None:
                    return reached
                if self.work > pause:
                    return None
                if self.jobs > 1 and pool is None:
                    if len(self.trees) == 1 and self.trees[0].n_open >= 4 * self.jobs:
                        self._split()
                    if len(self.trees) > 1:
                        pool = stack.enter_context(ThreadPoolExecutor(self.jobs))
                left = limits.nodes_left(1 + self.n_nodes, self.chunk)
                started = time.perf_counter()
                if pool is None:
                    codes = [self.trees[0].advance(left)]
                else:
                    codes = list(pool.map(methodcaller("advance", left), self.trees))
                if not any(codes):
                    return Status.OPTIMAL
                seconds = time.perf_counter() - started
                if codes[0] == driver.PAUSED and left == self.chunk:
                    scale = SETTINGS.chunk_seconds / max(seconds, 1e-6)
                    self.chunk = max(1, int(self.chunk * min(2.0, max(0.5, scale))))
                self._share()

    def _note(self, seconds: float) -> None:
        """Note the gap where it has shrunk enough."""
        ratio = SETTINGS.history_seconds_ratio
        if self.history and seconds < ratio * self.history[-1][0]:
            return
        upper, bound = float(self._best.now["upper"][0]), self.bound
        gap = relative_gap(upper, min(bound, upper))
        ratio = SETTINGS.history_gap_ratio
        if not self.history or gap < ratio * relative_gap(*self.history[-1][1:]):
            self.history.append((seconds, upper, min(bound, upper)))

    def _split(self) -> None:
        """Deal the open nodes out to one tree per thread."""
        first = self.trees[0]
        nodes = first.emptied()
        for _ in range(1, self.jobs):
            tree = type(first)(first.gram, first.problem, first.tol)
            tree.learn_from(first)
            self.trees.append(tree)
        for number, tree in enumerate(self.trees):
            tree.add(*_some(nodes, number, self.jobs))
        self._share()

    def _share(self) -> None:
        """Give every thread the incumbent, and idle threads half of the fullest heap's nodes."""
        if len(self.trees) == 1:
            return
        best = self._best
        for tree in self.trees:
            tree.take_incumbent(best)
        for idle in self.trees:
            if idle.n_open > 0:
                continue
            full = max(self.trees, key=lambda tree: tree.n_open)
            if full.n_open < 2:
                continue
            nodes = full.emptied()
            full.add(*_some(nodes, 0, 2))
            idle.add(*_some(nodes, 1, 2))


def _some(nodes: Nodes, first: int, step: int) -> Nodes:
    """Every ``step``-th of the nodes, from position ``first`` on."""
    state, beta, lam, bound, fresh = nodes
    at = slice(first, None, step)
    return state[at], beta[at], lam[at], bound[at], fresh[at]


def new_state(gram: GramForm, problem: SparseRidgeProblem, tol: float) -> node.SearchState:
    """The state of a search that knows no support and no node yet."""
    p, tau, ridge = gram.b.size, problem.tau, problem.gamma / 2.0
    terms = gram.terms(ridge)
    levels = min(max(tau - 1, 1), SETTINGS.completion_levels)
    shares = (SETTINGS.undecided_share, 1.0)
    if gram.scaled:
        shares = (SETTINGS.scaled_undecided_share, SETTINGS.scaled_undecided_share)
    now = record(
        node.NOW,
        upper=np.inf,
        least=np.inf,
        pruned=np.inf,
        tolerance=max(tol, TOLERANCE),
        ridge=ridge,
        scaled=gram.scaled,
        undecided=shares[0],
        wide=shares[1],
    )
    return node.SearchState(
        G=np.ascontiguousarray(gram.G),
        Q=gram.quadratic(),
        terms=terms,
        root_w=np.sqrt(terms.w),
        support=np.arange(tau, dtype=np.int64),
        now=now,
        state=np.zeros(p, dtype=np.int8),
        beta=np.zeros(p),
        g=np.zeros(p),
        lam=np.zeros(1),
        top=np.zeros(tau + EXTRA),
        columns=np.zeros(p, dtype=np.int64),
        chosen=np.zeros(max(tau, 1), dtype=np.int64),
        scratch=np.zeros(max(p, tau + 1)),
        work=completion_work(tau, p, 1 if p > SETTINGS.max_completion_columns else levels),
        found=np.zeros(tau + 1, dtype=np.int64),
        tried=np.full(tau, -1, dtype=np.int64),
        anywhere=np.ones(p, dtype=np.int8),
    )


def _children(st: node.SearchState, scaled: bool) -> driver.Children:
    p = st.beta.size
    return driver.Children(
        state=np.zeros((2, p), dtype=np.int8),
        beta=np.zeros((2, p)),
        g=np.zeros(p),
        lam=np.zeros((2, 1)),
        gain=np.zeros(p),
        trials=np.zeros(p, dtype=np.int64),
        tried=np.zeros(p, dtype=np.int8),
        top=np.zeros_like(st.top),
        sweeps=new_sweeps(gram_arrays(st.Q), p, 1e-4, scaled=scaled),
    )


def _rows(rows: int, p: int) -> driver.OpenNodes:
    return driver.OpenNodes(
        state=np.zeros((rows, p), dtype=np.int8),
        beta=np.zeros((rows, p)),
        lam=np.zeros(rows),
        bound=np.zeros(rows),
        fresh=np.zeros(rows, dtype=np.int8),
        heap=np.zeros(rows, dtype=np.int64),
        stack=np.zeros(rows, dtype=np.int64),
        spare=np.arange(rows, dtype=np.int64),
        kept=np.zeros(rows, dtype=np.int64),
        counts=record(driver.COUNTS, spare=rows),
    )


def _grown(table: driver.OpenNodes, rows: int) -> driver.OpenNodes:
    """The nodes of a table, in a table with more rows."""
    old, p = table.state.shape
    new = _rows(rows, p)._replace(counts=table.counts)
    for name, value in table._asdict().items():
        if name not in ("counts", "spare"):
            getattr(new, name)[:old] = value
    spare = int(table.counts["spare"][0])
    new.spare[:spare] = table.spare[:spare]
    new.spare[spare : spare + rows - old] = np.arange(old, rows)
    new.counts["spare"] = spare + rows - old
    return new
