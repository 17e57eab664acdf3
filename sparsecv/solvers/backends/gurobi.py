"""Outer approximation with Gurobi: one tree, cuts added in its callback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import SolverUnavailable
from ..core.result import Status
from .optional_dependencies import required
from .oracle import MASTER_TOLERANCE, Claim, Oracle

_LOCAL = threading.local()  # ``env`` is the Gurobi environment of a thread.


def solve_gurobi(oracle: Oracle) -> Claim:
    """Search the master once; every support that Gurobi finds is cut at there and then.

    Raises SolverUnavailable: gurobipy is missing, or its licence is too small for the master.
    """
    p = oracle.form.p
    with gurobi_model() as (gp, model):
        z, eta = model.addMVar(p, vtype=gp.GRB.BINARY), model.addMVar(1, lb=0.0, obj=1.0)
        model.addConstr(z.sum() == oracle.form.tau)
        slopes, constants = oracle.rows()
        model.addConstr(slopes @ z + np.ones((constants.size, 1)) @ eta >= constants)
        z.Start, eta.Start = oracle.start(), 1.0
        tolerances = ("FeasibilityTol", "IntFeasTol", "OptimalityTol")
        costly = ("Heuristics", "Cuts", "Presolve")  # These cost more time here than they save.
        values = dict.fromkeys(tolerances, MASTER_TOLERANCE) | dict.fromkeys(costly, 0)
        values |= {"LazyConstraints": 1, "MIPGap": oracle.gap(oracle.lost), "MIPGapAbs": 0.0}
        for name, value in values.items():
            model.setParam(name, value)
        variables = [*z.tolist(), *eta.tolist()]

        def add_cut(model: Any) -> None:
            cut = oracle.at(model.cbGetSolution(variables[:p]))
            row = gp.LinExpr([*cut.slopes.tolist(), 1.0], variables)
            model.cbLazy(row >= cut.constant)

        bound, n_nodes, status = gurobi_search(gp, model, oracle, add_cut)
    return oracle.claim(bound, n_nodes, status, oracle.lost)


def gurobi_search(
    gp: Any, model: Any, oracle: Oracle, at_solution: Callable[[Any], None]
) -> tuple[float, int, Status]:
    """Search a model within the oracle's limits: lower bound, nodes, and how the search ended.

    at_solution: Is called with the model at every solution that Gurobi finds.
    Returns: The bound is −∞ where Gurobi has none yet.
    """

    def callback(model: Any, where: int) -> None:
        if oracle.limits.reached(0) is not None:
            model.terminate()
        if where == gp.GRB.Callback.MIPSOL:
            at_solution(model)

    model.setParam("Threads", oracle.n_jobs)
    if oracle.limits.node_limit is not None:
        model.setParam("NodeLimit", oracle.limits.node_limit)
    model.optimize(callback)
    ended = {
        gp.GRB.OPTIMAL: Status.OPTIMAL,
        gp.GRB.NODE_LIMIT: Status.NODE_LIMIT,
        gp.GRB.SUBOPTIMAL: Status.PRECISION,
        gp.GRB.INTERRUPTED: oracle.limits.reached(0) or Status.INTERRUPTED,
    }
    status = ended.get(model.Status, Status.FAILED)
    try:
        return float(model.ObjBound), int(model.NodeCount), status
    except AttributeError:
        return -np.inf, 0, status


@contextmanager
def gurobi_model() -> Iterator[tuple[Any, Any]]:
    """The module gurobipy, and an empty model in this thread's environment, which prints nothing.

    Raises SolverUnavailable: gurobipy is missing, or has no licence that is large enough.
    """
    gp = required("gurobipy")
    try:
        if not hasattr(_LOCAL, "env"):
            _LOCAL.env = gp.Env(params={"OutputFlag": 0})
        with gp.Model(env=_LOCAL.env) as model:
            yield gp, model
    except gp.GurobiError as error:
        if error.errno == gp.GRB.Error.SIZE_LIMIT_EXCEEDED:
            raise SolverUnavailable(
                "Gurobi's pip licence is too small for this problem: a full licence, or backend "
                "highs or native, will do"
            ) from error
        if error.errno == gp.GRB.Error.NO_LICENSE:
            raise SolverUnavailable(f"Gurobi has no licence here: {error}") from error
        raise
