"""Outer approximation with SCIP: every round is a search of a new model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core.result import Status
from ..kernels.linalg import Array
from .optional_dependencies import quiet_stderr, required
from .oracle import Claim, Oracle, in_rounds

# SCIP is asked for this feasibility of rows and duals, in units of the first incumbent's objective.
# With smaller values SCIP has stalled.
TOLERANCE = 1e-8


def solve_scip(oracle: Oracle) -> Claim:
    """Search masters in rounds.

    Raises SolverUnavailable: pyscipopt is missing.
    """
    return in_rounds(oracle, partial(_searched, oracle), TOLERANCE)


def _searched(
    oracle: Oracle, target: float, nodes: int
) -> tuple[float, int, Status | None, Array | None]:
    """Search a master once, as :func:`in_rounds` asks for it."""
    scip, limits = required("pyscipopt"), oracle.limits
    model = scip.Model()
    model.hideOutput()
    z = [model.addVar(vtype="B") for _ in range(oracle.form.p)]
    eta = model.addVar(lb=0.0, ub=target, obj=1.0)
    model.addCons(scip.quicksum(z) == oracle.form.tau)
    for slopes, constant in zip(*oracle.rows(), strict=True):
        row = scip.quicksum(slope * one for slope, one in zip(slopes.tolist(), z, strict=True))
        model.addCons(eta + row >= constant)
    model.includeEventhdlr(_interrupter(scip, oracle), "limits", "ends the search")
    values = {"limits/time": limits.remaining(), "misc/catchctrlc": False}
    values["limits/nodes"] = limits.nodes_left(nodes, 2**31 - 1)
    values |= dict.fromkeys(("numerics/feastol", "numerics/dualfeastol"), TOLERANCE)
    model.setHeuristics(scip.SCIP_PARAMSETTING.OFF)  # They cost more time here than they save.
    model.setParams({name: value for name, value in values.items() if value is not None})
    try:
        with quiet_stderr():
            model.optimize()
    except Exception:  # PySCIPOpt raises anything where SCIP gives up.
        return 0.0, 0, Status.FAILED, None
    spent, ended = int(model.getNTotalNodes()), model.getStatus()
    if ended == "infeasible":
        return target, spent, None, None
    found = np.array([model.getVal(one) for one in z]) if model.getNSols() > 0 else None
    # Without a bound so far SCIP gives −1e20, which is below any other bound.
    bound = min(float(model.getDualbound()), target)
    if ended == "optimal":
        return bound, spent, None, found
    full = Status.NODE_LIMIT if ended in ("nodelimit", "totalnodelimit") else Status.FAILED
    return bound, spent, limits.reached(nodes + spent) or full, found


def _interrupter(scip: Any, oracle: Oracle) -> Any:
    """Ends the search where a limit is reached; the base class of its class comes with SCIP."""

    class Interrupter(scip.Eventhdlr):  # type: ignore[misc]
        def eventinit(self) -> None:
            self.model.catchEvent(scip.SCIP_EVENTTYPE.NODESOLVED, self)

        def eventexec(self, event: Any) -> None:
            if oracle.limits.reached(0) is not None:
                self.model.interruptSolve()

    return Interrupter()
