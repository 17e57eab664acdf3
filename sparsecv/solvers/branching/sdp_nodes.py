"""A branch-and-bound tree whose nodes get diagonals of their own."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..relaxation.diagonal import Fitted, fit_diagonal
from ..relaxation.dual_bound import weights
from ..relaxation.gram import GramForm
from . import driver
from .node import FREE, IN
from .search import Nodes, Tree
from .search_settings import SETTINGS


class RefittedTree(Tree):
    """A tree that fits the diagonal D at a node before it searches below this node.

    The deeper a node, the larger the diagonal D of its free columns may be with XᵀX − D ⪰ 0:
    excluded columns do not count, and D may be 0 on included columns. Where columns are nearly
    orthogonal, larger diagonals close most of the gap. The heap of this class holds open nodes with
    the diagonals of the nodes above; the compiled search holds only the nodes below one node.

    gram: With D > 0.
    tol: Relative gap at which a node is pruned.
    """

    def __init__(self, gram: GramForm, problem: SparseRidgeProblem, tol: float) -> None:
        super().__init__(gram, problem, tol)
        self.heap: list[tuple[float, int, Array, NDArray[np.int8], Array, float]] = []
        self.pushed, self.budget, self.D = 0, SETTINGS.min_nodes_per_refit, gram.D

    @property
    def n_open(self) -> int:
        """How many nodes are open, here and in the compiled search."""
        return len(self.heap) + super().n_open

    @property
    def bound(self) -> float:
        """Least bound of the nodes that were pruned or are still open."""
        return min(super().bound, self.heap[0][0] if self.heap else np.inf)

    def add(
        self,
        state: NDArray[np.int8],
        beta: Array,
        lam: Array,
        bound: Array | float = -np.inf,
        unsolved: NDArray[np.int8] | int = 1,
    ) -> None:
        """Put nodes in the heap with the root's diagonal, which is valid at every node."""
        bounds = np.broadcast_to(np.asarray(bound, dtype=float), lam.shape)
        self._wait(self.gram.D, (state, beta, lam, bounds, np.ones(lam.size, dtype=np.int8)))

    def emptied(self) -> Nodes:
        """Take every open node out, the least bound first, to deal the nodes out to other threads.

        The nodes' own diagonals are dropped, as the lists that trees exchange have no place for
        them: the tree that takes a node puts it in its heap with the root's diagonal, which holds
        at every node, and may fit a diagonal anew when it takes the node up.
        """
        self._wait(self.D, super().emptied())
        heap, self.heap = sorted(self.heap), []
        p = self.gram.b.size
        state = np.array([node[3] for node in heap], dtype=np.int8).reshape(-1, p)
        beta = np.array([node[4] for node in heap]).reshape(-1, p)
        lam, bound = (np.array([node[k] for node in heap], dtype=float) for k in (5, 0))
        return state, beta, lam, bound, np.ones(len(heap), dtype=np.int8)

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes; return ``driver.DONE`` or ``PAUSED``."""
        now = self.now
        last = int(now["nodes"][0]) + nodes
        while self.n_open > 0:
            left = last - int(now["nodes"][0])
            if left <= 0:
                return driver.PAUSED
            if super().n_open == 0 and not self._take_up():
                continue
            code = super().advance(min(left, self.budget))
            # Where no more nodes may be kept, the node taken up is searched to its end.
            memory = len(self.heap) * (9.0 * self.problem.p + SETTINGS.bytes_per_refitted_node)
            if code != driver.FULL and memory <= SETTINGS.max_open_bytes:
                self._wait(self.D, super().emptied())
        return driver.DONE

    def _take_up(self) -> bool:
        """Fit the diagonal of the node of least bound, and give the node to the compiled search.

        Returns: False if the node's new bound prunes the node.
        """
        now, tau, ridge = self.now, self.problem.tau, self.problem.gamma / 2.0
        bound, _, D, state, beta, lam = heapq.heappop(self.heap)
        target = float(now["upper"][0] * (1.0 - now["tolerance"][0]))
        left, free = tau - int((state == IN).sum()), int((state == FREE).sum())
        one_support = not 0 < left < free
        if bound < target and not one_support:
            now["nodes"] += 1
            start = Fitted(D, beta, lam, bound)
            D, beta, lam, fitted = fit_diagonal(
                self.gram, ridge, state, left, start, target, SETTINGS.refit_steps
            )
            pays = fitted - bound > SETTINGS.refit_share * (target - bound)
            least = SETTINGS.min_nodes_per_refit
            self.budget = max(least, self.budget // 2) if pays else 2 * self.budget
            bound = max(bound, fitted)
        if bound >= target:
            now["pruned"] = np.minimum(now["pruned"], bound)
            return False
        st, self.D = self.st, D
        st.Q.flat[:: D.size + 1] = np.diag(self.gram.G) - D
        st.terms.w[:] = weights(ridge, D)
        st.root_w[:] = np.sqrt(st.terms.w)
        super().add(state[None], beta[None], np.array([lam]), bound, int(one_support))
        return True

    def _wait(self, D: Array, nodes: Nodes) -> None:
        """Put nodes in the heap with a diagonal D that is valid at all of these nodes."""
        for state, beta, lam, bound, _ in zip(*nodes, strict=True):
            self.pushed += 1
            heapq.heappush(self.heap, (float(bound), self.pushed, D, state, beta, float(lam)))
