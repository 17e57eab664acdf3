"""Checkpoint files prove that they are whole, unchanged and of this run, or are passed over."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecv.cv.checkpoint import read_checkpoint, write_checkpoint
from sparsecv.errors import CheckpointWarning
from sparsecv.stability.kept_losses import KeptLosses, kept_losses

CONTENT = {"lower": [0.5, 1.0], "support": [0, 3]}


def changed(path: Path, **parts: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    document.update(parts)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_what_was_stored_comes_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert read_checkpoint(path, "key", dict, "anew") is None  # and no warning: there is no file
    content = {"x": [0.1, 1e-300, 2.0**-1074, 1 / 3], "deep": [[[]]]}
    write_checkpoint(path, "key", content, set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_checkpoint(path, "key", dict, "anew") == content
    assert [f.name for f in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b""), "not a checkpoint"),
        (lambda path: path.write_bytes(path.read_bytes()[:-7]), "not a checkpoint"),
        (lambda path: path.write_text("[" * 100_000), "not a checkpoint"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "not a checkpoint"),
        (lambda path: path.write_text("null"), "not a checkpoint"),
        (lambda path: changed(path, format=0), "not a checkpoint"),
        (lambda path: changed(path, key="another run's"), "other data"),
        (lambda path: changed(path, content={**CONTENT, "lower": [0.9, 1.0]}), "changed"),
        (lambda path: changed(path, content={**CONTENT, "lower": [float("nan")]}), "changed"),
        (lambda path: changed(path, content=None), "changed"),
        (lambda path: changed(path, hash=None), "changed"),
    ],
)
def test_nothing_else_is_believed(damage: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_checkpoint(path, "key", CONTENT, set())
    damage(path)
    with pytest.warns(CheckpointWarning, match=rf"a\.json is passed over, made anew: .*{reason}"):
        assert read_checkpoint(path, "key", dict, "made anew") is None


def test_losses_are_kept_and_wrong_ones_computed_anew(tmp_path: Path) -> None:
    label = np.arange(6) % 3
    calls = []

    def learner(training: Any, candidates: Any) -> Any:
        calls.append(1)
        return np.outer(np.asarray(candidates) + 0.1, np.arange(6.0)) + len(training)

    def kept(training: Any, candidates: Any) -> Any:
        store = KeptLosses(tmp_path, 6, (np.eye(6), np.arange(6.0), label, "settings"))
        return dict(kept_losses(learner, [(training, candidates)], store, None))[0]

    rows = np.arange(4)
    first = kept(rows, [0, 1])
    np.testing.assert_array_equal(kept(rows, [0, 1]), first)
    assert len(calls) == 1
    (file,) = tmp_path.iterdir()
    for wrong in (None, [[0.0]], "losses", [["x"] * 6] * 2):
        document = json.loads(file.read_text())
        write_checkpoint(file, document["key"], wrong, set())
        with pytest.warns(CheckpointWarning, match="the losses"):
            np.testing.assert_array_equal(kept(rows, [0, 1]), first)
