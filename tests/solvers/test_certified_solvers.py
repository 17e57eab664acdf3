"""Attacks beside those of the matrix, on fresh seeds, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from support.attacks import SOLVERS
from support.fresh import draws
from support.inside import GramForm
from support.no_ridge_attacks import NO_RIDGE
from support.problems import ugly_data

from sparsecv.solvers import SparseRidgeProblem

COUNTS = {
    "offset columns": 40,
    "one factor": 40,
    "offset grid": 45,
    "one-factor grid": 45,
    "enumeration": 150,
    "ellipsoids": 40,
    "two trees": 12,
    "paths of units": 6,
    "units left out": 12,
    "dependent cells": 60,
    "perfect fits": 20,
}
ATTACKS = {**SOLVERS, **NO_RIDGE}


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_nothing_said_is_wrong(name: str) -> None:
    for number, (note, rng) in enumerate(draws(COUNTS[name], list(COUNTS).index(name))):
        wrong = list(ATTACKS[name](rng, number))
        assert not wrong, f"{note}: {wrong}"


def test_enumeration_says_something() -> None:
    """What it may overlook is a small part of the objective where γ is not tiny."""
    shares = []
    for _, rng in draws(1000, 20):  # of few problems the median is chance
        data = ugly_data(rng)
        problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=1)
        upper = min(problem.objective([i]) for i in range(problem.p))
        lost = GramForm.of(problem).overlooked(problem.gamma / 2.0, 1, upper)
        shares.append(lost / upper if upper > 0.0 else 0.0)
    assert np.median(shares) < 1e-8
    assert np.mean(np.array(shares) < 1e-5) > 0.6
