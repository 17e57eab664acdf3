"""The problem as Gurobi reads it best: perspective cones, big-M rows or indicator constraints.

Written directly, without the time cvxpy takes. The pip licence holds 200 variables here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof
from .conic import Scaled, concluded, least_gap
from .cuts import CutForm
from .gurobi import environment, guarded, progress_of, set_limits, status_of
from .optional_dependencies import required
from .presolve import prepare

FORMS = ("perspective", "big-m", "indicator")
TOLERANCE = 1e-8


def solve_gurobi_model(
    problem: SparseRidgeProblem,
    form: str,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    limits: Limits | None = None,
    n_jobs: int = 1,
) -> Proof:
    """Solve eq. (1), main paper, by Gurobi's own branch-and-bound.

    form: "perspective": min βᵀQβ − 2bᵀβ + wᵀs, β_i² ≤ s_i z_i, with the diagonal D moved into w.
        "big-m": |β_i| ≤ M_i z_i, M from the ridge ellipsoid. "indicator": z_i = 0 ⇒ β_i = 0.
    tol: Relative gap; no less than 1e-5 counts as proved.
    n_jobs: Threads.
    Raises ValueError: Unknown form.
    Raises SolverUnavailable: No gurobipy, or its licence is too small.
    """
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}; got {form!r}")
    gp = required("gurobipy")
    limits = limits or Limits()
    ready = prepare(problem, warm_starts, tol, limits)
    if ready.done is not None:
        return ready.done
    data = CutForm(problem, ready.columns, ready.gram)
    p, scaled = data.p, Scaled.of(data, ready.objective)
    with guarded(gp), gp.Model(env=environment(gp)) as model:
        z = _write(gp, model, form, data, scaled)
        start = np.zeros(p)
        start[ready.support] = 1.0
        z.Start = start
        set_limits(model, limits, n_jobs)
        # the objective leaves yᵀy out, which the gap must be relative to
        model.Params.MIPGap = 0.0
        model.Params.MIPGapAbs = least_gap(tol)
        for name in ("FeasibilityTol", "IntFeasTol"):
            model.setParam(name, TOLERANCE)

        def callback(model: object, where: int) -> None:
            if limits.reached(0) is not None:
                model.terminate()  # type: ignore[attr-defined]

        model.optimize(callback)
        (bound, nodes), status = progress_of(model), status_of(gp, model, limits)
        found = np.asarray(z.X) if model.SolCount > 0 else None
    bound = (bound + scaled.constant) * scaled.scale
    return concluded(ready, data, bound, status, nodes, found)


def _write(gp: Any, model: Any, form: str, data: CutForm, scaled: Scaled) -> Any:
    """Variables, objective and constraints of one of ``FORMS``; the binary variables."""
    p, bounds, w = data.p, scaled.bounds, scaled.w
    u = model.addMVar(p, lb=-bounds, ub=bounds)
    z = model.addMVar(p, vtype=gp.GRB.BINARY)
    model.addConstr(z.sum() <= data.picks)
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
