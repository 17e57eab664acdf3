"""Words and values for what is asked of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..design.design import Design
from ..solvers.core.column_rules import ResolvedRules
from .sections import counted, listed


def values(asked: ResolvedRules | None, names: Sequence[str]) -> dict[str, Any] | None:
    """What is asked of the columns, as JSON values; None where nothing is."""
    if asked is None:
        return None
    held = asked.by_position()
    kind, parents = held.heredity or (None, {})
    groups = {name: [names[j] for j in g] for name, g in asked.groups.items() if len(g) > 1}

    def end(value: float) -> float | None:
        return value if abs(value) < float("inf") else None

    return {
        "include": [names[j] for j in held.include],
        "exclude": [names[j] for j in held.exclude],
        "groups": groups,
        "heredity": kind,
        "parents": {names[c]: [names[a] for a in above] for c, above in parents.items()},
        "bounds": {names[j]: [end(v) for v in b] for j, b in held.bounds.items()},
        "penalty_factors": {
            names[j]: float(f) for j, f in enumerate(asked.factors.tolist()) if f != 1.0
        },
        "sizes": list(asked.sizes),
    }


def lines(design: Design, names: Sequence[str]) -> Iterator[str]:
    """Yield a line for every kind of constraint that holds."""
    found = values(design.asked, names)
    if found is None:
        return
    free = [name for name, f in found["penalty_factors"].items() if f == 0.0]
    weighed = [f"{name} {f:g}" for name, f in found["penalty_factors"].items() if f > 0.0]
    signs = [name for name, ends in found["bounds"].items() if ends == [0.0, None]]
    ends = [
        f"{name} in [{'−∞' if a is None else f'{a:g}'}, {'∞' if b is None else f'{b:g}'}]"
        for name, (a, b) in found["bounds"].items()
        if [a, b] != [0.0, None]
    ]
    children = [f"{c} of {' and '.join(above)}" for c, above in found["parents"].items()]
    groups = [f"{name} ({len(group)} columns)" for name, group in found["groups"].items()]
    needs = "all parents" if found["heredity"] == "strong" else "a parent"
    for what, texts in (
        ("in every model", found["include"]),
        ("in every model, not penalised and not counted", free),
        ("in no model", found["exclude"]),
        ("columns that enter together and count once", groups),
        (f"columns that need {needs}", children),
        ("coefficients that are not negative", signs),
        ("bounds", ends),
        ("penalty factors", weighed),
    ):
        if texts:
            # A line names at most this many columns, and says how many more there are. The number
            # is a choice.
            yield f"{what}: {listed(texts[:6], len(texts))}"


def selectable(design: Design) -> str:
    """How many features can be chosen, in words such as "7 features, a group counting once"."""
    rules = design.rules  # Constraints of the columns that are solved for, or None.
    groups = rules is not None and rules.constraints.grouped
    return counted(design.n_units) + ", a group counting once" * groups


def within_constraints(design: Design) -> str:
    """Words behind a proof that holds among the models that obey constraints; else none."""
    rules = design.rules
    return "" if rules is None or rules.constraints.plain else ", within the constraints"
