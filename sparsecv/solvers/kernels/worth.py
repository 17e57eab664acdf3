"""What a column is worth to a model at most, for a given slope of the objective.

Every search under constraints on columns asks here: the dual bound of branch and bound and its
relaxations, leaps and bounds over units, and the forward steps over units.
"""

from __future__ import annotations

from .compiled import kernel


@kernel(inner=True)
def column_worth(slope, w, low, high):
    """The largest 2·slope·β − wβ² over low ≤ β ≤ high, where low ≤ 0 ≤ high and w > 0.

    This is the convex conjugate of wβ² on [low, high] at 2·slope. Without bounds it is slope²/w.
    """
    beta = min(max(slope / w, low), high)
    return beta * (2.0 * slope - w * beta)


@kernel(inner=True)
def most_worth(slope, off, w, low, high):
    """The largest :func:`column_worth` of slopes from slope − off to slope + off.

    The worth is a convex function of the slope, so that one of the ends has the largest.
    """
    return max(
        column_worth(slope + off, w, low, high),
        column_worth(slope - off, w, low, high),
    )


@kernel
def unit_worths(unit, slope, w, low, high, worth):
    """Write to ``worth`` (m,) the sums of the columns' worth in every unit.

    A unit is a group of columns that enter a model together. unit: (p,), the unit of each column.
    """
    for u in range(worth.shape[0]):
        worth[u] = 0.0
    for j in range(unit.shape[0]):
        worth[unit[j]] += column_worth(slope[j], w[j], low[j], high[j])
