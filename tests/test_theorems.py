"""The page of theorems names functions that exist, and has every number of the four texts."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
if not (DOCS / "theorems.md").is_file():
    pytest.skip("no pages beside the tests: this is not a checkout", allow_module_level=True)

# what the texts number: equations, and theorems with their like
FIRST = [*(f"({i})" for i in range(1, 25)), "(EC.1)", "Theorem 1", "Theorem 2", "Corollary 1"]
FIRST += ["Corollary 2", "Corollary 3", "Proposition 1", "Proposition 2", "Algorithm 1"]
FIRST += ["Algorithm 2", "Figure 1"]
STABILITY = [*(f"({i})" for i in range(1, 9)), "Proposition 2.1", "Theorem 2.2", "Algorithm 1"]
CONSISTENT = [
    f"({i}.{j})" for i, last in ((2, 4), (3, 4), (4, 2), (5, 4), (6, 2)) for j in range(1, last + 1)
]
CONSISTENT += ["Theorem 3.1", "Corollary 3.1", "Corollary 3.2", "Theorem 4.1", "Theorem 5.1"]
CONSISTENT += ["Corollary 5.1", "Theorem 6.1", "Assumption 1", "Assumption 2", "Definition 2.1"]
CONSISTENT += ["Lemma A.1", "Lemma B.1", "Lemma B.2", "Proposition A.1", "Proposition C.1"]
CONSISTENT += ["Theorems D.1–D.3", "Corollary D.1"]
NOTES = ["Theorem 1", "(1)", "(2)", "Algorithm 1"]
TEXTS = {"Optimal": FIRST, "Stability": STABILITY, "Consistent": CONSISTENT, "Hyper": NOTES}


@pytest.fixture(scope="module")
def tools() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "site_tools.py"))


def expanded(cell: str) -> str:
    """A cell in which ranges such as (3.1)–(3.4) are written out."""

    def written(found: re.Match[str]) -> str:
        before, first, last = found[1], int(found[2]), int(found[3])
        return " ".join(f"({before}{i})" for i in range(first, last + 1))

    return re.sub(r"\((\d\.|)(\d+)\)–\((?:\d\.|)(\d+)\)", written, cell)


@pytest.mark.parametrize("text", TEXTS)
def test_every_number_of_a_text_is_in_the_table(text: str, tools: dict[str, Any]) -> None:
    cells = [expanded(cell) for name, cell, _ in tools["rows"]() if name.startswith(text)]
    known = ", ".join(cells).replace("Facts", "Fact")
    assert [number for number in TEXTS[text] if number not in known] == []


def test_every_function_of_the_table_exists(tools: dict[str, Any]) -> None:
    lines = tools["rows"]()
    assert len(lines) > 40
    for _, number, paths in lines:
        assert paths, number
        for path in paths:
            assert tools["resolved"](path) is not None


def test_every_public_name_is_on_the_page_of_names() -> None:
    import importlib

    listed = set(re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text(encoding="utf-8"), re.M))
    for module in ("sparsecv", "sparsecv.solvers", "sparsecv.risk", "sparsecv.stability"):
        for name in importlib.import_module(module).__all__:
            if name not in ("__version__", "bounds"):
                assert name in listed, f"{module}.{name}"
