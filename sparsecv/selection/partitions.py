"""Other partitions of the rows into folds of the same kind."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ..design.folds import Folds
from ..errors import InputError


def redrawn(folds: Folds) -> bool:
    """Whether other partitions of the same kind can be drawn."""
    return folds.kind in ("kfold", "size")


def checked_repeats(repeats: Any) -> int:
    """Validate a number of partitions."""
    if not isinstance(repeats, Integral) or isinstance(repeats, bool) or repeats < 2:
        raise InputError(f"repeats must be a whole number >= 2; got {repeats!r}")
    return int(repeats)


def partition_again(folds: Folds, seed: Any, number: int) -> Folds:
    """Another partition of the same kind, drawn with the same source of randomness.

    folds: Drawn with ``seed``.
    number: 1, 2, ...: with a whole number as the seed each has its own partition.
    Raises InputError: The folds were not drawn at random.
    """
    if not redrawn(folds):
        raise InputError("only K folds and folds of a size can be drawn again")
    if isinstance(seed, Integral):
        seed = int(np.random.SeedSequence([int(seed), number]).generate_state(1)[0])
    return folds.again(seed)
