"""One tree searched for many problems that differ by the rows deleted, and what stays open of each.

The main paper solves or bounds every fold alone. Here a node of the tree of all rows is branched on
while the node is open for many problems; a node that is open for few is kept for searches of these
problems alone. Most problems need no branching of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status, Work
from ..kernels.linalg import Array, record
from ..relaxation.dual_bound import first_multiplier
from ..relaxation.gram import TOLERANCE
from . import driver
from . import multi_problem_kernels as kernels
from .row_deletion import LeftOut
from .row_deletion_kernels import try_support
from .search import Nodes, Search, Tree
from .search_settings import FAMILY


@dataclass(frozen=True)
class PartialProof(Proof):
    """The incumbent of one problem, and the nodes that may hold a better support.

    leaves, beta, shape (m, p): Nodes still open, as included (1), excluded (2) and free (0)
        columns, and coefficients to bound them by; none where the incumbent is proved optimal.
    root_lam, shape (m,): √λ, λ the multiplier of the cardinality constraint.
    rounding: What the objective may be off by: Gram matrices keep half of the digits.
    """

    leaves: NDArray[np.int8]
    beta: Array
    root_lam: Array
    rounding: float

    @property
    def solved(self) -> bool:
        """Whether the incumbent is optimal."""
        return bool(self.leaves.shape[0] == 0)


class FamilyTree(Tree):
    """The tree of all rows, whose nodes are open for some of the problems that lack rows.

    supports, shape (s, τ): Good supports on all rows, the best first.
    few: A node that is open for at most so many problems is kept.
    patience: A problem with more kept nodes than this leaves the tree.
    """

    def __init__(
        self,
        left_out: LeftOut,
        problem: SparseRidgeProblem,
        supports: NDArray[np.intp],
        few: int,
        patience: int,
    ) -> None:
        gram, ridge, k, p = left_out.gram, problem.gamma / 2.0, left_out.count, problem.p
        self.k = k
        super().__init__(gram, problem, 0.0)
        self.enter(np.asarray(supports[0], dtype=np.intp), 0)
        self.now["quick"] = 1  # no strong branching
        self.ch.sweeps.limits["gap"] = FAMILY.gap
        self.ch.sweeps.limits["rounds"] = FAMILY.rounds
        self.margin = gram.rounding(ridge, problem.tau, float(self.now["upper"][0]))
        cap = max(FAMILY.cap_share, FAMILY.cap_problems / k)
        self.problems = left_out.problems(ridge, problem.tau, -left_out.least, self.margin)
        self.family = kernels.Family(
            problems=self.problems,
            open_for=np.ones((self.open.state.shape[0], k), dtype=np.int8),
            counts=record(kernels.COUNTS, few=few, patience=patience, cap=cap),
            load=np.zeros(k, dtype=np.int64),
            here=np.zeros(k, dtype=np.int32),
            one=np.zeros(1, dtype=np.int32),
            order=np.zeros(p, dtype=np.int64),
            places=np.arange(p, dtype=np.int64),
            G=np.zeros((p, p)),
            b=np.zeros(p),
        )
        for support in supports:
            chosen = np.ascontiguousarray(support, dtype=np.int64)
            try_support(self.problems, chosen, np.arange(k, dtype=np.int32), k)
        self.start(np.zeros(p), first_multiplier(gram.b, self.st.terms.w, problem.tau), -np.inf)
        self.counts["deep"] = 1

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes; the tree ends too where no more nodes may be kept."""
        code = super().advance(nodes)
        return code if self.has_room else driver.DONE

    def grow(self, rows: int) -> None:
        """Make room for more nodes."""
        super().grow(rows)
        more = np.zeros((rows - self.family.open_for.shape[0], self.k), dtype=np.int8)
        self.family = self.family._replace(open_for=np.vstack([self.family.open_for, more]))

    def bytes_per_node(self) -> float:
        """Memory of one row of the table."""
        return super().bytes_per_node() + self.k


def solve_jointly(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    supports: NDArray[np.intp],
    *,
    limits: Limits | None = None,
    most_nodes: int = FAMILY.max_nodes,
    few: int | None = None,
    patience: int = FAMILY.max_nodes_left,
) -> list[PartialProof]:
    """Search the tree of all rows for every problem at the given γ and τ.

    problem: On all rows; gives γ and τ.
    supports, few, patience: As :class:`FamilyTree` takes them.
    most_nodes: Nodes after which the tree is left as it is.
    Returns: One for every problem, with the work of the whole tree. The open node of a problem that
        has left the tree is the root.
    """
    limits, k, tau = limits or Limits(), left_out.count, problem.tau
    if few is None:
        few = max(min(FAMILY.max_open_problems, k // 8), int(FAMILY.max_open_share * k))
    tree = FamilyTree(left_out, problem, supports, few, patience)
    root, dp = tree.take(tree.waiting), tree.problems
    status = Search(tree).run(limits.within(nodes=most_nodes))
    rounding = tree.margin + left_out.rounding(problem.gamma / 2.0, tau, dp.upper)
    rows = np.concatenate([tree.kept, tree.waiting])
    is_open, gone = tree.family.open_for[rows] == 1, tree.family.load > patience
    nothing, work = tree.take(rows[:0]), Work(tree.n_nodes)
    known = zip(np.sort(dp.support), dp.upper.tolist(), rounding.tolist(), strict=True)
    left = np.flatnonzero(gone | is_open.any(axis=0)).tolist()
    nodes = {j: root if gone[j] else tree.take(rows[is_open[:, j]]) for j in left}
    return [_partial(*one, nodes.get(j, nothing), status, work) for j, one in enumerate(known)]


def settle(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    j: int,
    found: PartialProof,
    limits: Limits | None = None,
    *,
    branch: bool = False,
) -> PartialProof:
    """Try the nodes that are open for problem j on its own relaxations; branch where asked to.

    found: What is known of the problem.
    branch: Search on until the problem is solved. Without ``branch`` no node is branched on, and no
        node is enumerated.
    """
    limits = limits or Limits()
    if found.solved:
        return replace(found, work=Work())
    tree = Tree(left_out.form(j), problem, 0.0)
    tree.enter(found.support, 0)
    if np.isfinite(found.objective):  # the same support's objective may round to more here
        tree.now["upper"] = np.minimum(tree.now["upper"], found.objective)
    tree.add(found.leaves, found.beta, found.root_lam)
    # The limits are restarted, as what a search may spend on enumeration grows with its time.
    own, upper = limits.within(), float(tree.now["upper"][0])
    tree.now["only_relax"] = not branch
    status = Search(tree).run(own)
    while tree.kept.size > 0 and status is Status.OPTIMAL and tree.now["upper"][0] < upper:
        upper = float(tree.now["upper"][0])  # A better incumbent may close the nodes kept.
        nodes = tree.take(tree.kept)[:3]
        tree.clear()
        tree.add(*nodes)
        status = Search(tree).run(own)
    known = (np.sort(tree.st.support), float(tree.now["upper"][0]), found.rounding)
    nodes_left = tree.take(np.concatenate([tree.kept, tree.waiting]))
    work = Work(tree.n_nodes, 0.0, max(int(tree.now["branched"][0]), int(branch)))
    return _partial(*known, nodes_left, status, work)


def _partial(
    support: NDArray[np.int64],
    objective: float,
    rounding: float,
    nodes: Nodes,
    ended: Status | None,
    work: Work,
) -> PartialProof:
    """A proof of what is known with these nodes left; nothing below pruned nodes is better.

    ended: How the search ended; where nodes are left all the same, they were not to be branched on.
    """
    leaves, beta, root_lam, bounds, _ = nodes
    status, least = Status.OPTIMAL, objective
    if bounds.size:
        status = Status.NODE_LIMIT if ended in (None, Status.OPTIMAL) else ended
        least = min(objective, float(bounds.min()))
    return PartialProof(
        support.astype(np.intp, copy=False),
        objective,
        max(0.0, least * (1.0 - TOLERANCE) - rounding),
        status,
        work,
        leaves,
        beta,
        root_lam,
        rounding,
    )
