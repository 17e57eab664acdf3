"""Checkpoint files prove that they are whole, unchanged and the answer to their names."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.inside import CheckpointFolder
from support.stand_ins import StandIn

from sparsecv.errors import CheckpointWarning

CONTENT = {"lower": [0.5, 1.0], "support": [0, 3]}


def changed(path: Path, **parts: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    document.update(parts)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_what_was_stored_comes_back_exactly(tmp_path: Path) -> None:
    folder, path = CheckpointFolder(tmp_path), tmp_path / "a.json"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert folder.read(path) is None  # There is no file.
        content = {"x": [0.1, 1e-300, 2.0**-1074, 1 / 3, np.inf], "deep": [[[]]]}
        assert folder.write(path, content)
        assert folder.read(path) == content
    assert [f.name for f in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-7]),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        lambda path: path.write_text("null"),
        lambda path: path.write_text("{}"),
        lambda path: changed(path, content={**CONTENT, "lower": [0.9, 1.0]}),
        lambda path: changed(path, content={**CONTENT, "lower": [float("nan")]}),
        lambda path: changed(path, content=None),
        lambda path: changed(path, hash=None),
        # The file of another name is the answer to another question.
        lambda path: path.write_bytes((path.parent / "b.json").read_bytes()),
    ],
)
def test_nothing_else_is_believed(damage: Any, tmp_path: Path) -> None:
    folder, path = CheckpointFolder(tmp_path), tmp_path / "a.json"
    for name in ("a.json", "b.json"):
        folder.write(tmp_path / name, CONTENT)
    damage(path)
    with pytest.warns(CheckpointWarning, match=r"are ignored.*; the first one is a\.json"):
        assert folder.read(path) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert folder.read(path) is None  # The run has been warned.


def test_a_name_tells_questions_apart(tmp_path: Path, stand_in: StandIn) -> None:
    folder = CheckpointFolder(tmp_path)
    questions = [("a", 0.1, [1, 2]), ("a", 0.1, [1]), ("a", 0.2, [1, 2]), ("b", 0.1, [1, 2])]
    names = {folder.file(*question) for question in questions}
    stand_in(version_of_checkpoints="another")
    names |= {folder.file(*question) for question in questions}
    assert len(names) == 8
