"""The choice among (γ, τ), its certificate, and tables of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.inside import CVResult, least_is_proved, make_folds


def one(gamma: float, error: list[float], **changes: Any) -> dict[str, Any]:
    """A result at one γ with τ = 1..k; exact unless told otherwise."""
    h = np.array(error)
    values: dict[str, Any] = {
        "gamma": gamma,
        "taus": np.arange(1, h.size + 1, dtype=np.intp),
        "cv_error": h,
        "std_error": np.full(h.size, 0.1),
        "lower": h.copy(),
        "upper": h.copy(),
        "exact": np.ones(h.size, dtype=bool),
        "n_mio": 3,
        "n_nodes": 17,
        "mio_by_tau": np.full(h.size, 3, dtype=np.intp),
        "seconds": 0.5,
        "supports": [np.array([0]), np.array([0, 2])],
        "choice": np.zeros((h.size, 4), dtype=np.intp),
        "models": [np.arange(s + 1) for s in range(h.size)],
        "model_objective": np.ones(h.size),
        "model_bound": np.full(h.size, 0.9),
        "model_proved": np.ones(h.size, dtype=bool),
        "status": "optimal",
    }
    return {**values, **changes}


def together(*results: dict[str, Any]) -> CVResult:
    tables = {name: [values[name] for values in results] for name in results[0]}
    gammas, taus = np.array(tables["gamma"]), results[0]["taus"]
    return CVResult(make_folds("loo", 4), gammas, taus, tables, 1.0)


def test_least_error_is_chosen() -> None:
    result = together(one(0.1, [3.0, 2.0, 2.5]), one(1.0, [3.0, 1.5, 2.0]))
    best = result.best()
    assert (best.gamma, best.tau, best.cv_error) == (1.0, 2, 1.5)
    assert (best.gamma_index, best.tau_index) == (1, 1)
    assert least_is_proved(result)
    assert best.lower_bound == best.upper == 1.5


def test_ties_go_to_the_smaller_tau_then_the_larger_gamma() -> None:
    result = together(one(0.1, [2.0, 2.0]), one(10.0, [2.0, 2.0]), one(1.0, [2.0, 2.0]))
    best = result.best()
    assert (best.gamma, best.tau) == (10.0, 1)
    assert least_is_proved(result)
    near = 2.0 * (1 + 5e-10)
    result = together(one(0.1, [3.0, near, 2.0]))
    assert result.best().tau == 2
    assert least_is_proved(result)
    assert together(one(0.1, [3.0, 2.0 * (1 + 1e-6), 2.0])).best().tau == 3


@pytest.mark.parametrize(
    ("error", "spread", "tau"),
    [
        ([3.0, 2.05, 2.0, 2.1], 0.1, 2),
        ([2.05, 3.0, 2.0, 2.1], 0.1, 1),
        ([3.0, 2.2, 2.0, 1.9], 0.05, 4),
        ([3.0, 2.0, 1.9, 1.8], 10.0, 1),
    ],
)
def test_one_standard_error_rule(error: list[float], spread: float, tau: int) -> None:
    best = together(one(0.1, error, std_error=np.full(4, spread))).best()
    assert best.one_se == tau
    assert best.one_se <= best.tau
    assert best.one_se_gamma_index == 0


def test_one_standard_error_rule_looks_at_every_gamma() -> None:
    spread = np.full(3, 0.1)
    least = one(0.1, [3.0, 2.5, 2.0], std_error=spread)
    result = together(least, one(1.0, [2.09, 2.06, 2.2]), one(10.0, [2.08, 2.3, 2.2]))
    best = result.best()
    assert (best.tau, best.gamma) == (3, 0.1)
    assert (best.one_se, best.one_se_gamma_index) == (1, 2)


def test_certificates() -> None:
    h = np.array([3.0, 2.0, 2.5])
    exact = np.array([True, True, False])
    # the open one cannot be better: certified all the same
    settled = one(1.0, [3.0, 2.0, 2.5], exact=exact, lower=np.array([3.0, 2.0, 2.2]))
    assert least_is_proved(together(settled))
    assert not together(settled).complete
    # it might be: not certified, and the bound says how much
    unsettled = one(1.0, [3.0, 2.0, 2.5], exact=exact, lower=np.array([3.0, 2.0, 1.9]))
    assert not least_is_proved(together(unsettled))
    assert together(unsettled).best().lower_bound == 1.9
    # another γ matters too
    assert not least_is_proved(together(one(0.1, h.tolist()), unsettled))
    # the chosen one itself is open
    chosen = np.array([True, False, True])
    itself = one(1.0, [3.0, 2.0, 2.5], exact=chosen, lower=h - 1.0, upper=h + 1.0)
    best = together(itself).best()
    assert not least_is_proved(together(itself))
    assert (best.lower_bound, best.upper) == (1.0, 3.0)
    # equal bounds without a proof that the interval is closed
    assert not least_is_proved(together(one(1.0, [3.0, 2.0, 2.5], exact=chosen)))


def test_zero_error() -> None:
    result = together(one(1.0, [0.0, 0.0], std_error=np.zeros(2)))
    best = result.best()
    assert (best.tau, best.cv_error, best.one_se) == (1, 0.0, 1)
    assert least_is_proved(result)


def test_tables() -> None:
    result = together(one(0.1, [3.0, 2.0]), one(1.0, [4.0, 5.0]))
    np.testing.assert_array_equal(result.table("cv_error"), [[3.0, 2.0], [4.0, 5.0]])
    np.testing.assert_array_equal(result.table("n_nodes"), [17, 17])
    assert result.table("mio_by_tau").shape == (2, 2)
    assert result.complete
