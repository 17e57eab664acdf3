"""One tree searched for many problems that differ by the rows deleted, and what stays open of each.

The first paper solves or bounds every fold alone. Here a node of the tree of all rows is branched
on while the node is open for many problems. A node that is open for few problems is kept, and each
of these problems is searched alone from the node. Most problems need no branching of their own.
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
    max_open: A node that is open for at most so many problems is kept.
    max_nodes_left: A problem with more kept nodes than this leaves the tree.
    """

    def __init__(
        self,
        left_out: LeftOut,
        problem: SparseRidgeProblem,
        supports: NDArray[np.intp],
        max_open: int,
        max_nodes_left: int,
    ) -> None:
        gram, ridge, k, p = left_out.gram, problem.gamma / 2.0, left_out.count, problem.p
        self.k = k
        super().__init__(gram, problem, 0.0)
        self.enter(np.asarray(supports[0], dtype=np.intp), 0)
        self.now["rough_left"] = 1  # Columns are chosen without strong branching.
        self.ch.sweeps.limits["gap"] = FAMILY.gap
        self.ch.sweeps.limits["rounds"] = FAMILY.rounds
        self.margin = gram.rounding(ridge, problem.tau, float(self.now["upper"][0]))
        share = max(FAMILY.excess_share, FAMILY.excess_problems / k)
        self.problems = left_out.problems(ridge, problem.tau, -left_out.least, self.margin)
        self.family = kernels.Family(
            problems=self.problems,
            open_for=np.ones((self.open.state.shape[0], k), dtype=np.int8),
            counts=record(
                kernels.COUNTS, max_open=max_open, max_nodes_left=max_nodes_left, excess_share=share
            ),
            nodes_left=np.zeros(k, dtype=np.int64),
            open_here=np.zeros(k, dtype=np.int32),
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
        self.counts["depth_first"] = 1

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes; the search also ends when the table of nodes is full.

        Returns: ``driver.DONE`` or ``driver.PAUSED``.
        """
        code = super().advance(nodes)
        return code if self.has_room else driver.DONE

    def grow(self, rows: int) -> None:
        """Make the table of nodes larger, to so many rows."""
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
    max_open: int | None = None,
    max_nodes_left: int = FAMILY.max_nodes_left,
) -> list[PartialProof]:
    """Search the tree of all rows for every problem at the given γ and τ.

    problem: The problem on all rows, which gives γ and τ.
    supports, max_open, max_nodes_left: As :class:`FamilyTree` takes them.
    most_nodes: The tree ends after this many nodes; the nodes then open are left to other searches.
    Returns: A proof for every problem, with the work of the whole tree. The open node of a problem
        that has left the tree is the root.
    """
    limits, k, tau = limits or Limits(), left_out.count, problem.tau
    if max_open is None:
        max_open = max(min(FAMILY.max_open_problems, k // 8), int(FAMILY.max_open_share * k))
    tree = FamilyTree(left_out, problem, supports, max_open, max_nodes_left)
    root, dp = tree.take(tree.waiting), tree.problems
    status = Search(tree).run(limits.within(nodes=most_nodes))
    rounding = tree.margin + left_out.rounding(problem.gamma / 2.0, tau, dp.upper)
    rows = np.concatenate([tree.kept, tree.waiting])
    is_open, gone = tree.family.open_for[rows] == 1, tree.family.nodes_left > max_nodes_left
    nothing, work = tree.take(rows[:0]), Work(tree.n_nodes)
    known = zip(np.sort(dp.support), dp.upper.tolist(), rounding.tolist(), strict=True)
    left = np.flatnonzero(gone | is_open.any(axis=0)).tolist()
    nodes = {j: root if gone[j] else tree.take(rows[is_open[:, j]]) for j in left}
    return [_partial(*one, nodes.get(j, nothing), status, work) for j, one in enumerate(known)]


def search_alone(
    left_out: LeftOut,
    problem: SparseRidgeProblem,
    j: int,
    found: PartialProof,
    limits: Limits | None = None,
    *,
    branch: bool = False,
) -> PartialProof:
    """Search the nodes that are open for problem j, with relaxations on the rows of problem j.

    found: The incumbent and the open nodes of the problem.
    branch: Whether to search until the problem is solved. Otherwise the open nodes are relaxed, and
        none is branched on or enumerated.
    """
    limits = limits or Limits()
    if found.solved:
        return replace(found, work=Work())
    tree = Tree(left_out.form(j), problem, 0.0)
    tree.enter(found.support, 0)
    if np.isfinite(found.objective):  # Here the support's objective may be rounded to more.
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
    """The proof that the incumbent and the nodes left amount to; pruned nodes hold nothing better.

    ended: How the search ended. If the search ended as OPTIMAL with nodes left, these nodes were
        kept and not branched on, and the status is NODE_LIMIT.
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
