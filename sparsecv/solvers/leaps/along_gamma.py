"""What the tree of one γ leaves for larger γ: its few best supports of every size, and a bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import fits
from ..kernels.linalg import EPS, Array, from_mask
from .tree_kernels import TREE, State


class RunnersUp:
    """The few best supports of every size at one γ, and a lower bound for all other supports.

    The objective f_S(γ) grows with γ, so that every support that is not among them stays above the
    bound that the tree proved. Where one of them is below the bound at a larger γ, that support is
    the best there and nothing is searched.

    columns, shape (p + 1, r): Of a factor of [X y], one per row.
    triangular: Whether that factor is.
    sizes, shape (τ,).
    """

    def __init__(self, columns: Array, triangular: bool, sizes: NDArray[np.intp]) -> None:
        self.columns, self.triangular, self.sizes = columns, triangular, sizes
        p = columns.shape[0] - 1
        self.pool = np.full((sizes.size, TREE.runners_up, p), -1, dtype=np.int64)
        self.bound = np.full(sizes.size, -np.inf)  # −∞: nothing is known
        self.gamma = np.zeros(sizes.size)
        # relative loss above the best up to which a tree keeps supports: small trees only the best
        self.margin = TREE.runner_up_margin if p > TREE.columns_without_runners_up else 0.0
        self._coef = np.empty((sizes.size * TREE.runners_up, p))
        order = np.empty((3, p), dtype=np.int64)
        self._room = np.empty((p + 1, p + 1)), np.empty((p + 1, columns.shape[1])), order

    def forget(self) -> None:
        """Know nothing."""
        self.bound[:] = -np.inf

    def to_search(self, gamma: float, tie: float, found: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Sizes that have to be searched; the best supports of the others go to ``found``.

        tie: Relative difference of objectives that rounding may make.
        found, shape (τ, p): Changed in place.
        Returns, shape (τ,).
        """
        sure: NDArray[np.bool_] = np.isfinite(self.bound) & (self.gamma <= gamma)
        if not sure.any():
            return np.logical_not(sure)
        pool = self.pool.reshape(-1, self.pool.shape[2])
        values = np.empty(pool.shape[0])  # of a row without a support: yᵀy, which is never less
        work = (self._coef, values, self._room, EPS)
        if fits.ridge_fits(self.columns, gamma / 2.0, self.triangular, pool, *work) >= 0:
            return np.ones(self.sizes.size, dtype=bool)
        objective = values.reshape(-1, TREE.runners_up)
        best = objective.min(axis=1)
        close = (objective <= best[:, None] * (1.0 + 2.0 * tie)).sum(axis=1)
        sure &= (best * (1.0 + tie) < self.bound * (1.0 - tie)) & (close == 1)
        found[sure] = self.pool[sure, objective[sure].argmin(axis=1)]
        if 2 * np.count_nonzero(sure) < sure.size:  # γ has begun to matter, and will more
            self.margin = 0.0
        return np.logical_not(sure)

    def note(self, state: State, gamma: float, searched: NDArray[np.bool_]) -> None:
        """Take over what a finished tree knows of the sizes it was asked for.

        searched, shape (τ,).
        """
        if self.margin == 0.0:
            self.bound[searched] = -np.inf
            return
        tree = state.tree
        full = float(tree.columns_of[-1, -1] ** 2)
        self.gamma[searched], self.pool[searched] = gamma, -1
        for i in np.flatnonzero(searched):
            size = int(self.sizes[i])
            losses = tree.found_loss[size, 0, : int(tree.found_n[size, 0])]
            order = np.argsort(losses, kind="stable")
            # every support below the cut has been entered
            left = losses[order[TREE.runners_up :][:1]].min(initial=state.cut[size, 0])
            self.bound[i] = full + float(left)
            for c, position in enumerate(order[: TREE.runners_up]):
                self.pool[i, c, :size] = from_mask(tree.found[size, 0, position])
