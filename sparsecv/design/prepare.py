"""From a named table to standardised columns, and to folds that can be cross-validated."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import InputError
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.executor import workers
from ..tables.columns import shown
from ..tables.rows import RowSource
from .design import Array, Design, Protocol, Summary, make_design
from .fold_data import FoldData, MomentFolds, RowFolds, moment_problem
from .folds import Folds, HashedFolds, fold_count, hashed_folds, make_folds
from .model import FittedModel, fitted_model
from .moments import FoldMoments, fold_moments

# A table of more bytes is not held in memory but read once, block by block, and only the moments
# of its folds are kept. Twice the value would double the memory of a command.
IN_MEMORY_BYTES = 200_000_000
# A table whose rows are all needed at once (leave-one-out, weights) is held up to so many bytes,
# and so are the moments of all folds. A larger table, or more folds, are refused. Twice the value
# would let a command take twice the memory.
MAX_HELD_BYTES = 1_500_000_000
# A column whose mean exceeds its spread by more than this ratio is refused where nothing is
# centred: its CV errors would keep fewer than six correct digits. A larger ratio would accept CV
# errors of fewer digits.
MAX_MEAN_IN_SPREADS = 1e9


class ReadingSpeed(NamedTuple):
    """What one core of the year 2020 does; the announced seconds alone depend on these numbers.

    numbers_per_second: Numbers that are read from Parquet, sorted by fold and centred.
    products_per_second: Products of two entries of a row, which the moments are sums of.
    """

    numbers_per_second: float = 1.5e7
    products_per_second: float = 1e10


# A function that takes the number of rows read and the number of rows in all.
Progress = Callable[[int, int], None] | None


@dataclass
class Standardised:
    """A table's columns in solved units, and the training problem of all rows.

    problem: With placeholders for γ and τ.
    total: Number of rows, or the sum of their weights.
    """

    source: RowSource
    design: Design
    problem: SparseRidgeProblem
    total: float

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
        problem = self.problem.replace(gamma=gamma)
        return fitted_model(self.design, problem, support, bound, proved)

    def quality(self, cv_error: float) -> tuple[float, float | None]:
        """RMSE, and R² = 1 − CV error / variance of y about its mean (None: y does not vary)."""
        mean = (self.design.mean[-1] - self.design.shift[-1]) / self.design.scale[-1]
        square = self.problem.yy / self.total
        variance = square - mean**2
        r2 = 1.0 - cv_error / variance if variance > 1e-12 * square else None
        return math.sqrt(cv_error), r2

    def effects(self, model: FittedModel) -> Array:
        """Coefficients of the support times the standard deviations of their columns."""
        design = self.design
        scale = design.scale[:-1]
        mean = (design.mean[:-1] - design.shift[:-1]) / scale
        variance = np.maximum(self.problem.squared_lengths / self.total - mean**2, 0.0)
        spread = np.zeros(design.p_raw)
        spread[design.kept] = np.sqrt(variance) * scale
        return np.asarray(model.coef[model.support] * spread[model.support])


@dataclass
class Prepared(Standardised):
    """A table that is ready to be cross-validated."""

    data: FoldData

    @property
    def folds(self) -> Folds:
        """The folds, with their sizes."""
        return self.data.folds


def standardise(
    source: RowSource, protocol: Protocol, *, progress: Progress = None
) -> Standardised:
    """Read a table, whole or in one pass over its rows, and standardise its columns.

    Raises InputError: Bad values, or a table with weights that does not fit in memory.
    """
    names, weights = source.feature_names, source.weights
    if weights is not None or _bytes(source) <= IN_MEMORY_BYTES:
        X, y = _all_rows(source, "weights need", "leave out --weights")
        summary = Summary.of(X, y, weights)
        design = make_design(summary, protocol, names)
        return Standardised(source, design, design.problem(X, y, weights), summary.total)
    everything = HashedFolds("all", source.n, np.array([source.n]), None)
    moments, design = _read_moments(source, everything, protocol, progress, None)
    return Standardised(
        source, design, moment_problem(moments.total(), None, design), float(source.n)
    )


def prepare(
    source: RowSource,
    folds: Any,
    protocol: Protocol,
    *,
    seed: Any = 0,
    progress: Progress = None,
    n_jobs: int | None = None,
    announce: Callable[[str], None] | None = None,
) -> Prepared:
    """Read a table, whole or in one pass over its rows, and lay out its folds.

    folds: "loo", K or "size:M", or for a table that fits in memory all that
        :func:`~sparsecv.design.folds.make_folds` takes. Of a larger table a splitter is told the
        number of rows alone.
    seed: Of the folds: a shuffle, or of a table in parts that does not fit in memory a hash of the
        row number.
    n_jobs: Threads over the parts of a table that does not fit in memory.
    announce: Takes a text that says what is about to be read, where that is more than fits in
        memory.
    Raises InputError: Bad values, bad folds, or a table that does not fit in memory where it has
        weights or is left out row by row.
    """
    weights, names = source.weights, source.feature_names
    held = source.load() if _bytes(source) <= IN_MEMORY_BYTES else None
    k = fold_count(folds, source.n)
    streamed = held is None and source.divisible and weights is None and source.groups is None
    if streamed and k is not None and k < source.n:
        layout: Folds = hashed_folds(k, source.n, seed)
    else:
        X, y = held or (_Unread(source.n, source.p), _Unread(source.n))
        layout = make_folds(folds, source.n, seed=seed, X=X, y=y, groups=source.groups)
    if held or weights is not None or layout.leave_one_out or not layout.is_partition:
        what = "weights need" if weights is not None else "leave-one-out needs"
        what = what if layout.is_partition else "folds other than K need"
        without = "" if weights is None else " without --weights"
        advice = f"use --folds K{without}, which reads the rows once"
        X, y = held or _all_rows(source, what, advice)
        design = make_design(Summary.of(X, y, weights), protocol, names)
        data: FoldData = RowFolds.of(design, X, y, layout, weights)
    else:
        if announce is not None:
            announce(reading_plan(source, layout.k, workers(n_jobs)))
        moments, design = _read_moments(source, layout, protocol, progress, n_jobs)

        def read(other: Folds) -> FoldMoments:
            return _fold_moments(source, other, progress, n_jobs)

        data = MomentFolds(moments, design, layout, read)
    return Prepared(source, design, data.full(), data.total, data)


def _bytes(source: RowSource) -> int:
    """The bytes that all rows take in memory."""
    return 8 * source.n * (source.p + 1)


def _all_rows(source: RowSource, what: str, advice: str) -> tuple[Array, Array]:
    """All rows, where they fit in memory.

    what, advice: For the message: what needs all rows, and what to do instead.
    """
    if (size := _bytes(source)) > MAX_HELD_BYTES:
        raise InputError(f"{what} all rows in memory, {size / 1e9:.1f} GB here: {advice}")
    return source.load()


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


def _read_moments(
    source: RowSource, layout: Folds, protocol: Protocol, progress: Progress, n_jobs: int | None
) -> tuple[FoldMoments, Design]:
    """Moments of every fold, and the design that they give."""
    moments = _fold_moments(source, layout, progress, n_jobs)
    summary = moments.summary()
    design = make_design(summary, protocol, source.feature_names)
    if not protocol.intercept:
        _refuse_offsets(summary, [*source.feature_names, source.target_name])
    return moments, design


def _fold_moments(
    source: RowSource, layout: Folds, progress: Progress, n_jobs: int | None
) -> FoldMoments:
    if 8 * layout.k * (source.p + 1) ** 2 > MAX_HELD_BYTES:
        raise InputError(f"{layout.k} folds of a table this large do not fit in memory: use fewer")
    return fold_moments(source, layout, progress, n_jobs)


def _refuse_offsets(summary: Summary, names: Sequence[str]) -> None:
    """Refuse columns whose mean leaves too few digits to their spread, where nothing is centred."""
    spread = np.sqrt(summary.scatter / summary.n)
    distant = np.abs(summary.mean) > MAX_MEAN_IN_SPREADS * spread
    far = np.flatnonzero((summary.low < summary.high) & distant)
    if far.size:
        raise InputError(
            f"column {shown(names[far[0]])} has a mean of {summary.mean[far[0]]:.3g} beside a "
            f"standard deviation of {spread[far[0]]:.3g}, which takes more digits than there are "
            "without an intercept: fit one, or take the mean off the column"
        )


def reading_plan(source: RowSource, k: int, workers: int) -> str:
    """What reading a table that does not fit in memory will take, in one sentence.

    k: Number of folds.
    workers: Number of parts of the table that are read at a time.
    """
    speed, width, tasks = ReadingSpeed(), source.p + 1, len(source.parts())
    numbers, passes = source.n * width, 1 + source.counted
    at_a_time = max(1, min(tasks, workers))
    seconds = numbers / speed.numbers_per_second + numbers * width / speed.products_per_second
    return (
        f"plan: {'one pass' if passes == 1 else f'{passes} passes'} over "
        f"{8 * passes * numbers / 1e9:.3g} GB of numbers in {tasks} task{'s' * (tasks > 1)}, "
        f"{at_a_time} at a time, about {seconds / at_a_time:.2g} s; "
        f"{8 * k * width * (width + 2) / 1e6:.3g} MB of moments are kept"
    )


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    found = {module.__name__: module.__version__ for module in (np, scipy, numba)}
    return {"python": platform.python_version(), **found}
