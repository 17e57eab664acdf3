"""Which of several supports is the answer where their objectives are equal up to rounding.

The rule is the same for every search: of supports that tie the lexicographically first is taken.
Two supports tie where their fits, each by a fresh QR factorisation, differ by at most ``TIE``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.linalg import Array
from .subset_fit import SubsetFit

# Values tie that differ by at most this share of the smaller of the objective f and the gain
# yᵀy − f. It is the error of a QR factorisation, about 1e-12 in tests.
TIE = 1e-12


def ranking(fits: Sequence[SubsetFit], supports: Sequence[Any]) -> list[int]:
    """The order of some fits, the best first; those that tie are in the order of their columns.

    Where the gain yᵀy − f of the best fit is smaller than its objective f, gains are compared, as
    they keep more digits.

    supports: One per fit, increasing columns.
    """
    if not fits:
        return []
    best = min(fits, key=lambda fit: fit.objective)
    by_gain = best.gain < best.objective
    values = [-fit.gain if by_gain else fit.objective for fit in fits]
    return ties_in_order(np.array(values), [tuple(support) for support in supports])


def ties_in_order(values: Array, keys: Sequence[Any]) -> list[int]:
    """The order of some values, the least first; those tie that exceed the least by at most TIE.

    Of the values above those that tie with the least, the least is taken in the same way.

    keys: They order the values that tie.
    """
    group, least, pairs = 0, -math.inf, list[tuple[int, int]]()
    for i in np.argsort(values, kind="stable").tolist():
        if values[i] - least > TIE * abs(values[i]):
            group, least = group + 1, float(values[i])
        pairs.append((group, i))
    return [i for _, i in sorted(pairs, key=lambda pair: (pair[0], keys[pair[1]]))]
