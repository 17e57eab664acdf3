"""What tests of the all-sizes tree share."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from brute_force import (
    Data,
    Support,
    exact_objectives,
    exact_sizes,
)

from sparsecv.solvers import SparseRidgeProblem

Exact = dict[int, dict[Support, Fraction]]


def problem_of(data: Data) -> SparseRidgeProblem:
    X, y, gamma = data
    return SparseRidgeProblem(X, y, gamma=gamma, tau=X.shape[1])


def exact_of(data: Data) -> Exact:
    return exact_sizes(exact_objectives(data))


def key(support: Iterable[Any]) -> Support:
    return tuple(int(j) for j in support)
