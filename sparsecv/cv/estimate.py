"""Every γ and τ of all problems at once: exact where trees reach, good supports beyond.

The unit of work is the training rows of one fold, the γ grid and the sizes. What a fold answers
without a proof comes from this unit alone, and so is a function of its training rows. Leave-one-out
up to 45 columns shares a tree among blocks of folds, at one γ after the other; what that tree does
not prove is answered by the units, too. Units are functions of arguments that can be pickled, and
know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..design.fold_data import FoldData, RowFolds
from ..solvers.core.limits import Limits
from ..solvers.executor import workers
from ..solvers.leaps.all_sizes import TREE_ONLY
from ..solvers.leaps.deleted_rows import DeletedRowSubsets, best_subsets_rows_deleted
from ..solvers.paths import support_path
from ..solvers.ridge_fits import SupportPath
from .batch import Batch
from .ledger import Ledger
from .progress import Tell

# At most this many deleted rows share a tree, so that what the tree keeps of each of them stays in
# the processor's cache. Twice as many visit fewer nodes and take longer for each (measured).
FOLDS_PER_TREE = 512
# From this number of folds on, no fold beyond 45 columns begins a tree of its own: estimates come
# first. With twice as many, the estimates of 20 to 39 folds would wait for those trees.
MANY_FOLDS = 20


def fold_unit(
    data: FoldData, j: int, gammas: Array, taus: NDArray[np.intp], solver: str, limits: Limits
) -> tuple[SupportPath, Array]:
    """One fold: its models along γ, and Σ (t − Hβ)² over its held-out rows, shape (γ, τ)."""
    path = support_path(data.training(j), gammas, taus, solver=solver, limits=limits)
    return path, path.squared_errors(*data.held_out(j))


def _block(
    data: RowFolds,
    block: NDArray[np.intp],
    gamma: float,
    taus: NDArray[np.intp],
    models: Sequence[NDArray[np.intp]],
    limits: Limits,
) -> DeletedRowSubsets:
    """The unit of some leave-one-out folds that share a tree."""
    rows, targets = (part[block] for part in data.deleted_rows[:2])
    return best_subsets_rows_deleted(
        data.full().replace(gamma=gamma),
        rows,
        targets,
        sizes=taus,
        warm_starts=models,
        limits=limits,
    )


def shares_a_tree(data: FoldData) -> bool:
    """Whether one tree can serve all leave-one-out folds.

    With fewer rows, supports interpolate: then no row is taken out safely.
    """
    rows = isinstance(data, RowFolds) and data.folds.leave_one_out
    return rows and data.p <= TREE_ONLY and data.folds.n > data.p + 2


def estimate_models(
    ledger: Ledger, rows: list[int], solver: str, limits: Limits, n_jobs: int | None, tell: Tell
) -> list[int]:
    """Give the problem of all rows an answer at every γ and τ, unless the ledger has one.

    Returns: The rows of the ledger where the tree of all rows did not grow large.
    """
    data, k, clock = ledger.data, ledger.k, Limits()
    missing = [g for g in rows if not np.isfinite(ledger.objective[g, :, k]).all()]
    if not missing:
        return rows
    tell("the models of all rows", 0, 1)
    deleted = solver == "auto" and shares_a_tree(data)
    share = limits.share(3.0 if deleted else k / workers(n_jobs) + 1.0)
    at = [ledger.gammas[g] for g in missing]
    whole = support_path(data.full(), at, ledger.taus, solver=solver, limits=share)
    for i, g in enumerate(missing):
        ledger.take_path(g, k, whole, i)
    ledger.seconds[missing] += clock.elapsed() / len(missing)
    large = {g for i, g in enumerate(missing) if whole.n_trees[i] > 1 or i in whole.unfinished}
    return [g for g in rows if g not in large]


def estimate_folds(
    ledger: Ledger, rows: list[int], small: list[int], solver: str, limits: Limits, tell: Tell
) -> Iterator[Batch]:
    """Give every fold an answer at every γ and τ; exact up to 45 columns, limits permitting.

    rows: Rows of the ledger; what is exact there already is kept.
    small: Where the tree of all rows did not grow large; elsewhere a tree for all folds would not
        end either.
    solver: "auto", or "heuristic": good supports everywhere, nothing proved.
    """
    data, taus, k = ledger.data, ledger.taus, ledger.k
    shared = small if solver == "auto" and shares_a_tree(data) else []
    for done, g in enumerate(shared):
        tell(f"every row left out at γ = {ledger.gammas[g]:.4g}", done, len(shared))
        yield _deleted_rows(ledger, g, limits.share(float(len(rows) - done)))
    rest = [g for g in rows if not ledger.proved(g)]
    folds = np.flatnonzero(~ledger.exact[rest, :, :k].all(axis=(0, 1))).tolist()
    if data.p > TREE_ONLY and k >= MANY_FOLDS:
        solver = "heuristic"
    gammas = np.array([ledger.gammas[g] for g in rest])

    def enter(index: int, found: tuple[SupportPath, Array]) -> None:
        for i, g in enumerate(rest):
            ledger.take_path(g, folds[index], found[0], i, found[1][i])

    if folds:
        tasks = [(j, gammas, taus, solver) for j in folds]

        def told(done: int) -> None:
            tell("folds", done, len(folds))

        yield Batch(rest, fold_unit, data, tasks, enter, limits.share, told, keep=True)


def _deleted_rows(ledger: Ledger, g: int, limits: Limits) -> Batch:
    """Leave-one-out by shared trees; rows too influential for a down-date are left open."""
    data, k = ledger.data, ledger.k
    assert isinstance(data, RowFolds)
    assert data.folds.label is not None
    n, fold_of = data.folds.n, data.folds.label
    blocks = [np.arange(i, min(i + FOLDS_PER_TREE, n)) for i in range(0, n, FOLDS_PER_TREE)]
    models = [ledger.support(g, t, k) for t in range(ledger.taus.size)]

    def enter(index: int, found: DeletedRowSubsets) -> None:
        block = blocks[index]
        ledger.take_rows(g, fold_of[block], found, data.deleted_rows[2][block])
        ledger.n_mio[g] += found.skipped.size < block.size
        ledger.trees[g] += found.skipped.size < block.size  # the tree serves every τ
        ledger.n_nodes[g] += found.n_nodes
        ledger.met(g, found.status)

    tasks = [(block, ledger.gammas[g], ledger.taus, models) for block in blocks]
    return Batch([g], _block, data, tasks, enter, limits.share, keep=True)
