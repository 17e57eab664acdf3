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


def test_a_grid_that_has_no_time_gives_no_reductions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a problem of the grid nothing says how many fewer another way has."""
    data, table = tmp_path / "d.csv", tmp_path / "b.csv"
    data.write_text("a,b,y\n" + "".join(f"{i},{i * i % 7},{3 * i % 5}\n" for i in range(12)))
    arguments = ["benchmark", str(data), "--folds", "3", "--gamma", "1", "--ways", "grid,exact"]
    assert main([*arguments, "--time-limit", "0", "--csv", str(table)]) == 1
    assert "fewer" in capsys.readouterr().out
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [(row["way"], row["mio"]) for row in rows] == [("grid", "0"), ("exact", "0")]
    assert {row["reduction"] for row in rows} == {row["node_reduction"] for row in rows} == {"nan"}
