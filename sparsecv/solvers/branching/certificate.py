"""Certificate transfer: the finished tree of one problem settles its neighbours.

The leaves of a branch-and-bound tree partition all supports, and each comes with the coefficients
whose dual bound closed it. For a neighbouring problem (a fold, a nearby γ) the same leaves are a
partition still: where the same coefficients, or a few sweeps from them, give a bound above the
neighbour's incumbent nothing needs to be branched. A margin, by which leaves are closed more
tightly than their own problem needs, leaves room for the difference of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..relaxation.dual_bound import first_multiplier
from ..relaxation.gram import GramForm
from . import driver, node
from .search import Search, Tree

MOST_LEAVES = 5_000  # more cost a neighbour more than a search of its own


@dataclass(frozen=True)
class Certificate:
    """Leaves of a tree at one τ: included (1), excluded (2) and free (0) columns, β and √λ."""

    tau: int
    leaves: NDArray[np.int8]
    beta: Array
    root_lam: Array

    @property
    def size(self) -> int:
        """Number of leaves."""
        return int(self.leaves.shape[0])


def certify(
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    *,
    margin: float,
    gram: GramForm | None = None,
    limits: Limits | None = None,
) -> Certificate | None:
    """Search the problem's tree once more and keep its leaves.

    support: The best support known, best an optimal one.
    margin: Leaves are closed where their bound passes (1 + margin) times the support's objective.
    gram: Of the same data.
    Returns: None where the tree has too many leaves to be worth its transfer. A tree cut short by a
        limit gives a coarser certificate, its open nodes being leaves as well.
    """
    limits = limits or Limits()
    gram = gram or GramForm.of(problem, limits=limits)
    p = problem.p
    tree = Tree(gram, problem, 0.0)
    lam = np.array([first_multiplier(gram.b, tree.st.terms.w, problem.tau)])
    tree.now["mode"], tree.now["tolerance"] = node.RECORD, -margin
    tree.enter(support)
    tree.add(np.zeros((1, p), dtype=np.int8), np.zeros((1, p)), lam)
    while limits.reached(int(tree.now["nodes"][0])) is None:
        if tree.advance(limits.nodes_left(int(tree.now["nodes"][0]), 200)) == driver.DONE:
            break
        if tree.kept.size + tree.waiting.size > MOST_LEAVES:
            return None
    state, beta, root_lam = tree.take(np.concatenate([tree.kept, tree.waiting]))[:3]
    return Certificate(problem.tau, state, beta, root_lam)


def start_from(
    certificate: Certificate, gram: GramForm, problem: SparseRidgeProblem, tol: float
) -> Search:
    """A search of a neighbouring problem whose open nodes are the certificate's leaves.

    gram: Of the problem.
    problem: Of the certificate's τ and columns.
    tol: Relative gap at which a node is pruned.
    """
    tree = Tree(gram, problem, tol)
    tree.add(certificate.leaves, certificate.beta, certificate.root_lam)
    return Search(tree)
