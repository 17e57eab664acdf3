"""Attacks by units on fresh seeds: what is said of a table does not depend on its units."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.fresh import draws
from support.inside import ridge_scale
from support.unit_attacks import KINDS, Said, differ, units

from sparsecv.cv.estimate import _is_hard
from sparsecv.solvers import SparseRidgeProblem


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_said_depends_on_units(kind: object) -> None:
    for number, (note, rng) in enumerate(draws(6, 80 + KINDS.index(kind))):
        wrong = list(units(rng, len(KINDS) * number + KINDS.index(kind)))
        assert not wrong, f"{note}: {wrong}"


def test_answers_that_do_not_scale_are_told() -> None:
    assert not differ(Said([1.0, np.nan]), Said([4.0, np.nan], 4.0), exact=True)
    assert differ(Said([1.0, np.nan]), Said([4.0 + 1e-9, np.nan], 4.0), exact=True)
    assert not differ(Said([1.0, np.nan]), Said([4.0 + 1e-9, np.nan], 4.0), exact=False)
    assert differ(Said([1.0, np.inf]), Said([4.0, 4.0], 4.0), exact=False)
    assert differ(Said("optimal"), Said("precision limit"), exact=False)
    assert differ(Said([[0, 1]]), Said([[0, 2]]), exact=True)


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1.0, 1e6])
def test_gammas_are_as_near_each_other_in_every_unit_of_the_columns(unit: float) -> None:
    rng, gammas = np.random.default_rng(0), np.array([0.0, 1e-4, 1e-2, 1.0, 100.0])

    def apart(X: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
        problem = SparseRidgeProblem(unit * X, unit * X[:, 0], gamma=unit**2, tau=1)
        return np.diff(ridge_scale(problem, unit**2 * gammas))

    copied = rng.standard_normal((20, 3))
    copied = np.column_stack([copied, copied[:, 0]])
    assert apart(copied, unit) == pytest.approx(apart(copied, 1.0))
    wide = apart(rng.standard_normal((3, 4)), unit)
    assert wide[1:] == pytest.approx(np.full(3, np.log(100.0)))
    assert 10.0 < wide[0] < 30.0


@pytest.mark.parametrize("unit", [1e-20, 1e-12, 1.0, 1e12])
def test_the_nearest_gamma_is_the_same_in_every_unit(unit: float) -> None:
    left_open = np.zeros((4, 1, 1), dtype=bool)
    left_open[0] = True
    ledger: Any = SimpleNamespace(
        gammas=unit * np.array([0.0, 1e-4, 1.0, 2e-4]),
        first_rows=[0, 1, 2],
        cells=SimpleNamespace(left_open=left_open),
    )
    assert not _is_hard(ledger, 3, 0)
    left_open[1] = True
    assert _is_hard(ledger, 3, 0)
