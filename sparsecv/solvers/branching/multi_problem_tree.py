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

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..kernels.linalg import Array, record
from ..relaxation.descent import gram_arrays, new_sweeps
from ..relaxation.dual_bound import first_multiplier
from ..relaxation.gram import TOLERANCE
from . import driver, node
from . import incumbent_kernels as pool_kernels
from . import multi_problem_kernels as joint_kernels
from .row_deletion import LeftOut
from .search import Search, Tree

FEW = 5  # neighbours, or
SHARE = 0.01  # of them: a node open for no more is handed over
PATIENCE = 500  # nodes handed over to a neighbour beyond which its own tree is the better one
CHUNK = 64  # nodes between two looks at the clock
MOST_NODES = 20_000  # of a joint tree; what is open then is handed over
MOST_PAIRS = 2_000_000
STACKS = ("stack", "stack_beta", "stack_lam", "folds", "counts")
LEAVES = ("leaves", "leaf_beta", "leaf_lam", "pairs")


@dataclass(frozen=True)
class JointResult:
    """What one tree found out about all neighbours at one τ.

    support, shape (k, τ): Incumbents.
    upper, shape (k,): Their objectives by down-dates, good to about nine digits.
    leaves, beta, root_lam: Nodes handed over: included (1), excluded (2) and free (0) columns (m,
        p), coefficients (m, p) and √λ (m,).
    pairs, shape (q, 2): Node and the neighbour it is open for.
    rounding, shape (k,): What objectives may be off by: Gram matrices keep half of the digits.
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
        """Nodes open for neighbour j.

        Returns: Rows of ``leaves``.
        """
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

    problem: On all rows; gives γ and τ.
    supports, shape (s, τ): Good supports of all rows, the best first.
    most_nodes: Nodes after which what is open is handed over.
    few: A node open for at most so many neighbours is handed over.
    patience: A neighbour that more nodes than this are handed over to is left out of the search: it
        gets the root instead.
    Returns: A neighbour in no pair is solved: its incumbent is optimal.
    """
    limits = limits or Limits()
    gram, tau, ridge = left_out.gram, problem.tau, problem.gamma / 2.0
    k = left_out.count
    few = max(min(FEW, k // 8), int(SHARE * k)) if few is None else few
    whole = Tree(gram, problem, 0.0)
    whole.enter(np.asarray(supports[0], dtype=np.intp), 0)
    st = whole.st
    root_lam = first_multiplier(gram.b, st.terms.w, tau)
    margin = gram.rounding(ridge, tau, float(whole.now["upper"][0]))
    nb = left_out.neighbours(ridge, tau, -left_out.least, margin)
    jt = _joint_state(st, k, few, patience, gram.scaled)
    jt.stack_lam[0] = root_lam
    for support in supports:
        chosen = np.ascontiguousarray(support, dtype=np.int64)
        gain = pool_kernels.factor_support(nb, gram.G, gram.b, chosen)
        pool_kernels.try_support(nb, chosen, gain, gram.yy, jt.folds[0], k)
    while True:
        nodes = int(whole.now["nodes"][0])
        if limits.reached(nodes) is not None or nodes >= most_nodes:
            break
        code = joint_kernels.explore_jointly(st, jt, nb, CHUNK)
        if code == 0:
            break
        if code == 3 and jt.now["pairs"][0] > MOST_PAIRS:
            break
        jt = _with_room(jt, code)
    return JointResult(
        np.sort(nb.support, axis=1).astype(np.intp),
        nb.upper,
        *_handed_over(jt, patience, root_lam),
        int(whole.now["nodes"][0]),
        margin + left_out.rounding(ridge, tau, nb.upper),
    )


def _handed_over(
    jt: joint_kernels.Joint, patience: int, root_lam: float
) -> tuple[NDArray[np.int8], Array, Array, NDArray[np.intp]]:
    """Leaves and open nodes with their β and √λ, and the neighbours they are open for."""
    m, q, top = (int(count) for count in jt.now[0])
    lost = np.flatnonzero(jt.load > patience)
    pairs = [jt.pairs[:q]]
    for row in range(top):
        folds = jt.folds[row, : jt.counts[row]]
        pairs.append(np.column_stack([np.full(folds.size, m + row), folds]))
    together = np.concatenate(pairs)
    together = together[~np.isin(together[:, 1], lost)]
    pairs = [together, np.column_stack([np.full(lost.size, m + top), lost])]
    root = np.zeros((1, jt.c.size))
    return (
        np.concatenate([jt.leaves[:m], jt.stack[:top], root.astype(np.int8)]),
        np.concatenate([jt.leaf_beta[:m], jt.stack_beta[:top], root]),
        np.concatenate([jt.leaf_lam[:m], jt.stack_lam[:top], [root_lam]]),
        np.concatenate(pairs).astype(np.intp),
    )


@dataclass(frozen=True)
class Neighbour:
    """One neighbour after its own relaxations, or its own search.

    support, shape (τ,).
    objective: Of the incumbent; infinite where none is known.
    leaves, beta, shape (m, p): Nodes still open and coefficients to bound them by; none where it is
        solved.
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

    found: What is open for j.
    branch: Search on until it is solved. Without, no node is branched on and none enumerated.
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
    tree = Tree(left_out.form(j), problem, 0.0)
    tree.enter(support, 0)
    if np.isfinite(upper):  # not above what is known, should the matrices here round otherwise
        tree.now["upper"] = np.minimum(tree.now["upper"], upper)
    tree.add(leaves, beta, lam)
    if branch:
        # its own clock: what a search may spend on enumeration grows with its time
        status = Search(tree).run(limits.restarted()) or Status.TIME_LIMIT
    else:
        status = _settled(tree, limits)
    rest = tree.take(np.concatenate([tree.kept, tree.waiting]))[:3]
    return Neighbour(
        np.sort(tree.st.support).astype(np.intp),
        float(tree.now["upper"][0]),
        *rest,
        bool(tree.now["branched"][0] > 0) or branch,
        int(tree.now["nodes"][0]),
        status if rest[0].shape[0] else Status.OPTIMAL,
    )


def _settled(tree: Tree, limits: Limits) -> Status:
    """Close what relaxations alone close; again while the incumbent improves."""
    tree.now["mode"] = node.SETTLE
    while True:
        before = float(tree.now["upper"][0])
        while True:
            reached = limits.reached(int(tree.now["nodes"][0]))
            if reached is not None or tree.advance(CHUNK) == driver.DONE:
                break
        if reached is not None or tree.kept.size == 0 or tree.now["upper"][0] >= before:
            return reached or Status.NODE_LIMIT
        rest = tree.take(tree.kept)[:3]
        tree.clear()
        tree.add(*rest)


def _joint_state(
    st: node.SearchState, k: int, few: int, patience: int, scaled: bool
) -> joint_kernels.Joint:
    p = st.beta.size
    depth = min(p + 3, 512)
    jt = joint_kernels.Joint(
        stack=np.zeros((depth, p), dtype=np.int8),
        stack_beta=np.zeros((depth, p)),
        stack_lam=np.zeros(depth),
        folds=np.zeros((depth, k), dtype=np.int32),
        counts=np.zeros(depth, dtype=np.int64),
        settings=record(
            joint_kernels.SETTINGS,
            few=few,
            patience=patience,
            cap=max(0.01, 4.0 / k),
            tolerance=TOLERANCE,
        ),
        leaves=np.zeros((64, p), dtype=np.int8),
        leaf_beta=np.zeros((64, p)),
        leaf_lam=np.zeros(64),
        pairs=np.zeros((64 + 2 * k, 2), dtype=np.int64),
        now=record(joint_kernels.COUNTS, top=1),
        load=np.zeros(k, dtype=np.int64),
        here=np.zeros(k, dtype=np.int32),
        retry=np.zeros(k, dtype=np.int8),
        c=np.zeros(p),
        order=np.zeros(p, dtype=np.int64),
        places=np.arange(p, dtype=np.int64),
        one=np.zeros(1, dtype=np.int32),
        G=np.zeros((p, p)),
        b=np.zeros(p),
        sweeps=new_sweeps(gram_arrays(st.Q), p, 1e-5, 20, scaled=scaled),
    )
    jt.folds[0] = np.arange(k)
    jt.counts[0] = k
    return jt


def _with_room(jt: joint_kernels.Joint, code: int) -> joint_kernels.Joint:
    """The same with twice the rows of what ``explore_jointly`` says is full."""
    new: dict[str, Any] = {}
    for name in {2: STACKS, 3: LEAVES}.get(code, ()):
        old = getattr(jt, name)
        new[name] = np.concatenate([old, np.zeros_like(old)])
    return jt._replace(**new)
