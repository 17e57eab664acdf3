"""Tests of tables read text in pieces of few rows, as files of many rows are read."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparsecv.tables.text.CELLS_AT_A_TIME", 20)
        yield
