"""What finished trees say about other γ: lists of the few best supports, and bounds on the others.

:class:`NearBest` serves a whole range of γ, for one problem or all that lack one row;
:class:`RunnersUp` saves the trees of larger γ where one problem is searched at some γ in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..kernels import fits
from ..kernels.linalg import EPS, Array, field, from_mask
from .all_sizes import coefficient_spread, rounding_margin
from .deleted_rows import shared_tree
from .leaps_node import Lists, wanted_from
from .tree import Leaps

Mask = NDArray[np.uint64]
# A tree lists this many supports of a size, for each problem, and more where supports tie. Measured
# on tables of 11 to 25 columns.
LISTED = 7
# Runners-up of each size, the best support among them, that serve larger γ. Measured.
N_RUNNERS_UP = 4
# At most this many supports of a list are kept, and the others are bounded by the best of these.
LIST_LENGTH = 16


@dataclass(frozen=True)
class NearBest:
    """What finished trees say about the supports of some sizes at one γ.

    gamma: The γ of the trees.
    masks, shape (sizes, problems, m): Supports as bit masks over the problem's columns, 0 where
        fewer than m supports are listed.
    objective, shape (sizes, problems, m): A lower bound on the objective of every listed support.
    others, shape (sizes, problems): A lower bound on the objective of every support that is not
        listed; ∞ where all supports are listed, −∞ where nothing was searched.
    """

    gamma: float
    masks: Mask
    objective: Array
    others: Array

    @classmethod
    def nothing(cls, gamma: float, sizes: int, problems: int) -> NearBest:
        """Nothing is known of any size of any problem."""
        shape = (sizes, problems, LIST_LENGTH)
        unknown = np.full(shape[:2], -np.inf)
        return cls(gamma, np.zeros(shape, np.uint64), np.full(shape, np.inf), unknown)

    def search(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        wanted: NDArray[np.bool_],
        limits: Limits,
        deleted: tuple[Array, Array] | None = None,
    ) -> NDArray[np.intp]:
        """Search one tree, and enter its lists if the tree was finished.

        wanted, shape (sizes, problems): The sizes that are searched of the problems that are
            searched: of one problem, or of problems that each lack a row.
        deleted: These rows and their targets, as :func:`best_subsets_rows_deleted` takes them.
        Returns: The problems whose row the tree cannot delete without loss of digits: their lists
            stay empty.
        """
        at = problem.replace(gamma=self.gamma)
        some, asked = np.asarray(wanted.any(axis=1)), np.asarray(wanted.any(axis=0))
        numbers, skipped = np.flatnonzero(asked), np.empty(0, dtype=np.intp)
        if deleted is None:
            at = at.at_unit_length()
            tree = Leaps(at, sizes[some], n_best=LISTED)
        else:
            tree, skipped = shared_tree(at, sizes[some], *deleted, ~asked, LISTED)
            numbers, skipped = np.setdiff1d(numbers, skipped), np.intersect1d(skipped, numbers)
        if numbers.size:
            tree.seed()
            if tree.run(limits) is Status.OPTIMAL:
                self._enter(tree, np.flatnonzero(some), numbers, deleted)
        return skipped

    def _enter(
        self,
        search: Leaps,
        some: NDArray[np.intp],
        numbers: NDArray[np.intp],
        deleted: tuple[Array, Array] | None,
    ) -> None:
        """Enter the lists of a finished tree of these sizes and problems, positions in the arrays.

        deleted: As :meth:`search` takes it.
        """
        problem, tree, lists, of = search.problem, search.tree, search.lists, numbers
        full, yy = np.array([float(search.now("full"))]), np.array([problem.yy])
        if deleted is None:
            of = np.zeros(1, dtype=np.intp)
            # At γ = 0 a tree works with a tiny γ, which raises objectives.
            lost = np.array([problem.data_loss(float(full[0]), problem.p)])
        else:
            residual, left = tree.deleted_residual[0, of], tree.one_minus_leverage[0, of]
            full = full - residual * residual * left
            lost = 256.0 * EPS * (problem.yy + residual * residual) + problem.zero_loss(problem.yy)
            lost, yy = lost / left, np.maximum(yy - deleted[1][of] ** 2, 0.0)
        tie, reach, spread = search.now("tie"), search.reach, coefficient_spread(problem)
        for s, size in zip(some, search.inner.tolist(), strict=True):
            losses, width = lists.loss[size, of, :-1], LIST_LENGTH
            # Every support whose loss is smaller than both numbers is in the list.
            others = np.minimum(lists.max_searched[size, of], losses[:, -1])
            others[lists.n[size, of] == comb(search.active.size, size)] = np.inf
            if losses.shape[1] > width:
                others = np.minimum(others, losses[:, width])
            keep = losses[:, :width] < others[:, None]
            keep[:, 0] = True
            losses = np.where(keep, losses[:, :width], np.inf)
            masks = over_columns(lists.found[size, of, : losses.shape[1], 0], search.active)
            self.masks[s, numbers, : losses.shape[1]] = np.where(keep, masks, 0)
            losses = np.column_stack([losses, others])
            with np.errstate(invalid="ignore"):
                value = full[:, None] + losses * (1.0 - 3.0 * tie)  # Losses are that precise.
                value -= lost[:, None] + rounding_margin(
                    np.maximum(value, 0.0), yy[:, None], reach, spread
                )
            value = np.where(np.isfinite(losses), np.maximum(value, 0.0), np.inf)
            self.objective[s, numbers, : value.shape[1] - 1] = value[:, :-1]
            self.others[s, numbers] = value[:, -1]


def over_columns(masks: Mask, columns: NDArray[np.intp]) -> Mask:
    """Masks in which bit i becomes bit ``columns[i]``; there are at most 64 columns."""
    if (columns == np.arange(columns.size)).all():
        return masks
    found = np.zeros(masks.shape, dtype=np.uint64)
    for place, column in enumerate(columns.tolist()):
        found |= ((masks >> np.uint64(place)) & np.uint64(1)) << np.uint64(column)
    return found


def members(masks: Mask, width: int) -> NDArray[np.intp]:
    """The columns of masks (m,), increasing, shape (m, width), ended by −1."""
    bits = np.unpackbits(
        np.ascontiguousarray(masks, dtype="<u8").view(np.uint8).reshape(masks.size, 8),
        axis=1,
        bitorder="little",
    )
    columns = np.argsort(bits == 0, axis=1, kind="stable")[:, :width]
    inside = np.arange(width) < bits.sum(axis=1, dtype=np.intp)[:, None]
    return np.where(inside, columns, -1)


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
        self.supports = np.full((sizes.size, N_RUNNERS_UP, p), -1, dtype=np.int64)
        self.bound = np.full(sizes.size, -np.inf)  # −∞: the size has no bound yet
        self.gamma = np.zeros(sizes.size)  # γ at which the bound was proved
        # A tree keeps supports whose loss exceeds the least loss of their size by at most 5 %. With
        # at most 16 columns it keeps none, because searching such a tree again is faster. Both
        # numbers are measured.
        self.margin = 0.05 if p > 16 else 0.0
        self._coef = np.empty((sizes.size * N_RUNNERS_UP, p))
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
        objective = values.reshape(-1, N_RUNNERS_UP)
        best = objective.min(axis=1)
        n_tied = (objective <= best[:, None] * (1.0 + 2.0 * tie)).sum(axis=1)
        proved &= (best * (1.0 + tie) < self.bound * (1.0 - tie)) & (n_tied == 1)
        found[proved] = self.supports[proved, objective[proved].argmin(axis=1)]
        if 2 * np.count_nonzero(proved) < proved.size:  # Larger γ will change yet more supports.
            self.margin = 0.0
        return np.logical_not(proved)

    def ask(self, lists: Lists, searched: NDArray[np.bool_]) -> None:
        """Let a tree that has been set up search some sizes, shape (τ,), and keep runners-up."""
        lists.next_wanted[:] = wanted_from(self.sizes[searched], lists.next_wanted.size - 2)
        lists.now["rank"], lists.now["margin"] = N_RUNNERS_UP + 1, self.margin

    def note(self, lists: Lists, gamma: float, searched: NDArray[np.bool_]) -> None:
        """Store the best supports and the bounds of the sizes that a finished tree has searched.

        searched, shape (τ,).
        """
        if self.margin == 0.0:
            self.bound[searched] = -np.inf
            return
        self.gamma[searched], self.supports[searched] = gamma, -1
        for i, size in zip(np.flatnonzero(searched), self.sizes[searched].tolist(), strict=True):
            # Every support of smaller loss than ``max_searched`` is in the tree's list.
            others = min(lists.max_searched[size, 0], lists.loss[size, 0, N_RUNNERS_UP])
            self.bound[i] = float(field(lists.now, "full") + others)
            for c in range(min(N_RUNNERS_UP, int(lists.n[size, 0]))):
                self.supports[i, c, :size] = from_mask(lists.found[size, 0, c])
