"""Finished γ on disk: taken up again, never mixed up, never in the way."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.fresh import draws
from support.inside import (
    WINGS,
    Checkpoint,
    CheckpointFolder,
    CVResult,
    Ledger,
    Protocol,
    RunPlan,
    Settings,
    Study,
    Surface,
    Table,
    all_partitions,
    main,
    prepare,
)
from support.problems import regression
from support.stand_ins import StandIn, real, standing_in
from support.studies import first_of
from support.tables import write_csv

import sparsecv
from sparsecv.cv import checkpoint
from sparsecv.cv.estimate import units
from sparsecv.errors import CheckpointWarning

Array = NDArray[np.float64]
GAMMAS = np.array([0.1, 1e-5])
TAUS = np.array([1, 2, 3], dtype=np.intp)


def table(n: int = 24) -> tuple[Array, Array]:
    return regression(n, 4, {0: 1.0, 1: -1.0})


def run(
    folder: Path | None,
    X: Array,
    y: Array,
    *,
    folds: str = "4",
    seed: int = 0,
    gammas: Array = GAMMAS,
    taus: Any = TAUS,
    protocol: Protocol | None = None,
    settings: Settings | None = None,
    asked: Any = None,
) -> CVResult:
    source = Table(X, y, [f"x{j}" for j in range(X.shape[1])])
    prepared = prepare(source, folds, protocol or Protocol(), seed=seed, asked=asked)
    kept = None if folder is None else CheckpointFolder(folder)
    own: dict[str, Any] = {"rule": "minimum", "seed": seed, "gammas": gammas, "taus": taus}
    wanted = replace(settings or Settings(), **own)
    return first_of(Study.of(prepared.data, prepared.design, wanted, WINGS, checkpoint=kept)).result


def forbid_solving(stand_in: StandIn) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("solved again")

    stand_in(path_of_a_fold=refuse, best_subsets_rows_deleted=refuse)
    stand_in(best_support_of_a_fold=refuse, branch_and_bound_of_folds=refuse)


def equal(a: CVResult, b: CVResult, *, same_start: bool = True) -> bool:
    """To the last bit; paths along γ that do not start at the same one to rounding."""
    rtol = 0.0 if same_start else 1e-13
    for name in ("cv_error", "std_error", "lower", "upper", "exact", "model_bound"):
        if not np.allclose(a.table(name), b.table(name), rtol=rtol, atol=0.0):
            return False
    pairs = zip(a.by_gamma, b.by_gamma, strict=True)
    return (not same_start or np.array_equal(a.table("n_nodes"), b.table("n_nodes"))) and all(
        np.array_equal(one.padded(None), other.padded(None)) for one, other in pairs
    )


@pytest.mark.parametrize("folds", ["4", "loo"])
def test_second_run_solves_nothing(folds: str, tmp_path: Path, stand_in: StandIn) -> None:
    X, y = table()
    first = run(tmp_path / "new" / "folder", X, y, folds=folds)
    units = 1 if folds == "loo" else 4  # All rows left out share a tree; the model has a file, too.
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 2 * (units + 1)
    forbid_solving(stand_in)
    again = run(tmp_path / "new" / "folder", X, y, folds=folds, settings=Settings(n_jobs=2))
    assert equal(again, first)
    # any subset and order of the γ already done
    again = run(tmp_path / "new" / "folder", X, y, folds=folds, gammas=GAMMAS[::-1])
    np.testing.assert_array_equal(again.table("cv_error"), first.table("cv_error")[::-1])


CHANGES: dict[str, dict[str, Any]] = {
    "seed": {"seed": 1},
    "folds": {"folds": "5"},
    "size": {"folds": "size:6"},
    "taus": {"taus": np.array([1, 2], dtype=np.intp)},
    "protocol": {"protocol": Protocol("paper")},
    "scale": {"protocol": Protocol("honest", "none")},
    "intercept": {"protocol": Protocol("honest", "unit-variance", intercept=False)},
    "method": {"settings": Settings("grid")},
    "time limit": {"settings": Settings(time_limit=1000.0)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_settings_have_their_own_files(change: str, tmp_path: Path) -> None:
    X, y = table()
    run(tmp_path, X, y)
    # 4 folds of 24 rows are folds of size 6: the same folds, and so the same results
    # and the time limit has no part in what is proved
    before, folds = set(tmp_path.iterdir()), 5 if change == "folds" else 4
    new = 0 if change in ("size", "time limit") else 2 * (folds + 1)
    assert equal(run(tmp_path, X, y, **CHANGES[change]), run(None, X, y, **CHANGES[change]))
    assert len(set(tmp_path.iterdir()) - before) == new


def test_other_values_and_another_order_are_other_data(tmp_path: Path) -> None:
    X, y = table()
    run(tmp_path, X, y)
    order = np.append(0, 1 + np.random.default_rng(0).permutation(y.size - 1))
    nearly = X + 1e-9 * (np.arange(X.size) == 14).reshape(X.shape)
    for number, (Z, t) in enumerate([(nearly, y), (X[order], y[order])], 2):
        assert equal(run(tmp_path, Z, t), run(None, Z, t))
        assert len(list(tmp_path.iterdir())) == 2 * 5 * number


def test_damaged_files_are_ignored(tmp_path: Path) -> None:
    """What damage there may be, test_sealed tries on one file."""
    X, y = table()
    first = run(tmp_path, X, y)
    cut, changed, other, *_ = files = sorted(tmp_path.iterdir())
    cut.write_bytes(cut.read_bytes()[:100])
    document = json.loads(changed.read_text())
    document["content"]["exact"][0][0] = not document["content"]["exact"][0][0]
    changed.write_text(json.dumps(document))
    other.write_bytes(files[-1].read_bytes())  # The answer of another fold or γ.
    with pytest.warns(CheckpointWarning, match="are ignored") as caught:
        assert equal(run(tmp_path, X, y), first, same_start=False)
    assert len(caught) == 1
    # What was computed anew takes the place of the damaged files.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert equal(run(tmp_path, X, y), first, same_start=False)
    assert sorted(tmp_path.iterdir()) == files


def test_a_forged_error_outside_its_bounds_is_ignored(tmp_path: Path) -> None:
    """What contradicts itself is computed anew, though its hash fits."""
    X, y = table()
    first = run(tmp_path, X, y)
    for number, file in enumerate(sorted(tmp_path.iterdir())):
        content = json.loads(file.read_text())["content"]
        if number % 2:
            content["error"] = [[0.5 * error for error in row] for row in content["error"]]
        else:
            content["lower"] = "none"
        forged = {"hash": checkpoint._digest(file.name, content), "content": content}
        file.write_text(json.dumps(forged))
    with pytest.warns(CheckpointWarning, match="are ignored"):
        assert equal(run(tmp_path, X, y), first, same_start=False)


def test_damaged_files_are_one_warning_for_all_outer_folds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = table(40)
    write_csv(tmp_path / "t.csv", X, y)
    kept = tmp_path / "kept"
    command = ["cv", str(tmp_path / "t.csv"), "--gamma", "1", "--rule", "minimum", "--nested"]
    command += ["--quiet", "--checkpoint", str(kept)]
    assert main(command) == 0
    for file in kept.iterdir():
        file.write_bytes(b"")
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().err.count("are ignored") == 1


def interrupt_at(stand_in: StandIn, name: str, number: int) -> list[int]:
    """Ctrl-C at the call of that number; the list grows by one a call."""
    plain, calls = real(name), []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(len(calls))
        if len(calls) == number:
            raise KeyboardInterrupt
        return plain(*args, **options)

    stand_in(**{name: interrupted})
    return calls


def test_interrupted_run_keeps_the_folds_it_finished(tmp_path: Path, stand_in: StandIn) -> None:
    X, y = table()
    whole = run(None, X, y)
    calls = interrupt_at(stand_in, "fold_unit", 3)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(tmp_path, X, y)
    # Two folds are exact. The others were not begun: no model that has seen them stands in.
    assert not hasattr(caught.value, "partial")
    assert len(list(tmp_path.iterdir())) == 2 * 3  # a file for each γ and fold, and for the models
    resumed = run(tmp_path, X, y)
    assert len(calls) == 3 + 2  # two folds of four were known
    assert equal(resumed, whole)
    assert len(list(tmp_path.iterdir())) == 2 * 5


def test_interrupted_leave_one_out_keeps_the_gammas_it_finished(
    tmp_path: Path, stand_in: StandIn
) -> None:
    X, y = table()
    whole = run(None, X, y, folds="loo")
    calls = interrupt_at(stand_in, "best_subsets_rows_deleted", 2)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, X, y, folds="loo")
    assert len(list(tmp_path.iterdir())) == 2  # the rows left out, and the model
    resumed = run(tmp_path, X, y, folds="loo")
    assert len(calls) == 2 + 1
    assert equal(resumed, whole)


def test_intervals_are_not_kept(tmp_path: Path) -> None:
    X, y = regression(40, 30, [1.0] * 8, noise=4.0, shared=1.0)
    gammas = np.array([1e-3])
    hurried = run(tmp_path, X, y, gammas=gammas, settings=Settings(time_limit=1e-9))
    assert not hurried.complete
    assert list(tmp_path.iterdir()) == []
    patient = run(tmp_path, X, y, gammas=gammas)
    assert patient.complete
    assert len(list(tmp_path.iterdir())) == 4 + 1


def test_killed_runs_are_taken_up_again(tmp_path: Path) -> None:
    """SIGKILL at any moment leaves files that are whole: the last run has what one run has."""
    write_csv(tmp_path / "t.csv", *table(40))
    root = str(Path(sparsecv.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "sparsecv", "cv", "t.csv", "--folds", "loo", "--json"]
    stored = tmp_path / "stored"
    for _, rng in draws(2, 32):
        run_on = [*command, "killed.json", "--checkpoint", str(stored)]
        before = len(list(stored.glob("*")))
        process = subprocess.Popen(run_on, cwd=tmp_path, env=env, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(stored.glob("*"))) == before:
            time.sleep(0.001)
        time.sleep(10.0 ** rng.uniform(-4, -1.5))
        process.kill()
        process.wait()
    found = []
    for more in (["--checkpoint", str(stored)], []):
        done = subprocess.run(
            [*command, "whole.json", *more], cwd=tmp_path, env=env, capture_output=True, check=True
        )
        assert b"Warning" not in done.stderr
        found.append(json.loads((tmp_path / "whole.json").read_text()))
    assert found[0]["best"] == pytest.approx(found[1]["best"], rel=1e-12)
    assert found[0]["model"]["support"] == found[1]["model"]["support"]
    for one, other in zip(found[0]["results"], found[1]["results"], strict=True):
        for name in ("cv_error", "lower", "upper"):
            assert one[name] == pytest.approx(other[name], rel=1e-12), name


class Killed(BaseException):
    """The end of a process as a test has it."""


def hard(folder: Path | None, **options: Any) -> CVResult:
    """More than 45 columns and few folds: estimates first, then one proof after the other."""
    X, y = regression(60, 50, [1.0] * 4, seed=2, noise=3.0, shared=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        return run(
            folder,
            X,
            y,
            folds="5",
            gammas=np.array([1.0, 10.0]),
            taus=np.array([2, 4, 6]),
            settings=Settings(prove="all", **options),
        )


def written(folder: Path) -> set[tuple[str, int]]:
    """The files of a folder, of which one that was replaced is another one."""
    return {(path.name, path.stat().st_ino) for path in folder.iterdir()}


def test_a_hard_run_that_is_killed_after_any_write(tmp_path: Path, stand_in: StandIn) -> None:
    whole = hard(None)
    assert whole.complete
    estimates = hard(None, time_limit=0.0).table("cv_error")
    assert (np.abs(estimates - whole.table("cv_error")) > 1e-9).any()
    plain, writes, last = Checkpoint.save, [0], [10**9]

    def save(self: Checkpoint, ledger: Ledger, g: int, units: Any) -> None:
        before = written(self.folder.path)
        plain(self, ledger, g, units)
        writes[0] += written(self.folder.path) != before
        if writes[0] >= last[0]:
            raise Killed

    stand_in(save_checkpoint=save)
    hard(tmp_path / "whole")
    total = writes[0]
    assert total >= 6
    for last[0] in range(1, total + 1):
        folder, writes[0] = tmp_path / str(last[0]), 0
        try:
            hard(folder)
        except Killed:
            pass
        else:  # trials last a number of seconds: on a busy machine a run writes less often
            assert last[0] > 2
            break
        with standing_in(save_checkpoint=plain):
            again = hard(folder)
        for name in ("cv_error", "lower", "upper"):
            np.testing.assert_allclose(again.table(name), whole.table(name), rtol=1e-12)
        assert again.complete
        assert not list(folder.glob("*.tmp"))
        writes[0] = 0


@pytest.mark.parametrize("full", ["write", "replace"])
def test_a_full_disk_is_one_warning_for_all_partitions(
    full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def no_room(*_: Any, **__: Any) -> None:
        calls.append(1)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    X, y = table()
    prepared = prepare(Table(X, y, list("abcd")), "4", Protocol(), seed=0)
    asked = Settings(gammas=GAMMAS, taus=[1, 2], rule="projected")
    studies = [
        Study.of(prepared.data, prepared.design, asked, WINGS, checkpoint=one)
        for one in (None, CheckpointFolder(tmp_path))
    ]
    monkeypatch.setattr(*((Path, "write_text") if full == "write" else (os, "replace")), no_room)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CheckpointWarning)
        parts = [all_partitions(study, first_of(study)) for study in studies]
        first, found = ([one.first, *one.others] for one in parts)
    assert len(calls) > 1
    (warning,) = (one for one in caught if one.category is CheckpointWarning)
    assert "No space left" in str(warning.message)
    assert str(tmp_path) in str(warning.message)
    assert all(equal(one, other) for one, other in zip(first, found, strict=True))
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_where_more_is_proved(tmp_path: Path) -> None:
    X, y = table()
    data = prepare(Table(X, y, list("abcd")), "12", Protocol()).data
    with Surface(data, TAUS) as whole:
        whole.visit([0.1])
    ledger, store = whole.ledger, Checkpoint(CheckpointFolder(tmp_path), b"", {})
    own = units(data, RunPlan.of(Settings(), data))
    store.load(Ledger(data, TAUS, [0.1]), 0, own)
    ledger.cells.exact[0, 1, 3], ledger.cells.lower[0, 1, 3], ledger.cells.upper[0, 1, 3] = (
        False,
        0.0,
        np.inf,
    )
    for low in (1e-3, 2e-3):
        ledger.narrow(0, 1, [3], low, np.inf)
        store.save(ledger, 0, own)
        assert len(list(tmp_path.iterdir())) == 12 + 1
        again = Ledger(data, TAUS, [0.1])
        Checkpoint(CheckpointFolder(tmp_path), b"", {}).load(again, 0, own)
        assert again.cells.lower[0, 1, 3] == low
        assert (~again.cells.exact[0]).sum() == 1
