"""Outside solvers behind the door of ``solve``: outer approximation, conic, Gurobi's models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..core.limits import Limits, StopFlag
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof
from .benders import Master, outer_approximation
from .conic import PACKAGES, solve_conic
from .gurobi import solve_gurobi
from .gurobi_models import solve_gurobi_model
from .highs import solve_highs
from .optional_dependencies import SCIP, missing, no_mosek_licence
from .scip import solve_scip

MASTERS: dict[str, tuple[Master, tuple[str, ...]]] = {
    "highs": (solve_highs, ("highspy",)),
    "gurobi": (solve_gurobi, ("gurobipy",)),
    "scip": (solve_scip, (SCIP,)),
}
CONIC = {"mosek": "MOSEK", "gurobi-conic": "GUROBI", "scip-conic": "SCIP"}
MODELS = {f"gurobi-{form}": form for form in ("perspective", "big-m", "indicator")}
Solver = Callable[..., Proof]


def outside_backends() -> dict[str, Solver]:
    """Every outside solver by its name, installed or not."""
    found: dict[str, Solver] = {}
    for name, (master, _) in MASTERS.items():
        found[name] = partial(_outside, partial(outer_approximation, master=master))
    for name, solver in CONIC.items():
        found[name] = partial(_outside, partial(solve_conic, solver=solver))
    for name, form in MODELS.items():
        found[name] = partial(_outside, partial(solve_gurobi_model, form=form))
    return found


@lru_cache
def lacking(name: str) -> str | None:
    """What an outside solver lacks here, in one line; None where it can run."""
    if name in MASTERS:
        return missing(*MASTERS[name][1])
    if name in MODELS:
        return missing("gurobipy")
    if name not in CONIC:
        return None
    return missing(*PACKAGES[CONIC[name]]) or (_mosek_licence() if name == "mosek" else None)


def _mosek_licence() -> str | None:
    import mosek

    try:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except mosek.Error as error:
        return no_mosek_licence(" ".join(str(error).split()) or str(error.errno))
    return None


def _outside(
    run: Solver,
    problem: SparseRidgeProblem,
    *,
    time_limit: float | None,
    node_limit: int | None,
    tol: float,
    warm_starts: Sequence[NDArray[np.intp]],
    stop: StopFlag | None,
    n_jobs: int | None,
) -> Proof:
    return run(
        problem,
        warm_starts=warm_starts,
        tol=tol,
        limits=Limits(time_limit, node_limit, stop),
        n_jobs=1 if n_jobs is None else effective_n_jobs(n_jobs),
    )
