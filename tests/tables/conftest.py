"""Tests of tables read files in small pieces, as large files are read."""

from collections.abc import Iterator

import pytest
from support.stand_ins import standing_in


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with standing_in(CELLS_OF_TEXT_AT_A_TIME=20, CELLS_AT_A_TIME=20):
        yield
