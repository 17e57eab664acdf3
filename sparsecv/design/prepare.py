"""From a named table to standardised columns, and to folds that can be cross-validated."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
import scipy

from ..errors import InputError
from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.threads import cached
from ..tables.columns import quoted
from ..tables.dask_table import DaskTable
from ..tables.table import Table
from .counting import in_coefficients
from .design import Array, Design, Protocol, Summary, make_design
from .fold_data import FoldData, RowFolds
from .folds import Folds, Index, make_folds, moment_folds
from .missing import fill_values, filled
from .moment_folds import MomentFolds
from .moments import FoldMoments
from .reduction import reduced
from .row_table import RowTable

# In place of folds: all rows are one fold, and no rows are left out of the problem of all rows.
ALL_ROWS = object()


@dataclass
class Prepared:
    """A table, how its columns are standardised, and the training problems of its folds.

    make: Makes the training problems of the folds, from rows or from moments; None once they are
        made and the rows are released.
    fills, shape (p_raw,): What the model of all rows fills missing values with; None where missing
        values are errors.
    holes, shape (p_raw,): How many values of each column are missing; None where they are errors.
    holds_out: Whether folds hold rows out; else all rows are the one fold.
    """

    source: Table
    design: Design
    make: Callable[[], FoldData] | None
    fills: Array | None = None
    holes: Index | None = None
    holds_out: bool = True

    def problem(self) -> SparseRidgeProblem:
        """The problem of all rows in memory, with placeholders for γ and τ."""
        X, y = self.source.load()
        X = X if self.fills is None else filled(X, self.fills)
        return self.design.problem(X, y, self.source.weights, shared=False)

    @cached
    def data(self) -> FoldData:
        """The training problems of the folds."""
        assert self.make is not None
        return self.make()

    def release(self) -> None:
        """Forget the user's arrays, which the user may write to from here on; keep what is made."""
        self.data.release()
        self.source, self.make = self.source.without_rows(), None

    @property
    def names(self) -> list[str]:
        """Names of the raw columns."""
        return self.source.feature_names

    @property
    def folds(self) -> Folds:
        """The folds, with their sizes."""
        return self.data.folds


def prepare(
    source: Table,
    folds: Any,
    protocol: Protocol,
    *,
    seed: Any = 0,
    partitions: int = 1,
    asked: ResolvedRules | None = None,
) -> Prepared:
    """Standardise the columns of a table and lay out its folds; a table of Dask is reduced.

    The training problems of the folds are made when :attr:`Prepared.data` is first asked for.

    folds: What :func:`~sparsecv.design.folds.make_folds` takes, of a table of Dask a number K. Or
        ``ALL_ROWS``.
    seed: Seed of the shuffle.
    partitions: The number of partitions into folds to which a table of Dask is reduced.
    asked: What is asked of the columns.
    Raises InputError: Values or folds are bad.
    """
    names = source.feature_names
    if isinstance(source, DaskTable) and folds is not ALL_ROWS:
        k, number = moment_folds(folds, seed)
        found = reduced(source, k, number, partitions)
        design = _moment_design(source, protocol, found[0], asked)
        return Prepared(source, design, partial(MomentFolds, found, design))
    X, y = source.load()
    layout = Folds.whole(source.n)
    if folds is not ALL_ROWS:
        layout = make_folds(folds, source.n, seed=seed, X=X, y=y, groups=source.groups)
    own = source.weights, source.missing
    design, fills = rows_design(X, y, protocol, *own, names=names, asked=asked)

    def make() -> FoldData:
        return RowFolds(RowTable.of(design, X, y, *own), layout)

    holes = None if fills is None else np.isnan(X).sum(axis=0)
    return Prepared(source, design, make, fills, holes, folds is not ALL_ROWS)


def rows_design(
    X: Array,
    y: Array,
    protocol: Protocol,
    weights: Array | None = None,
    missing: str | None = None,
    *,
    names: Sequence[str] | None = None,
    asked: ResolvedRules | None = None,
) -> tuple[Design, Array | None]:
    """How rows X (n, p_raw), y (n,) in memory are standardised.

    names: Names of the columns of X. With None the rows are a part of the data, and no warning
        says which columns are constant there.
    asked: What is asked of the columns.
    Returns: The design, and what missing values are filled with, shape (p_raw,); None where they
        are errors.
    """
    fills = None if missing is None else fill_values(X, weights)
    whole = X if fills is None else filled(X, fills)
    labels = [f"column {j}" for j in range(X.shape[1])] if names is None else names
    summary, warn = Summary.of(whole, y, weights), names is not None
    design = make_design(summary, protocol, labels, warn=warn, asked=asked)
    if design.asked is not None:
        design = in_coefficients(design, design.asked, whole, y, weights)
    return design, fills


def _moment_design(
    source: Table, protocol: Protocol, moments: FoldMoments, asked: ResolvedRules | None
) -> Design:
    """The design that moments of all rows give.

    Raises InputError: The protocol has no intercept, and the mean of a column leaves too few digits
        to its spread.
    """
    summary = moments.summary()
    design = make_design(summary, protocol, source.feature_names, asked=asked)
    spread = np.sqrt(summary.scatter / summary.n)
    # Where the protocol has no intercept, so that nothing is centred, a column is refused, be it a
    # feature or the response, whose mean exceeds this many times its standard deviation, both over
    # all rows: CV errors would keep fewer than six correct digits. Columns of a single value are
    # not refused for it, and a table that is held in memory is not tested.
    distant = np.abs(summary.mean) > 1e9 * spread
    far = np.flatnonzero((summary.low < summary.high) & distant)
    if far.size and not protocol.intercept:
        name = [*source.feature_names, source.target_name][far[0]]
        raise InputError(
            f"column {quoted(name)} has a mean of {summary.mean[far[0]]:.3g} beside a standard "
            f"deviation of {spread[far[0]]:.3g}, which takes more digits than there are "
            "without an intercept: fit one, or take the mean off the column"
        )
    return design


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that the digits of a result depend on."""
    found = {module.__name__: module.__version__ for module in (np, scipy, numba)}
    return {"python": platform.python_version(), **found}
