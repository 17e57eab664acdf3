"""This module adds three back ends by Gurobi, which ``paper/backends.py`` compares with others.

Importing the module registers the back ends. The three models of a problem use perspective cones,
big-M constraints and indicator constraints. The models are written for Gurobi directly, which saves
the time that cvxpy would take. Gurobi's free licence allows at most 200 variables here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sparsecv.solvers import Proof, SparseRidgeProblem, register_backend
from sparsecv.solvers.backends import gurobi
from sparsecv.solvers.backends.conic import FEASIBILITY_TOLERANCE, Scaled, claim_of, least_gap
from sparsecv.solvers.backends.cuts import CutForm
from sparsecv.solvers.backends.presolve import Claim, Prepared, prove

FORMS = ("perspective", "big-m", "indicator")


def solve_model(problem: SparseRidgeProblem, form: str, **options: Any) -> Proof:
    """Solve eq. (1), main paper, by Gurobi's own branch-and-bound.

    form: "perspective": min βᵀQβ − 2bᵀβ + wᵀs, β_i² ≤ s_i z_i, with the diagonal D moved into w.
        "big-m": |β_i| ≤ M_i z_i, M from the ridge ellipsoid. "indicator": z_i = 0 ⇒ β_i = 0.
    The options are those of a back end; no relative gap below 1e-5 is proved.
    """
    return prove(partial(_claim, form), problem, **options)


def _claim(form: str, ready: Prepared, n_jobs: int) -> Claim:
    data, limits = ready.form, ready.limits
    scaled = Scaled.of(data, ready.objective)
    with gurobi.gurobi_model() as (gp, model):
        z = _write(gp, model, form, data, scaled)
        z.Start = np.isin(np.arange(data.p), ready.support).astype(float)
        gurobi.set_limits(model, limits, n_jobs)
        # The objective leaves yᵀy out, which the gap must be relative to.
        model.Params.MIPGap = 0.0
        model.Params.MIPGapAbs = least_gap(ready.tol)
        for name in ("FeasibilityTol", "IntFeasTol"):
            model.setParam(name, FEASIBILITY_TOLERANCE)

        def callback(model: Any, where: int) -> None:
            if limits.reached(0) is not None:
                model.terminate()

        model.optimize(callback)
        bound, nodes, status = gurobi.claims_of(gp, model, limits)
        found = np.asarray(z.X) if model.SolCount > 0 else None
    return claim_of(ready, (bound + scaled.constant) * scaled.scale, status, nodes, found)


def _write(gp: Any, model: Any, form: str, data: CutForm, scaled: Scaled) -> Any:
    """Write variables, objective and constraints of one of ``FORMS``; return the binary z."""
    p, bounds, w = data.p, scaled.bounds, scaled.w
    u = model.addMVar(p, lb=-bounds, ub=bounds)
    z = model.addMVar(p, vtype=gp.GRB.BINARY)
    model.addConstr(z.sum() <= data.tau)
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
