"""The few best supports of every size at one γ, of one problem or of all that lack one row."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..kernels.linalg import EPS, Array
from .all_sizes import (
    active_columns,
    coefficient_spread,
    root_state,
    rounding_margin,
    run,
    seed,
)
from .deleted_rows import shared_root
from .tree_kernels import TREE, State

Mask = NDArray[np.uint64]
# A tree lists this many supports of a size, for each problem, and more where supports tie. Measured
# on tables of 11 to 25 columns.
LISTED = 7
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
        number: int,
        sizes: NDArray[np.intp],
        wanted: NDArray[np.bool_],
        limits: Limits,
    ) -> Status:
        """Search one tree of one problem, and enter its lists if the tree was finished.

        number: The problem's position in the arrays.
        sizes, wanted, shape (sizes,): All sizes, and which of them are searched.
        """
        at = problem.replace(gamma=self.gamma).at_unit_length()
        active = active_columns(at)
        inner = np.minimum(sizes, active.size)
        state = root_state(at, active, np.unique(inner[wanted]), n_best=LISTED)
        seed(state, active, [], int(inner[wanted].max()))
        status = run(state, limits, TREE.nodes_per_look)
        if status is Status.OPTIMAL:
            full = np.array([state.tree.columns_of[-1, -1] ** 2])
            numbers = np.array([number])
            # At γ = 0 a tree works with a tiny γ, which raises objectives.
            lost = np.array([at.data_loss(float(full[0]), problem.p)])
            values = full, lost, np.array([at.yy])
            self._enter(state, active, numbers, inner, wanted, values, coefficient_spread(at))
        return status

    def search_deleted_rows(
        self,
        problem: SparseRidgeProblem,
        rows: Array,
        targets: Array,
        sizes: NDArray[np.intp],
        wanted: NDArray[np.bool_],
        limits: Limits,
    ) -> tuple[Status, NDArray[np.intp]]:
        """Search one tree that the problems without one row share, and enter its lists.

        problem, rows, targets: As :func:`best_subsets_rows_deleted` takes them.
        wanted, shape (sizes, problems): Which sizes of which problems are searched.
        Returns: The status, and the problems whose row the tree cannot delete without loss of
            digits: their lists stay empty.
        """
        at = problem.replace(gamma=self.gamma)
        active = active_columns(at)
        inner = np.minimum(sizes, active.size)
        some, asked = np.asarray(wanted.any(axis=1)), np.asarray(wanted.any(axis=0))
        state, skipped = shared_root(
            at, active, np.unique(inner[some]), rows, targets, ~asked, LISTED
        )
        numbers = np.setdiff1d(np.flatnonzero(asked), skipped)
        status = Status.OPTIMAL
        if numbers.size:
            seed(state, active, [])
            status = run(state, limits, max(1, TREE.updates_per_look // (asked.size * active.size)))
        if status is Status.OPTIMAL and numbers.size:
            residual, left = state.deleted_residual[0], state.one_minus_leverage[0]
            square = state.tree.columns_of[-1, -1] ** 2
            full = square - residual * residual * left
            lost = (256.0 * EPS * (at.yy + residual * residual) + at.zero_loss(at.yy)) / left
            yy = np.maximum(at.yy - targets * targets, 0.0)
            values = full[numbers], lost[numbers], yy[numbers]
            self._enter(state, active, numbers, inner, some, values, coefficient_spread(at))
        return status, np.intersect1d(skipped, np.flatnonzero(asked))

    def _enter(
        self,
        state: State,
        active: NDArray[np.intp],
        numbers: NDArray[np.intp],
        inner: NDArray[np.intp],
        some: NDArray[np.bool_],
        values: tuple[Array, Array, Array],
        spread: float,
    ) -> None:
        """Enter the lists of a finished tree.

        numbers: The problems, as columns of the arrays here.
        inner, some, shape (sizes,): Columns of the tree's supports, and which sizes were searched.
        values: Of every problem the objective of the full fit, an error of that objective and yᵀy.
        spread: As :func:`rounding_margin` takes it.
        """
        full, lost, yy = (v[:, None] for v in values)
        tie, reach = float(state.tree.options[0].tie), float(state.tree.options[0].reach)
        tree, of = state.tree, numbers if state.tree.found.shape[1] > 1 else np.zeros(1, np.intp)
        for s in np.flatnonzero(some):
            size = int(inner[s])
            loss = tree.found_loss[size, of]
            complete = tree.found_n[size, of] == comb(active.size, size)
            # Every support whose loss is smaller than both numbers is in the list.
            others = np.where(
                tree.found_n[size, of] == loss.shape[1],
                np.minimum(loss.max(axis=1), state.max_loss_searched[size, of]),
                state.max_loss_searched[size, of],
            )
            others[complete] = np.inf
            keep = (loss < others[:, None]) & np.isfinite(loss)
            keep[np.arange(of.size), loss.argmin(axis=1)] = True
            order = np.argsort(np.where(keep, loss, np.inf), axis=1, kind="stable")
            if order.shape[1] > LIST_LENGTH:
                first = np.take_along_axis(np.where(keep, loss, np.inf), order, axis=1)
                others = np.minimum(others, first[:, LIST_LENGTH])
            order = order[:, :LIST_LENGTH]
            keep = np.take_along_axis(keep, order, axis=1)
            masks = over_columns(tree.found[size, of, :-1, 0], active)
            masks = np.where(keep, np.take_along_axis(masks, order, axis=1), 0)
            self.masks[s, numbers, : order.shape[1]] = masks
            for at, found in (
                (self.objective[s, :, : order.shape[1]], np.take_along_axis(loss, order, axis=1)),
                (self.others[s, :, None], others[:, None]),
            ):
                with np.errstate(invalid="ignore"):
                    value = full + found * (1.0 - 2.0 * tie)  # Losses are that precise.
                    margin = rounding_margin(np.maximum(value, 0.0), yy, reach, spread)
                    value = value - margin - lost
                value = np.where(np.isfinite(found), np.maximum(value, 0.0), np.inf)
                at[numbers] = value


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
