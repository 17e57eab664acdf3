"""Every kernel compiled and as plain Python: the same call returns the same numbers.

The calls are those of ``tests/support/kernel_calls.py``. With ``NUMBA_DISABLE_JIT=1`` this process
runs the kernels as plain Python (.ci/run), and shows which of their lines the calls reach; another
process then runs them compiled. Without it the two are exchanged.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config
from numpy.typing import NDArray
from support.inside import envelope, new_gathering
from support.kernel_calls import CALLS, called, entries
from support.preconditions import CALLED, ON_ENTRY, assert_on_entry

from sparsecv.solvers import SparseRidgeProblem, support_path
from sparsecv.solvers.kernels import fits
from sparsecv.solvers.leaps import inverse
from sparsecv.solvers.leaps.lines import may_win
from sparsecv.solvers.leaps.records import new_chain
from sparsecv.solvers.leaps.selection_event import negative

# Kernels calculate with infinities, which warns in plain Python alone.
pytestmark = pytest.mark.filterwarnings("default::RuntimeWarning")
Array = NDArray[np.float64]
TESTS = Path(__file__).parents[1]
plain_python = pytest.mark.skipif(
    not config.DISABLE_JIT, reason="compiled kernels of this kind are called by kernels only"
)


@pytest.fixture(scope="module")
def other() -> Any:
    """What the calls return in another process, compiled if they are not compiled here."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
    environment["NUMBA_DISABLE_JIT"] = "0" if config.DISABLE_JIT else "1"
    command = [sys.executable, "-m", "support.kernel_calls"]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


@pytest.fixture(scope="module", autouse=True)
def asserting() -> None:
    """Kernels that are plain Python here assert what must hold on entry."""
    if config.DISABLE_JIT:
        assert_on_entry()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_returns_the_same_compiled_and_as_plain_python(name: str, other: Any) -> None:
    np.testing.assert_allclose(called(name), other["answers"][name], rtol=1e-8, atol=1e-11)


def test_the_calls_reach_every_kernel_that_python_calls(other: Any) -> None:
    for name in () if config.DISABLE_JIT else CALLS:
        called(name)
    reached = other["entries"] if config.DISABLE_JIT else entries()
    assert len(reached) >= 11
    assert [name for name, was_called in reached.items() if not was_called] == []


def test_the_calls_meet_what_kernels_ask_of_their_callers(other: Any) -> None:
    for name in CALLS if config.DISABLE_JIT else ():
        called(name)
    asserted = [*CALLED] if config.DISABLE_JIT else other["asserted"]
    assert sorted(asserted) == sorted(ON_ENTRY)


@plain_python
def test_a_call_that_a_kernel_does_not_take_is_named() -> None:
    R = np.zeros((2, 2))
    with pytest.raises(AssertionError, match="ridge_triangle was called with arguments"):
        fits.ridge_triangle(R, np.ones((2, 3)), np.array([0]), 1, -1.0, False, np.ones((2, 3)), 0.0)


@plain_python
def test_a_support_may_win_where_its_polynomial_is_low_on_what_is_left() -> None:
    kept = new_gathering(1, 1, 1)
    kept.region[0, :2], kept.n_region[0] = [[-3.0, -2.0], [5.0, 9.0]], 2
    kept.wins[1, 0] = [0.0, 0.0, 1.0]
    assert not may_win(kept, 1, 0, 1.0, 2.0, 2.0)  # Below 1 at no v.
    assert not may_win(kept, 1, 0, 1.0, 0.0, -2.9)  # Below 1 between −1.97 and 1.97.
    assert may_win(kept, 1, 0, 1.0, 0.0, -3.1)
    assert may_win(kept, 1, 0, -1.0, 0.0, 30.0)  # Below 1 beyond 5.39.


def test_the_set_of_a_line_or_a_constant() -> None:
    nothing = [0.0, 0.0, 0.0, 0.0]
    for polynomial, ends in (
        ((0.0, 2.0, -4.0), [-np.inf, 2.0, 0.0, 0.0]),
        ((0.0, -2.0, -4.0), [-2.0, np.inf, 0.0, 0.0]),
        ((0.0, 0.0, -1.0), [-np.inf, np.inf, 0.0, 0.0]),
        ((0.0, 0.0, 1.0), nothing),
        ((1.0, 0.0, 1.0), nothing),
        ((-1.0, 0.0, -1.0), [-np.inf, np.inf, 0.0, 0.0]),
        ((1.0, -3.0, 2.0), [1.0, 2.0, 0.0, 0.0]),
        ((-1.0, 3.0, -2.0), [-np.inf, 1.0, 2.0, np.inf]),
    ):
        assert negative(np.array([polynomial])).ravel().tolist() == ends


@plain_python
def test_a_cell_without_room_for_its_pieces_is_left_undivided() -> None:
    """Two supports whose objectives cross need two pieces, and one interval that waits."""
    energy, squares, left = np.array([[4.0], [1.0]]), np.array([[1.0], [9.0]]), np.array([1.0, 3.5])
    fits = envelope.Fits(energy, squares, left, np.ones((2, 2)), np.full(2, envelope.BACKWARD))
    bounds = np.empty(2)
    envelope.objective_bounds(fits, np.full((2, 2), 3.0), 1.0, bounds)
    assert bounds == pytest.approx([3.0, 3.6], rel=1e-9)
    assert (bounds < [3.0, 3.6]).all()
    listed, lengths = np.array([0, 1]), np.array([3.0, 9.0])
    cell, others = np.array([0.1, 50.0]), np.array([np.inf, np.inf])

    def pieces(waiting: int, room: int, others: Array = others) -> int:
        active = np.empty((waiting, 2), dtype=np.bool_)
        work = envelope.Division(np.empty((waiting, 2)), active, np.empty((5, 4)))
        found = envelope.FoundPieces(np.empty((room, 2)), np.empty(room, dtype=np.int64))
        return int(envelope.divide(cell, others, lengths, listed, fits, work, found, 0))

    assert pieces(envelope.MAX_WAITING, 40) >= 2
    assert pieces(envelope.MAX_WAITING, 1) == -2
    assert pieces(1, 40) == -2
    # Other supports may be best at one end of the cell, or at both ends.
    assert pieces(envelope.MAX_WAITING, 40, np.array([0.0, 1e9])) == -1
    assert pieces(envelope.MAX_WAITING, 40, np.zeros(2)) == -3


@plain_python
def test_equal_supports_that_follow_each_other_share_a_factor() -> None:
    """So do supports that are parts of them; a different support of as many columns does not."""
    rows = [[4, -1, -1], [2, 4, -1], [2, 4, -1], [1, 2, 4], [1, 2, 4], [1, 2, 4]]
    order = np.zeros((3, 6), dtype=np.int64)
    assert fits.nested_order(np.array(rows), 5, order) == 6
    assert order[0, :3].tolist() == [4, 2, 1]
    assert order[2].tolist() == [3, 3, 3, 2, 2, 1]
    assert fits.nested_order(np.array([[1, 2, 3], *rows[3:]]), 3, order) == 3
    assert fits.nested_order(np.array([[4, -1], [2, -1], [2, 4]]), 2, order) == 2


@plain_python
def test_what_a_unit_adds_to_the_loss_when_it_leaves() -> None:
    """β_Dᵀ(A_DD)⁻¹β_D; a column whose digits are lost is passed over, which gives no more."""
    rng, w = np.random.default_rng(8), 5
    B = rng.standard_normal((9, w))
    beta = rng.standard_normal(2 + w)
    for twin in (False, True):
        if twin:
            B[:, 3] = B[:, 1] + 1e-7 * B[:, 3]
        A = B.T @ B
        block, diagonal = np.zeros((2 + w, w - 1)), np.zeros(2 + w)
        diagonal[2:] = np.diag(A)
        for d in range(w):
            block[2 + d, :d] = A[d, :d]
        chain = new_chain(4, 2 + w, 0, w)
        value, whole = inverse.unit_loss(chain, beta, diagonal, block, 2, w)
        kept = [0, 1, 2, 4] if twin else list(range(w))
        b = beta[2:][kept]
        assert value == pytest.approx(b @ np.linalg.solve(A[np.ix_(kept, kept)], b), rel=1e-9)
        assert whole is not twin


@pytest.mark.parametrize("apart", [0.0, 2.0**-13, 1.0])
def test_the_rank_of_columns_at_gamma_zero(apart: float) -> None:
    """Rounding leaves the last column more than 1e-13 of its length beside columns 1e-4 apart."""
    rng = np.random.default_rng(3)
    X = np.round(2.0**10 * rng.standard_normal((12, 4))) / 2.0**10
    X[:, 1] = X[:, 0] + apart * X[:, 1]
    X[:, 3] = 2.0**12 * (X[:, 1] - X[:, 0]) + X[:, 2]
    y = X[:, 2] + rng.standard_normal(12)
    problem = SparseRidgeProblem(X, y, gamma=0.0, tau=4)
    lengths = np.linalg.norm(X, axis=0)
    expected = X @ (np.linalg.lstsq(X / lengths, y, rcond=1e-13)[0] / lengths)
    path = support_path(problem, [0.0], [1, 4])
    for coef in (problem.fit(range(4)).coef, path.coef[0, 1]):
        np.testing.assert_allclose(X @ coef, expected, rtol=1e-8, atol=1e-10)
        assert np.linalg.norm(coef) < 10.0 * np.linalg.norm(np.linalg.pinv(X, 1e-13) @ y)
