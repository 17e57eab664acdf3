"""Every fold and τ a problem of its own: the main paper's Grid, k·|τ| training problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from joblib import effective_n_jobs

from ..solvers import Limits, Solution, Status, pad_support, solve
from .estimate import in_parallel
from .ledger import Page


def solve_grid(
    page: Page,
    backend: str,
    limits: Limits,
    n_jobs: int | None,
    tell: Callable[[str, int, int], None],
) -> None:
    """Solve every fold at every τ alone, as far as the limits allow.

    Parameters
    ----------
    page : Page
        With the models of all rows, what is fallen back on where the time is up.
    backend : str
        As in :func:`sparsecv.solvers.solve`.
    limits : Limits
    n_jobs : int, optional
    tell : callable
    """
    data, taus = page.data, page.taus
    k, jobs = data.folds.k, effective_n_jobs(n_jobs)
    left, clock = k, Limits()

    def unit(j: int) -> tuple[int, list[Solution]]:
        base, fold = data.training(j).replace(gamma=page.gamma), limits.share(left / jobs)
        solved: list[Solution] = []
        for s, tau in enumerate(taus):
            if fold.reached(0) is not None:
                break
            share = fold.share(taus.size - s)
            solved.append(
                solve(
                    base.replace(tau=int(tau)),
                    backend=backend,
                    tol=0.0,
                    time_limit=share.remaining(),
                    stop=limits.stop,
                )
            )
        return j, solved

    tell(f"γ = {page.gamma:.4g}, folds", 0, k)
    for j, solved in in_parallel(unit, range(k), n_jobs):
        left -= 1
        here = np.array([j])
        for t, tau in enumerate(taus):
            if t >= len(solved):
                page.offer(t, here, page.models[t])
                page.met(limits.reached(0) or Status.TIME_LIMIT)
                continue
            page.offer(t, here, pad_support(solved[t].support, int(tau), data.p))
            page.searched[t, j] = True
            page.n_mio += 1
            page.n_nodes += solved[t].n_nodes
            page.met(solved[t].status)
            if solved[t].status is Status.OPTIMAL:
                page.prove(t, here)
        page.bracket(j)
        tell(f"γ = {page.gamma:.4g}, folds", k - left, k)
        if limits.reached(0) is Status.INTERRUPTED:
            raise KeyboardInterrupt
    page.seconds = clock.elapsed()
