"""Tails, p-values and intervals of a truncated normal variable, against plain probabilities."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from scipy.stats import t as student
from support.inside import Truncated

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
        variable = Truncated(x, pieces, pieces)
        found = [variable.log_odds(mean, upper) for upper in (False, True)]
        assert found == pytest.approx([plain_log_odds(pieces, mean, x)] * 2, rel=1e-9, abs=1e-9)


def test_without_truncation_all_is_that_of_a_normal_variable() -> None:
    variable = Truncated(2.5, WHOLE, WHOLE)
    assert variable.p_value() == pytest.approx([2.0 * norm.sf(2.5)] * 2)
    assert variable.interval(0.9) == pytest.approx(2.5 + norm.ppf([0.05, 0.95]))


@pytest.mark.parametrize("degrees", [3.0, 30.0, 47.0, 5000.0, 1e6])
def test_without_truncation_an_estimated_variance_gives_the_t_test(degrees: float) -> None:
    for x in (0.1, 2.5, 25.0):
        variable = Truncated(x, WHOLE, WHOLE, degrees)
        assert variable.p_value() == pytest.approx([2.0 * student.sf(x, degrees)] * 2, rel=1e-9)
        assert variable.interval(0.9) == pytest.approx(x + student.ppf([0.05, 0.95], degrees))


def student_mass(low, high, x, mean, degrees):
    """The integral over an interval of the density relative to that at x."""
    most = np.sqrt(degrees + (x - mean) ** 2)
    low, high = max(low, mean - most), min(high, mean + most)
    if low >= high:
        return 0.0

    def density(z):
        return max(1 + (x - z) * (x + z - 2 * mean) / degrees, 0) ** (degrees / 2 - 1)

    return quad(density, low, high, epsabs=0.0, limit=200)[0]


@pytest.mark.parametrize("degrees", [3.0, 30.0, 200.0, 1e6])
def test_odds_with_an_estimated_variance_are_those_of_plain_integrals(degrees: float) -> None:
    random = np.random.default_rng(int(degrees))
    for _ in range(40):
        pieces, x = drawn(random)
        pieces, mean = np.clip(pieces, -20.0, 20.0), 2.0 * random.standard_normal()
        law = x, mean, degrees
        right = sum(student_mass(max(a, x), b, *law) for a, b in pieces if b > x)
        left = sum(student_mass(a, min(b, x), *law) for a, b in pieces if a < x)
        variable = Truncated(x, pieces, pieces, degrees)
        found = [variable.log_odds(mean, upper) for upper in (False, True)]
        assert found == pytest.approx([np.log(right / left)] * 2, rel=1e-6, abs=1e-6)


def test_far_tails_of_many_degrees_are_those_of_the_normal_law() -> None:
    pieces = np.array([[40.0, np.inf]])
    normal = Truncated(40.1, pieces, pieces).log_odds(0.0, True)
    found = Truncated(40.1, pieces, pieces, 1e9).log_odds(0.0, True)
    assert found == pytest.approx(normal, rel=1e-5)
    # On both sides of 30 standard errors, where the formula changes.
    ends, degrees = np.array([30.0 * (1.0 - 1e-12), 30.0 * (1.0 + 1e-12)]), 1e5
    near, far = Truncated(0.0, WHOLE, WHOLE, degrees).log_tail(ends, 0.0)
    assert near == pytest.approx(far, abs=1e-8)


def test_the_interval_holds_the_means_that_are_not_rejected() -> None:
    random = np.random.default_rng(1)
    for _ in range(100):
        pieces, x = drawn(random)
        variable, odds = Truncated(x, pieces, pieces), np.log(0.95 / 0.05)
        for end, value in zip(variable.interval(0.9), (-odds, odds), strict=True):
            if np.isfinite(end):
                assert variable.log_odds(end, value < 0.0) == pytest.approx(value, abs=1e-6)


def test_tails_far_out_keep_their_digits() -> None:
    pieces = np.array([[40.0, np.inf]])
    # Beyond 40 the density falls like exp(−40t), but for a share of 1/1600.
    assert Truncated(40.1, pieces, pieces).log_odds(0.0, False) == pytest.approx(
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
    assert variable.log_mass(nothing, 0.0) == -np.inf


@pytest.mark.parametrize("degrees", [30.0, 1e4, np.inf])
def test_a_number_next_to_an_edge_excludes_0_where_its_p_value_is_small(degrees: float) -> None:
    random, small = np.random.default_rng(6), 0
    for _ in range(200):
        pieces, _ = drawn(random)
        low, high = np.clip(pieces[random.integers(len(pieces))], -40.0, 40.0)
        share = random.choice([1e-11, 1e-9, 1e-6, 1e-3])
        x = low + (high - low) * random.choice([share, 1.0 - share])
        if not low < x < high:
            continue
        variable = Truncated(x, pieces, pieces, degrees)
        (p, _), (start, end) = variable.p_value(), variable.interval(0.95)
        assert start <= end
        assert (start <= 0.0 <= end) == (p >= 0.05)
        small += p < 1e-5
    assert small > 10


def test_a_p_value_below_all_numbers_is_bounded_by_0() -> None:
    line = np.array([[-np.inf, np.inf]])
    assert Truncated(50.0, line, line).p_value()[0] == 0.0
