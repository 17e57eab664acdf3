"""A branch-and-bound tree whose nodes get diagonals of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...schedule import MIN_NODES_PER_REFIT, REFIT_SHARE
from ..core.leaves import FREE, IN, Leaves
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..relaxation.diagonal import Fitted, fit_diagonal
from ..relaxation.dual_bound import weights
from ..relaxation.gram import GramForm
from . import driver
from .search import Tree

# Damped Newton steps of a fit at a node, which starts at the diagonal of a node above it; a choice.
STEPS_AT_A_NODE = 4


class RefittedTree(Tree):
    """A tree that fits the diagonal D at a node before it searches below this node.

    The deeper a node, the larger the diagonal D of its free columns may be with XᵀX − D ⪰ 0:
    excluded columns do not count, and D may be 0 on included columns. Where columns are nearly
    orthogonal, larger diagonals close most of the gap. The nodes below the node taken up last are
    those of the tree ``below``; all other open nodes wait here, each with the diagonal of a node
    above it, where its own fit begins.

    gram: The Gram form, with the root's diagonal D > 0, because the barrier of a fit takes the
        logarithm of D.
    problem, tol, units: As for a tree.
    """

    def __init__(
        self,
        gram: GramForm,
        problem: SparseRidgeProblem,
        tol: float,
        units: NDArray[np.intp] | None = None,
    ) -> None:
        super().__init__(gram, problem, tol, units)
        # The tree below has its own table of open nodes. Both trees share the incumbent's arrays,
        # so that either tree prunes by the best support of both.
        self.below = self.beside()
        self.budget = MIN_NODES_PER_REFIT  # nodes to search below a node before the next fit
        self.D = gram.D  # the diagonal of the tree below
        self.diagonals: dict[int, Array] = {}  # by rows of this tree's table of open nodes

    @property
    def n_open(self) -> int:
        """How many nodes wait, here and below the node taken up last."""
        return super().n_open + self.below.n_open

    @property
    def n_bytes(self) -> float:
        """Memory of this tree and of the tree below, and a diagonal for every node that waits."""
        return super().n_bytes + self.below.n_bytes + 8.0 * self.gram.b.size * len(self.diagonals)

    @property
    def bound(self) -> float:
        """Least bound of the nodes that were pruned or are still open."""
        return min(super().bound, self.below.bound)

    def add(self, nodes: Leaves) -> NDArray[np.int64]:
        """Put nodes in the heap, with the root's diagonal, which is valid at every node."""
        rows = super().add(_unsolved(nodes))
        self.diagonals.update(dict.fromkeys(rows.tolist(), self.gram.D))
        return rows

    def _take_back(self) -> None:
        """Let the nodes of the tree below wait here, with the diagonal of that tree."""
        rows = super().add(_unsolved(self.below.emptied()))
        self.diagonals.update(dict.fromkeys(rows.tolist(), self.D))

    def emptied(self) -> Leaves:
        """Take every open node out, the least bound first, to deal the nodes out to threads."""
        self._take_back()
        return super().emptied()

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes; return ``driver.DONE`` or ``PAUSED``."""
        last = self.n_nodes + nodes
        while self.n_open > 0:
            left = last - self.n_nodes
            if left <= 0:
                return driver.PAUSED
            if self.below.n_open == 0 and not self._take_up():
                continue
            code = self.below.advance(min(left, self.budget))
            # Where no more nodes may be kept, the node taken up is searched to its end.
            if code != driver.FULL and self.n_open < self._most():
                self._take_back()
        return driver.DONE

    def _take_up(self) -> bool:
        """Fit the diagonal of the node of least bound, and give the node to the tree below.

        The tree below reads Q and the weights of this tree, which are written for the node's
        diagonal. It must be empty, as bounds of its nodes hold for the diagonal they were made for.
        Returns: False if the node's new bound prunes the node.
        """
        now, ridge, row = self.now, self.problem.gamma / 2.0, int(self.waiting[0])
        # Rows stay in the order of their keys, as :meth:`add` has written them.
        self.waiting[:-1] = self.waiting[1:]
        self.counts["waiting"] -= 1
        D = self.diagonals.pop(row)
        node = self.open.nodes.some(np.array([row]))
        self.free(row)
        state, bound = node.state, float(node.bound[0])
        target = float(now["upper"][0] * (1.0 - now["tolerance"][0]))
        left, free = self.problem.tau - int((state == IN).sum()), int((state == FREE).sum())
        one_support = not 0 < left < free
        if bound < target and not one_support:
            now["nodes"] += 1
            at = (self.gram, ridge, left, Fitted(D, node), target, STEPS_AT_A_NODE)
            D, node = fitted = fit_diagonal(*at)
            pays = fitted.bound - bound > REFIT_SHARE * (target - bound)
            half = max(MIN_NODES_PER_REFIT, self.budget // 2)
            self.budget = half if pays else 2 * self.budget
            bound = max(bound, fitted.bound)
        if bound >= target:
            now["pruned"] = np.minimum(now["pruned"], bound)
            return False
        self.D = D
        self.st.relaxation.form.Q.flat[:: D.size + 1] = np.diag(self.gram.G) - D
        self.st.terms.w[:] = weights(ridge, D)
        self.st.relaxation.root_w[:] = np.sqrt(self.st.terms.w)
        node.bound[:], node.unsolved[:] = bound, one_support
        self.below.add(node)
        return True


def _unsolved(nodes: Leaves) -> Leaves:
    """The same nodes, whose relaxations are solved when they are taken up."""
    return nodes._replace(unsolved=np.ones(nodes.size, dtype=np.int8))
