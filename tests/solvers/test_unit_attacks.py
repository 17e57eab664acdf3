"""Attacks by units on fresh seeds: what is said of a table does not depend on its units."""

from __future__ import annotations

import numpy as np
import pytest
from support.fresh import draws
from support.unit_attacks import KINDS, Said, differ, units


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
