"""Tails, p-values and intervals of a truncated normal variable, against plain probabilities."""

import numpy as np
import pytest
from scipy.stats import norm

from sparsecv.selection.truncated_normal import Truncated, log_mass

WHOLE = np.array([[-np.inf, np.inf]])


def plain_log_odds(pieces, mean, x):
    def mass(low, high):
        if high <= low:
            return 0.0
        if low > mean:
            return norm.sf(low - mean) - norm.sf(high - mean)
        return norm.cdf(high - mean) - norm.cdf(low - mean)

    right = sum(mass(max(a, x), b) for a, b in pieces)
    left = sum(mass(a, min(b, x)) for a, b in pieces)
    return np.log(right / left)


def drawn(random):
    ends = np.sort(3.0 * random.standard_normal(2 * int(random.integers(1, 5))))
    ends[0] = -np.inf if random.random() < 0.3 else ends[0]
    ends[-1] = np.inf if random.random() < 0.3 else ends[-1]
    pieces = ends.reshape(-1, 2)
    low, high = np.clip(pieces[random.integers(len(pieces))], -9.0, 9.0)
    return pieces, low + (high - low) * random.uniform(0.1, 0.9)


def test_odds_are_those_of_plain_probabilities() -> None:
    random = np.random.default_rng(0)
    for _ in range(500):
        pieces, x = drawn(random)
        mean = 2.0 * random.standard_normal()
        found = Truncated(x, pieces, pieces).log_odds(mean)
        assert found == pytest.approx([plain_log_odds(pieces, mean, x)] * 2, rel=1e-9, abs=1e-9)


def test_without_truncation_all_is_that_of_a_normal_variable() -> None:
    variable = Truncated(2.5, WHOLE, WHOLE)
    assert variable.p_value() == pytest.approx([2.0 * norm.sf(2.5)] * 2)
    assert variable.interval(0.9) == pytest.approx(2.5 + norm.ppf([0.05, 0.95]))


def test_the_interval_holds_the_means_that_are_not_rejected() -> None:
    random = np.random.default_rng(1)
    for _ in range(100):
        pieces, x = drawn(random)
        variable, odds = Truncated(x, pieces, pieces), np.log(0.95 / 0.05)
        for end, value in zip(variable.interval(0.9), (-odds, odds), strict=True):
            if np.isfinite(end):
                assert variable.log_odds(end) == pytest.approx([value] * 2, abs=1e-6)


def test_tails_far_out_keep_their_digits() -> None:
    pieces = np.array([[40.0, np.inf]])
    # Beyond 40 the density falls like exp(−40t), but for a share of 1/1600.
    assert Truncated(40.1, pieces, pieces).log_odds(0.0)[0] == pytest.approx(
        -np.log(np.expm1(4.0)), abs=0.02
    )
    narrow = np.array([[1.0 - 1e-4, 1.5]])
    low, _ = Truncated(1.0, narrow, narrow).interval(0.95)
    assert low == pytest.approx(np.log(0.025) / 1e-4, rel=1e-3)


def test_what_is_not_known_of_the_set_widens_everything() -> None:
    random = np.random.default_rng(2)
    for _ in range(100):
        pieces, x = drawn(random)
        inner = pieces[(pieces[:, 0] < x) & (x < pieces[:, 1])]
        sets = [pieces, inner, WHOLE]
        loose = Truncated(x, inner, WHOLE)
        p_low, p_high = loose.p_value()
        low, high = loose.interval(0.95)
        for known in sets:
            exact = Truncated(x, known, known)
            (p, _), (a, b) = exact.p_value(), exact.interval(0.95)
            assert p_low * (1.0 - 1e-9) <= p <= p_high * (1.0 + 1e-9)
            assert low <= a + 1e-6 * abs(a)
            assert b - 1e-6 * abs(b) <= high


def test_ends_are_infinite_where_one_side_is_not_known() -> None:
    nothing = np.empty((0, 2))
    variable = Truncated(0.0, nothing, WHOLE)
    assert variable.interval(0.95) == (-np.inf, np.inf)
    assert variable.p_value()[1] == 1.0
    assert log_mass(nothing, 0.0, 0.0) == -np.inf
