"""Outer approximation with SCIP: one tree, cuts added by a constraint handler."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ..core.result import Status
from .cuts import Cut
from .optional_dependencies import quiet_stderr, required
from .oracle import Claim, Oracle

# SCIP is asked for this feasibility of rows and duals, in units of the first incumbent's objective.
# With smaller values SCIP has stalled.
TOLERANCE = 1e-8
# A cut is added if a point lies below the cut by more than this. The value must stay above the
# tolerance of rows, or the same cut would be added for ever.
LEAST_VIOLATION = 1e-7


def solve_scip(oracle: Oracle) -> Claim:
    """Search the master once; every support that SCIP finds is cut at there and then.

    Raises SolverUnavailable: pyscipopt is missing.
    """
    scip, limits = required("pyscipopt"), oracle.limits
    model = scip.Model()
    model.hideOutput()
    z = [model.addVar(vtype="B") for _ in range(oracle.form.p)]
    eta = model.addVar(lb=0.0, obj=1.0)
    model.addCons(scip.quicksum(z) == oracle.form.tau)

    def add(constant: float, slopes: Any) -> None:
        row = scip.quicksum(float(slope) * one for slope, one in zip(slopes, z, strict=True))
        model.addCons(eta + row >= constant)

    for slopes, constant in zip(*oracle.rows(), strict=True):
        add(constant, slopes)
    late = {"enfopriority": -10, "chckpriority": -10}  # SCIP checks integrality before.
    handler = _handler(scip, oracle, z, eta, add)
    model.includeConshdlr(handler, "cuts", "eta above f(z)", needscons=False, **late)
    start = model.createSol()
    for variable, value in zip([*z, eta], [*oracle.start(), 1.0], strict=True):
        model.setSolVal(start, variable, value)
    model.addSol(start)
    values = {"limits/time": limits.remaining(), "limits/nodes": limits.node_limit}
    values |= {"limits/gap": oracle.gap(oracle.lost()), "misc/catchctrlc": False}
    values |= dict.fromkeys(("numerics/feastol", "numerics/dualfeastol"), TOLERANCE)
    model.setParams({name: value for name, value in values.items() if value is not None})
    try:
        with quiet_stderr():
            model.optimize()
    except Exception:  # PySCIPOpt raises anything where SCIP gives up.
        return Claim(oracle.bound, Status.FAILED)
    ended = {
        "optimal": Status.OPTIMAL,
        "gaplimit": Status.OPTIMAL,
        "timelimit": Status.TIME_LIMIT,
        "nodelimit": Status.NODE_LIMIT,
        "totalnodelimit": Status.NODE_LIMIT,
    }
    status = ended.get(model.getStatus()) or limits.reached(0) or Status.FAILED
    # Without a bound so far SCIP gives −1e20, which is below any other bound.
    bound, n_nodes = float(model.getDualbound()), int(model.getNTotalNodes())
    return oracle.claim(bound, n_nodes, status, oracle.lost(TOLERANCE))


def _handler(
    scip: Any, oracle: Oracle, z: list[Any], eta: Any, add: Callable[[float, Any], None]
) -> Any:
    """The constraint handler; its class is made here because the base class comes with SCIP.

    add: Adds a cut to the model.
    """
    results, added = scip.SCIP_RESULT, set[bytes]()

    class Benders(scip.Conshdlr):  # type: ignore[misc]
        def _violated(self, solution: Any) -> Cut | None:
            """The cut that a solution lies below, if any."""
            values = np.array([self.model.getSolVal(solution, one) for one in z])
            cut = oracle.at(values)
            above = self.model.getSolVal(solution, eta) - cut.at(np.round(values))
            return cut if above < -LEAST_VIOLATION else None

        def consenfolp(self, *_: Any) -> dict[str, Any]:
            if oracle.limits.reached(0) is not None:
                self.model.interruptSolve()
            cut = self._violated(None)
            if cut is None:
                return {"result": results.FEASIBLE}
            key = cut.slopes.tobytes()
            if key in added:  # No row binds a pseudo solution: SCIP has to branch.
                return {"result": results.INFEASIBLE}
            added.add(key)
            add(*cut)
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
