"""Grids, sparsities and settings, good and bad."""

from __future__ import annotations

import numpy as np

from sparsecv.cv.settings import Settings, default_taus


def test_default_taus_and_grids() -> None:
    assert default_taus(10, 7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    large = default_taus(100, 500)
    top = int(large[-1])
    assert large.tolist() == list(range(1, top + 1))
    assert top * np.log(top) <= 100 < (top + 1) * np.log(top + 1)


def test_seconds_for_everything_and_for_proofs() -> None:
    assert Settings(time_limit="auto").seconds == (None, 60.0)
    assert Settings(time_limit=None).seconds == (None, None)
    assert Settings(time_limit=5).seconds == (5.0, None)
    assert Settings(time_limit=0).seconds == (0.0, None)
