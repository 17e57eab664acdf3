"""Outer approximation with SCIP: one tree, cuts added by a constraint handler."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.result import Status
from .optional_dependencies import quiet_stderr, required
from .oracle import MasterResult, Oracle

TOLERANCE = 1e-8  # of rows and duals, the objective in units of the incumbent's; SCIP stalls below
VIOLATED = 1e-7  # in the same units; above the tolerance of rows, or a cut would be added for ever


def solve_scip(oracle: Oracle, limits: Limits, n_jobs: int) -> MasterResult:
    """Search the master once; every support it comes to is cut at there and then.

    limits: Nodes are SCIP's.
    n_jobs: Not used: SCIP's tree has one thread.
    Raises SolverUnavailable: No pyscipopt.
    """
    scip = required("pyscipopt")
    form, scale = oracle.form, oracle.upper
    model = scip.Model()
    model.hideOutput()
    z = [model.addVar(vtype="B") for _ in range(form.p)]
    eta = model.addVar(lb=0.0, obj=1.0)
    model.addCons(scip.quicksum(z) == form.picks)
    for cut in oracle.cuts():
        _add(scip, model, z, eta, cut.constant / scale, cut.slopes / scale)
    handler = _handler(scip)(oracle, z, eta, limits)
    model.includeConshdlr(
        handler,
        "outer-approximation",
        "eta above f(z)",
        enfopriority=-10,  # after integrality
        chckpriority=-10,
        needscons=False,
    )
    start = model.createSol()
    chosen = set(oracle.support.tolist())
    for i, variable in enumerate(z):
        model.setSolVal(start, variable, float(i in chosen))
    model.setSolVal(start, eta, 1.0)
    model.addSol(start)
    remaining = limits.remaining()
    model.setParams(
        {
            "limits/gap": oracle.tol,
            "numerics/feastol": TOLERANCE,
            "numerics/dualfeastol": TOLERANCE,
            "misc/catchctrlc": False,
            "limits/time": 1e20 if remaining is None else remaining,
            "limits/nodes": -1 if limits.node_limit is None else limits.node_limit,
        }
    )
    try:
        with quiet_stderr():
            model.optimize()
    except Exception:  # what PySCIPOpt raises where SCIP gives up
        return MasterResult(oracle.bound, 0, Status.FAILED)
    ended = {
        "optimal": Status.OPTIMAL,
        "gaplimit": Status.OPTIMAL,
        "timelimit": Status.TIME_LIMIT,
        "nodelimit": Status.NODE_LIMIT,
        "totalnodelimit": Status.NODE_LIMIT,
        "userinterrupt": limits.reached(0) or Status.INTERRUPTED,
    }.get(model.getStatus(), Status.FAILED)
    bound = float(model.getDualbound())
    found = oracle.certified(bound * scale if abs(bound) < 1e19 else 0.0, TOLERANCE)
    return MasterResult(found, int(model.getNTotalNodes()), ended)


def _add(
    scip: Any, model: Any, z: list[Any], eta: Any, constant: float, slopes: NDArray[np.float64]
) -> None:
    row = scip.quicksum(float(s) * v for s, v in zip(slopes, z, strict=True))
    model.addCons(eta + row >= constant)


def _handler(scip: Any) -> Any:
    """The class, made here because its base comes with SCIP."""

    class Benders(scip.Conshdlr):  # type: ignore[misc]
        def __init__(self, oracle: Oracle, z: list[Any], eta: Any, limits: Limits) -> None:
            self.oracle, self.z, self.eta, self.limits = oracle, z, eta, limits
            self.scale = oracle.upper
            self.added: set[bytes] = set()

        def _violated(self, solution: Any) -> Any:
            """The cut a solution lies below, if there is one."""
            model = self.model
            values = np.array([model.getSolVal(solution, v) for v in self.z])
            cut = self.oracle.at(np.flatnonzero(values > 0.5).astype(np.intp))
            room = model.getSolVal(solution, self.eta) - cut.at(np.round(values)) / self.scale
            return cut if room < -VIOLATED else None

        def _enforce(self) -> dict[str, Any]:
            if self.limits.reached(0) is not None:
                self.model.interruptSolve()
            cut = self._violated(None)
            if cut is None:
                return {"result": scip.SCIP_RESULT.FEASIBLE}
            key, scale = cut.slopes.tobytes(), self.scale
            if key in self.added:  # a pseudo solution, which no row binds: branch
                return {"result": scip.SCIP_RESULT.INFEASIBLE}
            self.added.add(key)
            _add(scip, self.model, self.z, self.eta, cut.constant / scale, cut.slopes / scale)
            return {"result": scip.SCIP_RESULT.CONSADDED}

        def consenfolp(self, constraints: Any, n_useful: int, infeasible: bool) -> dict[str, Any]:
            return self._enforce()

        def consenfops(
            self, constraints: Any, n_useful: int, infeasible: bool, objinfeasible: bool
        ) -> dict[str, Any]:
            return self._enforce()

        def conscheck(self, constraints: Any, solution: Any, *args: Any) -> dict[str, Any]:
            bad = self._violated(solution) is not None
            result = scip.SCIP_RESULT.INFEASIBLE if bad else scip.SCIP_RESULT.FEASIBLE
            return {"result": result}

        def conslock(self, constraint: Any, locktype: Any, n_up: int, n_down: int) -> None:
            # a smaller z or η may violate a cut, a larger one never does
            with suppress(ReferenceError):  # PySCIPOpt 5.6 unlocks when the model has gone
                for variable in (*self.z, self.eta):
                    self.model.addVarLocksType(variable, locktype, n_up, n_down)

    return Benders
