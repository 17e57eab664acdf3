"""Conic models and what their solvers are given."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from support.problems import hard, plain, problem_of

from sparsecv.solvers import SolverUnavailable, available_backends, solve
from sparsecv.solvers import backends as outside_backends
from sparsecv.solvers.backends import conic
from sparsecv.solvers.backends.cuts import CutForm
from sparsecv.solvers.backends.oracle import Oracle, prove
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.relaxation.gram import GramForm


def read_task(path: str) -> tuple[Any, ...]:
    """Objective, rows, bounds, cones and types of a MOSEK task file."""
    mosek = pytest.importorskip("mosek")
    with mosek.Env() as env, env.Task() as task:
        task.readdata(path)
        n, m = task.getnumvar(), task.getnumcon()
        c = np.array([task.getcj(j) for j in range(n)])
        A = np.zeros((m, n))
        for i in range(m):
            count, columns, values = task.getarow(i)
            A[i, list(columns)[:count]] = list(values)[:count]
        rows = [task.getconbound(i) for i in range(m)]
        columns = [task.getvarbound(j) for j in range(n)]
        cones = []
        for k in range(task.getnumcone()):
            kind, _, _, members = task.getcone(k)
            assert kind == mosek.conetype.quad
            cones.append(list(members))
        kinds = [task.getvartype(j) == mosek.variabletype.type_int for j in range(n)]
        return c, task.getcfix(), A, rows, columns, cones, kinds


def test_what_mosek_is_given_is_the_problem(tmp_path: Any) -> None:
    """MOSEK itself was not run (no licence): its task file, read back, is solved by Gurobi."""
    gp = pytest.importorskip("gurobipy")
    mosek = pytest.importorskip("mosek")
    problem = problem_of(plain(5, 20, 5, 1.0, noise=2.0), 2)
    path = tmp_path / "model.task.gz"
    form = CutForm(problem, np.arange(problem.p), GramForm.of(problem, extract=False))
    oracle = Oracle(form, np.arange(problem.tau))
    written, _, constant = conic.perspective_model(oracle)
    no_time = {"save_file": str(path), "mosek_params": {"MSK_DPAR_MIO_MAX_TIME": 0.0}}
    with contextlib.suppress(SolverUnavailable):  # the task is written before it is solved
        conic.solved(written, "MOSEK", no_time, Limits())
    c, fixed, A, rows, columns, cones, integer = read_task(str(path))
    inf = float("inf")

    def ends(bound: tuple[Any, float, float]) -> tuple[float, float]:
        key, low, high = bound
        free_below = key in (mosek.boundkey.fr, mosek.boundkey.up)
        free_above = key in (mosek.boundkey.fr, mosek.boundkey.lo)
        return (-inf if free_below else low), (inf if free_above else high)

    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        x = []
        for bound, whole in zip(columns, integer, strict=True):
            low, high = ends(bound)
            x.append(model.addVar(lb=low, ub=high, vtype="I" if whole else "C"))
        for row, bound in zip(A, rows, strict=True):
            low, high = ends(bound)
            total = gp.LinExpr(row.tolist(), x)
            if low > -inf:
                model.addConstr(total >= low)
            if high < inf:
                model.addConstr(total <= high)
        for head, *tail in cones:
            x[head].LB = 0.0
            model.addConstr(gp.quicksum(x[j] * x[j] for j in tail) <= x[head] * x[head])
        model.setObjective(gp.LinExpr(c.tolist(), x) + fixed)
        model.Params.MIPGap = 1e-8
        model.optimize()
        value = model.ObjVal
    assert sum(integer) == problem.p
    best = solve(problem, tol=0.0)
    assert (value + constant) * oracle.scale == pytest.approx(best.objective, rel=1e-5)


def test_mosek_without_a_licence_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    mosek = pytest.importorskip("mosek")
    if outside_backends.lacking("mosek") is None:
        pytest.skip("MOSEK has a licence here")
    problem, _ = hard()
    with pytest.raises(SolverUnavailable, match="licence") as caught:
        solve(problem, backend="mosek")
    assert "\n" not in str(caught.value)
    assert "MOSEKLM_LICENSE_FILE" in str(caught.value)
    assert "mosek" not in available_backends()
    # and where the licence is found missing only by the call itself
    with pytest.raises(SolverUnavailable, match="MOSEK has no licence") as late:
        prove(conic.claimed, problem)
    assert "\n" not in str(late.value)
    assert mosek is not None
