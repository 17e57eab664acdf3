"""Every γ and τ of all folds at once: exact where trees reach, from good supports beyond.

The unit of work is the training rows of one fold, the γ grid and the sizes; leave-one-out up to 45
columns shares a tree among blocks of folds, at one γ after the other. Units are functions of
arguments that can be pickled, and know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from ..design.design import Array
from ..design.fold_data import FoldData, RowFolds
from ..solvers import (
    TREE_ONLY,
    DeletedRowSubsets,
    Limits,
    SparseRidgeProblem,
    Status,
    SupportPath,
    best_subsets_rows_deleted,
    support_path,
)
from .bounds import squared_error_bounds
from .ledger import Page
from .pace import Tell

Item = TypeVar("Item")
Task = TypeVar("Task")
FOLDS_PER_TREE = 512  # deleted rows that share a tree: their state stays in cache
MANY_FOLDS = 20  # from here on, beyond 45 columns, folds take over the supports of all rows


def fold_unit(
    problem: SparseRidgeProblem,
    held_out: tuple[Array, Array],
    gammas: Array,
    taus: NDArray[np.intp],
    solver: str,
    limits: Limits,
) -> tuple[SupportPath, Array]:
    """One fold: its models along γ, and Σ (t − Hβ)² over its held-out rows, shape (γ, τ).

    Parameters
    ----------
    problem : SparseRidgeProblem
        Of the training rows.
    held_out : pair of arrays, shape (m, p) and (m,)
    gammas : array, shape (γ,)
    taus : ndarray of int, shape (τ,)
    solver : str
        As for :func:`support_path`.
    limits : Limits

    Returns
    -------
    path : SupportPath
    error : ndarray, shape (γ, τ)
    """
    path = support_path(problem, gammas, taus, solver=solver, limits=limits)
    return path, path.squared_errors(*held_out)


def fill_pages(
    pages: Sequence[Page],
    limits: Limits,
    *,
    n_jobs: int | None = None,
    solver: str = "auto",
    tell: Tell,
    save: Callable[[Sequence[Page]], None],
) -> None:
    """Give every fold an incumbent at every γ and τ; exact up to 45 columns, limits permitting.

    Parameters
    ----------
    pages : list of Page
        Of one partition; what is exact on them already is kept.
    limits : Limits
        Where they are reached, the supports left are good ones without a proof.
    n_jobs : int, optional
    solver : str
        "auto", or "heuristic": good supports everywhere, nothing proved.
    tell : callable
        Told what is being done, the units done and units in all.
    save : callable
        Told which pages have changed for good.
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
        share = limits.share(3.0 if deleted else k / effective_n_jobs(n_jobs) + 1.0)
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
    rest = [page for page in pages if not deleted or page.gamma in large]
    if data.p > TREE_ONLY and k >= MANY_FOLDS:
        for done, page in enumerate(rest):
            tell(f"estimating at γ = {page.gamma:.4g}", done, len(rest))
            for t, support in enumerate(page.models):
                page.offer(t, np.arange(k), support)
            _refuse_interrupt(limits)
    elif rest:
        todo = [j for j in range(k) if not all(page.exact[:, j].all() for page in rest)]
        _solve_folds(rest, todo, limits, n_jobs, tell, save, solver)
    for done, page in enumerate(shared):
        tell(f"every row left out at γ = {page.gamma:.4g}", done, len(shared))
        _delete_rows(page, limits.share(float(len(shared) - done)), n_jobs)
        save([page])
        _refuse_interrupt(limits)
    for page in pages:
        if solver != "auto" and not page.exact.all():
            page.met(Status.TIME_LIMIT)
        page.seconds += clock.elapsed() / len(pages)


def shares_a_tree(data: FoldData) -> bool:
    """Whether one tree can serve all leave-one-out folds.

    With fewer rows, supports interpolate: then no row is taken out safely.

    Parameters
    ----------
    data : FoldData

    Returns
    -------
    bool
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
    solver: str = "auto",
) -> None:
    """Some folds, each along all γ of the pages."""
    data, taus = pages[0].data, pages[0].taus
    gammas = np.array([page.gamma for page in pages])
    jobs, left = effective_n_jobs(n_jobs), len(folds)

    def unit(j: int) -> tuple[int, SupportPath, Array]:
        share = limits.share(left / jobs)
        path, error = fold_unit(data.training(j), data.held_out(j), gammas, taus, solver, share)
        return j, path, error

    tell("folds", 0, left)
    for j, path, error in in_parallel(unit, folds, n_jobs):
        left -= 1
        for g, page in enumerate(pages):
            page.take_fold(j, path, g, error)
            page.met(path.status)
        tell("folds", len(folds) - left, len(folds))
        save(pages)
        _refuse_interrupt(limits)


def _delete_rows(page: Page, limits: Limits, n_jobs: int | None) -> None:
    """Leave-one-out by shared trees; rows too influential for a down-date get their own."""
    data = page.data
    assert isinstance(data, RowFolds)
    problem = data.full().replace(gamma=page.gamma)
    rows, targets, weight = data.deleted_rows()
    n = targets.size
    blocks = [np.arange(i, min(i + FOLDS_PER_TREE, n)) for i in range(0, n, FOLDS_PER_TREE)]
    jobs, left = effective_n_jobs(n_jobs), n
    fold_of = data.folds.label
    assert fold_of is not None
    skipped: list[int] = []

    def unit(block: NDArray[np.intp]) -> tuple[NDArray[np.intp], DeletedRowSubsets]:
        share = limits.share(left / block.size / jobs)
        return block, best_subsets_rows_deleted(
            problem,
            rows[block],
            targets[block],
            sizes=page.taus,
            warm_starts=page.models,
            time_limit=share.remaining(),
            stop=limits.stop,
        )

    for block, found in in_parallel(unit, blocks, n_jobs):
        left -= block.size
        here = fold_of[block]
        root = weight[block]
        page.objective[:, here] = found.objective
        page.error[:, here] = (root * found.residual) ** 2
        lower, upper = squared_error_bounds(root * found.low, root * found.high)
        page.lower[:, here], page.upper[:, here] = lower, upper
        page.exact[:, here] = found.low == found.high
        number = np.array([page.index(s) for s in found.supports], dtype=np.intp)
        page.choice[:, here] = number[found.choice]
        skipped.extend(here[found.skipped].tolist())
        page.n_mio += found.skipped.size < block.size
        page.n_nodes += found.n_nodes
        page.met(found.status)
    page.whole_trees += page.n_mio  # the trees serve every τ
    if skipped:
        page.exact[:, skipped] = False
        page.lower[:, skipped], page.upper[:, skipped] = 0.0, np.inf
        _solve_folds([page], sorted(skipped), limits, n_jobs, _ignore, _ignore)


def in_parallel(
    unit: Callable[[Task], Item], tasks: Sequence[Task], n_jobs: int | None
) -> Iterator[Item]:
    """Run ``unit`` on every task and yield results in order; threads, kernels hold no GIL.

    Parameters
    ----------
    unit : callable
    tasks : sequence
    n_jobs : int or None
        As in joblib.

    Yields
    ------
    object
        One result per task.
    """
    if effective_n_jobs(n_jobs) == 1 or len(tasks) == 1:
        yield from map(unit, tasks)
    else:
        yield from Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")(
            delayed(unit)(task) for task in tasks
        )


def _ignore(*_: object) -> None:
    """Tell nobody."""


def _refuse_interrupt(limits: Limits) -> None:
    if limits.reached(0) is Status.INTERRUPTED:
        raise KeyboardInterrupt
