"""Reads values of γ and τ, and a time limit, from the texts of command-line options."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import schedule
from ..cv.settings import asked_gammas, checked_gammas
from ..design.design import Array
from ..errors import InputError
from ..selection.criteria import SIZE_CRITERIA
from ..solvers.core.gamma_span import GammaSpan

# A range of γ or τ that stands for more values is refused, and so is a count above this number:
# every value is a row of the results, and a wrong digit could fill the memory. Lists with commas
# have no limit. The number is a choice.
MAX_RANGE_VALUES = 100_000


def parse_asked_gammas(text: str) -> Array | GammaSpan | None:
    """What --gamma asks for: values, a range ("global" or "global:LO:HI"), or None for "auto".

    Raises InputError: The text cannot be read, or has a value that no γ may have.
    """
    if text.strip().lower().startswith("global"):
        return asked_gammas(text)
    return parse_gammas(text)


def parse_gammas(text: str) -> Array | None:
    """Values of γ from a number, a list with commas, or LO:HI:N; None for "auto".

    LO:HI:N stands for N values from LO to HI, equally spaced in the logarithm; 0 < LO ≤ HI, and N
    is at most MAX_RANGE_VALUES.

    Raises InputError: The text has another form; or a value is negative or not finite, or 0 as LO.
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
    except InputError:  # It is a ValueError, but its message says what is wrong with a value.
        raise
    except (ValueError, IndexError):
        raise InputError(
            f"--gamma must be auto, a number, a list like 0.1,1,10 or LO:HI:N; got {text!r}"
        ) from None
    if not 1 <= count <= MAX_RANGE_VALUES:
        raise InputError(f"--gamma LO:HI:N takes N from 1 to {MAX_RANGE_VALUES}; got {text!r}")
    if count == 1 and low != high:
        raise InputError(f"--gamma LO:HI:1 is one value: give LO alone; got {text!r}")
    return np.geomspace(low, high, count)


def parse_taus(text: str) -> NDArray[np.intp] | None:
    """Values of τ from a list with commas, or A:B for A, A + 1, ..., B; None for "all".

    Whether a table allows these sizes is checked once the table is known.

    Raises InputError: The text has another form, or A:B stands for more than MAX_RANGE_VALUES.
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


def parse_tau(text: str) -> int | str:
    """The size that the option --tau of ``fit`` gives, or the criterion that chooses it.

    Whether the table allows the size is checked once the table is known.

    Raises InputError: The text is neither.
    """
    word = text.strip().lower()
    if word in SIZE_CRITERIA:
        return word
    try:
        return int(word)
    except ValueError:
        known = ", ".join(SIZE_CRITERIA)
        raise InputError(f"--tau must be a whole number or one of {known}; got {text!r}") from None


def parse_time_limit(text: str | None) -> float | None:
    """The seconds of --time-limit; None for "none", no limit.

    text: What the user writes; None, where the option is not given, stands for DEFAULT_SECONDS.
    Raises InputError: The text is another word than none, or a negative number.
    """
    if text is None:
        return schedule.DEFAULT_SECONDS
    word = text.strip().lower()
    if word == "none":
        return None
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0.0:  # NaN is refused, too.
        raise InputError(f"--time-limit must be seconds >= 0 or none; got {text!r}")
    return seconds


def check_count(option: str, count: int | None) -> None:
    """Raise an InputError where the value of an option is no count from 1 to MAX_RANGE_VALUES."""
    if count is not None and not 1 <= count <= MAX_RANGE_VALUES:
        raise InputError(f"{option} must be from 1 to {MAX_RANGE_VALUES}; got {count}")
