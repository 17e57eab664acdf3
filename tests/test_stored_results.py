"""Every file of results says by which versions, and on which machine, its numbers were measured."""

from __future__ import annotations

import re

import pytest
from support.pages import RESULTS, stored

if not RESULTS.is_dir():
    pytest.skip("no results beside the tests: this is not a checkout", allow_module_level=True)
MACHINE = re.compile(r"sparsecv \d.*; python \d.*numpy \d.*; \d+ cores, \w+")


@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.glob("*.txt")))
def test_a_text_names_versions_and_machine(name: str) -> None:
    assert MACHINE.search(stored(name))


@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.glob("*.csv")))
def test_a_table_has_a_text_beside_it(name: str) -> None:
    assert (RESULTS / name).with_suffix(".txt").is_file()
