"""A normal variable of variance 1 that is known to lie in a set: tails, p-values, intervals.

All masses are logarithms relative to the density at the observed number, so that sets far out in a
tail keep their digits. A set R is known between two unions of intervals, inner ⊂ R ⊂ outer; what is
computed holds for every such R.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

Array = NDArray[np.float64]
# Ends of confidence intervals are looked for up to so many standard errors away from the estimate.
# Beyond, they count as infinite. The value is a choice.
MOST_STANDARD_ERRORS = 1e6


class Truncated(NamedTuple):
    """A normal variable of variance 1, observed at x, that is conditioned to lie in a set.

    inner, outer, shape (k, 2): Intervals that the set contains, and intervals that contain it.
    """

    x: float
    inner: Array
    outer: Array

    def p_value(self) -> tuple[float, float]:
        """The least and the largest two-sided p-value of the mean 0: twice the smaller tail."""
        low, high = self.log_odds(0.0)
        ends = [2.0 / (1.0 + math.exp(min(abs(odds), 700.0))) for odds in (low, high)]
        return min(ends), 1.0 if low <= 0.0 <= high else max(ends)

    def interval(self, level: float) -> tuple[float, float]:
        """The means whose two tails are both at least (1 − level)/2, or a larger interval."""
        tail = 0.5 * (1.0 - level)
        odds = math.log((1.0 - tail) / tail)
        return self._end(1, -odds, -1.0), self._end(0, odds, 1.0)

    def log_odds(self, mean: float) -> tuple[float, float]:
        """Bounds on the logarithm of P(X ≥ x)/P(X ≤ x); both grow with the mean."""
        right, left = (np.array([[self.x, np.inf]]), np.array([[-np.inf, self.x]]))
        inner, outer = (
            [log_mass(within(some, side), mean, self.x) for side in (left, right)]
            for some in (self.inner, self.outer)
        )
        low = -np.inf if inner[1] == -np.inf else inner[1] - outer[0]
        high = np.inf if inner[0] == -np.inf else outer[1] - inner[0]
        return float(low), float(high)

    def _end(self, bound: int, odds: float, side: float) -> float:
        """The mean at which a bound of the log-odds has a value; ±∞ where it is too far away.

        bound: 0 for the lower bound, 1 for the upper one. side: The sign of the infinite end.
        """

        def beyond(mean: float) -> float:
            return float(np.clip(self.log_odds(mean)[bound] - odds, -1e300, 1e300))

        low, high, step = self.x - 1.0, self.x + 1.0, 1.0
        while beyond(low) > 0.0 or beyond(high) < 0.0:
            step *= 2.0
            low, high = self.x - step, self.x + step
            if step > MOST_STANDARD_ERRORS:
                return side * math.inf
        return float(brentq(beyond, low, high, xtol=1e-12, rtol=1e-14))


def within(intervals: Array, side: Array) -> Array:
    """What intervals (k, 2) have in common with one interval, shape (1, 2)."""
    low, high = np.maximum(intervals[:, 0], side[0, 0]), np.minimum(intervals[:, 1], side[0, 1])
    return np.asarray(np.column_stack([low, high])[low < high])


def log_mass(intervals: Array, mean: float, x: float) -> float:
    """The logarithm of the mass of a normal variable on intervals (k, 2), less that density at x.

    An interval on one side of the mean has the difference of two tails, each a density times the
    ratio of Mills.
    """
    if not len(intervals):
        return -math.inf
    a, b = intervals.T
    # Intervals below the mean are mirrored, so that both ends lie above the mean.
    sign = np.where(b <= mean, -1.0, 1.0)
    near, far = np.where(sign < 0.0, b, a), np.where(sign < 0.0, a, b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first, last = (_log_tail(end, sign, mean, x) for end in (near, far))
        tails = first + np.log(-np.expm1(np.minimum(last - first, 0.0)))
        around = np.log(ndtr(b - mean) - ndtr(a - mean)) + 0.5 * (x - mean) ** 2
    around += 0.5 * math.log(2.0 * math.pi)
    found = np.where((a < mean) & (mean < b), around, tails)
    most = float(found.max())
    return most if most == -math.inf else most + math.log(float(np.exp(found - most).sum()))


def _log_tail(ends: Array, sign: Array, mean: float, x: float) -> Array:
    """log P(X beyond an end) less the logarithm of the density at x.

    sign: 1 for ends above the mean, −1 for those below it.
    """
    distance, away = np.maximum(sign * (ends - mean), 0.0), abs(x - mean)
    mills = erfcx(distance / math.sqrt(2.0)) * math.sqrt(0.5 * math.pi)
    # Where x lies on the same side, the difference of the distances does not depend on the mean.
    further = np.where(sign * (x - mean) >= 0.0, sign * (ends - x), distance - away)
    exponent = -0.5 * further * (distance + away)
    return np.asarray(np.where(np.isinf(ends), -np.inf, exponent + np.log(mills)))
