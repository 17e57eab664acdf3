"""Values read from a file, checked before anything is done with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def checked_array(
    name: str, stored: Any, expected: NDArray[Any], least: float = 0.0
) -> NDArray[Any]:
    """Stored values as an array, once they have the shape and the kind of ``expected``.

    name: What the message calls the values.
    least: The smallest number allowed; a number without a shape must also be finite.
    Raises ValueError: The shape or the kind of the values is another, or a number is out of range.
    """
    found = np.asarray(stored)
    if found.shape != expected.shape:
        raise ValueError(f"{name} has another shape")
    kinds = {"b": "b", "i": "i", "f": "fi"}[expected.dtype.kind]
    if found.size and found.dtype.kind not in kinds:
        raise ValueError(f"{name} holds values of another kind")
    most = np.inf if found.ndim else np.finfo(np.float64).max
    if found.dtype.kind != "b" and not ((found >= least) & (found <= most)).all():
        raise ValueError(f"{name} holds values out of range")
    return found.astype(expected.dtype)


def checked_numbers(name: str, stored: Any, n: int) -> NDArray[np.intp]:
    """A stored list of increasing whole numbers from 0 to n − 1, as an array.

    Raises ValueError: The stored value is no such list.
    """
    found = checked_array(name, stored, np.zeros(np.size(stored), dtype=np.intp))
    if found.size and (found[-1] >= n or (np.diff(found) <= 0).any()):
        raise ValueError(f"{name} holds numbers that do not exist, or not in order")
    return found
