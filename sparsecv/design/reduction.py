"""Moments of the folds of a long table, to which Dask reduces the table in one compute."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ..errors import InputError, first_line
from ..solvers.core.threads import one_blas_thread
from ..tables.dask_table import DaskTable
from ..tables.faults import Faults
from .folds import chunk_folds
from .moments import FoldMoments

# The moments of all folds and partitions may take at most this many bytes; else the folds are
# refused. A fold of p columns takes 8 (p + 1)² bytes, and every worker holds the moments of all
# folds. The number is a choice.
MAX_BYTES_OF_MOMENTS = 1_500_000_000
# Moments of this many chunks are merged at a time. The number is a choice.
CHUNKS_AT_A_TIME = 8


def reduced(table: DaskTable, k: int, seed: int, partitions: int) -> list[FoldMoments]:
    """Moments of the k folds of every partition, for which Dask reads every row once.

    The moments of chunks are merged in the order of the chunks, so that the digits of the result
    depend on no worker. The number of rows of ``table`` is set.

    seed: A whole number, from which the folds of every chunk and partition are drawn.
    Raises InputError: A value cannot be used, the moments do not fit in memory, or a fold is empty.
    """
    import dask

    if 8 * k * partitions * (table.p + 1) ** 2 > MAX_BYTES_OF_MOMENTS:
        raise InputError(f"the moments of {k} folds of {table.p} columns take too much memory")
    names = [*table.feature_names, table.target_name]
    of_chunk, merge = dask.delayed(chunk_moments, pure=True), dask.delayed(_merged, pure=True)
    level: list[Any] = [
        of_chunk(list(parts), number, names, table.name, k, seed, partitions)
        for number, parts in enumerate(table.chunks)
    ]
    while len(level) > 1:
        starts = range(0, len(level), CHUNKS_AT_A_TIME)
        level = [merge(level[start : start + CHUNKS_AT_A_TIME]) for start in starts]
    try:
        with one_blas_thread():
            (found,) = dask.compute(level[0])
    except (ValueError, TypeError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{table.name}: {first_line(error)}") from error
    table.n = sum(part.n for part in found[0].folds)
    if any(part.n == 0 for one in found for part in one.folds):
        raise InputError(f"{k} folds of {table.n:,} rows: one is empty, use fewer")
    result: list[FoldMoments] = found
    return result


def chunk_moments(
    parts: list[Any], number: int, names: list[str], label: str, k: int, seed: int, partitions: int
) -> list[FoldMoments]:
    """Moments of the folds of every partition, of one chunk of rows.

    parts: The columns of [X y], in one array or two.
    number: The number of the chunk, counted from 0.
    names: Names of the columns of X, and of y.
    label: The table's name in messages.
    k, seed, partitions: The number of folds, the seed that they are drawn with, and the number of
        partitions into folds, for each of which moments are returned.
    Raises InputError: X and y differ in length, or a value is missing or infinite.
    """
    where = f"{label}, chunk {number + 1}"
    if len(parts[0]) != len(parts[-1]):
        raise InputError(f"{where}: X has {len(parts[0]):,} rows and y {len(parts[-1]):,}")
    rows = np.column_stack([np.asarray(part, dtype=np.float64) for part in parts])
    faults = Faults(where, names[-1])
    faults.values(rows, names)
    faults.check()
    every = range(partitions)
    folds = [chunk_folds(len(rows), k, seed, partition, number) for partition in every]
    return [FoldMoments.of(rows, fold, k) for fold in folds]


def _merged(parts: list[list[FoldMoments]]) -> list[FoldMoments]:
    """The moments of every partition over the rows of all parts."""
    return [reduce(FoldMoments.merged, of_partition) for of_partition in zip(*parts, strict=True)]
