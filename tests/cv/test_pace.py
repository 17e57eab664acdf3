"""The time left of a stage: what is done goes on at the same pace, within the limit."""

from __future__ import annotations

import pytest

from sparsecv.cv.progress import TimedReport
from sparsecv.solvers.core import limits
from sparsecv.solvers.core.limits import Limits


def test_time_left_of_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(limits, "_now", lambda: now[0])
    told: list[str] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append(f"{what} {done}/{total}")

    pace = TimedReport(tell, Limits(50.0))
    steps = [
        (0.0, "folds", 0, ""),
        (0.5, "folds", 1, ""),  # The time is too little to say anything of.
        (1.5, "folds", 4, ", about 3 s left"),  # 2 s for 4: 3 s for 6
        (18.0, "folds", 5, ", about 20 s left"),  # 20 s for 5, and 20 of the 30 s left
        (24.0, "folds", 6, ", about 6 s left"),  # 44 s for 6: 29 s for 4, but 6 s are left
        (0.0, "folds", 10, ""),
        (0.0, "others", 0, ""),  # Another stage has its own clock.
        (1.0, "others", 5, ", about 1 s left"),
    ]
    for seconds, what, done, left in steps:
        now[0] += seconds
        pace(what, done, 10)
        assert told[-1] == f"{what}{left} {done}/10"
    pace = TimedReport(tell, Limits())
    pace("rows", 0, 2)
    now[0] += 100.0
    pace("rows", 1, 2)
    assert told[-1] == "rows, about 100 s left 1/2"
