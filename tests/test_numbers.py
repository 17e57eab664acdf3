"""The numbers of README and docs are those that the scripts printed into experiments/results.

tests/support/page_tables.py says for every table, and page_sentences.py for every sentence that
states a measurement, where its numbers are stored: each number on the page must be a number there,
rounded to the digits that the page shows. A table or a sentence with numbers that is not listed
fails.
"""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Callable

import pytest
from support.page_sentences import CITED, SENTENCES, SETTINGS, UNITS
from support.page_tables import ELSEWHERE, TABLES, TWICE
from support.pages import (
    RESULTS,
    ROOT,
    STATED,
    Table,
    missing,
    names,
    numbers,
    page,
    stored,
    tables,
    text,
)

if not RESULTS.is_dir():
    pytest.skip("no results beside the tests: this is not a checkout", allow_module_level=True)


def listed(table: Table) -> tuple[str, str] | None:
    """The entry of a table in the list."""
    head = " | ".join(table.head)
    found = [key for key in TABLES if key[0] == table.page and head.startswith(key[1])]
    assert len(found) <= 1, table.name
    return found[0] if found else None


def halves(table: Table) -> list[tuple[list[str], list[str]]]:
    """Headers and rows; where rows stand side by side, two in a line, each by itself."""
    if listed(table) not in TWICE:
        return [(table.head, row) for row in table.rows]
    half = len(table.head) // 2
    parts = ((slice(0, half)), slice(half, None))
    return [(table.head[part], row[part]) for row in table.rows for part in parts]


ALL = [table for name in names() for table in tables(name)] if RESULTS.is_dir() else []


@pytest.mark.parametrize("table", [t for t in ALL if listed(t)], ids=lambda table: table.name)
def test_a_table_shows_what_is_stored(table: Table) -> None:
    key = listed(table)
    assert key
    wrong = {}
    for head, (label, *shown) in halves(table):
        for column, cell in zip(head[1:], shown, strict=True):
            if numbers(cell) and (lacking := missing(cell, TABLES[key](label, column))):
                wrong[label, column] = lacking
    assert wrong == {}


def test_every_table_with_numbers_is_listed() -> None:
    """A table of measurements has numbers in most cells; the lists of theorems do not."""
    measured = re.compile(r"[*>≈]*\s*(?:\d[\d,]*(?:\.\d+)?|\.\d+)\s*(?:s|%|×|GB|MB|ms)?\**(?: .*)?")
    unlisted = []
    for table in ALL:
        cells = [cell for row in table.rows for cell in row[1:] if cell]
        share = sum(bool(measured.fullmatch(cell)) for cell in cells) / max(1, len(cells))
        other = any(
            table.page == name and " | ".join(table.head).startswith(head)
            for name, head in ELSEWHERE
        )
        if share >= 0.25 and not listed(table) and not other:
            unlisted.append(table.name)
    assert unlisted == []
    found = {listed(table) for table in ALL}
    assert set(TABLES) - found == set(), "the pages have no such table any more"


@pytest.mark.parametrize(
    ("name", "words", "source"), [pytest.param(*one, id=one[1][:50]) for one in SENTENCES]
)
def test_a_sentence_states_what_is_stored(name: str, words: str, source: Callable[[], str]) -> None:
    assert words in text(name), f"{name} does not say so any more"
    assert missing(re.sub(r"\]\([^)]*\)", "]", words), source()) == []


@pytest.mark.parametrize(
    ("name", "words", "constant"), [pytest.param(*one, id=one[1][:50]) for one in SETTINGS]
)
def test_a_sentence_states_a_constant(name: str, words: str, constant: Callable[[], float]) -> None:
    assert words in text(name), f"{name} does not say so any more"
    found = STATED.search(words)
    assert found, words
    unit = re.sub(r"^[\d.,]+\s?", "", found[0])
    assert float(numbers(found[0])[0]) * UNITS[unit] == pytest.approx(constant())


@pytest.mark.parametrize("name", names() if RESULTS.is_dir() else [])
def test_every_number_that_a_sentence_states_is_listed(name: str) -> None:
    words = text(name)
    spans = []
    for where, quoted, *_ in [*SENTENCES, *SETTINGS, *CITED]:
        if where == name:
            assert quoted in words, f"{name} does not say any more: {quoted}"
            spans += [found.span() for found in re.finditer(re.escape(quoted), words)]
    loose = [
        words[max(0, found.start() - 60) : found.end() + 20]
        for found in STATED.finditer(words)
        if not any(start <= found.start() and found.end() <= end for start, end in spans)
    ]
    assert loose == []


def test_rows_of_the_solver_benchmark_stand_in_the_file_word_for_word() -> None:
    table = next(t for t in ALL if t.head[:2] == ["instance", "sparsecv"])
    rows = stored("solver_benchmark.txt").splitlines()
    assert len(table.rows) == 20
    assert ["| " + " | ".join(row) + " |" not in rows for row in table.rows] == [False] * 20


def test_a_number_that_is_not_stored_is_found() -> None:
    assert missing("0.10 s, 5 h", "0.104 s 5.0 h") == []
    assert missing("0.12 s", "0.104 s 5.0 h") == ["0.12"]
    assert missing(".79 1,024", "0.788 1023") == ["1024"]
    assert STATED.search("takes 8 ms.")
    assert STATED.search("its error is .987 of")
    assert not STATED.search("with 45 columns and τ = 3")


def test_words_beside_the_papers_tables() -> None:
    """Numbers in paper/differences.md stand in the summaries below the words, or in a script.

    Brackets that begin with "paper:" hold what a paper prints, and are left aside.
    """
    experiments = ROOT / "experiments"
    index = runpy.run_path(str(experiments / "index.py"))
    scripts = [*(experiments / "paper").glob("*.py"), *(experiments / "scale").glob("*.py")]
    known = [ast.get_docstring(ast.parse(one.read_text(encoding="utf-8"))) for one in scripts]
    parts = page("experiments/paper/differences.md").split("### ")[1:]
    assert {part.partition("\n")[0] for part in parts} == set(index["SUMMARIES"])
    every = {name for names in index["SUMMARIES"].values() for name in names}
    for part in parts:
        heading, _, words = part.partition("\n")
        words = re.sub(r"\(paper: [^()]*\)", "", words)
        names = index["SUMMARIES"][heading] or every
        known_words = "\n".join([*map(str, known), *(stored(n) for n in names)])
        assert missing(words, known_words) == [], heading
