"""Tests of tables read files in small pieces, as large files are read."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("text", "sources"):
            patch.setattr(f"sparsecv.tables.{module}.CELLS_AT_A_TIME", 20)
        yield
