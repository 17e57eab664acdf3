"""h(γ, τ) on a grid for whoever calls Python, by each of the methods, without a choice.

The module adds one call from folds to a surface. Without it a fit is the same: a fit makes its
surfaces itself, and then chooses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from .checkpoint import Checkpoint
from .engine import Surface
from .executor import Report, silent
from .results import Array, CVResult
from .settings import Settings
from .tau_search import search_tau


def cross_validate(
    data: FoldData,
    gammas: Sequence[float] | Array,
    taus: Sequence[int] | NDArray[np.intp],
    settings: Settings | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Report = silent,
) -> CVResult:
    """Compute h(γ, τ) for every γ and τ: estimated, and proved or bracketed.

    Parameters
    ----------
    data : FoldData
        :class:`sparsecv.design.fold_data.RowFolds` or
        :class:`~sparsecv.design.moment_folds.MomentFolds`.
    gammas : sequence of float
        Ridge weights γ ≥ 0.
    taus : sequence of int
        Sparsities in 0..p, of which some is above 0; 0 is the model without a column.
    settings : Settings, optional
    checkpoint : Checkpoint, optional
        Files that proofs are read from before the run, and written to after every unit of work.
    progress : callable, optional
        Takes what is being done, the number of units done and the number of all units.

    Returns
    -------
    CVResult

    Raises
    ------
    InputError
        γ < 0 or τ out of range.
    KeyboardInterrupt
        Ctrl-C was pressed; the run ends within a fraction of a second. The attribute ``partial`` of
        the exception holds a CVResult of what is known by then, once there are estimates.

    Examples
    --------
    >>> from sparsecv.cv.grid_errors import cross_validate
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.design.row_table import RowTable
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> X, y, _ = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(RowTable(X, y), make_folds("loo", 20))
    >>> result = cross_validate(data, [0.1, 1.0], [1, 2])
    >>> result.complete, result.table("cv_error").shape
    (True, (2, 2))
    """
    surface = Surface(
        data, taus, settings, checkpoint=checkpoint, progress=progress, search_tau=search_tau
    )
    with surface:
        surface.visit(gammas)
        surface.prove()
        surface.prove_rest()
    return surface.result()
