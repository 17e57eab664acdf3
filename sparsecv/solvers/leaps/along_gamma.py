"""What the tree of one γ leaves for larger γ: its few best supports of every size, and a bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import fits
from ..kernels.linalg import Array, from_mask
from .tree_kernels import TREE, State


class RunnersUp:
    """The few best supports of every size at one γ, and a lower bound for all other supports.

    The objective f_S(γ) grows with γ, so that a support that is not listed stays above the bound
    that the tree proved. If a listed support is below the bound at a larger γ, the best of the
    listed supports is optimal there and no tree is searched.

    columns, shape (p + 1, r): A factor of [X y], one column of the factor per row.
    triangular: Whether the factor is upper triangular.
    sizes, shape (τ,).
    """

    def __init__(self, columns: Array, triangular: bool, sizes: NDArray[np.intp]) -> None:
        self.columns, self.triangular, self.sizes = columns, triangular, sizes
        p = columns.shape[0] - 1
        self.supports = np.full((sizes.size, TREE.runners_up, p), -1, dtype=np.int64)
        self.bound = np.full(sizes.size, -np.inf)  # −∞: the size has no bound yet
        self.gamma = np.zeros(sizes.size)  # γ at which the bound was proved
        # A tree keeps supports whose loss exceeds the least loss of their size by this share.
        self.margin = TREE.runner_up_margin if p > TREE.columns_without_runners_up else 0.0
        self._coef = np.empty((sizes.size * TREE.runners_up, p))
        order = np.empty((3, p), dtype=np.int64)
        self._work = np.empty((p + 1, p + 1)), np.empty((p + 1, columns.shape[1])), order

    def forget(self) -> None:
        """Drop the bounds of all sizes, so that every size is searched at the next γ."""
        self.bound[:] = -np.inf

    def to_search(self, gamma: float, tie: float, found: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Sizes that a tree has to search at γ; other sizes' best supports are put in ``found``.

        tie: Relative difference of objectives that rounding may make.
        found, shape (τ, p): Columns of the supports; changed in place.
        Returns, shape (τ,).
        """
        proved: NDArray[np.bool_] = np.isfinite(self.bound) & (self.gamma <= gamma)
        if not proved.any():
            return np.logical_not(proved)
        supports = self.supports.reshape(-1, self.supports.shape[2])
        values = np.empty(supports.shape[0])  # A row without a support gets yᵀy, the largest value.
        work = (self._coef, values, self._work, 0.0)
        if fits.ridge_fits(self.columns, gamma / 2.0, self.triangular, supports, *work) > 0:
            return np.ones(self.sizes.size, dtype=bool)
        objective = values.reshape(-1, TREE.runners_up)
        best = objective.min(axis=1)
        n_tied = (objective <= best[:, None] * (1.0 + 2.0 * tie)).sum(axis=1)
        proved &= (best * (1.0 + tie) < self.bound * (1.0 - tie)) & (n_tied == 1)
        found[proved] = self.supports[proved, objective[proved].argmin(axis=1)]
        if 2 * np.count_nonzero(proved) < proved.size:  # Larger γ will change yet more supports.
            self.margin = 0.0
        return np.logical_not(proved)

    def note(self, state: State, gamma: float, searched: NDArray[np.bool_]) -> None:
        """Store the best supports and the bounds of the sizes that a finished tree has searched.

        searched, shape (τ,).
        """
        if self.margin == 0.0:
            self.bound[searched] = -np.inf
            return
        tree = state.tree
        full = float(tree.columns_of[-1, -1] ** 2)
        self.gamma[searched], self.supports[searched] = gamma, -1
        for i in np.flatnonzero(searched):
            size = int(self.sizes[i])
            losses = tree.found_loss[size, 0, : int(tree.found_n[size, 0])]
            order = np.argsort(losses, kind="stable")
            # Every support of smaller loss than ``max_loss_searched`` is in the tree's list.
            searched_up_to = state.max_loss_searched[size, 0]
            others = losses[order[TREE.runners_up :][:1]].min(initial=searched_up_to)
            self.bound[i] = full + float(others)
            for c, position in enumerate(order[: TREE.runners_up]):
                self.supports[i, c, :size] = from_mask(tree.found[size, 0, position])
