"""The README's commands are the ones CI runs, and the files that the documents name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md")), ROOT / "data" / "README.md"]

pytestmark = pytest.mark.skipif(
    not README.is_file(), reason="no README beside the tests: this is not a checkout"
)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README.read_text(encoding="utf-8"), re.M)
    assert len(commands) == 2
    assert "sparsecv cv diabetes" in commands[0]
    assert commands[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_first_page_begins_with_the_same_command() -> None:
    """Its folds are so few that the error to quote is computed, too."""
    pages = [README, ROOT / "docs" / "index.md", ROOT / "docs" / "start.md"]
    first = {
        re.search(r"^python3 -m .*$", page.read_text(encoding="utf-8"), re.M) for page in pages
    }
    commands = {found.group().split(" && ")[-1] for found in first if found is not None}
    assert len(first) == 3
    assert commands == {".venv/bin/sparsecv cv diabetes"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_the_documents_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:experiments|sparsecv|docs)/[\w/.-]+\.\w+)`", text):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"`(\w+\.py)`", text):
        assert [
            path
            for top in ("experiments", "tests", "sparsecv")
            for path in (ROOT / top).rglob(name)
        ], name
    for name in re.findall(r"\]\((?!http)([\w./-]+)", text):
        assert (page.parent / name).exists(), name
