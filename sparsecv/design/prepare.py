"""From a named table to standardised columns, and to folds that can be cross-validated."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numba
import numpy as np
import scipy

from ..errors import InputError
from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.threads import cached
from ..solvers.executor import workers
from ..tables.columns import quoted
from ..tables.row_source import RowSource
from .design import Array, Design, Protocol, Summary, make_design
from .fold_data import FoldData, RowFolds
from .folds import Folds, fold_count, hashed_folds, make_folds
from .missing import fill_values, filled
from .moment_folds import MomentFolds
from .moments import FoldMoments, fold_moments

# A table of a file that takes more than this many bytes (8 for every number, response included) is
# read block by block, and only the moments of its folds are kept, unless all its rows are needed at
# once. The number is a choice.
IN_MEMORY_BYTES = 200_000_000
# A table whose rows are all needed at once (leave-one-out, weights) is held in memory up to this
# many bytes, and a larger one is refused. Of a table that is read in parts, the moments of all
# folds together may take as many bytes, 8 (p + 1)² for each fold of p columns, else the folds are
# refused. The number is a choice.
MAX_HELD_BYTES = 1_500_000_000
# In place of folds: all rows are one fold, and no rows are left out of the problem of all rows.
ALL_ROWS = object()


# A function that takes the number of rows read and the number of rows in all.
Progress = Callable[[int, int], None] | None


@dataclass
class Prepared:
    """A table, how its columns are standardised, and the training problems of its folds.

    layout: The folds; those of rows that are read in parts by a hash have no sizes.
    fills, shape (p_raw,): What the model of all rows fills missing values with; None where missing
        values are errors.
    rows: X, shape (n, p_raw), and y, shape (n,), where they are in memory.
    moments: The folds where only moments of their rows are in memory.
    """

    source: RowSource
    design: Design
    layout: Folds
    fills: Array | None = None
    rows: Any = None
    moments: Any = None

    def problem(self) -> SparseRidgeProblem:
        """The problem of all rows, with placeholders for γ and τ."""
        X, y = self.rows
        X = X if self.fills is None else filled(X, self.fills)
        return self.design.problem(X, y, self.source.weights, shared=False)

    def _row_folds(self) -> RowFolds:
        """The folds of rows that are in memory."""
        (X, y), source = self.rows, self.source
        return RowFolds.of(self.design, X, y, self.layout, source.weights, source.missing)

    @cached
    def data(self) -> FoldData:
        """The training problems of the folds."""
        return self.moments if self.rows is None else self._row_folds()

    @property
    def names(self) -> list[str]:
        """Names of the raw columns."""
        return self.source.feature_names

    @property
    def folds(self) -> Folds:
        """The folds, with their sizes."""
        return self.data.folds


def prepare(
    source: RowSource,
    folds: Any,
    protocol: Protocol,
    *,
    seed: Any = 0,
    progress: Progress = None,
    n_jobs: int | None = None,
    announce: Callable[[str], None] | None = None,
    asked: ResolvedRules | None = None,
) -> Prepared:
    """Read a table, whole or in one pass over its rows, and lay out its folds.

    folds: What :func:`~sparsecv.design.folds.make_folds` takes. A splitter gets X and y where the
        table fits in memory; of a larger table a splitter gets the number of rows alone. Or
        ``ALL_ROWS``.
    seed: Seed of the shuffle, or for a table in parts that does not fit in memory, of the hash of
        the row number.
    n_jobs: Number of threads that read the parts of a table that does not fit in memory.
    announce: Takes a text that says how much is about to be read from a table that does not fit in
        memory, and how long that will take.
    asked: What is asked of the columns.
    Raises InputError: Values or folds are bad, or a table does not fit in memory and has weights,
        leave-one-out folds, or folds that are no partition.
    """
    held = source.load() if source.held or _bytes(source) <= IN_MEMORY_BYTES else None
    k = fold_count(folds, source.n)
    names, fixed = source.feature_names, source.weights is not None or source.missing is not None
    streamed = held is None and source.divisible and not fixed and source.groups is None
    if folds is ALL_ROWS:
        layout = Folds.whole(source.n)
    elif streamed and k is not None and k < source.n:
        layout = hashed_folds(k, source.n, seed)
    else:
        X, y = held or (_Unread(source.n, source.p), _Unread(source.n))
        layout = make_folds(folds, source.n, seed=seed, X=X, y=y, groups=source.groups)
    if held or fixed or layout.leave_one_out or not layout.is_partition:
        held = held or _all_rows(source, layout)
        own = source.weights, source.missing
        design, fills = rows_design(*held, protocol, *own, names=names, asked=asked)
        return Prepared(source, design, layout, fills, held)
    if announce is not None:
        announce(reading_plan(source, layout.k, workers(n_jobs)))
    if 8 * layout.k * (source.p + 1) ** 2 > MAX_HELD_BYTES:
        raise InputError(f"{layout.k} folds of a table this large do not fit in memory: use fewer")
    read = partial(fold_moments, source, progress=progress, n_jobs=n_jobs)
    moments = read(layout)
    design = _moment_design(source, protocol, moments, asked)
    return Prepared(source, design, layout, moments=MomentFolds(moments, design, layout, read))


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
    return make_design(summary, protocol, labels, warn=warn, asked=asked), fills


def _bytes(source: RowSource) -> int:
    """The bytes that all rows take in memory, which decide whether they are held there."""
    return 8 * source.n * (source.p + 1)


def _all_rows(source: RowSource, layout: Folds) -> tuple[Array, Array]:
    """X and y of all rows; an InputError where they take more than MAX_HELD_BYTES.

    layout: The folds, by which the message says what needs all rows and what to do instead.
    """
    if (size := _bytes(source)) <= MAX_HELD_BYTES:
        return source.load()
    weighted = source.weights is not None
    what = "weights need" if weighted else "leave-one-out needs"
    what = what if layout.is_partition else "folds other than K need"
    what = "filling missing values needs" if source.missing else what
    without = " without --weights" * weighted + " with --missing drop" * bool(source.missing)
    advice = f"use --folds K{without}, which reads the rows once"
    if layout.kind == "all":
        advice = "pass --missing drop" if source.missing else "leave out --weights"
    raise InputError(f"{what} all rows in memory, {size / 1e9:.1f} GB here: {advice}")


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


def _moment_design(
    source: RowSource, protocol: Protocol, moments: FoldMoments, asked: ResolvedRules | None
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


def reading_plan(source: RowSource, k: int, workers: int) -> str:
    """One sentence on the bytes, seconds and memory that reading a large table will take.

    k: Number of folds.
    workers: Largest number of parts of the table that are read at the same time.
    """
    width, tasks = source.p + 1, len(source.parts())
    numbers, passes = source.n * width, 1 + source.counted
    at_a_time = max(1, min(tasks, workers))
    # In a second a core of the year 2020 reads 1.5e7 numbers from Parquet, sorts them by fold and
    # centres them. It adds 1e10 products of two entries of a row to moments in a second. Both were
    # measured. Only the announced seconds depend on these speeds.
    seconds = numbers / 1.5e7 + numbers * width / 1e10
    return (
        f"plan: {'one pass' if passes == 1 else f'{passes} passes'} over "
        f"{8 * passes * numbers / 1e9:.3g} GB of numbers in {tasks} task{'s' * (tasks > 1)}, "
        f"{at_a_time} at a time, about {seconds / at_a_time:.2g} s; "
        f"{8 * k * width * (width + 2) / 1e6:.3g} MB of moments are kept"
    )


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that the digits of a result depend on."""
    found = {module.__name__: module.__version__ for module in (np, scipy, numba)}
    return {"python": platform.python_version(), **found}
