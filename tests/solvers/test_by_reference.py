"""Records that kernels receive as one address."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import config
from support.inside import Kernel, kernel

from sparsecv.solvers.kernels.by_reference import by_reference

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


@by_reference()
class Inner(NamedTuple):
    values: np.ndarray
    pair: tuple[np.ndarray, float]


class ByValue(NamedTuple):
    inner: Inner
    table: np.ndarray
    special: int
    scale: float = 2.0


@by_reference()
class Outer(ByValue):
    pass


@by_reference(zeros=("special",))
class Usual(ByValue):
    pass


@kernel(inner=True)
def for_special_records(record):  # type: ignore[no-untyped-def]
    return record.table[0, 0] * 1000.0


@kernel(inner=True)
def total(inner):  # type: ignore[no-untyped-def]
    inner.values[0] += 1.0
    return inner.values.sum() + inner.pair[0][1] * inner.pair[1]


@kernel
def everything(record, again):  # type: ignore[no-untyped-def]
    found = total(record.inner) * record.scale + record.table[1, 0]
    for i in range(again):
        made = Inner(record.table[i], (record.inner.values, 0.5))
        found += total(made)
    if record.special > 0:
        found += for_special_records(record)
    return found


@kernel(inner=True)
def rare(record):  # type: ignore[no-untyped-def]
    return record.scale


@kernel
def usual(record):  # type: ignore[no-untyped-def]
    return rare(record) if record.special > 0 else 0.0


def arrays() -> tuple[Inner, np.ndarray]:
    values, table = np.arange(3.0), np.arange(8.0).reshape(2, 4)
    return Inner(values, (np.array([1.0, 7.0]), 3.0)), table


@pytest.mark.parametrize("again", [0, 2])
@pytest.mark.parametrize(("kind", "special"), [(Usual, 0), (Outer, 0), (Outer, 1)])
def test_a_kernel_reads_the_fields_of_a_record(kind: type, special: int, again: int) -> None:
    """Nested records, tuples, numbers, arrays, and records that a kernel has made."""
    inner, table = arrays()
    values = 3.0  # the sum of ``inner.values``, which total() adds 1 to in every call
    wanted = (values + 1.0 + 7.0 * 3.0) * 2.0 + 4.0
    rows = table.copy()
    for i in range(again):
        rows[i, 0] += 1.0
        wanted += rows[i].sum() + 1.0 * 0.5
    wanted += special * rows[0, 0] * 1000.0
    assert everything(kind(inner, table, special), again) == wanted
    np.testing.assert_array_equal(inner.values, [1.0, 1.0, 2.0])
    np.testing.assert_array_equal(table, rows)


def test_code_for_special_records_is_compiled_only_for_these() -> None:
    if not isinstance(rare, Kernel):
        pytest.skip("numba's own decorator is used")
    inner, table = arrays()
    assert usual(Usual(inner, table, 0)) == 0.0
    assert not rare.overloads
    assert usual(Outer(inner, table, 3)) == 2.0
    assert len(rare.overloads) == 1
    assert usual(Usual(inner, table, 0)) == usual(Outer(inner, table, 0)) == 0.0
    assert len(usual.overloads) == 2


def test_a_field_that_is_not_there() -> None:
    @kernel
    def wrong(record):  # type: ignore[no-untyped-def]
        return record.nothing

    inner, table = arrays()
    with pytest.raises(Exception, match="nothing"):
        wrong(Outer(inner, table, 0))
