"""Finished γ on disk: taken up again, never mixed up, never in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv.cv import engine as cross_validation
from sparsecv.cv.results import CVResult
from sparsecv.cv.settings import Settings
from sparsecv.design import prepare as pipeline
from sparsecv.design.design import Protocol
from sparsecv.errors import InputError
from sparsecv.tables.sources import ArraySource

Array = NDArray[np.float64]
GAMMAS = np.array([0.1, 1e-5])
TAUS = np.array([1, 2, 3], dtype=np.intp)


def table(n: int = 24) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(n)


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
) -> CVResult:
    source = ArraySource(X, y, [f"x{j}" for j in range(X.shape[1])])
    prepared = pipeline.prepare(source, folds, protocol or Protocol(), seed=seed)
    return pipeline.run(
        prepared,
        gammas,
        taus,
        settings or Settings(),
        checkpoint=None if folder is None else str(folder),
    )


def forbid_solving(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr(cross_validation, "_one_gamma", refuse)


def equal(a: CVResult, b: CVResult) -> bool:
    names = ("cv_error", "std_error", "lower", "upper", "exact", "n_nodes", "model_bound")
    same = all(np.array_equal(a.table(name), b.table(name)) for name in names)
    pairs = zip(a.by_gamma, b.by_gamma, strict=True)
    return same and all(
        np.array_equal(s, t)
        for one, other in pairs
        for s, t in zip(one.models, other.models, strict=True)
    )


@pytest.mark.parametrize("folds", ["4", "loo"])
def test_second_run_solves_nothing(
    folds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    first = run(tmp_path / "new" / "folder", X, y, folds=folds)
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 2
    forbid_solving(monkeypatch)
    assert equal(run(tmp_path / "new" / "folder", X, y, folds=folds), first)
    # any subset and order of the γ already done
    again = run(tmp_path / "new" / "folder", X, y, folds=folds, gammas=GAMMAS[::-1])
    np.testing.assert_array_equal(again.table("cv_error"), first.table("cv_error")[::-1])


def test_new_gammas_are_added(tmp_path: Path) -> None:
    X, y = table()
    run(tmp_path, X, y)
    added = run(tmp_path, X, y, gammas=np.array([0.1, 7.0]))
    assert len(list(tmp_path.iterdir())) == 3
    assert equal(added, run(None, X, y, gammas=np.array([0.1, 7.0])))


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
    new = 0 if change in ("size", "time limit") else 2
    assert equal(run(tmp_path, X, y, **CHANGES[change]), run(None, X, y, **CHANGES[change]))
    assert len(list(tmp_path.iterdir())) == 2 + new


def test_threads_share_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table()
    first = run(tmp_path, X, y)
    forbid_solving(monkeypatch)
    assert equal(run(tmp_path, X, y, settings=Settings(n_jobs=2)), first)


def test_changed_values_are_other_data(tmp_path: Path) -> None:
    X, y = table()
    run(tmp_path, X, y)
    X[3, 2] += 1e-9
    assert equal(run(tmp_path, X, y), run(None, X, y))
    assert len(list(tmp_path.iterdir())) == 4


def test_rows_in_another_order_are_other_data(tmp_path: Path) -> None:
    """Whole numbers: the Gram matrices often agree to the last bit, the folds do not."""
    x = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 0.0, 3.0, -3.0])
    y = np.array([0.0, 2.0, 1.0, 1.0, -3.0, -1.0, 4.0, -4.0])
    rng = np.random.default_rng(0)
    for _ in range(30):
        order = np.append(0, 1 + rng.permutation(7))
        with_folder, alone = (
            run(
                folder,
                x[order, None],
                y[order],
                folds="2",
                taus=TAUS[:1],
                gammas=np.array([1.0]),
                protocol=Protocol("honest", "none"),
            )
            for folder in (tmp_path, None)
        )
        assert equal(with_folder, alone)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '"x"', "{}", '{"gamma": 0.1}', "\x00\xff", '{"no": "such"}'],
)
def test_unreadable_files_are_ignored(text: str, tmp_path: Path) -> None:
    X, y = table()
    first = run(tmp_path, X, y)
    for path in tmp_path.iterdir():
        path.write_bytes(text.encode("latin-1"))
    assert equal(run(tmp_path, X, y), first)
    # and replaced
    assert all(len(path.read_text()) > 100 for path in tmp_path.iterdir())


def test_truncated_file_is_ignored(tmp_path: Path) -> None:
    X, y = table()
    first = run(tmp_path, X, y)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert equal(run(tmp_path, X, y), first)


def test_interrupted_run_keeps_what_it_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    real, calls = cross_validation._one_gamma, []

    def interrupted(*args: Any) -> Any:
        calls.append(args[1])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(cross_validation, "_one_gamma", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, X, y)
    assert len(list(tmp_path.iterdir())) == 1
    resumed = run(tmp_path, X, y)
    assert calls == [0.1, 1e-5, 1e-5]
    monkeypatch.undo()
    assert equal(resumed, run(None, X, y))


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    X, y = table()
    blocked = tmp_path / "file"
    blocked.write_text("")
    for folder in (blocked, blocked / "below"):
        with pytest.raises(InputError, match="--checkpoint") as caught:
            run(folder, X, y)
        assert str(folder) in str(caught.value)


def test_intervals_are_not_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 30)) + rng.standard_normal((40, 1))
    y = X[:, :8].sum(axis=1) + 4.0 * rng.standard_normal(40)
    gammas = np.array([1e-3])
    hurried = run(tmp_path, X, y, gammas=gammas, settings=Settings(time_limit=1e-9))
    assert not hurried.complete
    assert list(tmp_path.iterdir()) == []
    patient = run(tmp_path, X, y, gammas=gammas)
    assert patient.complete
    assert len(list(tmp_path.iterdir())) == 1
