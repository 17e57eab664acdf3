"""From a named table to folds that can be cross-validated, in memory or by their moments."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import InputError
from ..tables.sources import RowSource
from .design import Design, Protocol, Summary, make_design
from .fold_data import FoldData, MomentFolds, RowFolds
from .folds import Folds, make_folds
from .model import FittedModel, fitted_model
from .moments import FoldMoments, fold_moments

IN_MEMORY_BYTES = 200_000_000  # larger tables are read once, block by block
SHARED_TREE_BYTES = 1_500_000_000  # leave-one-out needs every row


@dataclass
class Prepared:
    """A table ready to be cross-validated."""

    source: RowSource
    design: Design
    data: FoldData
    folds: Folds

    @property
    def names(self) -> list[str]:
        """Names of the raw columns."""
        return self.source.feature_names

    def model(
        self, gamma: float, support: NDArray[np.intp], bound: float, proved: bool
    ) -> FittedModel:
        """Fit all rows at γ on a support of solved columns.

        Parameters
        ----------
        gamma : float
        support : ndarray of int
        bound : float
            Lower bound on the optimal objective, in solved units.
        proved : bool

        Returns
        -------
        FittedModel
        """
        problem = self.data.full().replace(gamma=gamma)
        return fitted_model(self.design, problem, support, bound, proved)


def prepare(
    source: RowSource,
    folds: str,
    protocol: Protocol,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Read a table, whole or in one pass over its rows, and lay out its folds.

    Parameters
    ----------
    source : RowSource
    folds : str
        "loo", K or "size:M".
    protocol : Protocol
    seed : int
        Of the folds.
    progress : callable, optional
        Called with rows read and rows in all.

    Returns
    -------
    Prepared

    Raises
    ------
    InputError
        Bad values, bad folds, or a table that does not fit in memory where it has weights or is
        left out row by row.
    """
    layout = make_folds(folds, source.n, seed=seed, groups=source.groups)
    weights, size = source.weights, 8 * source.n * (source.p + 1)
    if size <= IN_MEMORY_BYTES or layout.leave_one_out or weights is not None:
        if size > SHARED_TREE_BYTES:
            what = "leave-one-out needs" if weights is None else "weights need"
            raise InputError(
                f"{what} all rows in memory, {size / 1e9:.1f} GB here: use --folds K"
                f"{'' if weights is None else ' without --weights'}, which reads the rows once"
            )
        X, y = source.load()
        design = make_design(Summary.of(X, y, weights), protocol, source.feature_names)
        X, y = design.apply(X, y)
        data: FoldData = RowFolds(X, y, layout, protocol.refit_intercept, weights)
        return Prepared(source, design, data, layout)
    moments = _moments(source, layout, progress)
    design = make_design(moments.summary(), protocol, source.feature_names)

    def read(other: Folds) -> FoldMoments:
        return _moments(source, other, progress)

    return Prepared(source, design, MomentFolds(moments, design, layout, read), layout)


def _moments(
    source: RowSource, layout: Folds, progress: Callable[[int, int], None] | None
) -> FoldMoments:
    if layout.label is None or 8 * layout.k * (source.p + 1) ** 2 > SHARED_TREE_BYTES:
        raise InputError(f"{layout.k} folds of a table this large do not fit in memory: use fewer")
    return fold_moments(source, layout.label, layout.k, progress)


def versions() -> dict[str, str]:
    """Versions of what a result depends on.

    Returns
    -------
    dict of str to str
    """
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }
