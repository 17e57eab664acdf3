"""Exact optima of every size, which tests of the all-sizes tree compare with."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from .brute_force import Data, Support, exact_objectives, exact_sizes, fit_rounding

Exact = dict[int, dict[Support, Fraction]]


def exact_of(data: Data) -> Exact:
    return exact_sizes(exact_objectives(data))


def key(support: Iterable[Any]) -> Support:
    return tuple(int(j) for j in support)


def tied(data: Data, support: Any, values: dict[Support, Fraction]) -> float:
    """At γ = 0 the difference below which rounding may reverse the order of two supports."""
    if data.gamma > 0.0:
        return 0.0
    best = min(values, key=values.__getitem__)
    pair = (key(support), best)
    return sum(fit_rounding(data, S, float(values[S])) for S in pair)
