"""How far rounding may have moved the errors of folds, from the rows of the folds.

Errors are sums of squared errors over the rows that a fold holds out. ``error_margin`` says what
rounding may do to the fit of one support, and why.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.core.error_margin import MAX_SHARED, FoldMargins, deleted_row_margins
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.rounding import exact_margin
from ..solvers.core.threads import one_blas_thread

Array = NDArray[np.float64]


class Margins:
    """The margins of the errors of folds.

    data: The folds.
    """

    def __init__(self, data: FoldData) -> None:
        self._data = data
        self._folds = dict[int, FoldMargins]()

    def of(
        self,
        gammas: Array,
        errors: Array,
        wanted: NDArray[np.bool_],
        supports: Callable[[int, int], NDArray[np.int64]],
    ) -> Array:
        """How far rounding may have moved some errors, shape (γ, τ, k).

        That of a fold is made no smaller than the fold may have, so that the margins of all folds
        of a pair (γ, τ) are at most what :func:`exact_margin` says of the error of all folds. It is
        half of that of the fold's own error, and half of that of the mean error, and what rounding
        may leave of a perfect fit.

        gammas, shape (γ,): The γ of the errors.
        errors, shape (γ, τ, k): Sums of squared errors, as they were computed.
        wanted, shape (γ, τ, k): The errors whose margins are wanted.
        supports: Takes the position of a γ and the number of a fold; returns the fold's supports,
            shape (τ, most), ended by −1.
        """
        k = errors.shape[2]
        enough = 0.5 * exact_margin(errors + errors.mean(axis=2, keepdims=True))
        enough += self._data.rounding * self._data.total / k
        enough[~wanted] = np.inf
        with one_blas_thread():
            found = self.by_deleting(gammas, errors, wanted, supports)
            for j in np.flatnonzero((~(found <= enough)).any(axis=(0, 1))).tolist():
                some = np.flatnonzero((~(found[:, :, j] <= enough[:, :, j])).any(axis=1)).tolist()
                found[some, :, j] = self.of_fold(
                    j, gammas[some], errors[some, :, j], enough[some, :, j], supports, some
                )
        return found

    def by_deleting(
        self,
        gammas: Array,
        errors: Array,
        wanted: NDArray[np.bool_],
        supports: Callable[[int, int], NDArray[np.int64]],
    ) -> Array:
        """Margins of leave-one-out folds, all from one fit of all rows; ∞ where it gives none.

        It gives none for other folds, where no more than one fold is wanted, and where the supports
        use more than ``MAX_SHARED`` columns. Parameters are those of :meth:`of`.

        Returns: Margins of shape (γ, τ, k), which hold where ``wanted`` says so.
        """
        nothing = np.full(errors.shape, np.inf)
        deleted = self._data.deleted_rows if wanted.any(axis=(0, 1)).sum() > 1 else None
        if deleted is None:
            return nothing
        some, columns = np.flatnonzero(wanted.any(axis=(1, 2))), np.arange(self._data.p)
        if columns.size > MAX_SHARED:
            chosen = (supports(g, j) for g in some.tolist() for j in range(errors.shape[2]))
            columns = np.unique(np.concatenate([one.ravel() for one in chosen])).astype(np.intp)
            columns = columns[columns >= 0]
            if columns.size > MAX_SHARED:
                return nothing
        gamma, order = float(gammas[some].min()), deleted.row_of
        given = deleted.rows[order], deleted.targets[order], deleted.factor[order]
        return deleted_row_margins(self._data.full(), columns, gamma, *given, errors)

    def of_fold(
        self,
        j: int,
        gammas: Array,
        errors: Array,
        enough: Array,
        supports: Callable[[int, int], NDArray[np.int64]],
        places: list[int],
        training: SparseRidgeProblem | None = None,
    ) -> Array:
        """Margins of fold j from the fold's own rows, shape (γ, τ).

        gammas, shape (γ,), errors, shape (γ, τ): Some γ, and the sums of squared errors there.
        enough, shape (γ, τ): Margins up to these need not be any smaller.
        supports: Gives the fold's supports at a γ, as of :meth:`of`.
        places: What ``supports`` takes for each of these γ.
        training: The training problem of the fold, where the caller has it at any γ.
        """
        problem, held_out = training or self._data.training(j), self._data.held_out(j)
        return self._folds.setdefault(j, FoldMargins()).of(
            problem,
            gammas,
            lambda: np.stack([supports(g, j) for g in places]),
            *held_out,
            errors,
            enough,
        )
