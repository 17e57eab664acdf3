"""A branch-and-bound tree whose nodes get diagonals of their own."""

from __future__ import annotations

import heapq

import numpy as np

from ..kernels.linalg import Array
from ..problem import SparseRidgeProblem
from ..relaxation.diagonal import Fitted, fit_diagonal
from ..relaxation.gram import GramForm
from . import driver
from .search import Nodes, Tree

STEPS = 4  # of fitting at a node
BRANCHED = 1


class RefittedTree(Tree):
    """A tree that fits the diagonal again at a node before it is searched on from there.

    The further down, the more XᵀX − D ⪰ 0 allows: columns left out do not count, and nothing need
    be taken from included ones. Where columns are nearly orthogonal that is most of a node's gap.

    Parameters
    ----------
    gram : GramForm
        With D > 0.
    problem : SparseRidgeProblem
    tol : float
        Relative gap at which a node is pruned.
    """

    def __init__(self, gram: GramForm, problem: SparseRidgeProblem, tol: float) -> None:
        super().__init__(gram, problem, tol)
        self.heap: list[tuple[float, int, Array, Nodes]] = []
        self.pushed = 0

    @property
    def n_open(self) -> int:
        return len(self.heap)

    @property
    def bound(self) -> float:
        least = self.heap[0][0] if self.heap else np.inf
        return min(least, super().bound)

    def add(self, state, beta, lam, bound=-np.inf, fresh=1):
        bounds = np.broadcast_to(bound, lam.shape)
        self._push(self.gram.D, (state, beta, lam, bounds, lam))

    def _push(self, D: Array, nodes: Nodes) -> None:
        for state, beta, lam, bound, _ in zip(*nodes, strict=True):
            self.pushed += 1
            heapq.heappush(self.heap, (float(bound), self.pushed, D, (state, beta, float(lam))))

    def emptied(self) -> Nodes:
        heap, self.heap = sorted(self.heap)[:], []
        ...

    def advance(self, nodes: int) -> int:
        now, ridge = self.now, self.problem.gamma / 2.0
        last = int(now["nodes"][0]) + nodes
        while self.heap:
            if now["nodes"][0] >= last:
                return driver.PAUSED
            bound, _, D, (state, beta, lam) = heapq.heappop(self.heap)
            target = float(now["upper"][0] * (1.0 - now["tolerance"][0]))
            picks = self.problem.tau - int((state == 1).sum())
            free=int((state == 0).sum())
            if bound < target and 0 < picks < free:
                now["nodes"] += 1
                D, beta, lam, fitted = fit_diagonal(
                    self.gram, ridge, state, picks, Fitted(D, beta, lam, bound), target, STEPS
                )
                bound = max(bound, fitted)
            if bound >= target:
                now["slack"] = min(float(now["slack"][0]), bound)
                continue
            self._use(D)
            super().add(state[None], beta[None], np.array([lam]), bound, 0 if 0<picks<free else 1)
            while super().advance(BRANCHED) == driver.FULL:
                pass
            self._push(D, super().emptied())
        return driver.DONE

    def _use(self, D: Array) -> None:
        """Let the compiled search take D for the nodes it is given."""
        form = GramForm(self.gram.G, self.gram.b, self.gram.yy, D, self.gram.eps)
        st, terms = self.st, form.terms(self.problem.gamma / 2.0)
        st.Q.flat[:: D.size + 1] = np.diag(self.gram.G) - D
        st.terms.w[:] = terms.w
        st.root_w[:] = np.sqrt(terms.w)
