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

from ..kernels.linalg import Array
from ..limits import Limits
from ..problem import SparseRidgeProblem
from ..relaxation.gram import GramForm, Root
from . import single_kernels as kernels
from .search import STACKS, Search, enter_support, grown, new_state

LEAVES = ("leaves", "leaf_beta", "leaf_lam", "leaf_bound")
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

    Parameters
    ----------
    problem : SparseRidgeProblem
    support : array of int
        The best support known, best an optimal one.
    margin : float
        Leaves are closed where their bound passes (1 + margin) times the support's objective.
    gram : GramForm, optional
        Of the same data.
    limits : Limits, optional

    Returns
    -------
    Certificate or None
        None where the tree has too many leaves to be worth its transfer. A tree cut short by a
        limit gives a coarser certificate, its open nodes being leaves as well.
    """
    limits = limits or Limits()
    gram = gram or GramForm.of(problem, limits=limits)
    p = problem.p
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    level = np.sort(gram.b**2 / (problem.gamma / 2.0 + gram.D))[::-1]
    root.root_lam = 0.5 * float(np.sqrt(level[min(problem.tau, p) - 1]))
    state = grown(new_state(gram, problem, 0.0, root), LEAVES, 64)
    state.ints[kernels.RECORDING] = kernels.RECORD
    state.reals[kernels.TOLERANCE] = -margin
    enter_support(state, support)
    while limits.reached(int(state.ints[kernels.NODES])) is None:
        code = kernels.explore(state, limits.nodes_left(int(state.ints[kernels.NODES]), 200))
        if code == 0:
            break
        if state.ints[kernels.LEAVES] + state.ints[kernels.TOP] > MOST_LEAVES:
            return None
        if code == 2:
            state = grown(state, STACKS, 2 * state.stack.shape[0])
        if code == 3:
            state = grown(state, LEAVES, 2 * state.leaves.shape[0])
    count, top = int(state.ints[kernels.LEAVES]), int(state.ints[kernels.TOP])
    return Certificate(
        problem.tau,
        np.concatenate([state.leaves[:count], state.stack[:top]]),
        np.concatenate([state.leaf_beta[:count], state.stack_beta[:top]]),
        np.concatenate([state.leaf_lam[:count], state.stack_lam[:top]]),
    )


def start_from(
    certificate: Certificate, gram: GramForm, problem: SparseRidgeProblem, tol: float
) -> Search:
    """A search of a neighbouring problem whose open nodes are the certificate's leaves."""
    p = problem.p
    root = Root(np.arange(p, dtype=np.intp), np.zeros(p), 0.0, 0.0, np.inf)
    state = new_state(gram, problem, tol, root)
    state = grown(state, STACKS, max(state.stack.shape[0], certificate.size + 64))
    state.stack[: certificate.size] = certificate.leaves
    state.stack_beta[: certificate.size] = certificate.beta
    state.stack_lam[: certificate.size] = certificate.root_lam
    state.stack_bound[:] = 0.0
    state.ints[kernels.TOP] = certificate.size
    return Search(state)
