"""Values of γ, τ and λ from the texts of command-line options."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cv.settings import checked_gammas, log_grid
from ..design.design import Array
from ..errors import InputError

# A range with more values is refused: each would be a row of the results, and a wrong digit in a
# range would fill the memory.
MAX_RANGE_VALUES = 100_000


def parse_gammas(text: str, option: str = "--gamma") -> Array | None:
    """Read --gamma: auto (None), a number, a comma-separated list, or LO:HI:N log-spaced.

    option: For messages.
    Raises InputError: Any other text, or a value that is not finite and > 0.
    """
    if text.strip().lower() == "auto":
        return None
    parts = text.split(":")
    try:
        if len(parts) == 1:
            return checked_gammas([float(part) for part in text.split(",")])
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        if len(parts) != 3 or not 0 < low <= high or not np.isfinite(high):
            raise ValueError
    except InputError:
        raise
    except (ValueError, IndexError):
        raise InputError(
            f"{option} must be auto, a number, a list like 0.1,1,10 or LO:HI:N; got {text!r}"
        ) from None
    if not 1 <= count <= MAX_RANGE_VALUES:
        raise InputError(f"{option} LO:HI:N takes N from 1 to {MAX_RANGE_VALUES}; got {text!r}")
    if count == 1 and low != high:
        raise InputError(f"{option} LO:HI:1 is one value: give LO alone; got {text!r}")
    return log_grid(low, high, count)


def parse_weights(text: str) -> Array:
    """Read --lambda: a number, a comma-separated list of numbers ≥ 0, or LO:HI:N log-spaced.

    Raises InputError: Any other text, or a negative number.
    """
    if ":" in text and (found := parse_gammas(text, "--lambda")) is not None:
        return found
    try:
        values = np.array([float(part) for part in text.split(",")])
    except ValueError:
        values = np.array([np.nan])
    if not (np.isfinite(values).all() and (values >= 0.0).all()):
        raise InputError(f"--lambda must be numbers >= 0 or LO:HI:N; got {text!r}")
    return values


def parse_taus(text: str) -> NDArray[np.intp] | None:
    """Read --tau: "all" (None), A:B inclusive, or a comma-separated list.

    Raises InputError: Any other text.
    """
    if text.strip().lower() == "all":
        return None
    parts = text.split(":")
    try:
        if len(parts) == 2:
            low, high = int(parts[0]), int(parts[1])
            if low > high or high - low >= MAX_RANGE_VALUES:
                raise ValueError
            return np.arange(low, high + 1, dtype=np.intp)
        return np.array([int(part) for part in text.split(",")], dtype=np.intp)
    except (ValueError, OverflowError):
        raise InputError(f"--tau must be all, A:B or a list like 2,5,8; got {text!r}") from None
