"""Every fold and τ a problem of its own: the main paper's Grid, k·|τ| training problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.api import solve
from ..solvers.core.limits import Limits
from ..solvers.core.result import Solution, Status
from ..solvers.executor import run_units
from ..solvers.supports.rounding import pad_support
from .ledger import Page


def solve_fold(
    data: FoldData, j: int, gamma: float, taus: NDArray[np.intp], backend: str, limits: Limits
) -> list[Solution]:
    """Solve one fold at every τ, as far as the limits allow.

    Returns: One per τ, fewer where a limit was reached.
    """
    base = data.training(j).replace(gamma=gamma)
    solved: list[Solution] = []
    for s, tau in enumerate(taus):
        if limits.reached(0) is not None:
            break
        solved.append(
            solve(
                base.replace(tau=int(tau)),
                backend=backend,
                tol=0.0,
                time_limit=limits.share(taus.size - s).remaining(),
                stop=limits.stop,
            )
        )
    return solved


def solve_grid(
    page: Page,
    backend: str,
    limits: Limits,
    n_jobs: int | None,
    tell: Callable[[str, int, int], None],
) -> None:
    """Solve every fold at every τ alone, as far as the limits allow.

    page: With an answer of every fold, which stays where the time is up.
    """
    data, taus = page.data, page.taus
    k, clock = data.folds.k, Limits()
    tasks = [(j, page.gamma, taus, backend) for j in range(k)]
    tell(f"γ = {page.gamma:.4g}, folds", 0, k)
    for done, (j, solved) in enumerate(
        run_units(solve_fold, data, tasks, n_jobs, allot=limits.share)
    ):
        here = np.array([j])
        for t, tau in enumerate(taus):
            if t >= len(solved):
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
        tell(f"γ = {page.gamma:.4g}, folds", done + 1, k)
        if limits.reached(0) is Status.INTERRUPTED:
            raise KeyboardInterrupt
    page.seconds += clock.elapsed()
