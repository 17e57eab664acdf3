"""What a fit of one response has found, from which the sections of a report are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..design.design import Array, Design
from ..design.folds import Index
from ..design.model import FittedModel, SizeModels
from ..selection.choice import Choice
from ..selection.nested import NestedError
from ..selection.study import Study
from ..solvers.core.column_rules import ResolvedRules
from .sections import counted, listed


@dataclass
class Result:
    """A model of one response, and all that was found with it.

    name: The name of the table or of the estimator.
    names: Names of all columns; ``design.kept`` of them vary.
    tau, gamma: The largest number of features, and the ridge weight, NaN for an average of models.
    sizes: Gives the model of every size; None where these models are not known.
    study, choice, choices: The cross-validation, what its rule chooses, and what other rules do;
        None and empty where nothing was held out.
    expected: The error to expect on new data, where it was computed.
    answers: What was asked for besides, under the names of the estimators' attributes.
    remarks: Sentences on the rows, such as which are never held out.
    work: How many searches, nodes and seconds the result has taken.
    """

    name: str
    names: Sequence[str]
    target: str
    design: Design
    model: FittedModel
    tau: int
    gamma: float
    sizes: Callable[[], SizeModels] | None = None
    study: Study | None = None
    choice: Choice | None = None
    choices: dict[str, Choice] = field(default_factory=dict)
    expected: NestedError | None = None
    answers: dict[str, Any] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    work: str = ""

    @property
    def title(self) -> str:
        """The name, and how many columns the model has."""
        return f"{self.name}: {self.model.support.size} of {self.design.p} columns"

    def position(self, sizes: SizeModels) -> int | None:
        """Position of the model's size among all sizes; None where it has no place there."""
        if self.choice is not None and self.choice.weights is not None:
            return None
        at = np.flatnonzero(sizes.tau == self.tau)
        return int(at[0]) if at.size else None

    @property
    def effects(self) -> Array:
        """Coefficients of the model's support times the standard deviations of their columns."""
        return np.asarray((self.model.coef * self.design.raw_spread)[self.model.support])

    @property
    def by_effect(self) -> Index:
        """Positions in the model's support, those of the largest effects first."""
        return np.argsort(-np.abs(self.effects), kind="stable")

    def r_squared(self, cv_error: float) -> float:
        """R² = 1 − CV error / variance of y about its mean; NaN where y does not vary."""
        design = self.design
        mean = (design.mean[-1] - design.shift[-1]) / design.y_scale
        variance = (design.spread[-1] / design.y_scale) ** 2
        varies = variance > 1e-12 * (variance + mean**2)
        return float(1.0 - cv_error / variance) if varies else np.nan

    def called(self, columns: Index) -> list[str]:
        """The names of some columns."""
        return [self.names[c] for c in columns]

    @property
    def selectable(self) -> str:
        """How many features can be chosen, such as "7 features, a group counting once"."""
        rules = self.design.rules  # Constraints of the columns that are solved for, or None.
        groups = rules is not None and rules.constraints.grouped
        return counted(self.design.n_units) + ", a group counting once" * groups

    @property
    def within(self) -> str:
        """Words behind a proof that holds among the models that obey constraints; else none."""
        rules = self.design.rules
        return "" if rules is None or rules.constraints.plain else ", within the constraints"

    def spread(self, study: Study, choice: Choice) -> tuple[float, bool]:
        """The standard error of the choice's CV error, and whether that error is exact."""
        if choice.weights is not None:
            return study.average_error[1], choice.certified
        if (found := choice.projection) is not None:
            return float(found.sizes.std_error[found.chosen]), found.proved
        one = study.surface.by_gamma[choice.gamma_index]
        return float(one.std_error[choice.tau_index]), bool(one.exact[choice.tau_index])


def constraints(asked: ResolvedRules | None, names: Sequence[str]) -> dict[str, Any] | None:
    """What is asked of the columns, as JSON values; None where nothing is."""
    if asked is None:
        return None
    held = asked.by_position()
    kind, parents = held.heredity or (None, {})
    factors = enumerate(asked.factors.tolist())
    return {
        "include": [names[j] for j in held.include],
        "exclude": [names[j] for j in held.exclude],
        "groups": {name: [names[j] for j in g] for name, g in asked.groups.items() if len(g) > 1},
        "heredity": kind,
        "parents": {names[c]: [names[a] for a in above] for c, above in parents.items()},
        "bounds": {
            names[j]: [None if np.isinf(end) else end for end in ends]
            for j, ends in held.bounds.items()
        },
        "penalty_factors": {names[j]: float(f) for j, f in factors if f != 1.0},
        "sizes": list(asked.sizes),
    }


def constraint_lines(found: dict[str, Any] | None) -> Iterator[str]:
    """Yield a line for every kind of constraint that :func:`constraints` gives."""
    if found is None:
        return
    factors, bounds = found["penalty_factors"].items(), found["bounds"].items()
    parents = found["parents"].items()
    for what, texts in (
        ("in every model", found["include"]),
        ("in every model, not penalised and not counted", [name for name, f in factors if f == 0]),
        ("in no model", found["exclude"]),
        (
            "columns that enter together and count once",
            [f"{name} ({len(group)} columns)" for name, group in found["groups"].items()],
        ),
        (
            f"columns that need {'all parents' if found['heredity'] == 'strong' else 'a parent'}",
            [f"{child} of {' and '.join(above)}" for child, above in parents],
        ),
        (
            "coefficients that are not negative",
            [name for name, ends in bounds if ends == [0.0, None]],
        ),
        (
            "bounds",
            [
                f"{name} in [{'−∞' if low is None else f'{low:g}'}, "
                f"{'∞' if high is None else f'{high:g}'}]"
                for name, (low, high) in bounds
                if (low, high) != (0.0, None)
            ],
        ),
        ("penalty factors", [f"{name} {f:g}" for name, f in factors if f > 0.0]),
    ):
        if texts:
            # A line names at most this many columns, and says how many more there are. The number
            # is a choice.
            yield f"{what}: {listed(texts, 6)}"
