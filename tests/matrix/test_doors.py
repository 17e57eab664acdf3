"""Every door of the solvers on every family of problems, against exact arithmetic.

The doors and the judge are in ``support/doors.py``, the families in ``support/families.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from support.brute_force import Data
from support.doors import contradicted
from support.families import FAMILIES, plain_case
from support.fresh import draws, examples
from support.problems import ugly


@pytest.mark.parametrize("family", FAMILIES)
def test_no_claim_is_contradicted(family: str) -> None:
    for note, rng in draws(24, 700 + list(FAMILIES).index(family)):
        wrong = list(contradicted(FAMILIES[family](rng), rng))
        assert not wrong, f"{note}: {wrong}"


ONCE = {
    "near bounds": ([1, 13, 37], [1, 13, 42], [1, 13, 48], [1, 13, 81], [1, 13, 89]),
    "near included": ([1, 14, 10], [1, 14, 39], [1, 14, 62], [2, 14, 531]),
    "near ranks": ([5, 15, 4881], [5, 15, 4954], [5, 15, 5072], [5, 15, 5664]),
    "wide": ([7, 2],),
    "near": ([7, 3],),
    "twins": ([7, 0], [7, 2]),
}


@pytest.mark.parametrize("family", ONCE)
def test_what_was_wrong_once(family: str) -> None:
    for seed in ONCE[family]:
        rng = np.random.default_rng(seed)
        wrong = list(contradicted(FAMILIES[family](rng), rng))
        assert not wrong, f"{seed}: {wrong}"


def once(X: list[list[float]], y: list[float], gamma: float) -> example:
    """An example on which a search was wrong once."""
    return example(data=Data(np.array(X), np.array(y), gamma), seed=0)


@settings(max_examples=examples(150))
@given(data=ugly(), seed=...)
@once([[3.0]], [2.0], 1.0)
@once([[-6.0, 6.0], [-7.0, 7.0]], [-6.0, -7.0], 3e-12)
@once([[0.0]], [2.0], 1e-8)
@once([[1e6, 1e6, 1e-6]], [-1.0], 1e-8)
@once([[1.0, 0.0, 5e-5, 0.0], [0.0, 0.0, 4e5, 4.8e5]], [-1.0, 1.0], 1e-8)  # a down-date cancels
@once(
    [
        [1193.1463529369166, 0.0, 5.2328831511186739e-05, 0.0, 0.0],
        [0.0, 0.0, 386696.15509557643, 0.0, 478319.62832536058],
    ],
    [-1.0, 1.0],
    1e-8,
)
@once(  # units of columns 1e11 apart, at a γ that trees replace by a larger one
    [
        [1.27171272e4, 7.87187846e4, 7.02592826e4, 3.16681569e-6, 1.41256881e5],
        [0.0, 0.0, 0.0, -3.18707727e-12, 0.0],
        [-1.27171272e4, -7.87187846e4, -7.02592826e4, -3.16681910e-6, -1.41256881e5],
    ],
    [4.00854326, -0.51378077, -4.23225898],
    0.0,
)
def test_no_claim_about_what_hypothesis_draws_is_contradicted(data: Data, seed: int) -> None:
    wrong = list(contradicted(plain_case(data), np.random.default_rng(abs(seed))))
    assert not wrong


@settings(max_examples=examples(100))
@given(data=ugly(mild=True, zero=False), seed=...)
def test_well_conditioned_problems_are_proved(data: Data, seed: int) -> None:
    case = plain_case(data)._replace(mild=True)
    assert not list(contradicted(case, np.random.default_rng(abs(seed))))
