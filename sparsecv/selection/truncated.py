"""A coefficient that is known to lie in a set: tails, p-values, intervals of its mean.

The coefficient is normal with variance 1. Where the variance σ² is estimated instead, by s² = RSS/ν
that is independent of the coefficient, numbers count in units of s. Given ν + (x − μ)², x observed
and μ the mean, the coefficient then has a density proportional to

    (1 + (x − z)(x + z − 2μ)/ν)^(ν/2 − 1),

as far as the base is positive, whatever σ is. The normal density is the limit for ν → ∞. All masses
are logarithms relative to the density at x, so that sets far out in a tail keep their digits. A set
R is known between two unions of intervals, inner ⊂ R ⊂ outer; what is computed holds for every such
R.

Without it an inference knows the set and has neither p-values nor intervals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc, betaincc, betaln, erfcx

Array = NDArray[np.float64]
# Ends of confidence intervals are looked for up to so many standard errors away from the estimate.
# Beyond, an end counts as infinite, or as so far away, whichever makes the interval larger. The
# value is a choice.
MOST_STANDARD_ERRORS = 1e6


class Truncated(NamedTuple):
    """A coefficient, observed at x, that is conditioned to lie in a set.

    Numbers are in units of σ, or of s where σ is estimated, which are the standard errors of the
    coefficient. One of the outer intervals has x.

    inner, outer, shape (k, 2): Intervals that the set contains, and intervals that contain it.
    degrees: ν; ∞ where the variance is known.
    """

    x: float
    inner: Array
    outer: Array
    degrees: float = math.inf

    def p_value(self, mean: float = 0.0) -> tuple[float, float]:
        """The least and the largest two-sided p-value of a mean: twice the smaller tail, at most 1.

        The set is known between ``inner`` and ``outer``, and the p-value of every such set lies
        between the two numbers.
        """
        low, high = self.log_odds(mean, upper=False), self.log_odds(mean, upper=True)
        ends = [2.0 / (1.0 + math.exp(min(abs(odds), 700.0))) for odds in (low, high)]
        least = min(ends) if max(abs(low), abs(high)) <= 700.0 else 0.0
        return least, 1.0 if low <= 0.0 <= high else max(ends)

    def interval(self, level: float) -> tuple[float, float]:
        """The means whose two tails are both at least (1 − level)/2, or a larger interval.

        The ends are in standard errors, and may be infinite; ``level`` lies between 0 and 1.
        """
        return self.end(level, lower=True), self.end(level, lower=False)

    def log_odds(self, mean: float, upper: bool) -> float:
        """A lower or an upper bound on the logarithm of P(X ≥ x)/P(X ≤ x); it grows with the mean.

        Right of x the density, relative to that at x, grows with the mean, and left of x it falls.
        """
        right, left = (self.outer, self.inner) if upper else (self.inner, self.outer)
        above = self.log_mass(within(right, self.x, math.inf), mean)
        below = self.log_mass(within(left, -math.inf, self.x), mean)
        if above == below == -math.inf:
            return math.inf if upper else -math.inf
        return above - below

    def log_mass(self, intervals: Array, mean: float) -> float:
        """The logarithm of the mass on intervals (k, 2), relative to the density at x."""
        sides = (-math.inf, mean), (mean, math.inf)
        tails = self.log_tail(np.vstack([within(intervals, *side) for side in sides]), mean)
        first, last = tails.max(axis=1), tails.min(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(first > last, first + np.log(-np.expm1(last - first)), -np.inf)
        return float(np.logaddexp.reduce(found, initial=-np.inf))

    def log_tail(self, ends: Array, mean: float) -> Array:
        """The logarithm of the mass beyond each end, on the end's side of the mean.

        The mass is relative to the density at x, as in :meth:`log_mass`. It is the density at the
        end times the ratio of Mills, the mass of a tail over the density where the tail begins. For
        finite ν the mass of a tail is an incomplete beta function. Far out this function is below
        the least floating-point number, and nine terms of a series give the ratio but for a share
        of 1e-14. For ν → ∞ it becomes the series Σ (−1)ⁿ (1·3⋯(2n−1)) / t²ⁿ of the normal tail at
        a distance t, divided by t.
        """
        nu, a = self.degrees, 0.5 * self.degrees
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            moved = (self.x - ends) * (self.x + ends - 2.0 * mean)
            if math.isinf(nu):
                ratio = erfcx(np.abs(ends - mean) / math.sqrt(2.0)) * math.sqrt(0.5 * math.pi)
                return np.where(np.isinf(ends), -np.inf, 0.5 * moved + np.log(ratio))
            square, log_square = nu + (self.x - mean) ** 2, math.log1p((self.x - mean) ** 2 / nu)
            log_base = np.log1p(np.maximum(moved / nu, -1.0))
            y, u = np.exp(log_base - log_square), (ends - mean) ** 2 / square
            share = np.where(u < 0.5, betaincc(0.5, a, np.minimum(u, 1.0)), betainc(a, 0.5, y))
            near = np.log(0.5 * share) + betaln(a, 0.5) + (a - 1.0) * log_square
            n = np.arange(8)
            series = np.cumprod(np.append(1.0, -(n + 0.5) / (a + 1.0 + n)))
            mills = np.polyval(series[::-1], y / u) / (nu * np.sqrt(u))
            far = np.log(mills) + a * log_base - log_square
            beyond = np.where(nu * u < 900.0 * y, near, far) + 0.5 * math.log(square)
            return np.where(y > 0.0, beyond, -np.inf)

    def excess(self, mean: float, level: float, lower: bool) -> float:
        """By how much the log-odds of a mean exceed those at an end of the interval.

        lower: Whether the lower end is meant, below which the excess is negative, and means are
            rejected. Means above the upper end are rejected, and have a positive excess.
        """
        tail = 0.5 * (1.0 - level)
        odds = math.log((1.0 - tail) / tail) * (-1.0 if lower else 1.0)
        return float(np.clip(self.log_odds(mean, lower) - odds, -1e300, 1e300))

    def end(self, level: float, lower: bool) -> float:
        """The lower or the upper end of the interval, or a number beyond that end."""

        def beyond(mean: float) -> float:
            return self.excess(mean, level, lower)

        step = 1.0
        while True:
            low, high = self.x - step, self.x + step
            below, above = beyond(low), beyond(high)
            if below <= 0.0 <= above:
                return float(brentq(beyond, low, high, xtol=1e-12, rtol=1e-14))
            if step > MOST_STANDARD_ERRORS:  # The nearer of the two makes the interval larger.
                break
            step *= 2.0
        if below > 0.0:
            return -math.inf if lower else low
        return high if lower else math.inf


def within(intervals: Array, start: float, end: float) -> Array:
    """What intervals (k, 2) have in common with one interval, shape (m, 2); no empty intervals."""
    some = np.clip(intervals, start, end)
    return some[some[:, 0] < some[:, 1]]
