"""Attacks at γ = 0 on fresh seeds: fits within bounds of dependent columns, and perfect fits."""

from __future__ import annotations

import pytest
from support.fresh import draws
from support.no_ridge_attacks import NO_RIDGE

COUNTS = {
    "dependent within bounds": 60,
    "twins within bounds": 60,
    "dependent cells": 60,
    "perfect fits": 20,
}


@pytest.mark.parametrize("name", NO_RIDGE)
def test_nothing_said_is_wrong(name: str) -> None:
    for number, (note, rng) in enumerate(draws(COUNTS[name], 40 + list(NO_RIDGE).index(name))):
        wrong = list(NO_RIDGE[name](rng, number))
        assert not wrong, f"{note}: {wrong}"
