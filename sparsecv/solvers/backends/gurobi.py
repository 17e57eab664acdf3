"""Outer approximation with Gurobi: one tree, cuts added in its callback."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..core.limits import Limits
from ..core.result import Status
from .cuts import Cut
from .optional_dependencies import SolverUnavailable, required
from .oracle import TOLERANCE, MasterResult, Oracle

FRACTIONAL = 200  # nodes at which fractional points are cut, too
VIOLATED = 1e-4  # relative, by a fractional point, to be worth a cut
_LOCAL = threading.local()


def solve_gurobi(
    oracle: Oracle, limits: Limits, n_jobs: int, *, fractional: int = FRACTIONAL
) -> MasterResult:
    """Search the master once; every support it comes to is cut at there and then.

    limits: Nodes are Gurobi's.
    n_jobs: Threads.
    fractional: Nodes whose fractional points are cut, too.
    Raises SolverUnavailable: No gurobipy, or no licence for a master of this size.
    """
    gp = required("gurobipy")
    with guarded(gp), gp.Model(env=environment(gp)) as model:
        return _solve(gp, model, oracle, limits, n_jobs, fractional)


def _solve(
    gp: Any, model: Any, oracle: Oracle, limits: Limits, n_jobs: int, fractional: int
) -> MasterResult:
    p, scale = oracle.form.p, oracle.upper
    z = model.addMVar(p, vtype=gp.GRB.BINARY)
    eta = model.addMVar(1, lb=0.0, obj=1.0)
    model.addConstr(z.sum() == oracle.form.picks)
    cuts = oracle.cuts()
    slopes = np.array([cut.slopes for cut in cuts]) / scale
    ones = np.ones((len(cuts), 1))
    model.addConstr(slopes @ z + ones @ eta >= np.array([cut.constant for cut in cuts]) / scale)
    start = np.zeros(p)
    start[oracle.support] = 1.0
    z.Start, eta.Start = start, 1.0
    set_limits(model, limits, n_jobs)
    model.Params.LazyConstraints = 1
    model.Params.MIPGap = oracle.tol
    model.Params.MIPGapAbs = 0.0
    for name in ("FeasibilityTol", "IntFeasTol", "OptimalityTol"):
        model.setParam(name, TOLERANCE)
    for name in ("Heuristics", "Cuts", "Presolve"):  # they cost more than they bring here
        model.setParam(name, 0)
    variables = [*z.tolist(), eta.tolist()[0]]
    visited = 0

    def add(cut: Cut) -> None:
        row = gp.LinExpr([*(cut.slopes / scale).tolist(), 1.0], variables)
        model.cbLazy(row >= cut.constant / scale)

    def callback(model: Any, where: int) -> None:
        nonlocal visited
        if limits.reached(0) is not None:
            model.terminate()
        if where == gp.GRB.Callback.MIPSOL:
            here = np.asarray(model.cbGetSolution(variables[:p]))
            add(oracle.at(np.flatnonzero(here > 0.5).astype(np.intp)))
        elif where == gp.GRB.Callback.MIPNODE and visited < fractional:
            if model.cbGet(gp.GRB.Callback.MIPNODE_STATUS) != gp.GRB.OPTIMAL:
                return
            visited += 1
            here = np.asarray(model.cbGetNodeRel(variables))
            cut = oracle.form.at_point(np.clip(here[:p], 0.0, 1.0))
            if cut.at(here[:p]) / scale > here[p] + VIOLATED:
                add(cut)

    model.optimize(callback)
    bound, nodes = progress_of(model)
    return MasterResult(oracle.certified(bound * scale), nodes, status_of(gp, model, limits))


def environment(gp: Any) -> Any:
    """This thread's Gurobi environment.

    gp, module: gurobipy.
    Returns: Made once, silent.
    """
    if not hasattr(_LOCAL, "env"):
        _LOCAL.env = gp.Env(params={"OutputFlag": 0})
    return _LOCAL.env


def set_limits(model: Any, limits: Limits, n_jobs: int) -> None:
    """Threads, time and nodes."""
    model.Params.Threads = n_jobs
    remaining = limits.remaining()
    if remaining is not None:
        model.Params.TimeLimit = remaining
    if limits.node_limit is not None:
        model.Params.NodeLimit = limits.node_limit


def progress_of(model: Any) -> tuple[float, int]:
    """Bound and nodes; −∞ where it was stopped before it had any."""
    try:
        return float(model.ObjBound), int(model.NodeCount)
    except AttributeError:
        return -np.inf, 0


def status_of(gp: Any, model: Any, limits: Limits) -> Status:
    """How a model's search ended.

    gp, module: gurobipy.
    model: After its search.
    """
    known = {
        gp.GRB.OPTIMAL: Status.OPTIMAL,
        gp.GRB.TIME_LIMIT: Status.TIME_LIMIT,
        gp.GRB.NODE_LIMIT: Status.NODE_LIMIT,
        gp.GRB.SUBOPTIMAL: Status.PRECISION,
        gp.GRB.INTERRUPTED: limits.reached(0) or Status.INTERRUPTED,
    }
    return known.get(model.Status, Status.FAILED)


class guarded:
    """Turns Gurobi's complaints about licences into one line.

    gp, module: gurobipy.
    """

    def __init__(self, gp: Any) -> None:
        self.gp = gp

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, self.gp.GurobiError):
            codes = self.gp.GRB.Error
            if error.errno == codes.SIZE_LIMIT_EXCEEDED:
                raise SolverUnavailable(
                    "Gurobi's pip licence is too small for this problem: a full licence, or "
                    "backend highs or native, will do"
                ) from error
            if error.errno == codes.NO_LICENSE:
                raise SolverUnavailable(f"Gurobi has no licence here: {error}") from error
