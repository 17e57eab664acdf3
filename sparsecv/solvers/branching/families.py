"""One tree searched for many neighbours at once, and what it hands over to single searches.

The main paper solves or bounds every fold alone. Here a node of the tree of all rows is branched on
while it is open for many neighbours; what is open for a few is handed over. Most neighbours need no
branching of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import Array
from ..limits import Limits
from ..problem import SparseRidgeProblem
from ..relaxation.gram import TOLERANCE, Root
from ..result import Status
from . import families_kernels as joint_kernels
from . import pool_kernels
from . import single_kernels as search_kernels
from .certificate import LEAVES
from .left_out import LeftOut
from .search import STACKS, Search, grown, new_state

FEW = 5  # neighbours, or
SHARE = 0.01  # of them: a node open for no more is handed over
PATIENCE = 500  # nodes handed over to a neighbour beyond which its own tree is the better one
CHUNK = 64  # nodes between two looks at the clock
MOST_NODES = 20_000  # of a joint tree; what is open then is handed over
MOST_PAIRS = 2_000_000


@dataclass(frozen=True)
class JointResult:
    """What one tree found out about all neighbours at one τ.

    Attributes
    ----------
    support : ndarray of int, shape (k, τ)
        Incumbents.
    upper : ndarray, shape (k,)
        Their objectives by down-dates, good to about nine digits.
    leaves, beta, root_lam
        Nodes handed over: included (1), excluded (2) and free (0) columns (m, p), coefficients
        (m, p) and √λ (m,).
    pairs : ndarray of int, shape (q, 2)
        Node and the neighbour it is open for.
    n_nodes : int
    rounding : ndarray, shape (k,)
        What objectives may be off by: Gram matrices keep half of the digits.
    """

    support: NDArray[np.intp]
    upper: Array
    leaves: NDArray[np.int8]
    beta: Array
    root_lam: Array
    pairs: NDArray[np.intp]
    n_nodes: int
    rounding: Array

    def open_for(self, j: int) -> NDArray[np.intp]:
        """Nodes open for neighbour j."""
        return np.asarray(self.pairs[self.pairs[:, 1] == j, 0])


def solve_jointly(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    supports: NDArray[np.intp],
    *,
    limits: Limits | None = None,
    most_nodes: int = MOST_NODES,
    few: int | None = None,
    patience: int = PATIENCE,
) -> JointResult:
    """Search the tree of all rows for every neighbour at the problem's γ and τ.

    Parameters
    ----------
    left_out : LeftOut
    problem : SparseRidgeProblem
        On all rows; gives γ and τ.
    supports : array of int, shape (s, τ)
        Good supports of all rows, the best first.
    limits : Limits, optional
    most_nodes : int
        Nodes after which what is open is handed over.
    few : int, optional
        A node open for at most so many neighbours is handed over.
    patience : int
        A neighbour that more nodes than this are handed over to is left out of the search: it gets
        the root instead.

    Returns
    -------
    JointResult
        A neighbour in no pair is solved: its incumbent is optimal.
    """
    limits = limits or Limits()
    gram, tau, ridge, p = left_out.gram, problem.tau, problem.gamma / 2.0, problem.p
    k = left_out.count
    few = max(min(FEW, k // 8), int(SHARE * k)) if few is None else few
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    level = np.sort(gram.b**2 / (ridge + gram.D))[::-1]
    root.root_lam = 0.5 * float(np.sqrt(level[min(tau, p) - 1]))
    st = new_state(gram, problem, 0.0, root)
    st.limits[:] = [np.inf, 1e-5, 20.0, 0.0, float(gram.scaled)]
    search_kernels.record_support(st, np.ascontiguousarray(supports[0], dtype=np.int64))
    margin = gram.rounding(ridge)
    nb = left_out.neighbours(ridge, tau, -left_out.least, margin)
    jt = _joint_state(st, k, p, tau, few, patience)
    for support in supports:
        chosen = np.ascontiguousarray(support, dtype=np.int64)
        gain = pool_kernels.factor_support(nb, gram.G, gram.b, chosen)
        pool_kernels.try_support(nb, chosen, gain, gram.yy, jt.folds[0], k)
    while True:
        nodes = int(st.ints[search_kernels.NODES])
        if limits.reached(nodes) is not None or nodes >= most_nodes:
            break
        code = joint_kernels.explore_jointly(st, jt, nb, CHUNK)
        if code == 0:
            break
        if code == 2:
            rows = 2 * st.stack.shape[0]
            st = grown(st, STACKS, rows)
            jt = _grown(jt, ("folds", "counts"), rows)
        if code == 3:
            if jt.ints[1] > MOST_PAIRS:
                break
            jt = _grown(jt, ("leaves", "leaf_beta", "leaf_lam"), 2 * jt.leaves.shape[0])
            jt = _grown(jt, ("pairs",), 2 * jt.pairs.shape[0])
    m, q, top = int(jt.ints[0]), int(jt.ints[1]), int(st.ints[search_kernels.TOP])
    lost = np.flatnonzero(jt.load > patience)
    pairs = [jt.pairs[:q]]
    for row in range(top):
        folds = jt.folds[row, : jt.counts[row]]
        pairs.append(np.column_stack([np.full(folds.size, m + row), folds]))
    together = np.concatenate(pairs)
    together = together[~np.isin(together[:, 1], lost)]
    pairs = [together, np.column_stack([np.full(lost.size, m + top), lost])]
    whole = np.zeros((1, p))
    return JointResult(
        np.sort(nb.support, axis=1).astype(np.intp),
        nb.upper,
        np.concatenate([jt.leaves[:m], st.stack[:top], whole.astype(np.int8)]),
        np.concatenate([jt.leaf_beta[:m], st.stack_beta[:top], whole]),
        np.concatenate([jt.leaf_lam[:m], st.stack_lam[:top], [root.root_lam]]),
        np.concatenate(pairs).astype(np.intp),
        int(st.ints[search_kernels.NODES]),
        left_out.rounding(ridge),
    )


@dataclass(frozen=True)
class Neighbour:
    """One neighbour after its own relaxations, or its own search.

    Attributes
    ----------
    support : ndarray of int, shape (τ,)
    objective : float
        Of the incumbent; infinite where none is known.
    leaves, beta : ndarray, shape (m, p)
        Nodes still open and coefficients to bound them by; none where it is solved.
    branched : bool
    status : Status
    """

    support: NDArray[np.intp]
    objective: float
    leaves: NDArray[np.int8]
    beta: Array
    root_lam: Array
    branched: bool
    n_nodes: int
    status: Status

    @property
    def solved(self) -> bool:
        """Whether the incumbent is optimal."""
        return bool(self.leaves.shape[0] == 0)


def settle(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    j: int,
    found: JointResult | Neighbour,
    limits: Limits | None = None,
    *,
    branch: bool = False,
) -> Neighbour:
    """Try the nodes that are open for neighbour j on its own relaxations; branch where asked to.

    Parameters
    ----------
    left_out, problem
        As in :func:`solve_jointly`.
    j : int
    found : JointResult or Neighbour
        What is open for j.
    limits : Limits, optional
    branch : bool
        Search on until it is solved. Without, no node is branched on and none enumerated.
    """
    limits = limits or Limits()
    if isinstance(found, JointResult):
        at = found.open_for(j)
        leaves, beta, lam = found.leaves[at], found.beta[at], found.root_lam[at]
        support, upper = found.support[j], float(found.upper[j])
    else:
        leaves, beta, lam = found.leaves, found.beta, found.root_lam
        support, upper = found.support, found.objective
    if leaves.shape[0] == 0:
        nothing = (leaves, beta, lam)
        return Neighbour(support, upper, *nothing, False, 0, Status.OPTIMAL)
    gram, p = left_out.form(j), problem.p
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    state = new_state(gram, problem, 0.0, root)
    state = grown(state, STACKS, max(state.stack.shape[0], leaves.shape[0] + 64))
    search_kernels.record_support(state, np.ascontiguousarray(support, dtype=np.int64))
    if np.isfinite(upper):  # not above what is known, should the matrices here round otherwise
        state.reals[search_kernels.UPPER] = min(state.reals[search_kernels.UPPER], upper)
    _push(state, leaves, beta, lam)
    if branch:
        search = Search(state)
        # its own clock: what a search may spend on enumeration grows with its time
        status = search.run(limits.restarted()) or Status.TIME_LIMIT
        state = search.states[0]
        top = int(state.ints[search_kernels.TOP])
        rest = (
            state.stack[:top].copy(),
            state.stack_beta[:top].copy(),
            state.stack_lam[:top].copy(),
        )
    else:
        state, rest, status = _settled(state, limits)
    ints = state.ints
    return Neighbour(
        np.sort(state.support).astype(np.intp),
        float(state.reals[search_kernels.UPPER]),
        *rest,
        bool(ints[search_kernels.BRANCHED] > 0) or branch,
        int(ints[search_kernels.NODES]),
        status if rest[0].shape[0] else Status.OPTIMAL,
    )


def _push(
    state: search_kernels.SearchState, leaves: NDArray[np.int8], beta: Array, lam: Array
) -> None:
    """Make these the open nodes."""
    m = leaves.shape[0]
    state.stack[:m], state.stack_beta[:m], state.stack_lam[:m] = leaves, beta, lam
    state.stack_bound[:] = 0.0
    state.ints[search_kernels.TOP] = m


def _settled(
    state: search_kernels.SearchState, limits: Limits
) -> tuple[search_kernels.SearchState, tuple[NDArray[np.int8], Array, Array], Status]:
    """Close what relaxations alone close; again while the incumbent improves."""
    ints, reals = state.ints, state.reals
    state = grown(state, LEAVES, int(ints[search_kernels.TOP]) + 1)
    ints[search_kernels.RECORDING] = search_kernels.SETTLE
    while True:
        before = float(reals[search_kernels.UPPER])
        ints[search_kernels.LEAVES] = 0
        while True:
            reached = limits.reached(int(ints[search_kernels.NODES]))
            if reached is not None or search_kernels.explore(state, CHUNK) != 1:
                break
        m, top = int(ints[search_kernels.LEAVES]), int(ints[search_kernels.TOP])
        rest = (
            np.concatenate([state.leaves[:m], state.stack[:top]]),
            np.concatenate([state.leaf_beta[:m], state.stack_beta[:top]]),
            np.concatenate([state.leaf_lam[:m], state.stack_lam[:top]]),
        )
        if reached is not None or m == 0 or reals[search_kernels.UPPER] >= before:
            return state, rest, reached or Status.NODE_LIMIT
        _push(state, *rest)


def _joint_state(
    st: search_kernels.SearchState, k: int, p: int, tau: int, few: int, patience: int
) -> joint_kernels.Joint:
    depth = st.stack.shape[0]
    jt = joint_kernels.Joint(
        folds=np.zeros((depth, k), dtype=np.int32),
        counts=np.zeros(depth, dtype=np.int64),
        reals=np.array([float(few), max(0.01, 4.0 / k), TOLERANCE, float(patience)]),
        leaves=np.zeros((64, p), dtype=np.int8),
        leaf_beta=np.zeros((64, p)),
        leaf_lam=np.zeros(64),
        pairs=np.zeros((64 + 2 * k, 2), dtype=np.int64),
        ints=np.zeros(2, dtype=np.int64),
        load=np.zeros(k, dtype=np.int64),
        here=np.zeros(k, dtype=np.int32),
        retry=np.zeros(k, dtype=np.int8),
        c=np.zeros(p),
        rounded=np.zeros(tau, dtype=np.int64),
        order=np.zeros(p, dtype=np.int64),
        places=np.arange(p, dtype=np.int64),
        one=np.zeros(1, dtype=np.int32),
        G=np.zeros((p, p)),
        b=np.zeros(p),
        last=np.full(tau, -1, dtype=np.int64),
    )
    jt.folds[0] = np.arange(k)
    jt.counts[0] = k
    return jt


def _grown(jt: joint_kernels.Joint, names: tuple[str, ...], rows: int) -> joint_kernels.Joint:
    new: dict[str, Any] = {}
    for name in names:
        old = getattr(jt, name)
        new[name] = np.zeros((rows, *old.shape[1:]), dtype=old.dtype)
        new[name][: old.shape[0]] = old
    return jt._replace(**new)
