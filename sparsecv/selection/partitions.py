"""What the rules of selection choose on other partitions of the rows into folds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ..design.folds import Index
from ..errors import InputError
from ..solvers.core.limits import Limits
from .choice import known_model
from .result import Result
from .run import fit_table
from .study import PARTITIONS


def choices_by_partition(
    result: Result, n: int, every: bool = True, limits: Limits | None = None
) -> list[dict[str, Index]]:
    """The columns that every rule chooses on each of n other partitions into folds.

    CV errors are estimates, which take a small part of a fit's time; nothing is proved.

    n: At least 1.
    every: Whether all rules choose that the folds of all these partitions allow; else that of the
        fit alone.
    limits: Where they are reached no further partition is drawn, except for the first.
    Returns: For every partition that was drawn the raw columns of each rule's model, by the names
        of the rules, which are the same for all partitions.
    Raises InputError: Nothing is held out, or folds cannot be drawn again.
    """
    if result.study is None or not result.study.data.folds.redraws:
        why = "other partitions need SparseRidgeCV with random folds, such as cv=5"
        if result.study is not None and result.study.data.folds.one_for_each:
            unit = "row" if result.study.data.folds.groups is None else "group"
            why += f"; here every {unit} is a fold, and there is no other partition"
        raise InputError(why)
    data = result.study.data.rows_for("other partitions need")
    study, seed = result.study, result.study.settings.seed
    own = replace(study.settings, time_limit=0, prove="choice", compare=every, size=None)
    drawn = list[dict[str, Index]]()
    for number in range(1, n + 1):
        if number > 1 and limits is not None and limits.reached(0) is not None:
            break
        if isinstance(seed, (int, np.integer)):
            own = replace(own, seed=int(seed) + number)
        # A fit draws the partitions of lower numbers itself.
        table = replace(result.table, make=partial(data.partition, PARTITIONS, own.seed))
        found = fit_table(table, own, study.wings, progress=study.progress)
        assert found.held_out is not None
        other, surface, _ = found.held_out
        chosen = found.choices if every else {other.rule: found.choices[other.rule]}
        models = ((name, known_model(other, surface, one)) for name, one in chosen.items())
        drawn.append({name: model.support for name, model in models})
    # A fold may hold rows of weight 0 alone: some partitions refuse a rule that others allow.
    return [{name: one[name] for name in one if all(name in d for d in drawn)} for one in drawn]
