"""What a search of several sizes has returned, as arrays that tests compare."""

from collections.abc import Sequence

import numpy as np

from sparsecv.solvers import Answer, Status

from .problems import Array, Support


def supports(found: Sequence[Answer]) -> list[Support]:
    return [one.support for one in found]


def objectives(found: Sequence[Answer]) -> Array:
    return np.array([one.objective for one in found])


def lower_bounds(found: Sequence[Answer]) -> Array:
    return np.array([one.lower_bound for one in found])


def proofs(found: Sequence[Answer]) -> np.ndarray:
    """Whether each size is proved."""
    return np.array([one.proved for one in found])


def ended(found: Sequence[Answer]) -> Status:
    """How the search of all sizes has ended."""
    return Status.worst(one.status for one in found)
