"""Other solvers as back ends: how each is run, and which packages it needs.

The package registers HiGHS, Gurobi and MOSEK with :mod:`sparsecv.solvers.api`. Without it every
problem is solved by the native searches, and no other program confirms what they prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from ...errors import SolverUnavailable
from ..api import register_backend
from .conic import claimed
from .gurobi import solve_gurobi
from .highs import solve_highs
from .optional_dependencies import missing, mosek_guarded
from .oracle import Solver, outer_approximation, prove

RUNS: dict[str, tuple[Solver, Sequence[str]]] = {
    "highs": (partial(outer_approximation, solve_highs), ["highspy"]),
    "gurobi": (partial(outer_approximation, solve_gurobi), ["gurobipy"]),
    "mosek": (claimed, ["cvxpy", "mosek"]),
}


@lru_cache
def lacking(name: str) -> str | None:
    """What a solver of RUNS lacks here, in one line; None where it can run."""
    return missing(*RUNS[name][1]) or (_mosek_licence() if name == "mosek" else None)


def _mosek_licence() -> str | None:
    """What MOSEK says where it has no licence."""
    import mosek

    try:
        with mosek_guarded(), mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except (SolverUnavailable, mosek.Error) as error:
        return str(error)
    return None


for _name, (_run, _) in RUNS.items():
    register_backend(_name, partial(prove, _run), partial(lacking, _name))
