"""The command ``sparsecv benchmark``."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support.inside import main


@pytest.mark.slow
def test_benchmark_compares_the_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "b.csv"
    arguments = ["benchmark", "diabetes", "--folds", "size:40,5", "--gamma", "1"]
    assert main([*arguments, "--csv", str(table)]) == 0
    assert "fewer" in capsys.readouterr().out
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["way"] for row in rows] == 2 * ["grid", "paper", "paper-exact", "best", "exact"]
    assert {row["n"] for row in rows} == {"442"}
    for folds, k in (("size:40", 11), ("5", 5)):
        here = {row["way"]: row for row in rows if row["folds"] == folds}
        assert int(here["grid"]["mio"]) == 9 * k
        exact = float(here["exact"]["cv_error"])
        for row in here.values():
            assert float(row["lower"]) <= exact * (1 + 1e-9)
            assert int(row["mio"]) <= 9 * k + 9
            assert row["status"] == "optimal"
