"""Every γ and τ of all folds at once: exact where trees reach, good supports beyond.

The unit of work is the training rows of one fold, the γ grid and the sizes. What a fold answers
without a proof comes from this unit alone, and so is a function of its training rows. Leave-one-out
up to 45 columns shares a tree among blocks of folds, at one γ after the other; what that tree does
not prove is answered by the units, too. Units are functions of arguments that can be pickled, and
know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..design.fold_data import FoldData, RowFolds
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.executor import run_units, workers
from ..solvers.leaps.all_sizes import TREE_ONLY
from ..solvers.leaps.deleted_rows import DeletedRowSubsets, best_subsets_rows_deleted
from ..solvers.paths import support_path
from ..solvers.ridge_fits import SupportPath
from .ledger import Page
from .progress import Tell

FOLDS_PER_TREE = 512  # deleted rows that share a tree: their state stays in cache
MANY_FOLDS = 20  # From this number of folds on, no fold beyond 45 columns begins a tree of its own.


def fold_unit(
    problem: SparseRidgeProblem,
    held_out: tuple[Array, Array],
    gammas: Array,
    taus: NDArray[np.intp],
    solver: str,
    limits: Limits,
) -> tuple[SupportPath, Array]:
    """One fold: its models along γ, and Σ (t − Hβ)² over its held-out rows, shape (γ, τ).

    problem: Of the training rows.
    held_out, shape (m, p) and (m,).
    gammas, shape (γ,).
    taus, shape (τ,).
    Returns error, shape (γ, τ).
    """
    path = support_path(problem, gammas, taus, solver=solver, limits=limits)
    return path, path.squared_errors(*held_out)


def _fold(
    data: FoldData,
    j: int,
    gammas: Array,
    taus: NDArray[np.intp],
    solver: str,
    limits: Limits,
) -> tuple[SupportPath, Array]:
    """The unit of one fold, from what holds all folds."""
    return fold_unit(data.training(j), data.held_out(j), gammas, taus, solver, limits)


def _block(
    data: RowFolds,
    block: NDArray[np.intp],
    gamma: float,
    taus: NDArray[np.intp],
    models: Sequence[NDArray[np.intp]],
    limits: Limits,
) -> DeletedRowSubsets:
    """The unit of some leave-one-out folds that share a tree."""
    rows, targets, _ = data.deleted_rows(block)
    return best_subsets_rows_deleted(
        data.full().replace(gamma=gamma),
        rows,
        targets,
        sizes=taus,
        warm_starts=models,
        limits=limits,
    )


def fill_pages(
    pages: Sequence[Page],
    limits: Limits,
    *,
    n_jobs: int | None = None,
    solver: str = "auto",
    tell: Tell,
    save: Callable[[Sequence[Page]], None],
) -> None:
    """Give every fold an answer at every γ and τ; exact up to 45 columns, limits permitting.

    pages: Of one partition; what is exact on them already is kept.
    limits: Where they are reached, the supports left are good ones without a proof.
    solver: "auto", or "heuristic": good supports everywhere, nothing proved.
    tell: Told what is being done, the units done and units in all.
    save: Told which pages have changed for good.
    """
    if not pages:
        return
    data, taus = pages[0].data, pages[0].taus
    k, deleted = data.folds.k, solver == "auto" and shares_a_tree(data)
    clock = Limits()
    large = set()
    missing = [page for page in pages if not page.models]
    if missing:
        tell("the models of all rows", 0, 1)
        share = limits.share(3.0 if deleted else k / workers(n_jobs) + 1.0)
        at = [page.gamma for page in missing]
        whole = support_path(data.full(), at, taus, solver=solver, limits=share)
        for g, page in enumerate(missing):
            page.take_models(whole, g)
            page.met(whole.status)
            if whole.n_trees[g] > 1 or g in whole.unfinished:
                large.add(page.gamma)
    _refuse_interrupt(limits)
    # where one tree of all rows grows too large, one for all folds would not end either
    shared = [page for page in pages if deleted and page.gamma not in large]
    for done, page in enumerate(shared):
        tell(f"every row left out at γ = {page.gamma:.4g}", done, len(shared))
        _delete_rows(page, limits.share(float(len(pages) - done)), n_jobs)
        save([page])
        _refuse_interrupt(limits)
    rest = [page for page in pages if not page.exact.all()]
    alone = [j for j in range(k) if not all(page.exact[:, j].all() for page in rest)]
    many = data.p > TREE_ONLY and k >= MANY_FOLDS
    _solve_folds(rest, alone, limits, n_jobs, tell, save, "heuristic" if many else solver)
    for page in pages:
        page.seconds += clock.elapsed() / len(pages)


def shares_a_tree(data: FoldData) -> bool:
    """Whether one tree can serve all leave-one-out folds.

    With fewer rows, supports interpolate: then no row is taken out safely.
    """
    rows = isinstance(data, RowFolds) and data.folds.leave_one_out
    return rows and data.p <= TREE_ONLY and data.folds.n > data.p + 2


def _solve_folds(
    pages: Sequence[Page],
    folds: Sequence[int],
    limits: Limits,
    n_jobs: int | None,
    tell: Tell,
    save: Callable[[Sequence[Page]], None],
    solver: str,
) -> None:
    """Some folds, each along all γ of the pages."""
    if not folds:
        return
    data, taus = pages[0].data, pages[0].taus
    gammas = np.array([page.gamma for page in pages])
    tasks = [(j, gammas, taus, solver) for j in folds]
    units = run_units(_fold, data, tasks, n_jobs, allot=limits.share)
    tell("folds", 0, len(folds))
    for done, (index, (path, error)) in enumerate(units):
        for g, page in enumerate(pages):
            page.take_fold(folds[index], path, g, error)
            page.met(path.status)
        save(pages)
        tell("folds", done + 1, len(folds))
        _refuse_interrupt(limits)


def _delete_rows(page: Page, limits: Limits, n_jobs: int | None) -> None:
    """Leave-one-out by shared trees; rows too influential for a down-date are left open."""
    data = page.data
    assert isinstance(data, RowFolds)
    n = data.folds.n
    blocks = [np.arange(i, min(i + FOLDS_PER_TREE, n)) for i in range(0, n, FOLDS_PER_TREE)]
    fold_of = data.folds.label
    assert fold_of is not None
    tasks = [(block, page.gamma, page.taus, page.models) for block in blocks]
    for index, found in run_units(_block, data, tasks, n_jobs, allot=limits.share):
        block = blocks[index]
        page.take_rows(fold_of[block], found, data.deleted_rows(block)[2])
        page.n_mio += found.skipped.size < block.size
        page.n_nodes += found.n_nodes
        page.met(found.status)
    page.whole_trees += page.n_mio  # the trees serve every τ


def _refuse_interrupt(limits: Limits) -> None:
    if limits.reached(0) is Status.INTERRUPTED:
        raise KeyboardInterrupt
