"""The README's commands are the ones CI runs, and its files exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    if not README.is_file():
        pytest.skip("no README beside the tests: this is not a checkout")
    commands = re.findall(r"^python3 -m venv .*$", README.read_text(encoding="utf-8"), re.M)
    assert len(commands) == 2
    assert "sparsecv cv diabetes" in commands[0]
    assert commands[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_files_named_in_the_readme_exist() -> None:
    if not README.is_file():
        pytest.skip("no README beside the tests: this is not a checkout")
    text = README.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:experiments|sparsecv)/[\w/]+\.py)`", text):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"\]\((?!http)([\w./-]+)\)", text):
        assert (ROOT / name).exists(), name
