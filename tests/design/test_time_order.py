"""Folds in order of time: train on earlier rows, hold out later rows."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit
from support.commands import run_json
from support.tables import refused, write

from sparsecv.cli.main import main
from sparsecv.design.folds import TimeOrdered, make_folds
from sparsecv.errors import InputError
from sparsecv.tables.sources import open_table


def test_folds_are_those_of_scikit_learn() -> None:
    order = np.random.default_rng(0).permutation(53)
    for asked, split in (
        ("5", TimeSeriesSplit(5)),
        (3, TimeSeriesSplit(3)),
        ("size:7", TimeSeriesSplit(6, test_size=7)),
    ):
        found = make_folds(TimeOrdered(asked), 53, groups=order)
        assert (found.kind, found.label) == ("time", None)
        wanted = list(split.split(np.zeros(53)))
        assert found.k == len(wanted)
        for j, (train, test) in enumerate(wanted):
            rows, held = found.split(j)
            assert sorted(order[rows]) == train.tolist()
            assert sorted(order[held]) == test.tolist()


def test_rows_of_one_time_stay_together() -> None:
    times = np.random.default_rng(1).integers(0, 9, 60)
    found = make_folds(TimeOrdered(4), 60, groups=times)
    for j in range(found.k):
        train, test = found.split(j)
        assert times[train].max() < times[test].min()
        assert train.size == np.count_nonzero(times < times[test].min())


@pytest.mark.parametrize("folds", ["loo", "1", "60", "size:40", "size:0", "many"])
def test_folds_that_cannot_be(folds: str) -> None:
    with pytest.raises(InputError, match="order"):
        make_folds(TimeOrdered(folds), 60, groups=np.arange(60))


def test_times(tmp_path: Path) -> None:
    lines = [f"{i % 5},2024-0{1 + i // 9}-{10 + i % 9},{i % 3},{i % 7 + i}" for i in range(40)]
    path = write(tmp_path / "t.csv", "\n".join(["a,day,g,y", *lines]) + "\n")
    source = open_table(path, order="day")
    assert source.feature_names == ["a", "g"]
    np.testing.assert_array_equal(source.groups, np.arange(40))
    odd = write(tmp_path / "odd.csv", "a,day,y\n1,31/1/2024,2\n2,1/2/2024,3\n")
    refused(odd, "2024-01-31", "'31/1/2024'", order="day")
    refused(path, "cannot go together", order="day", groups="g")


def test_the_command_says_what_is_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, when = rng.standard_normal((62, 3)), rng.permutation(62)
    y = X[:, 0] + 0.1 * rng.standard_normal(62)
    rows = [f"{a},{b},{c},{t},{v}" for (a, b, c), t, v in zip(X, when, y, strict=True)]
    write(tmp_path / "t.csv", "\n".join(["a,b,c,when,y", *rows]) + "\n")
    options = ["--order", "when", "--gamma", "1", "--tau", "1", "--nested"]
    found = run_json("cv", "t.csv", *options)
    assert (found["order"], found["folds"]["kind"], found["folds"]["k"]) == ("when", "time", 5)
    assert sum(found["folds"]["sizes"]) == 50
    at, total = np.argsort(when), 0.0
    for train, test in TimeSeriesSplit(5).split(at):
        scaled = X[:, 0] / X[at[train], 0].std()
        x, v = scaled[at[train]], y[at[train]]
        beta = (x - x.mean()) @ (v - v.mean()) / (np.sum((x - x.mean()) ** 2) + 0.5)
        errors = y[at[test]] - v.mean() - beta * (scaled[at[test]] - x.mean())
        total += np.sum(errors**2)
    np.testing.assert_allclose(found["best"]["cv_error"], total / 50, rtol=1e-9)
    assert found["nested"]["folds"] == 5
    assert main(["cv", "t.csv", *options]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "first 12 rows are never held out. The error is of the other 50 rows" in text
