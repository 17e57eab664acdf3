"""A cross-validation, the further ones that a rule asks for, and what every rule chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..cv.engine import Settings
from ..cv.results import Array, CVResult
from ..design.fold_data import FoldData
from ..errors import InputError
from ..solvers import Status
from .evidence import AVERAGES, Evidence, Runs, extra_runs, gather, redrawn
from .rules import RULES, Choice, allowed_rule, choose, quick_rules, resolved_rule


@dataclass(frozen=True)
class Ruled:
    """What :func:`run_by_rule` returns.

    Attributes
    ----------
    result : CVResult
        Of the first partition.
    rule : str
        "auto" resolved.
    choices : dict of str to Choice
        In the order of ``RULES``: the rule's, and those that cost little.
    status : Status
        Of what the rule asked for beyond the first partition.
    n_nodes : int
        Of the further cross-validations.
    """

    result: CVResult
    rule: str
    choices: dict[str, Choice]
    status: Status
    n_nodes: int


More = Callable[[FoldData, Array, Settings, str, bool], CVResult]


def run_by_rule(
    data: FoldData,
    rule: str,
    repeats: int,
    settings: Settings,
    *,
    first: Callable[[Settings], CVResult],
    more: More,
    again: Callable[[int, bool], FoldData],
) -> Ruled:
    """Cross-validate, and again on other folds where the rule or cheap comparisons ask for it.

    Parameters
    ----------
    data : FoldData
        The first partition.
    rule : str
    repeats : int
        Partitions that are averaged, the first among them.
    settings : Settings
        Their time limit is for everything.
    first : callable
        The cross-validation of ``data``.
    more : callable
        That of other folds of the same rows, at some γ and the same τ; is told what they are and
        whether the rule asks for them.
    again : callable
        The rows in partition number 1, 2, ...; is told whether the rule asks for it.

    Raises
    ------
    InputError
        A rule that is unknown or that these folds do not allow.
    """
    allowed_rule(rule, data, settings)
    runs = Runs(settings, extra_runs([rule], data.folds, repeats))
    result = first(runs.next())
    rule = resolved_rule(rule, data, settings, result)

    def collect(rules: set[str], asked: bool) -> Evidence:
        def solve(other: FoldData, gammas: Array, name: str, cost: float) -> CVResult:
            return more(other, gammas, runs.next(cost), name, asked)

        return gather(
            result, data, rules, solve, runs, again=lambda n: again(n, asked), repeats=repeats
        )

    evidence = collect({rule}, True)
    choices = choose(result, data, [rule], evidence)
    quick = set(quick_rules(result, data, settings, repeats))
    if rule in AVERAGES and redrawn(data.folds):  # both look at the same partitions
        choices |= choose(result, data, sorted(AVERAGES - {rule}), evidence)
    for rules in ({"minimum", "one-se", "corrected"}, {"stability"}, set(AVERAGES)):
        wanted = (rules & quick) - choices.keys()
        try:
            choices |= choose(result, data, sorted(wanted), collect(wanted, False))
        except InputError:  # at this γ, folds nobody asked for cannot be solved
            continue
    ordered = {name: choices[name] for name in RULES if name in choices}
    return Ruled(result, rule, ordered, evidence.status, evidence.n_nodes)
