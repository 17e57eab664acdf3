"""This module adds three back ends by Gurobi, which ``paper/backends.py`` compares with others.

Importing the module registers the back ends. The three models of a problem use perspective cones,
big-M constraints and indicator constraints. The models are written for Gurobi directly, which saves
the time that cvxpy would take. Gurobi's free licence allows at most 200 variables here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sparsecv.solvers import Answer, SparseRidgeProblem, register_backend
from sparsecv.solvers.backends.conic import (
    BOUND_LOSS_RATIO,
    FEASIBILITY_TOLERANCE,
    Scaled,
    conic_claim,
)
from sparsecv.solvers.backends.gurobi import gurobi_model, gurobi_search
from sparsecv.solvers.backends.oracle import Claim, Oracle, prove

FORMS = ("perspective", "big-m", "indicator")


def solve_model(problem: SparseRidgeProblem, form: str, **options: Any) -> Answer:
    """Solve eq. (1), main paper, by Gurobi's own branch-and-bound.

    form: "perspective": min βᵀQβ − 2bᵀβ + wᵀs, β_i² ≤ s_i z_i, with the diagonal D moved into w.
        "big-m": |β_i| ≤ M_i z_i, M from the ellipsoid of Theorem 1. "indicator": z_i = 0 ⇒ β_i = 0.
    The options are those of a back end; no relative gap below 1e-5 is proved.
    """
    return prove(partial(_claim, form), problem, **options)


def _claim(form: str, oracle: Oracle) -> Claim:
    scaled = Scaled.of(oracle)
    with gurobi_model() as (gp, model):
        z = _write(gp, model, form, oracle.form.tau, scaled)
        z.Start = oracle.start()
        # The objective leaves yᵀy out, which the gap must be relative to.
        model.Params.MIPGap = 0.0
        model.Params.MIPGapAbs = oracle.gap(BOUND_LOSS_RATIO)
        for name in ("FeasibilityTol", "IntFeasTol"):
            model.setParam(name, FEASIBILITY_TOLERANCE)
        bound, nodes, status = gurobi_search(gp, model, oracle, lambda model: None)
        found = np.asarray(z.X) if model.SolCount > 0 else None
    return conic_claim(oracle, bound + scaled.constant, nodes, status, found)


def _write(gp: Any, model: Any, form: str, tau: int, scaled: Scaled) -> Any:
    """Write variables, objective and constraints of one of ``FORMS``; return the binary z."""
    p, bounds, w = scaled.w.size, scaled.bounds, scaled.w
    u = model.addMVar(p, lb=-bounds, ub=bounds)
    z = model.addMVar(p, vtype=gp.GRB.BINARY)
    model.addConstr(z.sum() <= tau)
    linear = -2.0 * (scaled.b @ u)
    if form == "perspective":
        s = model.addMVar(p)
        for i in range(p):
            model.addConstr(u[i] * u[i] <= s[i] * z[i])
        model.setObjective(u @ scaled.Q @ u + linear + w @ s)
    else:
        ridge = scaled.Q + np.diag(w)
        model.setObjective(u @ ridge @ u + linear)
    if form == "indicator":
        for i in range(p):
            model.addGenConstrIndicator(z[i].item(), False, u[i].item() == 0.0)
    else:
        model.addConstr(u <= bounds * z)
        model.addConstr(u >= -bounds * z)
    return z


for _form in FORMS:
    register_backend(f"gurobi-{_form}", partial(solve_model, form=_form))
