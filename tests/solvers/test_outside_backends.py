"""Every back end that is installed against the native solver, enumeration, and false claims."""

from __future__ import annotations

import gc
import importlib
import itertools
import subprocess
import sys
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.brute_force import Array, exact_moments, exact_objective, optimum
from support.commands import complaint
from support.fresh import draws
from support.inside import (
    CutForm,
    GramForm,
    Protocol,
    RowFolds,
    RowTable,
    Settings,
    StopFlag,
    Summary,
    at_root,
    checked_backend,
    cross_validate,
    make_design,
    make_folds,
    make_synthetic,
)
from support.problems import hard, plain, problem_of, pure_noise, ugly_problem
from support.stand_ins import StandIn, real
from support.tables import write_csv

from sparsecv.solvers import (
    Answer,
    SolverUnavailable,
    SparseRidgeProblem,
    Status,
    available_backends,
    solve,
)
from sparsecv.solvers import backends as outside_backends
from sparsecv.solvers.backends import conic
from sparsecv.solvers.backends import oracle as outer

MASTERS = [name for name in ("highs", "gurobi") if name in available_backends()]
OUTSIDE = [name for name in available_backends() if name not in ("native", "fake")]

HAS_SCIP = find_spec("cvxpy") is not None and find_spec("pyscipopt") is not None
needs_scip_conic = pytest.mark.skipif(not HAS_SCIP, reason="cvxpy or pyscipopt is not installed")


def conic_by_scip(problem: SparseRidgeProblem, **options: Any) -> Answer:
    """What SCIP proves of the conic model that MOSEK gets; no licence of MOSEK is here."""
    return outer.prove(partial(conic.claimed, solver="SCIP"), problem, **options)


@pytest.mark.parametrize(("n", "gamma"), [(70, 1e-2), (70, 1e2), (16, 10.0)])
def test_every_backend_gives_the_native_optimum(n: int, gamma: float) -> None:
    data = plain(n + 24, n, 24, gamma, noise=3.0)
    for tau in (1, 2, 9, 23):
        problem = problem_of(data, tau)
        best = solve(problem, tol=0.0)
        assert best.status is Status.OPTIMAL
        for name in OUTSIDE:
            found = solve(problem, backend=name, tol=0.0)
            assert found.status is Status.OPTIMAL, (name, tau)
            assert found.objective == pytest.approx(best.objective, rel=1e-6), (name, tau)
            assert found.lower_bound <= best.objective * (1.0 + 1e-12), (name, tau)
            assert found.objective == problem.objective(found.support)
            assert found.gap <= 1e-5
            for limit in ({"node_limit": 0}, {"node_limit": 1}, {"time_limit": 2e-3}):
                early = solve(problem, backend=name, tol=0.0, **limit)
                assert early.lower_bound <= best.objective * (1.0 + 1e-12), (name, tau, limit)
                assert early.objective >= best.objective * (1.0 - 1e-9)
                assert early.status is not Status.FAILED
                if early.status is Status.OPTIMAL:
                    assert early.objective == pytest.approx(best.objective, rel=1e-5)


@needs_scip_conic
@pytest.mark.parametrize("seed", range(30))
def test_the_conic_model_of_ugly_problems(seed: int) -> None:
    """Collinear, duplicate and badly scaled columns, p > n, γ from 1e-6 to 1e5."""
    problem = ugly_problem(seed, 7)
    best, found = optimum(problem), conic_by_scip(problem, tol=0.0)
    assert found.lower_bound <= best * (1.0 + 1e-9) + 1e-12 * problem.yy
    assert found.objective >= best * (1.0 - 1e-9) - 1e-12 * problem.yy
    assert found.support.size == problem.tau
    if found.status is Status.OPTIMAL:
        assert found.objective <= best * (1.0 + 1e-5) + 1e-12 * problem.yy


@pytest.mark.parametrize("seconds", [0.0, 1.0])
@pytest.mark.parametrize("name", MASTERS)
def test_a_raised_flag_ends_the_search(name: str, seconds: float) -> None:
    problem = problem_of(pure_noise(1, 30, 40, 1e-2), 12)

    class Soon(StopFlag):
        started = time.perf_counter()

        def is_set(self) -> bool:
            return time.perf_counter() - self.started > seconds

    found = solve(problem, backend=name, stop=Soon())
    assert found.status is Status.INTERRUPTED
    assert 0.0 < found.lower_bound <= found.objective


# claims that are false


@pytest.mark.parametrize(
    ("share", "status"), [(1.001, Status.OPTIMAL), (1.0 - 1e-8, Status.FAILED)], ids=str
)
def test_a_bound_above_an_objective_or_a_failure_proves_nothing(
    share: float, status: Status
) -> None:
    problem, best = hard()

    def liar(oracle: Any) -> Any:
        return oracle.claim(share * best.objective / oracle.scale, 7, status, 0.0)

    found = outer.prove(partial(outer.outer_approximation, liar), problem)
    assert found.status is Status.FAILED
    assert found.n_nodes == 7
    assert found.lower_bound <= best.objective <= found.objective
    assert found.gap > 1e-5


@needs_scip_conic
def test_an_optimum_that_recomputing_does_not_confirm_is_a_failure(
    stand_in: StandIn,
) -> None:
    problem, best = hard()
    honest = conic.solved

    def low(*arguments: Any) -> tuple[float, int, Status]:
        bound, nodes, _ = honest(*arguments)
        return bound - 5e-5, nodes, Status.OPTIMAL  # in units of the incumbent

    def high(*arguments: Any) -> tuple[float, int, Status]:
        bound, nodes, _ = honest(*arguments)
        return bound + 5e-5, nodes, Status.OPTIMAL

    for claim in (low, high):
        stand_in(solved_by_cones=claim)
        found = conic_by_scip(problem)
        assert found.status is Status.FAILED
        assert found.lower_bound <= best.objective * (1.0 + 1e-12)
        assert found.objective >= best.objective


@needs_scip_conic
def test_scip_needs_the_rows_that_bound_the_coefficients() -> None:
    """Diabetes, τ = 3, γ = 0.1: without |β| ≤ Mz SCIP's optimum is 2e-5 too low; ours is right."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    problem = SparseRidgeProblem(X, y, gamma=0.1, tau=3)
    best = solve(problem, tol=0.0)
    found = conic_by_scip(problem, tol=0.0)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best.objective, rel=1e-9)
    assert found.lower_bound == pytest.approx(best.objective, rel=1e-5)


# a task of MOSEK that stands in for its search, which needs a licence


def mosek_task(answer: Answer, columns: Array, **ends: Any) -> type:
    """A class of tasks that build MOSEK's model, and whose search ends as ``ends`` says.

    answer: The best support and the number of nodes that the search finds.
    columns: The columns of the problem that the model has.
    ends: ``sta``, the status of the solution, or None where there is none; ``bound``, the lower
        bound or None; ``error``, what reading the bound raises.
    """
    import mosek

    class Task(mosek.Task):  # type: ignore[misc]
        def optimize(self) -> Any:
            return mosek.rescode.ok

        def solutiondef(self, _: Any) -> bool:
            return ends["sta"] is not None

        def getsolsta(self, _: Any) -> Any:
            if ends["sta"] is None:
                raise mosek.Error(mosek.rescode.err_undef_solution, "no solution is defined")
            return ends["sta"]

        def getprosta(self, kind: Any) -> Any:
            return self.getsolsta(kind) and mosek.prosta.prim_feas

        def getprimalobj(self, _: Any) -> float:
            return 0.0

        def getxxslice(self, _: Any, first: int, last: int, values: list[float]) -> None:
            integer = [
                j
                for j in range(self.getnumvar())
                if self.getvartype(j) == mosek.variabletype.type_int
            ]
            for j, column in zip(integer, columns, strict=True):
                if first <= j < last:
                    values[j - first] = float(column in answer.support)

        def getdouinf(self, item: Any) -> float:
            if item == mosek.dinfitem.mio_obj_bound:
                if "error" in ends:
                    raise ends["error"]
                return 0.0 if ends["bound"] is None else float(ends["bound"])
            return float(super().getdouinf(item))

        def getintinf(self, item: Any) -> int:
            if item == mosek.iinfitem.mio_obj_bound_defined:
                return int(ends.get("bound") is not None or "error" in ends)
            super().getintinf(item)  # A task that was released raises an AttributeError.
            return 7 if item == mosek.iinfitem.mio_num_branch else 0

    return Task


def by_stand_in(monkeypatch: pytest.MonkeyPatch, share: float | None, **ends: Any) -> Answer:
    """What the conic back end makes of a search by MOSEK that ends with a share of the optimum.

    share: The bound as a share of the least objective; None for no bound.
    """
    problem, best = hard()

    def claim(oracle: Any) -> Any:
        bound = None
        if share is not None:
            constant = conic.perspective_model(oracle)[2]
            bound = share * best.objective / oracle.scale - constant
        task = mosek_task(best, oracle.form.columns, bound=bound, **ends)
        monkeypatch.setattr("mosek.Task", task)
        return conic.claimed(oracle)

    return outer.prove(claim, problem, **({"time_limit": 1e6} if ends.get("sta") is None else {}))


def test_what_mosek_proves_is_read_before_its_task_is_released(
    monkeypatch: pytest.MonkeyPatch,
    stand_in: StandIn,
) -> None:
    mosek = pytest.importorskip("mosek")
    _, best = hard()
    found = by_stand_in(monkeypatch, 1.0, sta=mosek.solsta.integer_optimal)
    assert found.status is Status.OPTIMAL
    assert found.n_nodes == 7
    assert found.objective == pytest.approx(best.objective, rel=1e-12)
    assert best.objective * (1.0 - 1e-5) < found.lower_bound <= best.objective
    # A search that ends at a limit leaves its bound, and its solution if it has one.
    early = by_stand_in(monkeypatch, 0.9998, sta=None)
    assert early.status is Status.TIME_LIMIT
    assert early.n_nodes == 7
    assert early.lower_bound == pytest.approx(0.9998 * best.objective, rel=1e-5)
    # Without a bound only what the root has proved is known, and without a limit MOSEK gave up.
    for share in (None, 0.9998):
        stuck = by_stand_in(monkeypatch, share, sta=mosek.solsta.prim_feas)
        assert stuck.status is Status.FAILED
        assert stuck.objective == pytest.approx(best.objective, rel=1e-12)
        assert stuck.lower_bound < 0.9998 * best.objective


def test_a_mistake_in_code_is_no_solver_that_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    mosek = pytest.importorskip("mosek")
    optimal = mosek.solsta.integer_optimal
    with pytest.raises(AttributeError, match="a mistake"):
        by_stand_in(monkeypatch, 1.0, sta=optimal, error=AttributeError("a mistake"))
    gave_up = mosek.Error(mosek.rescode.err_mio_internal, "gave up")
    assert by_stand_in(monkeypatch, 1.0, sta=optimal, error=gave_up).status is Status.FAILED


# what is missing


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("gurobi", "gurobipy", "sparsecv[gurobi]"),
        ("mosek", "mosek", "sparsecv[mosek]"),
        ("mosek", "cvxpy", "sparsecv[mosek]"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    name: str, package: str, extra: str, stand_in: StandIn
) -> None:
    found = real("find_package")
    stand_in(find_package=lambda p: None if p == package else found(p))
    outside_backends.lacking.cache_clear()
    try:
        assert name not in available_backends()
        with pytest.raises(SolverUnavailable) as caught:
            checked_backend(name)
        says = f'backend {name}: {package} is not installed: pip install "{extra}"'
        assert str(caught.value) == says
    finally:
        outside_backends.lacking.cache_clear()


def test_mosek_without_a_licence_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mosek")
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
        outer.prove(conic.claimed, problem)
    assert "\n" not in str(late.value)


def test_a_licence_that_is_too_small_is_named() -> None:
    gp = pytest.importorskip("gurobipy")
    rng = np.random.default_rng(0)
    problem = SparseRidgeProblem(
        rng.standard_normal((60, 2001)), rng.standard_normal(60), gamma=1.0, tau=2
    )
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as model:
        if model.LicenseExpiration == 0:
            pytest.skip("a full licence is here")
    with pytest.raises(SolverUnavailable, match="licence"):
        solve(problem, backend="gurobi")


def plain_claim(problem: SparseRidgeProblem, master: Any) -> Any:
    """Outer approximation as it is usually written: no column screened, D = 0, one cut."""
    incumbent = at_root.Incumbent(problem, [])
    form = CutForm(problem, np.arange(problem.p), GramForm.of(problem, extract=False))
    prepared = outer.Oracle(form, incumbent)
    return outer.outer_approximation(master, prepared, root_cuts=1)


@pytest.mark.parametrize("name", MASTERS)
def test_plain_outer_approximation_finds_the_same(name: str) -> None:
    """Many columns need no less than the master's tolerance."""
    master = importlib.import_module(f"sparsecv.solvers.backends.{name}")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 240))
    wide = SparseRidgeProblem(X, X[:, 0] + rng.standard_normal(60), gamma=2000.0, tau=2)
    for problem in (hard()[0], wide):
        best = solve(problem, tol=0.0).objective
        found, precision = plain_claim(problem, getattr(master, f"solve_{name}"))
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(best, rel=1e-9)
        assert best - found.lower_bound <= precision * best


def test_supports_with_too_many_columns_are_no_incumbents() -> None:
    problem, best = hard()

    def curious(oracle: Any) -> Any:
        for support in itertools.combinations(range(oracle.form.p), problem.tau + 1):
            oracle.at(np.isin(np.arange(oracle.form.p), support))
        return oracle.claim(-np.inf, 1, Status.NODE_LIMIT, 0.0)

    found = outer.prove(partial(outer.outer_approximation, curious), problem)
    assert found.objective >= best.objective * (1.0 - 1e-12)
    assert found.support.size == problem.tau


@pytest.mark.parametrize("gamma", [1e-10, 1e-13, 1e-17])
@pytest.mark.parametrize("name", OUTSIDE)
def test_gamma_that_is_nothing_beside_duplicate_columns(name: str, gamma: float) -> None:
    """No exception, no proof that rounding does not allow, no bound above the optimum."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 8))
    X[:, 4:] = X[:, :4]
    problem = SparseRidgeProblem(X, rng.standard_normal(12), gamma=gamma, tau=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve(problem, backend=name, tol=0.0, time_limit=2.0)
    best = optimum(problem)
    assert found.lower_bound <= best * (1.0 + 1e-9)
    assert found.objective <= best * 1.01


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_tolerance_is_relative_to_the_objective(name: str) -> None:
    """Conic objectives leave a large constant out here: the gap must not be relative to that."""
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((60, 1))
    X = factor + 0.15 * rng.standard_normal((60, 14))
    y = X[:, 0] - X[:, 3] + rng.standard_normal(60)
    problem = SparseRidgeProblem(X, y, gamma=1e-2, tau=4)
    for tol in (1e-2, 1e-4):
        found = solve(problem, backend=name, tol=tol)
        assert found.status is Status.OPTIMAL
        assert found.gap <= tol
        assert found.lower_bound <= solve(problem, tol=0.0).objective


def test_a_first_search_prints_nothing() -> None:
    """HiGHS 1.16 prints its name at the first search of a process, whatever its options say."""
    code = """
import numpy as np
from sparsecv.solvers import SparseRidgeProblem, solve
rng = np.random.default_rng(0)
X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
found = solve(SparseRidgeProblem(X, y, gamma=0.1, tau=4), backend="highs", tol=0.0)
assert found.n_nodes > 0
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == ""


def test_columns_of_every_scale_end_in_an_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """No bare exception, nothing on stderr, and bounds that hold; n = 4 offset columns too."""
    for note, rng in draws(4, 20):
        wide = bool(rng.random() < 0.7)
        n, p = (int(rng.integers(4, 20)), int(rng.integers(4, 9))) if wide else (4, 10)
        X = rng.normal(size=(n, p))
        X = X * 10.0 ** rng.uniform(-4, 7, size=p) if wide else X + 1e4
        y = X[:, :2].sum(axis=1) if rng.random() < 0.5 else rng.normal(size=n)
        gamma = 10.0 ** rng.uniform(-8, 8) if wide else 2e-8
        tau = int(rng.integers(1, 4))
        try:
            problem = SparseRidgeProblem(X, y, gamma=gamma, tau=tau)
            found = solve(problem, backend="highs", time_limit=2.0)
        except ValueError:  # γ is lost beside dependent columns
            continue
        value = exact_objective(exact_moments(X, y), gamma, found.support)
        assert found.lower_bound <= value, note
    gc.collect()  # some solvers complain when their model goes
    assert capfd.readouterr().err == ""


# These tests use the back ends as users do: in folds, in estimators and in the command.


def made(n: int = 30, p: int = 6) -> tuple[Array, Array]:
    X, y, _ = make_synthetic(n, p, 3, 0.5, 0.5, seed=1)
    return X, y


def folds_of(kind: str, n: int = 30, p: int = 6) -> RowFolds:
    X, y = made(n, p)
    design = make_design(Summary.of(X, y), Protocol(), [f"x{j}" for j in range(p)])
    return RowFolds(RowTable(*design.apply(X, y), True), make_folds(kind, n, seed=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("method", ["grid", "search", "auto"])
def test_folds_solved_by_each_backend(name: str, method: str) -> None:
    data = folds_of("5")
    taus = np.arange(1, 7)
    exact = cross_validate(data, [0.5], taus, Settings("exact")).by_gamma[0]
    settings = Settings(method, backend=name, tol=0.0)
    result = cross_validate(data, [0.5], taus, settings)
    one = result.by_gamma[0]
    if method == "search":
        assert result.best().tau == int(taus[np.argmin(exact.cv_error)])
        assert one.lower.min() <= exact.cv_error.min() * (1.0 + 1e-9)
        return
    assert one.exact.all()
    np.testing.assert_allclose(one.cv_error, exact.cv_error, rtol=1e-9)
    assert one.n_mio == 30  # the grid, also where the method was left open
    assert one.n_nodes >= 0


def test_a_licence_too_small_for_a_fold_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stand_in: StandIn
) -> None:
    def small(*_: Any, **__: Any) -> Any:
        raise SolverUnavailable("Gurobi's pip licence is too small for this problem")

    stand_in(backends={**real("backends"), "highs": small})
    table = write_csv(tmp_path / "t.csv", *made())
    for command in (
        ["cv", "--method", "grid"],
        ["cv", "--method", "search"],
        ["fit", "--tau", "2"],
    ):
        more = [*command, str(table), "--backend", "highs", "--quiet"]
        complaint(capsys, more, ["licence is too small"])
