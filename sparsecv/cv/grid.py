"""Every fold and τ a problem of its own: the first paper's Grid, k·|τ| training problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.api import best_support
from ..solvers.core.limits import Limits
from ..solvers.core.result import Proof, Status
from ..solvers.paths import support_path
from .batch import Batch
from .ledger import Ledger
from .progress import Report
from .settings import Settings


def solve_fold(
    data: FoldData, j: int, gamma: float, taus: NDArray[np.intp], backend: str, limits: Limits
) -> list[Proof]:
    """Solve the training problem of fold j at every τ, each in an even share of the time left.

    Returns: A proof for every τ, in order; fewer where a limit was reached.
    """
    base = data.training(j).replace(gamma=gamma)
    solved: list[Proof] = []
    for s, tau in enumerate(taus):
        if limits.reached(0) is not None:
            break
        left = limits.share(taus.size - s).remaining()
        problem = base.replace(tau=int(tau))
        limited: dict[str, Any] = {"time_limit": left, "stop": limits.stop}
        solved.append(best_support(problem, backend=backend, tol=0.0, **limited))
    return solved


def solve_grid(
    ledger: Ledger, g: int, settings: Settings, limits: Limits, report: Report
) -> Iterator[Batch]:
    """Solve the problem of all rows by one tree, and every fold at every τ alone.

    Problems that the time limit leaves unsolved keep their estimates.
    """
    data, taus, k, gamma = ledger.data, ledger.taus, ledger.k, ledger.gammas[g]
    whole = support_path(data.full(), [gamma], taus, limits=limits.share(k + 1.0))
    ledger.take_path(g, k, whole, 0)

    def enter(j: int, solved: list[Proof]) -> None:
        if len(solved) < taus.size:
            ledger.note_limit(g, limits.reached(0) or Status.TIME_LIMIT)
        for t, solution in enumerate(solved):
            ledger.take_proof((g, t, j), solution)
            ledger.searched[g, t, j] = True
            ledger.n_mio[g] += 1
            ledger.note_limit(g, solution.status)
        ledger.bracket(g, j)

    tasks = [(j, gamma, taus, settings.backend) for j in range(k)]

    def report_done(done: int) -> None:
        report(f"γ = {gamma:.4g}, folds", done, k)

    yield Batch([g], solve_fold, data, tasks, enter, limits.share, report_done)
