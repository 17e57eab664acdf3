"""Values of command-line options."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv.cli.grids import parse_gammas, parse_taus
from sparsecv.errors import InputError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5", [0.5]),
        ("1e-4", [1e-4]),
        (" 3 ", [3.0]),
        ("0.1,1,10", [0.1, 1.0, 10.0]),
        ("10, 0.1", [10.0, 0.1]),
        ("1:100:3", [1.0, 10.0, 100.0]),
        ("1e-4:1e4:9", [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3, 1e4]),
        ("2:2:1", [2.0]),
    ],
)
def test_gammas(text: str, values: list[float]) -> None:
    np.testing.assert_allclose(parse_gammas(text), values, rtol=1e-14)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1,,2", "1,x", "1:2", "1:2:", "1:2:0", "1:2:1", "1:2:-3", "1:2:2.5"),
        *("2:1:3", "0:1:3"),
        *("-1:1:3", "1:inf:3", "nan:1:3", "1:2:3:4", "1:2,3", "1:10:999999999999"),
    ],
)
def test_gamma_syntax(text: str) -> None:
    with pytest.raises(InputError, match="--gamma") as caught:
        parse_gammas(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1,-2", "1e400"])
def test_gammas_are_finite_and_at_least_zero(text: str) -> None:
    with pytest.raises(InputError, match="gamma must be finite and >= 0"):
        parse_gammas(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3]),
        ("1:4", [1, 2, 3, 4]),
        (" 2 : 2 ", [2]),
        ("5,2,8", [5, 2, 8]),
        ("0", [0]),  # the range is checked once p is known
    ],
)
def test_taus(text: str, values: list[int]) -> None:
    found = parse_taus(text)
    assert found is not None
    assert found.tolist() == values


@pytest.mark.parametrize("text", ["all", " ALL "])
def test_all_taus(text: str) -> None:
    assert parse_taus(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1.5", "1,", "4:2", "1:2:3", ":", "1:"),
        *("1:99999999999", "99999999999999999999", "1:99999999999999999999"),
    ],
)
def test_tau_syntax(text: str) -> None:
    with pytest.raises(InputError, match="--tau") as caught:
        parse_taus(text)
    assert repr(text) in str(caught.value)
