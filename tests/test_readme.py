"""The README's commands are the ones CI runs, and the files that the documents name exist."""

from __future__ import annotations

import pkgutil
import re
import shlex
from pathlib import Path

import pytest

from sparsecv.cli.main import app

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_named_in_the_documents_exist(page: Path) -> None:
    import typer.main

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    for line in re.findall(r"^sparsecv (\w+ .*)$", "".join(blocks), re.M):
        name, *words = shlex.split(line)
        known = {option for one in commands[name].params for option in one.opts}
        for word in words:
            assert not word.startswith("--") or word in known, word


def test_the_pages_name_every_option() -> None:
    import typer.main

    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = {o for one in commands.values() for each in one.params for o in each.opts}
    lacking = {o for o in options if o.startswith("--") and not re.search(rf"{o}(?![\w-])", text)}
    assert lacking == set()


def test_every_name_on_the_page_of_names_exists() -> None:
    module, count = "", 0
    for line in (ROOT / "docs" / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [\w.]+", line):
            assert pkgutil.resolve_name(f"{module}.{line.strip()}")
            count += 1
    assert count > 60
