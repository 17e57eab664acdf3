"""Units of work are functions of what they are given; what is around them is put back."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sla
from support.inside import (
    CellProver,
    RowFolds,
    RowMoments,
    Rows,
    RowTable,
    Settings,
    cross_validate,
    least_is_proved,
    make_folds,
)
from support.stand_ins import StandIn, real
from threadpoolctl import ThreadpoolController, threadpool_limits

from sparsecv.solvers.backends.optional_dependencies import quiet_stdout
from sparsecv.solvers.core.threads import one_blas_thread


def rows(n: int = 30, p: int = 6, cv: Any = 3) -> RowFolds:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return RowFolds(
        RowTable(X, X[:, 0] - X[:, 2] + rng.standard_normal(n), True), make_folds(cv, n)
    )


def blas_threads() -> set[int]:
    found = ThreadpoolController().select(user_api="blas").info()
    return {int(one["num_threads"]) for one in found}


@pytest.fixture
def two_threads() -> Any:
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this linear algebra library has one thread only")
        yield


@pytest.mark.usefixtures("two_threads")
def test_one_thread_nested_and_restored() -> None:
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("who_enters_first", ["main", "other"])
@pytest.mark.parametrize("who_leaves_first", ["main", "other"])
def test_the_last_thread_to_leave_lifts_the_limit(
    who_enters_first: str, who_leaves_first: str
) -> None:
    """A limit that lasts longer would slow everything else in the process down."""
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_blas_thread():
            inside.set()
            assert leave.wait(30.0)

    thread = threading.Thread(target=other)
    if who_enters_first == "other":
        thread.start()
        assert inside.wait(30.0)
    with one_blas_thread():
        if who_enters_first == "main":
            thread.start()
            assert inside.wait(30.0)
        assert blas_threads() == {1}
        if who_leaves_first == "other":
            leave.set()
            thread.join()
            assert blas_threads() == {1}
    assert blas_threads() == ({1} if who_leaves_first == "main" else {2})
    leave.set()
    thread.join()
    assert blas_threads() == {2}
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_last_thread_to_leave_lets_standard_output_speak(capfd: Any) -> None:
    """Two calls of HiGHS overlap, and the one that begins first ends first."""
    first, second = quiet_stdout(), quiet_stdout()
    for step in (first.__enter__, second.__enter__):
        step()
        os.write(1, b"unheard")
    for context in (first, second):
        os.write(1, b"unheard")
        context.__exit__(None, None, None)
    os.write(1, b"heard")
    assert capfd.readouterr().out == "heard"


def test_threads_do_not_wait_for_values_of_other_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folds decompose their rows at once, in two threads."""
    real, both = sla.svd, threading.Barrier(2, timeout=10.0)

    def svd(*args: Any, **options: Any) -> Any:
        both.wait()
        return real(*args, **options)

    monkeypatch.setattr(sla, "svd", svd)
    folds = [Rows(np.eye(4)[:, : 3 + j]) for j in range(2)]
    with ThreadPoolExecutor(2) as pool:
        sizes = [s.size for _, s, _ in pool.map(lambda fold: fold.singular, folds)]
    assert sizes == [2, 3]


def test_another_thread_may_forget_the_problem_of_all_rows_at_any_time() -> None:
    """It is forgotten before every line of the function that makes and returns it."""
    table = RowTable(np.eye(4)[:, :3], np.arange(4.0))
    moments = RowMoments(table.given, None, None)

    def forget(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code is not RowTable.full.__code__:
            return None
        table.forget_full()
        return forget

    before = sys.gettrace()
    sys.settrace(forget)
    try:
        problem = table.full(moments)
    finally:
        sys.settrace(before)
    assert problem.n == 4


@pytest.mark.usefixtures("two_threads")
def test_a_surface_keeps_to_one_thread_and_restores(stand_in: StandIn) -> None:
    seen: list[set[int]] = []
    plain = real("fold_unit")

    def looking(*args: Any) -> Any:
        seen.append(blas_threads())
        return plain(*args)

    stand_in(fold_unit=looking)
    cross_validate(rows(), [1.0], [1, 2])
    assert seen == [{1}] * 3
    assert blas_threads() == {2}


# ---------------------------------------------------------------------------- beyond 45 columns


def wide(cv: Any = 3) -> tuple[RowFolds, list[float], list[int]]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 48))
    y = X[:, :3].sum(axis=1) + 0.7 * rng.standard_normal(60)
    return RowFolds(RowTable(X, y, True), make_folds(cv, 60)), [1.0, 200.0], [1, 2, 3, 4, 7]


def proofs(stand_in: StandIn) -> list[tuple[float, int]]:
    """Cells in the order in which they are proved."""
    cells: list[tuple[float, int]] = []
    real = CellProver._prove_cell

    def noted(self: CellProver, need: Any, g: int, t: int, seconds: float) -> Any:
        cells.append((self.ledger.gammas[g], int(self.ledger.taus[t])))
        return real(self, need, g, t, seconds)

    stand_in(prove_a_cell=noted)
    return cells


@pytest.mark.parametrize("cv", [3, "loo"])
def test_the_choice_is_proved_first_and_all_on_request(cv: Any, stand_in: StandIn) -> None:
    data, gammas, taus = wide(cv)
    cells = proofs(stand_in)
    every = cross_validate(data, gammas, taus, Settings(prove="all"))
    assert every.complete
    h = every.table("cv_error")
    cells.clear()
    chosen = cross_validate(data, gammas, taus)
    best = chosen.best()
    assert least_is_proved(chosen)
    assert best.cv_error == pytest.approx(h.min(), rel=1e-9)
    assert (chosen.table("lower") <= h * (1 + 1e-9)).all()
    assert (h <= chosen.table("upper") * (1 + 1e-9)).all()
    exact = chosen.table("exact")
    np.testing.assert_allclose(chosen.table("cv_error")[exact], h[exact], rtol=1e-9)
    # only cells that cannot have the least error were left alone
    assert (chosen.table("lower")[~exact] >= h.min() * (1 - 1e-8)).all()
    if cells:
        estimates = cross_validate(data, gammas, taus, Settings(time_limit=0)).best()
        assert cells[0] == (estimates.gamma, estimates.tau)
        assert len(set(cells)) < h.size or cv == "loo"
    assert chosen.by_gamma[best.gamma_index].model_proved[best.tau_index]
