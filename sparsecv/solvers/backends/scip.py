"""Outer approximation with SCIP: one tree, cuts added by a constraint handler."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ..core.limits import Limits
from ..core.result import Status
from .benders import MasterResult, Oracle
from .cuts import Cut
from .optional_dependencies import quiet_stderr, required


class ScipSettings(NamedTuple):
    """Tolerances of SCIP's master, where the objective is in units of the incumbent's."""

    # SCIP is asked for this feasibility of rows and duals. With smaller values SCIP has stalled.
    tolerance: float = 1e-8
    # A cut is added if a point lies below the cut by more than this. The value must stay above the
    # tolerance of rows, or the same cut would be added for ever; twice the value makes the best
    # supports that SCIP accepts worse by as much.
    least_violation: float = 1e-7


SETTINGS = ScipSettings()


def solve_scip(oracle: Oracle, limits: Limits, n_jobs: int) -> MasterResult:
    """Search the master once; every support that SCIP finds is cut at there and then.

    limits: Nodes are SCIP's.
    n_jobs: Not used: SCIP's tree has one thread.
    Raises SolverUnavailable: pyscipopt is missing.
    """
    scip = required("pyscipopt")
    form, scale = oracle.form, oracle.scale
    model = scip.Model()
    model.hideOutput()
    z = [model.addVar(vtype="B") for _ in range(form.p)]
    eta = model.addVar(lb=0.0, obj=1.0)
    model.addCons(scip.quicksum(z) == form.tau)

    def add(cut: Cut) -> None:
        row = scip.quicksum(float(s) * v for s, v in zip(cut.slopes / scale, z, strict=True))
        model.addCons(eta + row >= cut.constant / scale)

    for cut in oracle.cuts():
        add(cut)
    handler = _handler(scip, oracle, z, eta, limits, add)
    late = {"enfopriority": -10, "chckpriority": -10}  # SCIP checks integrality before.
    model.includeConshdlr(handler, "cuts", "eta above f(z)", needscons=False, **late)
    start = model.createSol()
    for variable, value in zip(z, np.isin(np.arange(form.p), oracle.support), strict=True):
        model.setSolVal(start, variable, float(value))
    model.setSolVal(start, eta, 1.0)
    model.addSol(start)
    values = {"limits/time": limits.remaining(), "limits/nodes": limits.node_limit}
    values |= {"limits/gap": oracle.tol, "misc/catchctrlc": False}
    values |= dict.fromkeys(("numerics/feastol", "numerics/dualfeastol"), SETTINGS.tolerance)
    model.setParams({name: value for name, value in values.items() if value is not None})
    try:
        with quiet_stderr():
            model.optimize()
    except Exception:  # PySCIPOpt raises anything where SCIP gives up.
        return MasterResult(oracle.bound, 0, Status.FAILED)
    bound, nodes, status = claims_of(model, limits)
    return MasterResult(oracle.certified(bound * scale, SETTINGS.tolerance), nodes, status)


def claims_of(model: Any, limits: Limits) -> tuple[float, int, Status]:
    """Bound, nodes and end of a model's search; the bound is −∞ where SCIP had none yet."""
    bound = float(model.getDualbound())
    status = {
        "optimal": Status.OPTIMAL,
        "gaplimit": Status.OPTIMAL,
        "timelimit": Status.TIME_LIMIT,
        "nodelimit": Status.NODE_LIMIT,
        "totalnodelimit": Status.NODE_LIMIT,
        "userinterrupt": limits.reached(0) or Status.INTERRUPTED,
    }.get(model.getStatus(), Status.FAILED)
    return (bound if abs(bound) < 1e19 else -np.inf), int(model.getNTotalNodes()), status


def _handler(scip: Any, oracle: Oracle, z: list[Any], eta: Any, limits: Limits, add: Any) -> Any:
    """The constraint handler; its class is made here because the base class comes with SCIP.

    add: Adds a cut to the model.
    """
    results, added = scip.SCIP_RESULT, set[bytes]()

    class Benders(scip.Conshdlr):  # type: ignore[misc]
        def _violated(self, solution: Any) -> Cut | None:
            """The cut that a solution lies below, if any."""
            values = np.array([self.model.getSolVal(solution, v) for v in z])
            cut = oracle.at_point(values)
            above = self.model.getSolVal(solution, eta) - cut.at(np.round(values)) / oracle.scale
            return cut if above < -SETTINGS.least_violation else None

        def consenfolp(self, *_: Any) -> dict[str, Any]:
            if limits.reached(0) is not None:
                self.model.interruptSolve()
            cut = self._violated(None)
            if cut is None:
                return {"result": results.FEASIBLE}
            key = cut.slopes.tobytes()
            if key in added:  # No row binds a pseudo solution: SCIP has to branch.
                return {"result": results.INFEASIBLE}
            added.add(key)
            add(cut)
            return {"result": results.CONSADDED}

        consenfops = consenfolp

        def conscheck(self, constraints: Any, solution: Any, *_: Any) -> dict[str, Any]:
            fits = self._violated(solution) is None
            return {"result": results.FEASIBLE if fits else results.INFEASIBLE}

        def conslock(self, constraint: Any, locktype: Any, n_up: int, n_down: int) -> None:
            # A smaller z_i or η may violate a cut, a larger value never does.
            with suppress(ReferenceError):  # PySCIPOpt 5.6 unlocks after deleting the model.
                for variable in (*z, eta):
                    self.model.addVarLocksType(variable, locktype, n_up, n_down)

    return Benders()
