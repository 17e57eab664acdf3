"""Trees of all sizes along γ: arrays that are kept, incumbents of the γ before, and runners-up.

A tree is set up for another γ without leaving compiled code, and starts from what the one before
found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import fits
from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array, from_mask
from . import all_sizes_kernels as kernels
from .leaps_node import factorise

LARGE = 16  # columns beyond which a tree may be worth searching further than it must


class RunnersUp:
    """What a tree leaves for larger γ: its few best supports of every size, and a floor.

    f_S(γ) grows with γ, so whatever is not among them stays above the floor that the tree proved.
    Where one of them is below it at a larger γ, it is the best there and nothing is searched.

    columns, shape (p + 1, r): Of a factor of [X y], one per row.
    triangular: Whether that factor is.
    sizes, shape (τ,).
    """

    def __init__(self, columns: Array, triangular: bool, sizes: NDArray[np.intp]) -> None:
        self.columns, self.triangular, self.sizes = columns, triangular, sizes
        p = columns.shape[0] - 1
        self.pool = np.full((sizes.size, kernels.KEPT, p), -1, dtype=np.int64)
        self.count = np.zeros(sizes.size, dtype=np.int64)
        self.floor = np.full(sizes.size, -np.inf)
        self.gamma = np.zeros(sizes.size)
        # relative, of the loss above the full fit, by which trees search further
        self.margin = 0.05 if p > LARGE else 0.0  # small trees are not worth it
        self._coef = np.empty((sizes.size * kernels.KEPT, p))
        self._work = np.empty((p + 1, p + 1)), np.empty((p + 1, columns.shape[1]))
        self._order = np.empty((3, p), dtype=np.int64)

    def forget(self) -> None:
        """Know nothing."""
        self.floor[:] = -np.inf

    def settle(self, gamma: float, tie: float, found: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Sizes that are still to be searched; the best supports of the others go to ``found``.

        tie: Relative difference of objectives that rounding may make.
        found, shape (τ, p): Changed in place.
        Returns, shape (τ,).
        """
        sure: NDArray[np.bool_] = np.isfinite(self.floor) & (self.gamma <= gamma)
        if not sure.any():
            return np.ones(self.sizes.size, dtype=bool)
        objective = np.full((self.sizes.size, kernels.KEPT), np.inf)
        values = np.empty(self.sizes.size * kernels.KEPT)
        pool = self.pool.reshape(-1, self.pool.shape[2])
        failed = fits.ridge_fits(
            self.columns,
            gamma / 2.0,
            self.triangular,
            pool,
            self._coef,
            values,
            *self._work,
            self._order,
            EPS,
        )
        if failed >= 0:
            return np.ones(self.sizes.size, dtype=bool)
        for i in np.flatnonzero(sure):
            n = self.count[i]
            objective[i, :n] = values[i * kernels.KEPT : i * kernels.KEPT + n]
        best = objective.min(axis=1)
        close = (objective <= best[:, None] * (1.0 + 2.0 * tie)).sum(axis=1)
        sure &= (best * (1.0 + tie) < self.floor * (1.0 - tie)) & (close == 1)
        for i in np.flatnonzero(sure):
            found[i] = self.pool[i, int(np.argmin(objective[i]))]
        if 2 * np.count_nonzero(sure) < sure.size:  # γ has begun to matter, and will more
            self.margin = 0.0
        return np.asarray(~sure)

    def note(self, state: kernels.TreeState, gamma: float, searched: NDArray[np.bool_]) -> None:
        """Take over what a finished tree knows of the sizes it was asked for.

        searched, shape (τ,).
        """
        if self.margin == 0.0:
            self.floor[searched] = -np.inf
            return
        full = float(state.tree.settings[0].full_loss)
        for i in np.flatnonzero(searched):
            size = int(self.sizes[i])
            n = int(state.tree.found_n[size, 0])
            losses = state.tree.found_loss[size, 0, :n]
            order = np.argsort(losses, kind="stable")
            floor = float(state.cut[size])  # all that is below it has been entered
            if n > kernels.KEPT:
                floor = min(floor, float(losses[order[kernels.KEPT]]))
            self.floor[i], self.gamma[i] = full + floor, gamma
            self.count[i] = min(n, kernels.KEPT)
            self.pool[i] = -1
            for c, position in enumerate(order[: kernels.KEPT]):
                self.pool[i, c, :size] = from_mask(state.tree.found[size, 0, position])


@kernel
def restart(st, columns, ridge, triangular, work, eps):  # type: ignore[no-untyped-def]
    """Set the tree up for another γ; False where γ is lost beside dependent columns."""
    tree = st.tree
    p = tree.A.shape[0]
    least = np.sqrt(ridge)
    for a in range(p):
        tree.columns[a] = a
    if not fits.ridge_triangle(tree.R, columns, tree.columns, p, ridge, triangular, work, eps):
        return False
    for c in range(p + 1):
        for a in range(p + 1):
            tree.columns_of[c, a] = tree.R[a, c]
    settings = tree.settings[0]
    settings.tie, settings.margin, settings.tolerance = 0.0, 0.0, 0.0
    settings.full_loss, settings.least = tree.R[p, p] ** 2, least
    for s in range(p + 2):
        st.best[s] = st.keep[s] = st.cut[s] = st.slack[s] = np.inf
    for s in range(p + 1):
        tree.found_n[s, 0] = 0
        for t in range(tree.found_loss.shape[2]):
            tree.found_loss[s, 0, t] = np.inf
    st.loss[0], tree.fixed[0] = 0.0, 0
    for w in range(tree.mask.shape[1]):
        tree.mask[0, w] = np.uint64(0)
    for a in range(p):
        tree.free[0, a] = a
        tree.mask[0, a >> 6] |= np.uint64(1) << np.uint64(a & 63)
    tree.counts[0].level, tree.counts[0].nodes = 0, 1
    factorise(tree, 0)
    inflation = 0.0
    for a in range(p):
        column, length = tree.free[0, a], 0.0
        for q in range(p):
            length += tree.R[q, column] * tree.R[q, column]
        inflation = max(inflation, tree.A[0, a, a] * length)
    settings.tie = min(1e-11 + 20.0 * eps * inflation, 1e-5)
    for w in range(tree.mask.shape[1]):
        tree.found[p, 0, 0, w] = tree.mask[0, w]
    tree.found_loss[p, 0, 0], tree.found_n[p, 0] = 0.0, 1
    st.best[p] = st.keep[p] = st.cut[p] = st.cut[p + 1] = 0.0
    return True


@kernel
def enter(st, supports, sizes, known, rank):  # type: ignore[no-untyped-def]
    """Incumbents: backward elimination, and what lies on the way to supports known already."""
    tree = st.tree
    p = tree.A.shape[0]
    for a in range(p):
        rank[a] = 0
    kernels.advance(st, 1, rank)
    for i in range(known):
        size = sizes[i]
        if size == p:
            continue
        for w in range(tree.support.shape[0]):
            tree.support[w] = np.uint64(0)
        for a in range(p):
            rank[a] = 1
        for a in range(size):
            column = supports[i, a]
            rank[column] = 0
            tree.support[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
        new = True
        for t in range(tree.found_n[size, 0]):
            equal = True
            for w in range(tree.support.shape[0]):
                equal = equal and tree.found[size, 0, t, w] == tree.support[w]
            new = new and not equal
        if new:
            kernels.advance(st, 1, rank)


@kernel
def answers(st, sizes, supports, near, wanted):  # type: ignore[no-untyped-def]
    """The best support of every wanted size, and how many are within rounding of it."""
    tree = st.tree
    p = tree.A.shape[0]
    for i in range(sizes.shape[0]):
        size = sizes[i]
        if not wanted[i]:
            continue
        best, near[i] = 0, 0
        for t in range(tree.found_n[size, 0]):
            if tree.found_loss[size, 0, t] < tree.found_loss[size, 0, best]:
                best = t
            if tree.found_loss[size, 0, t] <= st.best[size] * (1.0 + 2.0 * tree.settings[0].tie):
                near[i] += 1
        position = 0
        for column in range(p):
            word = tree.found[size, 0, best, column >> 6]
            if (word >> np.uint64(column & 63)) & np.uint64(1) != 0:
                supports[i, position] = column
                position += 1
