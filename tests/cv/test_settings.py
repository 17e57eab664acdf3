"""Grids, sparsities and settings, good and bad."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from sparsecv.cv.settings import Settings, checked_gammas, checked_taus, default_taus
from sparsecv.errors import InputError


def test_default_taus_and_grids() -> None:
    assert default_taus(10, 7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    large = default_taus(100, 500)
    top = int(large[-1])
    assert large.tolist() == list(range(1, top + 1))
    assert top * np.log(top) <= 100 < (top + 1) * np.log(top + 1)


@pytest.mark.parametrize(
    ("check", "values", "words"),
    [
        (checked_gammas, [], "gamma"),
        (checked_gammas, [1.0, -2.0], "gamma must be finite and >= 0; got -2"),
        (checked_gammas, [np.nan], "got nan"),
        (checked_gammas, [np.inf], "got inf"),
        (partial(checked_taus, p=4), [], "tau"),
        (partial(checked_taus, p=4), [0], "tau must lie between 1 and p = 4, .*; got 0"),
        (partial(checked_taus, p=4), [1, 5], "got 5"),
        (partial(checked_taus, p=4), [1.5], "whole numbers"),
        (partial(checked_taus, p=4), [True], "whole numbers"),
        (partial(checked_taus, p=4), ["1"], "whole numbers"),
    ],
)
def test_bad_values(check: Any, values: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        check(values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "fast"}, "method must be one of auto, exact, grid.*; got 'fast'"),
        ({"backend": "abacus"}, "backend.*abacus"),
        ({"time_limit": -1.0}, "time_limit must be 'auto', None or seconds >= 0; got -1.0"),
        ({"time_limit": np.nan}, "time_limit must be 'auto', None or seconds >= 0; got nan"),
        ({"time_limit": "long"}, "time_limit must be .*; got 'long'"),
        ({"time_limit": True}, "time_limit must be .*; got True"),
        ({"prove": "some"}, "prove must be one of choice, all; got 'some'"),
        ({"n_jobs": 0}, "n_jobs must be None or a whole number other than 0; got 0"),
        ({"n_jobs": 1.5}, "n_jobs must be .*; got 1.5"),
        ({"tol": -0.1}, "tol must lie in"),
        ({"tol": 1.0}, "tol must lie in"),
        ({"bounds": "none"}, "bounds must be one of best, paper"),
        ({"method": "exact", "backend": "highs"}, "method exact has trees of its own"),
    ],
)
def test_bad_settings(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Settings(**options)


def test_seconds_for_everything_and_for_proofs() -> None:
    assert Settings(time_limit="auto").seconds == (None, 60.0)
    assert Settings(time_limit=None).seconds == (None, None)
    assert Settings(time_limit=5).seconds == (5.0, None)
    assert Settings(time_limit=0).seconds == (0.0, None)
