"""The workflow files do what the documents say, and the commands of their steps exist."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
yaml = pytest.importorskip("yaml")
if not FOLDER.is_dir():
    pytest.skip("no workflows beside the tests: this is not a checkout", allow_module_level=True)
FILES = sorted(FOLDER.glob("*.yml"))
# programs that a step calls and that a test environment need not have: each belongs to an extra
OF_AN_EXTRA = {"check-jsonschema": "dev", "mypy": "dev", "ruff": "dev", "sphinx-build": "docs"}
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in loaded(FOLDER / name)["jobs"].values() for step in job["steps"]]


def commands(name: str) -> list[str]:
    lines = [line for step in steps(name) for line in step.get("run", "").splitlines()]
    return [part.strip() for line in lines for part in line.split("&&") if part.strip()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_step_is_complete(path: Path) -> None:
    document = loaded(path)
    assert document["permissions"]["contents"] == "read"
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 60
        assert set(job.get("needs", "").split()) <= set(document["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/x@v1"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_exists(path: Path) -> None:
    for command in commands(path.name):
        words = shlex.split(command.replace("$(ls dist/*.whl)", "wheel"))
        program = Path(words[0]).name
        if program in OF_AN_EXTRA:
            extra = re.search(rf"^{OF_AN_EXTRA[program]} = \[.*?\]$", PROJECT, re.M | re.S)
            assert extra, command
            assert program.removesuffix("-build") in extra[0], command
        elif program not in ("python", "python3", "pip"):
            assert shutil.which(program), command
        for extra in re.findall(r"(?:\.|wheel)\[(\w+)\]", " ".join(words)):
            assert re.search(rf"^{extra} = \[", PROJECT, re.M), command
        for word in words[1:]:
            if re.fullmatch(r"(docs|\.ci|\.github)(/[\w./-]+)?", word):
                assert (ROOT / word).exists(), command


def test_three_systems_run_the_oldest_and_the_newest_python() -> None:
    stated = re.findall(r"Python :: (3\.\d+)", PROJECT)
    ordered = sorted(stated, key=lambda version: int(version.split(".")[1]))
    jobs = loaded(FOLDER / "tests.yml")["jobs"]
    matrix = jobs["checkout"]["strategy"]["matrix"]
    assert matrix["python"] == [ordered[0], ordered[-1]]
    assert f'requires-python = ">={ordered[0]}"' in PROJECT
    systems = ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert matrix["os"] == systems == jobs["installed"]["strategy"]["matrix"]["os"]


def test_the_site_is_built_by_the_two_commands_of_the_documents() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    part = contributing.split("## The documentation")[1]
    block = re.search(r"```sh\n(.*?)```", part, re.S)
    assert block
    two = block[1].strip().splitlines()
    assert len(two) == 2
    runs = [step["run"] for step in steps("pages.yml") if "run" in step]
    assert runs[:2] == two


def test_the_installed_package_is_not_the_checkout() -> None:
    script = (ROOT / ".ci" / "only-tests").read_text(encoding="utf-8")
    copied = re.search(r"^cp -R (.*)$", script, re.M)
    assert copied
    assert copied[1].split() == ["tests", "pyproject.toml", '"$1"']
    last = steps("tests.yml")[-1]
    assert last["working-directory"] == "apart"
