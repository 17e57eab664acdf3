"""The README's commands are the ones CI runs, and the files that the documents name exist."""

from __future__ import annotations

import pkgutil
import re
import runpy
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


def test_the_set_up_installs_what_the_commands_need() -> None:
    text = README.read_text(encoding="utf-8")
    assert "--plot" in text
    assert 'pip install -q ".[plot]"' in text


def test_the_readme_is_one_screen_and_the_rest_stands_elsewhere() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert text.count("](docs/cv-diabetes.png)") == 1
    assert "](docs/index.md)" in text
    lists = [ROOT / "docs" / f"{name}.md" for name in ("index", "guide", "inside")]
    index = "".join(page.read_text(encoding="utf-8") for page in lists)
    for page in PAGES[1:]:
        if page.parent.name == "docs" and page.stem != "index":
            assert re.search(rf"^({page.stem}|.* <{page.stem}>)$", index, re.M), page.name


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
    for line in re.findall(r"^sparsecv (\w+ .*)$", page.read_text(encoding="utf-8"), re.M):
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


def test_the_index_of_the_experiments_has_the_first_sentence_of_every_script() -> None:
    index = runpy.run_path(str(ROOT / "experiments" / "index.py"))
    assert index["page"]() == (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")


def test_every_name_on_the_page_of_names_exists() -> None:
    module, count = "", 0
    for line in (ROOT / "docs" / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [\w.]+", line):
            assert pkgutil.resolve_name(f"{module}.{line.strip()}")
            count += 1
    assert count > 60


def test_the_gallery_says_what_every_picture_shows() -> None:
    folder = ROOT / "docs" / "gallery"
    listed = re.findall(
        r":doc:`(\w+)`", (folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8")
    )
    assert listed == sorted(script.stem for script in folder.glob("plot_*.py"))


def test_every_folder_of_experiments_is_in_the_index() -> None:
    folders = {path.parent.name for path in (ROOT / "experiments").glob("*/*.py")}
    assert folders == {"paper", "solvers", "selection", "scale"}
