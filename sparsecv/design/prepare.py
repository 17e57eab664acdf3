"""From a named table to folds that can be cross-validated, in memory or by their moments."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import InputError
from ..solvers.executor import workers
from ..tables.columns import shown
from ..tables.rows import RowSource
from .design import Design, Protocol, Summary, make_design
from .fold_data import FoldData, MomentFolds, RowFolds
from .folds import Folds, fold_count, hashed_folds, make_folds
from .model import FittedModel, fitted_model
from .moments import FoldMoments, fold_moments

IN_MEMORY_BYTES = 200_000_000  # larger tables are read once, block by block
SHARED_TREE_BYTES = 1_500_000_000  # leave-one-out needs every row
READ_RATE = 1.5e7  # numbers a second, read from Parquet, sorted by fold and centred
MAX_MEAN_IN_SPREADS = 1e9  # beyond, CV errors without an intercept lose all but six digits
PRODUCT_RATE = 1e10  # products of two columns' entries a second


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

        bound: Lower bound on the optimal objective, in solved units.
        """
        problem = self.data.full().replace(gamma=gamma)
        return fitted_model(self.design, problem, support, bound, proved)


def prepare(
    source: RowSource,
    folds: Any,
    protocol: Protocol,
    *,
    seed: Any = 0,
    progress: Callable[[int, int], None] | None = None,
    n_jobs: int | None = None,
    announce: Callable[[str], None] | None = None,
) -> Prepared:
    """Read a table, whole or in one pass over its rows, and lay out its folds.

    folds, int, str or other: "loo", K or "size:M", or for a table that fits in memory all that
        :func:`~sparsecv.design.folds.make_folds` takes. Of a larger table a splitter is told the
        number of rows alone.
    seed: Of the folds: a shuffle, or of a table in parts that does not fit in memory a hash of the
        row number.
    progress: Called with rows read and rows in all.
    n_jobs: Threads over the parts of a table that does not fit in memory.
    announce: Told what is about to be read, where that is more than fits in memory.
    Raises InputError: Bad values, bad folds, or a table that does not fit in memory where it has
        weights or is left out row by row.
    """
    weights, size = source.weights, 8 * source.n * (source.p + 1)
    held: tuple[Any, Any] | None = source.load() if size <= IN_MEMORY_BYTES else None
    k = fold_count(folds, source.n)
    hashed = size > IN_MEMORY_BYTES and k is not None and k < source.n and source.divisible
    if hashed and weights is None and source.groups is None:
        layout: Folds = hashed_folds(k or 0, source.n, seed)
    else:
        X, y = held or (_Unread(source.n, source.p), _Unread(source.n))
        layout = make_folds(folds, source.n, seed=seed, X=X, y=y, groups=source.groups)
    if held is not None or not layout.is_partition or layout.leave_one_out or (weights is not None):
        if size > SHARED_TREE_BYTES:
            what = "weights need" if weights is not None else "leave-one-out needs"
            what = what if layout.is_partition else "folds other than K need"
            raise InputError(
                f"{what} all rows in memory, {size / 1e9:.1f} GB here: use --folds K"
                f"{'' if weights is None else ' without --weights'}, which reads the rows once"
            )
        X, y = held or source.load()
        design = make_design(Summary.of(X, y, weights), protocol, source.feature_names)
        data: FoldData = RowFolds.of(design, X, y, layout, weights)
        return Prepared(source, design, data, layout)
    if announce is not None:
        announce(str(Plan.of(source, layout.k, workers(n_jobs))))
    moments = _moments(source, layout, progress, n_jobs)
    summary = moments.summary()
    design = make_design(summary, protocol, source.feature_names)
    if not protocol.intercept:
        _refuse_offsets(summary, [*source.feature_names, source.target_name])

    def read(other: Folds) -> FoldMoments:
        return _moments(source, other, progress, n_jobs)

    return Prepared(source, design, MomentFolds(moments, design, layout, read), layout)


class _Unread:
    """In place of rows too large to hold: a splitter may count them, but not look at them."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InputError(
            "the splitter looks at X or y, which do not fit in memory here: give the folds as a "
            "number K, or as pairs of row numbers"
        )

    __array__ = __getitem__ = __iter__ = _refuse


def _refuse_offsets(summary: Summary, names: Sequence[str]) -> None:
    """Refuse columns whose mean leaves too few digits to their spread, where nothing is centred."""
    varying = summary.low < summary.high
    spread = np.sqrt(summary.scatter / summary.n)
    far = np.flatnonzero(varying & (np.abs(summary.mean) > MAX_MEAN_IN_SPREADS * spread))
    if far.size:
        raise InputError(
            f"column {shown(names[far[0]])} has a mean of {summary.mean[far[0]]:.3g} beside a "
            f"standard deviation of {spread[far[0]]:.3g}, which takes more digits than there are "
            "without an intercept: fit one, or take the mean off the column"
        )


def _moments(
    source: RowSource,
    layout: Folds,
    progress: Callable[[int, int], None] | None,
    n_jobs: int | None,
) -> FoldMoments:
    if 8 * layout.k * (source.p + 1) ** 2 > SHARED_TREE_BYTES:
        raise InputError(f"{layout.k} folds of a table this large do not fit in memory: use fewer")
    return fold_moments(source, layout, progress, n_jobs)


@dataclass(frozen=True)
class Plan:
    """What reading a table that does not fit in memory will take.

    passes: Over the rows.
    bytes: Of numbers, in all passes.
    tasks, workers: Parts that are read apart, and how many at a time.
    seconds: By the rates of a core of 2020's.
    kept: Bytes of the moments of all folds.
    """

    passes: int
    bytes: int
    tasks: int
    workers: int
    seconds: float
    kept: int

    @classmethod
    def of(cls, source: RowSource, k: int, workers: int) -> Plan:
        """The plan for k folds."""
        width, tasks = source.p + 1, len(source.parts())
        numbers = source.n * width
        at_a_time = max(1, min(tasks, workers))
        seconds = (numbers / READ_RATE + numbers * width / PRODUCT_RATE) / at_a_time
        passes = 1 + source.counted
        return cls(
            passes, 8 * passes * numbers, tasks, at_a_time, seconds, 8 * k * width * (width + 2)
        )

    def __str__(self) -> str:
        passes = "one pass" if self.passes == 1 else f"{self.passes} passes"
        return (
            f"plan: {passes} over {self.bytes / 1e9:.3g} GB of numbers in {self.tasks} "
            f"task{'s' if self.tasks > 1 else ''}, {self.workers} at a time, about "
            f"{self.seconds:.2g} s; {self.kept / 1e6:.3g} MB of moments are kept"
        )


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }
