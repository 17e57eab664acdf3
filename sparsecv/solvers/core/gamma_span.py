"""Ranges of γ: what is a range, which γ lie evenly in it, and where a search divides it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..kernels.envelope import CELL_TOLERANCE

# Where a range begins at γ = 0, the first γ above 0 is this share of its upper end. A first cell
# that does not suffice is divided down to the square of the share. The value is a choice.
LEAST_GAMMA_SHARE = 1e-12


class GammaSpan(NamedTuple):
    """A range of γ, 0 ≤ low < high < ∞, which a search covers from end to end."""

    low: float = 1e-4
    high: float = 1e4

    @property
    def is_proper(self) -> bool:
        """Whether the ends satisfy 0 ≤ low < high < ∞."""
        return 0.0 <= self.low < self.high < np.inf

    def check(self) -> None:
        """Refuse a range that cannot be searched.

        Raises InputError: The ends do not satisfy 0 ≤ low < high < ∞.
        """
        if not self.is_proper:
            raise InputError(
                f"the range of gamma must have 0 <= low < high; got {self.low:g}, {self.high:g}"
            )

    @property
    def middle(self) -> float:
        """Where a search divides the range, as ``envelope.split_point`` divides one of t = γ/2."""
        # The product of the ends would be 0 or ∞ for ends next to the least or largest numbers.
        return float(np.sqrt(self.low) * np.sqrt(self.high)) if self.low > 0.0 else 0.01 * self.high

    @property
    def is_narrow(self) -> bool:
        """Whether the ends differ by too little to divide the range."""
        return self.high - self.low <= CELL_TOLERANCE * self.high

    @property
    def narrowest(self) -> float:
        """A part of the range that ends at this γ or below is not divided."""
        return LEAST_GAMMA_SHARE**2 * self.high

    def spaced(self, count: int) -> NDArray[np.float64]:
        """``count`` values of γ spaced evenly in the logarithm, up to ``high``.

        They begin at ``low``. Where ``low`` is 0, they begin at the share ``LEAST_GAMMA_SHARE`` of
        ``high``, and γ = 0 comes before them as one value more.

        count: At least 1; a single value is ``high``.
        """
        first = self.low or LEAST_GAMMA_SHARE * self.high
        gammas = np.geomspace(first, self.high, count)
        gammas[[0, -1]] = first, self.high
        return gammas if self.low > 0.0 else np.append(0.0, gammas)
