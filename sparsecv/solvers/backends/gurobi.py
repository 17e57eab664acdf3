"""Outer approximation with Gurobi: one tree, cuts added in its callback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.limits import Limits
from ..core.result import Status
from .benders import MASTER_TOLERANCE, MasterResult, Oracle
from .cuts import Cut
from .optional_dependencies import SolverUnavailable, required

# A cut at a fractional point is added if the point lies below the cut by more than this share of
# the incumbent's objective. The value is a choice: the bound holds with any set of cuts.
LEAST_VIOLATION_RATIO = 1e-4

_LOCAL = threading.local()


def solve_gurobi(
    oracle: Oracle, limits: Limits, n_jobs: int, *, fractional_nodes: int = 200
) -> MasterResult:
    """Search the master once; every support that Gurobi finds is cut at there and then.

    limits: Nodes are Gurobi's.
    fractional_nodes: At the first so many nodes, cuts are made at the fractional point as well.
    Raises SolverUnavailable: gurobipy is missing, or its licence is too small for the master.
    """
    with gurobi_model() as (gp, model):
        p, scale = oracle.form.p, oracle.scale
        z = model.addMVar(p, vtype=gp.GRB.BINARY)
        eta = model.addMVar(1, lb=0.0, obj=1.0)
        model.addConstr(z.sum() == oracle.form.tau)
        slopes, constants = oracle.rows()
        model.addConstr(slopes @ z + np.ones((constants.size, 1)) @ eta >= constants)
        z.Start, eta.Start = np.isin(np.arange(p), oracle.support).astype(float), 1.0
        set_limits(model, limits, n_jobs)
        tolerances = ("FeasibilityTol", "IntFeasTol", "OptimalityTol")
        costly = ("Heuristics", "Cuts", "Presolve")  # These cost more time here than they save.
        values = dict.fromkeys(tolerances, MASTER_TOLERANCE) | dict.fromkeys(costly, 0)
        values |= {"LazyConstraints": 1, "MIPGap": oracle.tol, "MIPGapAbs": 0.0}
        for name, value in values.items():
            model.setParam(name, value)
        variables, visited = [*z.tolist(), *eta.tolist()], 0

        def add(cut: Cut) -> None:
            row = gp.LinExpr([*(cut.slopes / scale).tolist(), 1.0], variables)
            model.cbLazy(row >= cut.constant / scale)

        def callback(model: Any, where: int) -> None:
            nonlocal visited
            if limits.reached(0) is not None:
                model.terminate()
            if where == gp.GRB.Callback.MIPSOL:
                add(oracle.at_point(model.cbGetSolution(variables[:p])))
            elif where == gp.GRB.Callback.MIPNODE and visited < fractional_nodes:
                if model.cbGet(gp.GRB.Callback.MIPNODE_STATUS) != gp.GRB.OPTIMAL:
                    return
                visited += 1
                here = np.asarray(model.cbGetNodeRel(variables))
                cut = oracle.form.at_point(np.clip(here[:p], 0.0, 1.0))
                if cut.at(here[:p]) / scale > here[p] + LEAST_VIOLATION_RATIO:
                    add(cut)

        model.optimize(callback)
        bound, nodes, status = claims_of(gp, model, limits)
    return MasterResult(oracle.certified(bound * scale), nodes, status)


def environment(gp: Any) -> Any:
    """The Gurobi environment of this thread, which prints nothing and is made once."""
    if not hasattr(_LOCAL, "env"):
        _LOCAL.env = gp.Env(params={"OutputFlag": 0})
    return _LOCAL.env


def set_limits(model: Any, limits: Limits, n_jobs: int) -> None:
    """Give a model its threads, time and nodes."""
    values = {"Threads": n_jobs, "TimeLimit": limits.remaining(), "NodeLimit": limits.node_limit}
    for name, value in values.items():
        if value is not None:
            model.setParam(name, value)


def claims_of(gp: Any, model: Any, limits: Limits) -> tuple[float, int, Status]:
    """Bound, nodes and end of a model's search; the bound is −∞ where Gurobi had none yet."""
    known = {
        gp.GRB.OPTIMAL: Status.OPTIMAL,
        gp.GRB.TIME_LIMIT: Status.TIME_LIMIT,
        gp.GRB.NODE_LIMIT: Status.NODE_LIMIT,
        gp.GRB.SUBOPTIMAL: Status.PRECISION,
        gp.GRB.INTERRUPTED: limits.reached(0) or Status.INTERRUPTED,
    }
    status = known.get(model.Status, Status.FAILED)
    try:
        return float(model.ObjBound), int(model.NodeCount), status
    except AttributeError:
        return -np.inf, 0, status


@contextmanager
def guarded(gp: Any) -> Iterator[None]:
    """Turn Gurobi's complaints about licences into one line."""
    try:
        yield
    except gp.GurobiError as error:
        if error.errno == gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
            raise SolverUnavailable(
                "Gurobi's pip licence is too small for this problem: a full licence, or backend "
                "highs or native, will do"
            ) from error
        if error.errno == gp.GRB.Error.NO_LICENSE:
            raise SolverUnavailable(f"Gurobi has no licence here: {error}") from error
        raise


@contextmanager
def gurobi_model() -> Iterator[tuple[Any, Any]]:
    """The module gurobipy, and an empty model in this thread's environment.

    Raises SolverUnavailable: gurobipy is missing, or has no licence that is large enough.
    """
    gp = required("gurobipy")
    with guarded(gp), gp.Model(env=environment(gp)) as model:
        yield gp, model
