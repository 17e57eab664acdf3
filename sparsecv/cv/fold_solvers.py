"""Solve the training problems of all folds: one by one, a tree per fold, or one shared tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from ..design.design import Array
from ..design.fold_data import FoldData, RowFolds
from ..solvers import (
    BestSubsets,
    Certificate,
    DeletedRowSubsets,
    OpenNode,
    SparseRidgeProblem,
    Status,
    StopFlag,
    best_subsets_rows_deleted,
    prediction_ranges,
    solve,
    solve_sizes,
    worst,
)
from .bounds import squared_error_bounds
from .budget import Budget, Pace, Share

Support = NDArray[np.intp]
CHAIN = 8  # folds solved in a row, each started from the one before
FOLDS_PER_TREE = 512  # deleted rows that share a tree: their state stays in cache


@dataclass
class FoldOutcome:
    """Held-out squared error of every τ and fold, shape (τ, k), and where it came from.

    ``error`` belongs to the incumbents; the sum over an optimal support's held-out rows lies in
    [``lower``, ``upper``], and where ``exact`` they agree.
    """

    error: Array
    lower: Array
    upper: Array
    exact: NDArray[np.bool_]
    supports: list[Support]
    choice: NDArray[np.intp]
    n_mio: int
    n_nodes: int
    mio_by_tau: NDArray[np.intp]
    status: Status


Tell = Callable[[int], None]
Item = TypeVar("Item")


class _Gatherer:
    """Collects fold results into one outcome, each distinct support stored once."""

    def __init__(self, n_taus: int, k: int) -> None:
        shape = (n_taus, k)
        self.outcome = FoldOutcome(
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape),
            np.ones(shape, dtype=bool),
            [],
            np.zeros(shape, dtype=np.intp),
            0,
            0,
            np.zeros(n_taus, dtype=np.intp),
            Status.OPTIMAL,
        )
        self._seen: dict[bytes, int] = {}

    def support(self, support: Support) -> int:
        key = support.tobytes()
        if key not in self._seen:
            self._seen[key] = len(self.outcome.supports)
            self.outcome.supports.append(support)
        return self._seen[key]


@dataclass
class _FoldResult:
    """One fold, all τ."""

    fold: int
    supports: Sequence[Support]
    error: Array
    lower: Array
    upper: Array
    exact: NDArray[np.bool_]
    searched: NDArray[np.bool_]  # sizes for which something was branched on
    status: Status
    n_nodes: int
    n_trees: int


def _held_out(
    data: FoldData,
    j: int,
    problem: SparseRidgeProblem,
    taus: NDArray[np.intp],
    supports: Sequence[Support],
    proved: NDArray[np.bool_],
    open_nodes: Sequence[OpenNode],
    status: Status,
    n_nodes: int,
    n_trees: int = 1,
    settled: NDArray[np.bool_] | None = None,
) -> _FoldResult:
    """Held-out errors at the incumbents, and Corollary 2's interval where nodes are open."""
    H, t = data.held_out(j)
    fits = [problem.fit(support) for support in supports]
    predicted = np.array([H[:, s] @ fit.coef for s, fit in zip(supports, fits, strict=True)])
    error = np.sum((t - predicted) ** 2, axis=1)
    lower, upper = error.copy(), error.copy()
    left = np.flatnonzero(~proved)
    if left.size:
        reached = np.array([fits[int(s)].objective for s in left])
        low, high = prediction_ranges(problem, open_nodes, H, taus[left], predicted[left], reached)
        least, most = squared_error_bounds(low - t, high - t)
        lower[left], upper[left] = least.sum(axis=1), most.sum(axis=1)
    searched = np.full(taus.size, n_trees > 0)
    if settled is not None:
        searched &= ~settled
    return _FoldResult(j, supports, error, lower, upper, proved, searched, status, n_nodes, n_trees)


def out_of_time(
    data: FoldData,
    j: int,
    problem: SparseRidgeProblem,
    taus: NDArray[np.intp],
    supports: Sequence[Support],
) -> _FoldResult:
    """Bracket a fold around supports found elsewhere, without any search."""
    root = OpenNode(np.empty(0, dtype=np.intp), np.arange(data.p, dtype=np.intp), -1)
    proved = np.zeros(taus.size, dtype=bool)
    return _held_out(data, j, problem, taus, supports, proved, [root], Status.TIME_LIMIT, 0, 0)


def solve_folds(
    which: Iterable[int],
    *,
    data: FoldData,
    gamma: float,
    taus: NDArray[np.intp],
    starts: Sequence[Support],
    share: Share,
    stop: StopFlag,
    tell: Tell,
    n_jobs: int | None,
    certificates: Mapping[int, Certificate] | None = None,
) -> FoldOutcome:
    """One all-sizes tree per fold, each started from its neighbour's supports.

    Beyond 45 columns a branch-and-bound tree per τ, or the leaves of the full data's.
    """
    folds = list(which)
    pace = Pace(share, len(folds), effective_n_jobs(n_jobs))
    done = 0

    def one(j: int, warm: Sequence[Support]) -> _FoldResult:
        nonlocal done
        started = time.perf_counter()
        problem = data.training(j).replace(gamma=gamma)
        limit, searching = pace.allowance(), 0.0
        if limit == 0.0:
            result = out_of_time(data, j, problem, taus, warm)
        else:
            found: BestSubsets = solve_sizes(
                problem,
                sizes=taus,
                warm_starts=warm,
                time_limit=limit,
                stop=stop,
                certificates=certificates,
            )
            searching = found.seconds
            result = _held_out(
                data,
                j,
                problem,
                taus,
                found.supports,
                found.proved,
                found.open_nodes,
                found.status,
                found.n_nodes,
                found.n_trees,
                found.settled,
            )
        pace.finished(time.perf_counter() - started, searching)
        done += 1
        tell(done)
        return result

    def chain(block: Sequence[int]) -> list[_FoldResult]:
        warm: Sequence[Support] = starts
        results = []
        for j in block:
            if stop.is_set():
                break
            results.append(one(j, warm))
            warm = results[-1].supports
        return results

    blocks = [folds[i : i + CHAIN] for i in range(0, len(folds), CHAIN)]
    gatherer = _Gatherer(taus.size, data.folds.k)
    for result in in_parallel(chain, blocks, n_jobs):
        _enter(gatherer, result)
    return gatherer.outcome


def solve_fold_grid(
    *,
    data: FoldData,
    gamma: float,
    taus: NDArray[np.intp],
    starts: Sequence[Support],
    share: Share,
    stop: StopFlag,
    tell: Tell,
    n_jobs: int | None,
    backend: str,
) -> FoldOutcome:
    """Every (fold, τ) on its own: the main paper's Grid, k·|τ| training problems."""
    k = data.folds.k
    pace = Pace(share, k, effective_n_jobs(n_jobs))
    done = 0
    everything = [OpenNode(np.empty(0, dtype=np.intp), np.arange(data.p, dtype=np.intp), -1)]

    def one(block: Sequence[int]) -> list[_FoldResult]:
        nonlocal done
        (j,) = block
        started = time.perf_counter()
        base = data.training(j).replace(gamma=gamma)
        fold, searching = Budget(pace.allowance()), 0.0
        parts = []
        for s, tau in enumerate(taus):
            if stop.is_set():
                return []
            limit = fold.share(taus.size - s)
            if limit == 0.0:
                parts.append(out_of_time(data, j, base, taus[s:], starts[s:]))
                break
            solution = solve(
                base.replace(tau=int(tau)),
                backend=backend,
                tol=0.0,
                time_limit=limit,
                stop=stop,
            )
            searching += solution.seconds
            parts.append(
                _held_out(
                    data,
                    j,
                    base,
                    taus[s : s + 1],
                    [solution.support],
                    np.array([solution.status is Status.OPTIMAL]),
                    everything,
                    solution.status,
                    solution.n_nodes,
                )
            )
        pace.finished(time.perf_counter() - started, searching)
        done += 1
        tell(done)
        return [_stack(parts)]

    gatherer = _Gatherer(taus.size, k)
    for result in in_parallel(one, [[j] for j in range(k)], n_jobs):
        _enter(gatherer, result)
    return gatherer.outcome


def solve_rows_deleted(
    *,
    data: RowFolds,
    gamma: float,
    taus: NDArray[np.intp],
    starts: Sequence[Support],
    share: Share,
    stop: StopFlag,
    tell: Tell,
    n_jobs: int | None,
) -> FoldOutcome:
    """Leave-one-out by shared trees; rows too influential for a down-date get their own."""
    problem = data.full().replace(gamma=gamma)
    rows, targets, weight = data.deleted_rows()
    n = targets.size
    blocks = [list(range(i, min(i + FOLDS_PER_TREE, n))) for i in range(0, n, FOLDS_PER_TREE)]
    jobs = effective_n_jobs(n_jobs)
    gatherer = _Gatherer(taus.size, n)
    outcome = gatherer.outcome
    done = 0
    skipped: list[int] = []

    def one(block: Sequence[int]) -> list[tuple[Sequence[int], DeletedRowSubsets]]:
        nonlocal done
        found = best_subsets_rows_deleted(
            problem,
            rows[block],
            targets[block],
            sizes=taus,
            warm_starts=starts,
            time_limit=share((n - done) / len(block) / jobs),
            stop=stop,
        )
        done += len(block)
        tell(done)
        return [(block, found)]

    for block, found in in_parallel(one, blocks, n_jobs):
        here = slice(block[0], block[-1] + 1)
        outcome.error[:, here] = (weight * found.residual) ** 2
        lower, upper = squared_error_bounds(weight * found.low, weight * found.high)
        outcome.lower[:, here], outcome.upper[:, here] = lower, upper
        outcome.exact[:, here] = found.low == found.high
        index = np.array([gatherer.support(s) for s in found.supports], dtype=np.intp)
        outcome.choice[:, here] = index[found.choice]
        skipped.extend(block[i] for i in found.skipped)
        outcome.n_mio += found.skipped.size < len(block)
        outcome.n_nodes += found.n_nodes
        outcome.status = worst([outcome.status, found.status])
    outcome.mio_by_tau[:] = outcome.n_mio  # the trees serve every τ
    if skipped and not stop.is_set():
        rest = solve_folds(
            sorted(skipped),
            data=data,
            gamma=gamma,
            taus=taus,
            starts=starts,
            share=share,
            stop=stop,
            tell=lambda extra: tell(n - len(skipped) + extra),
            n_jobs=n_jobs,
        )
        for j in skipped:
            for name in ("error", "lower", "upper", "exact"):
                getattr(outcome, name)[:, j] = getattr(rest, name)[:, j]
            outcome.choice[:, j] = [gatherer.support(rest.supports[c]) for c in rest.choice[:, j]]
        outcome.n_mio += rest.n_mio
        outcome.n_nodes += rest.n_nodes
        outcome.status = worst([outcome.status, rest.status])
        outcome.mio_by_tau += rest.mio_by_tau
    return outcome


def in_parallel(
    task: Callable[[Sequence[int]], list[Item]],
    blocks: Sequence[Sequence[int]],
    n_jobs: int | None,
) -> Iterator[Item]:
    """Run ``task`` on every block and yield its results in order; threads, kernels hold no GIL."""
    if effective_n_jobs(n_jobs) == 1 or len(blocks) == 1:
        for block in blocks:
            yield from task(block)
        return
    for results in Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(task)(b) for b in blocks):
        yield from results


def _stack(parts: Sequence[_FoldResult]) -> _FoldResult:
    return _FoldResult(
        parts[0].fold,
        [support for p in parts for support in p.supports],
        np.concatenate([p.error for p in parts]),
        np.concatenate([p.lower for p in parts]),
        np.concatenate([p.upper for p in parts]),
        np.concatenate([p.exact for p in parts]),
        np.concatenate([p.searched for p in parts]),
        worst(p.status for p in parts),
        sum(p.n_nodes for p in parts),
        sum(p.n_trees for p in parts),
    )


def _enter(gatherer: _Gatherer, result: _FoldResult) -> None:
    outcome, j = gatherer.outcome, result.fold
    outcome.error[:, j], outcome.lower[:, j] = result.error, result.lower
    outcome.upper[:, j], outcome.exact[:, j] = result.upper, result.exact
    outcome.choice[:, j] = [gatherer.support(s) for s in result.supports]
    outcome.n_nodes += result.n_nodes
    outcome.n_mio += result.n_trees
    outcome.status = worst([outcome.status, result.status])
    outcome.mio_by_tau += result.searched
