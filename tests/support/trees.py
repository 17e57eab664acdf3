"""Exact optima of every size, which tests of the all-sizes tree compare with."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from sparsecv.solvers import Answer, Status, best_subsets

from .answers import ended
from .brute_force import Data, Support, exact_objectives, exact_sizes, fit_rounding
from .inside import Limits
from .problems import problem_of

Exact = dict[int, dict[Support, Fraction]]


def exact_of(data: Data) -> Exact:
    return exact_sizes(exact_objectives(data))


def all_sizes(data: Data, **options: Any) -> list[Answer]:
    return best_subsets(problem_of(data), **options)


def every_stop(data: Data, search: Callable[..., Any] = all_sizes, **options: Any) -> list[Any]:
    """Results of a search of all sizes that stops after 0, 1, 2, … nodes, until it is done.

    search: Returns a list of answers, or a tuple whose second entry is the status.
    """
    stops: list[Any] = []

    def stopped(found: Any) -> bool:
        status = ended(found) if isinstance(found, list) else found[1]
        return status is Status.NODE_LIMIT

    while not stops or stopped(stops[-1]):
        assert len(stops) < 5_000
        stops.append(search(data, **options, limits=Limits(node_limit=len(stops))))
    return stops


def known_best(values: dict[Support, Fraction], own: Support, yy: float) -> set[Support]:
    """The support that a search returned, and the best of its size where rounding hides none."""
    least = float(min(values.values()))
    near = [S for S, f in values.items() if float(f) <= least * (1.0 + 1e-9) + 1e-13 * yy]
    return {own, *(near if len(near) == 1 else [])}


def key(support: Iterable[Any]) -> Support:
    return tuple(int(j) for j in support)


def tied(data: Data, support: Any, values: dict[Support, Fraction]) -> float:
    """At γ = 0 the difference below which rounding may reverse the order of two supports."""
    if data.gamma > 0.0:
        return 0.0
    best = min(values, key=values.__getitem__)
    pair = (key(support), best)
    return sum(fit_rounding(data, S, float(values[S])) for S in pair)
