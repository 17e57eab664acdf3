"""Weights of the average inside a fold, from that fold's training rows alone.

The average's weights h^(−n/10) come from CV errors of all rows. With those weights the average of
a fold's models has seen the rows that the fold holds out, and its error on them is too small. So
every fold has weights of its own, from inner folds of its training rows. One model fitted without
two folds serves both: its errors on either fold count for the weights of the other one, so that
five folds need ten fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..cv.progress import Tell
from ..design.design import Array
from ..design.fold_data import FoldData, MomentFolds, RowFolds
from ..design.folds import Folds, make_folds
from ..design.moments import FoldMoments, Moments
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.executor import run_units
from ..solvers.leaps.all_sizes import TREE_ONLY
from ..solvers.paths import support_path
from .averaging import model_weights

MAX_BLOCKS = 5  # more folds than this are joined to so many blocks; folds of a block share weights
# Where folds are only two, or do not partition the rows, the training rows of every fold are cut
# into so many inner folds.
INNER_FOLDS = 4

Errors = list[tuple[int, Array]]  # a block, and squared errors (γ, τ) that count for its weights


def refuse_inner(data: FoldData) -> None:
    """Refuse two folds of a table that is read by chunks: their training rows have no inner
    folds.
    """
    if not isinstance(data, RowFolds) and data.folds.k < 3:
        raise InputError(
            "a table that is read by chunks needs at least 3 folds for the rules averaged and "
            "projected, whose weights come from inner folds: use more folds or rule minimum"
        )


def inner_weights(
    data: FoldData,
    gammas: Array,
    taus: NDArray[np.intp],
    *,
    limits: Limits,
    n_jobs: int | None = None,
    tell: Tell | None = None,
) -> tuple[list[Array], bool]:
    """Every fold's weights (γ, τ), and whether all models they come from are proved.

    gammas, taus, shape (γ,) and (τ,).
    limits: Where they are reached, supports are good ones without a proof.
    Returns weights, shape (γ, τ).
    """
    k = data.folds.k
    unit: Callable[..., tuple[Errors, bool]] = _training_rows
    pairs = [(j, i) for j in range(k) for i in range(INNER_FOLDS)]
    if k > 2 and (data.folds.is_partition or not isinstance(data, RowFolds)):
        blocks = min(k, MAX_BLOCKS)
        data = data if blocks == k else joined(data, [range(b, k, blocks) for b in range(blocks)])
        unit, pairs = _without_two, list(combinations(range(blocks), 2))
    tasks = [(*pair, gammas, taus) for pair in pairs]
    found: dict[int, tuple[Errors, bool]] = {}
    for index, one in run_units(
        unit, data, tasks, n_jobs, allot=lambda rounds: limits.share(rounds + 1.0)
    ):
        found[index] = one
        if tell is not None:
            tell("inner folds", len(found), len(tasks))
    sums = np.zeros((data.folds.k, gammas.size, taus.size))
    for index in range(len(tasks)):  # in order, so that sums are the same bit for bit
        for block, errors in found[index][0]:
            sums[block] += errors
    rows = [n_training(data.folds, b) for b in range(data.folds.k)]
    weights = [model_weights(sums[b], gammas, rows[b]) for b in range(data.folds.k)]
    return [weights[j % len(weights)] for j in range(k)], all(sure for _, sure in found.values())


def n_training(folds: Folds, j: int) -> int:
    """Number of rows that fold j trains on."""
    if folds.pairs:
        return int(folds.pairs[j][0].size)
    return int(folds.sizes.sum() - folds.sizes[j])


def enough(p: int, limits: Limits) -> str:
    """The solver of a fold's path: beyond 45 columns good supports are enough, nothing is proved.

    limits: Where there are some, "auto", which keeps to them.
    """
    return "heuristic" if p > TREE_ONLY and limits.remaining() is None else "auto"


def joined(data: FoldData, groups: Sequence[Sequence[int]]) -> FoldData:
    """The rows of some folds of a partition, in new folds that are unions of these.

    groups: Numbers of the folds that every new fold holds out.
    """
    if isinstance(data, MomentFolds):
        every = data._moments
        parts = [reduce(Moments.merged, [every.fold(j) for j in group]) for group in groups]
        counts = np.array([part.n for part in parts], dtype=np.intp)
        folds = Folds("custom", int(counts.sum()), counts, None)
        return MomentFolds(FoldMoments(parts, every.low, every.high), data._design, folds)
    assert isinstance(data, RowFolds)
    assert data.folds.label is not None
    place = np.full(data.folds.k, -1, dtype=np.intp)
    for number, group in enumerate(groups):
        place[list(group)] = number
    label = place[data.folds.label]
    rows = np.flatnonzero(label >= 0)
    counts = np.bincount(label[rows], minlength=len(groups)).astype(np.intp)
    return _some_rows(data, rows, Folds("custom", rows.size, counts, label[rows]))


def _some_rows(data: RowFolds, rows: NDArray[np.intp], folds: Folds) -> RowFolds:
    """Some rows in other folds."""
    weights = None if data.weights is None else data.weights[rows]
    X, y = (values[rows] for values in data._rows)
    return RowFolds(X, y, folds, data.refit_intercept, weights, data._scale)


def _without_two(
    data: FoldData, b: int, c: int, gammas: Array, taus: NDArray[np.intp], limits: Limits
) -> tuple[Errors, bool]:
    """The unit of two folds b < c: models fitted without both, and their errors on each."""
    every = [[j] for j in range(data.folds.k)]
    without_b, without_c = (
        joined(data, every[:b] + every[b + 1 :]),
        joined(data, every[:c] + every[c + 1 :]),
    )
    path = support_path(
        without_b.training(c - 1), gammas, taus, solver=enough(data.p, limits), limits=limits
    )
    on_c, on_b = without_b.held_out(c - 1), without_c.held_out(b)
    errors = [(b, path.squared_errors(*on_c)), (c, path.squared_errors(*on_b))]
    return errors, bool(path.proved.all())


def _training_rows(
    data: RowFolds, j: int, i: int, gammas: Array, taus: NDArray[np.intp], limits: Limits
) -> tuple[Errors, bool]:
    """The unit of inner fold i of the training rows of fold j."""
    rows = data.folds.split(j)[0]
    groups = None if data.folds.groups is None else data.folds.groups[rows]
    parts = rows.size if groups is None else np.unique(groups).size
    if i >= min(parts, INNER_FOLDS) or parts < 2:  # no more inner folds
        return [], True
    folds = make_folds(min(parts, INNER_FOLDS), rows.size, seed=0, groups=groups)
    inner = _some_rows(data, rows, folds)
    path = support_path(
        inner.training(i), gammas, taus, solver=enough(data.p, limits), limits=limits
    )
    return [(j, path.squared_errors(*inner.held_out(i)))], bool(path.proved.all())
