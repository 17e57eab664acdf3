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
    pace("folds", 0, 10)
    now[0] += 0.5  # too little to say anything of
    pace("folds", 1, 10)
    now[0] += 1.5
    pace("folds", 4, 10)  # 2 s for 4: 3 s for 6
    now[0] += 18.0
    pace("folds", 5, 10)  # 20 s for 5, and 20 of the 30 s left
    now[0] += 24.0
    pace("folds", 6, 10)  # 44 s for 6: 29 s for 4, but 6 s are left
    pace("folds", 10, 10)  # nothing is left
    pace("others", 0, 10)  # another stage: its own clock
    now[0] += 1.0
    pace("others", 5, 10)
    assert told == [
        "folds 0/10",
        "folds 1/10",
        "folds, about 3 s left 4/10",
        "folds, about 20 s left 5/10",
        "folds, about 6 s left 6/10",
        "folds 10/10",
        "others 0/10",
        "others, about 1 s left 5/10",
    ]
    pace = TimedReport(tell, Limits())
    pace("rows", 0, 2)
    now[0] += 100.0
    pace("rows", 1, 2)
    assert told[-1] == "rows, about 100 s left 1/2"
