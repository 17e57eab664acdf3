"""Ends of confidence intervals where every mean has a set of its own that the coefficient lies in.

Whether a mean is rejected is then no monotone function of the mean, and the means that are not
rejected may be several stretches. An interval is to hold all of them.

Without it an inference has p-values and no intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_root

from .truncated import Array, Truncated

# The laws of coefficients, of which the places are given, at means, one for each place.
Laws = Callable[[NDArray[np.intp], Array], Sequence[Truncated]]
# Means are tried at these distances from an estimate, in standard errors, before an end is looked
# for between two of them. The last one is so many lengths of the estimate where that is farther.
# Choices: stretches that lie between two neighbours are missed.
NEAREST, FARTHEST, LENGTHS, DISTANCES = 0.25, 2.0**14, 16.0, 33
# A bound on the tail at an end is (1 − level)/2 but for a share of at most SETTLED. Where a bracket
# of the end becomes shorter than the share END_TOLERANCE of the end, or has been made smaller
# MOST_STEPS times, without that, there is no such end. Most ends take six to ten steps. Choices.
SETTLED, END_TOLERANCE, MOST_STEPS = 1e-6, 1e-13, 60
# The bound and the tail itself may differ by this share of it, as rounding leaves open where the
# set begins. A choice.
CERTAIN = 1e-4


def ends_of_own_sets(laws: Laws, estimates: Array, level: float) -> Array:
    """Ends of intervals, shape (d, 2): the outermost means at which a tail is (1 − level)/2.

    Every finite end has this tail, up to a share of CERTAIN, within the set that belongs to it. An
    end is infinite where the outermost mean that is tried is not rejected, where no mean with this
    tail was found, or where rounding or a limit leaves open which tail it has. The
    mean 0 is tried, so that the interval holds it where its test does not reject it.

    laws: Gives the laws of coefficients, by their positions, at means, one for each position.
    estimates, shape (d,): The coefficients, in standard errors, as means and ends are.
    level: The probability with which an interval holds its coefficient, between 0 and 1.
    """
    far = np.maximum(FARTHEST, LENGTHS * np.abs(estimates))
    away = np.geomspace(np.full_like(far, NEAREST), far, DISTANCES, axis=1)
    x = estimates[:, None]
    means = np.sort(np.hstack([x - away, x, x + away, np.zeros_like(x)]), axis=1)
    d, tried = means.shape
    here = laws(np.repeat(np.arange(d), tried), means.ravel())
    ends = np.tile([-np.inf, np.inf], (d, 1))
    brackets: list[tuple[int, bool, float, float]] = []
    for place, mine in enumerate(means):
        own = list(zip(here[place * tried : (place + 1) * tried], mine.tolist(), strict=True))
        for lower in (True, False):
            excess = np.array([law.excess(mean, level, lower) for law, mean in own])
            kept = np.flatnonzero(excess >= 0.0 if lower else excess <= 0.0)
            if kept.size and (kept[0] > 0 if lower else kept[-1] < tried - 1):
                at = kept[0] - 1 if lower else kept[-1]
                brackets.append((place, lower, mine[at], mine[at + 1]))
    if not brackets:
        return ends
    places, lowers, start, end = (np.array(part) for part in zip(*brackets, strict=True))

    def excess_at(means: Array, numbers: NDArray[np.intp]) -> Array:
        some = zip(laws(places[numbers], means), means.tolist(), lowers[numbers], strict=True)
        return np.array([law.excess(mean, level, bool(lower)) for law, mean, lower in some])

    found = find_root(
        excess_at,
        (start, end),
        args=(np.arange(places.size),),
        tolerances={"xatol": 0.0, "xrtol": END_TOLERANCE, "fatol": SETTLED, "frtol": 0.0},
        maxiter=MOST_STEPS,
    )
    right = np.abs(found.f_x) <= SETTLED
    for i, law in enumerate(laws(places, found.x)):
        odds = [law.log_odds(float(found.x[i]), upper) for upper in (False, True)]
        right[i] &= odds[1] - odds[0] <= CERTAIN
    ends[places[right], np.where(lowers, 0, 1)[right]] = found.x[right]
    return ends
