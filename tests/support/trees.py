"""Exact optima of every size, which tests of the all-sizes tree compare with."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from .brute_force import Data, Support, exact_objectives, exact_sizes

Exact = dict[int, dict[Support, Fraction]]


def exact_of(data: Data) -> Exact:
    return exact_sizes(exact_objectives(data))


def key(support: Iterable[Any]) -> Support:
    return tuple(int(j) for j in support)
