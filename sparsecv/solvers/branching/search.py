"""Running a branch-and-bound tree: chunks of nodes, order of nodes, threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..limits import Limits
from ..problem import SparseRidgeProblem
from ..relaxation.dual_bound import EXTRA
from ..relaxation.gram import BLOCK, TOLERANCE, GramForm, Root
from ..result import Status
from . import single_kernels as kernels

CHUNK_WORK = 3e6  # about a millisecond's worth of nodes between two looks at the clock
SECONDS_PER_SUPPORT = 3e-9
MOST_AT_ONCE = 1e8  # supports enumerated between two looks at the clock
OPEN_BYTES = 512e6  # of open nodes beyond which the search only goes deep
COMPLETE_COLUMNS = 600  # free columns up to which more than two picks are enumerated
COMPLETE_LEVELS = 4
STACKS = ("stack", "stack_beta", "stack_bound", "stack_lam")


class Search:
    """One tree, searched depth first from its most promising open node, again and again.

    Diving finds good supports and keeps few nodes open; starting every other dive from the node
    of least bound raises the bound that is left when a limit ends the search.
    """

    def __init__(self, state: kernels.SearchState, n_jobs: int | None = None) -> None:
        self.p = state.b.size
        self.chunk = max(1, int(CHUNK_WORK / (self.p * max(self.p, 50))))
        self.states = [state]
        self.jobs = 1 if n_jobs is None else effective_n_jobs(n_jobs)

    @property
    def n_nodes(self) -> int:
        """Nodes whose bound was computed."""
        return sum(int(state.ints[kernels.NODES]) for state in self.states)

    @property
    def n_branched(self) -> int:
        """Nodes that were branched on."""
        return sum(int(state.ints[kernels.BRANCHED]) for state in self.states)

    @property
    def support(self) -> NDArray[np.int64]:
        """The best support entered."""
        best = min(self.states, key=lambda state: float(state.reals[kernels.UPPER]))
        return best.support

    @property
    def bound(self) -> float:
        """Least bound of what was pruned or is still open."""
        least = np.inf
        for state in self.states:
            pending = state.stack_bound[: int(state.ints[kernels.TOP])].min(initial=np.inf)
            least = min(least, float(state.reals[kernels.SLACK]), float(pending))
        return least

    def run(self, limits: Limits, pause: float | None = None) -> Status | None:
        """Search until nothing is open or a limit is reached; None after ``pause`` seconds."""
        spent = 0
        with ExitStack() as stack:
            pool: ThreadPoolExecutor | None = None
            while True:
                reached = limits.reached(1 + self.n_nodes)
                if reached is not None:
                    return reached
                if pause is not None and limits.elapsed() > pause:
                    return None
                if self.jobs > 1 and pool is None and self._open() >= 2 * self.jobs:
                    pool = stack.enter_context(ThreadPoolExecutor(self.jobs))
                    self._split()
                self._allow(limits)
                left = limits.nodes_left(1 + self.n_nodes, self.chunk)
                tasks = [(i, left) for i in range(len(self.states))]
                codes = (
                    [self._advance(*t) for t in tasks]
                    if pool is None
                    else list(pool.map(lambda t: self._advance(*t), tasks))
                )
                if not any(codes):
                    return Status.OPTIMAL
                self._share()
                spent += 1
                if spent % 2 == 0:
                    for state in self.states:
                        self._promote(state)

    def offer(self, support: NDArray[np.intp]) -> None:
        """Enter a support found elsewhere."""
        enter_support(self.states[0], support)
        self._share()

    def _advance(self, i: int, nodes: int) -> int:
        code = int(kernels.explore(self.states[i], nodes))
        if code == 2:
            self.states[i] = _deeper(self.states[i])
        return code

    def _allow(self, limits: Limits) -> None:
        # a search that drags on may spend up to half of its time on enumerating large nodes
        seconds = limits.elapsed()
        share = min(0.5, 0.15 + 0.1 * seconds)
        for state in self.states:
            state.reals[kernels.ALLOWED] = min(
                share * seconds / SECONDS_PER_SUPPORT, state.reals[kernels.SPENT] + MOST_AT_ONCE
            )

    def _promote(self, state: kernels.SearchState) -> None:
        """Move the open node of least bound to the top of the stack."""
        top = int(state.ints[kernels.TOP])
        if top < 2 or top * 9.0 * self.p > OPEN_BYTES:
            return
        least = int(np.argmin(state.stack_bound[:top]))
        if state.stack_bound[least] < state.stack_bound[top - 1]:
            for name in STACKS:
                rows = getattr(state, name)
                rows[[least, top - 1]] = rows[[top - 1, least]]

    def _open(self) -> int:
        return sum(int(state.ints[kernels.TOP]) for state in self.states)

    def _split(self) -> None:
        """Deal the open nodes out to one state per thread."""
        first = self.states[0]
        top = int(first.ints[kernels.TOP])
        dealt = [_twin(first) for _ in range(self.jobs)]
        for number, state in enumerate(dealt):
            rows = np.arange(number, top, self.jobs)
            for name in STACKS:
                getattr(state, name)[: rows.size] = getattr(first, name)[rows]
            state.ints[kernels.TOP] = rows.size
        for count in (kernels.NODES, kernels.BRANCHED):
            dealt[0].ints[count] = first.ints[count]
        self.states = dealt

    def _share(self) -> None:
        """Tell every thread the best objective, and give idle ones half of the fullest stack."""
        if len(self.states) == 1:
            return
        upper = min(float(state.reals[kernels.UPPER]) for state in self.states)
        best = self.support
        for state in self.states:
            if state.reals[kernels.UPPER] > upper:
                state.reals[kernels.UPPER] = upper
                state.support[:] = best
        for idle in self.states:
            if idle.ints[kernels.TOP] > 0:
                continue
            full = max(self.states, key=lambda state: int(state.ints[kernels.TOP]))
            top = int(full.ints[kernels.TOP])
            give = min(top // 2, idle.stack.shape[0] - 2)
            if give == 0:
                continue
            for name in STACKS:  # the oldest nodes are the largest pieces of work
                rows = getattr(full, name)
                getattr(idle, name)[:give] = rows[:give]
                rows[: top - give] = rows[give:top].copy()
            idle.ints[kernels.TOP], full.ints[kernels.TOP] = give, top - give


def _twin(state: kernels.SearchState) -> kernels.SearchState:
    """A state of the same problem with work space of its own and an empty stack."""
    shared = ("G", "Q", "X", "w", "length", "b", "anywhere")
    copies = {
        name: value if name in shared else value.copy() for name, value in state._asdict().items()
    }
    twin = kernels.SearchState(**copies)
    twin.ints[:] = 0
    return twin


def _deeper(state: kernels.SearchState) -> kernels.SearchState:
    """The same search with room for twice as many open nodes."""
    return grown(state, STACKS, 2 * state.stack.shape[0])


def grown(state: kernels.SearchState, names: Sequence[str], rows: int) -> kernels.SearchState:
    """The same search with arrays of ``rows`` rows, the old ones first."""
    new = {}
    for name in names:
        old = getattr(state, name)
        new[name] = np.zeros((rows, *old.shape[1:]), dtype=old.dtype)
        new[name][: old.shape[0]] = old
    return state._replace(**new)


def new_state(
    gram: GramForm, problem: SparseRidgeProblem, tol: float, root: Root
) -> kernels.SearchState:
    G, b, yy = gram.G, gram.b, gram.yy
    p, tau, ridge = b.size, problem.tau, problem.gamma / 2.0
    terms = gram.terms(ridge)
    levels = 1 if p > COMPLETE_COLUMNS else min(max(tau - 1, 1), COMPLETE_LEVELS)
    depth = min(p + 3, 512)
    stack_beta = np.zeros((depth, p))
    stack_beta[0] = root.beta
    return kernels.SearchState(
        G=np.ascontiguousarray(G),
        Q=gram.quadratic(),
        X=np.zeros((0, 0)),
        w=terms.w,
        length=terms.length,
        b=b,
        support=np.arange(tau, dtype=np.int64),
        ints=np.array([1, 0, 0, 0, 0, 0, 0], dtype=np.int64),
        reals=np.array(
            [np.inf, np.inf, max(tol, TOLERANCE), yy, ridge, 0.0, 0.0, terms.reach_y, terms.eps]
        ),
        stack=np.zeros((depth, p), dtype=np.int8),
        stack_beta=stack_beta,
        stack_bound=np.full(depth, root.bound),
        stack_lam=np.full(depth, root.root_lam),
        leaves=np.zeros((0, p), dtype=np.int8),
        leaf_beta=np.zeros((0, p)),
        leaf_lam=np.zeros(0),
        leaf_bound=np.zeros(0),
        state=np.zeros(p, dtype=np.int8),
        beta=np.zeros(p),
        g=np.zeros(p),
        lam=np.array([root.root_lam]),
        best=np.zeros(2),
        top=np.zeros(tau + EXTRA),
        limits=np.array([np.inf, 1e-5, 20.0, 1.0, float(gram.scaled)]),
        active=np.zeros(p, dtype=np.int64),
        columns=np.zeros(p, dtype=np.int64),
        scratch=np.zeros(max(p, tau + 1)),
        block=np.empty((min(p, BLOCK), min(p, BLOCK))),
        local=np.empty((2, min(p, BLOCK))),
        chosen=np.zeros(max(tau, 1), dtype=np.int64),
        V=np.empty((tau + 1, p)),
        c=np.empty(p),
        d=np.empty(p),
        L=np.empty((tau + 1, tau + 1)),
        C=np.empty((levels, p, p)),
        unit=np.empty((levels, p)),
        picks=np.zeros(tau + 1, dtype=np.int64),
        found=np.zeros(tau + 1, dtype=np.int64),
        anywhere=np.ones(p, dtype=np.int8),
    )


def enter_support(state: kernels.SearchState, start: NDArray[np.intp]) -> None:
    """Enter a start, filled to τ columns with the first ones, after swaps."""
    spare = np.setdiff1d(np.arange(state.b.size), start)
    state.found[: state.support.size] = np.concatenate([start, spare])[: state.support.size]
    kernels.enter(state, 100)
