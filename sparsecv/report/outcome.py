"""What a fit of one response has found, from which the sections of a report are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..design.design import Array, Design
from ..design.folds import Index
from ..design.model import FittedModel, SizeModels
from ..selection.alternatives import alternatives, alternatives_table, ranked_by_size
from ..selection.choice import Choice, choose, chosen_model
from ..selection.criteria import criteria
from ..selection.nested import NestedError
from ..selection.sizes import (
    SizeMarks,
    models_at_gamma,
    models_by_size,
    size_marks,
    subsets_by_size,
)
from ..selection.study import Study
from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.threads import cached
from .frames import alternatives_frame, choices_frame, criteria_frame, least_criteria_frame

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass
class Result:
    """A model of one response, all that was found with it, and what else is asked of the fit.

    name: The name of the table or of the estimator.
    names: Names of all columns; ``design.kept`` of them vary.
    problem: All rows, where nothing was chosen at the γ and τ of the fit.
    tau, gamma: The largest number of features, and the ridge weight, NaN for an average of models.
    limit: Seconds of a search for other sizes or subsets, None for no limit; a cross-validation has
        a limit of its own.
    study, choice, choices: The cross-validation, what its rule chooses, and what other rules do;
        None and empty where nothing was held out.
    expected: The error to expect on new data, where it was computed.
    nests: Whether that error can be computed.
    answers: Frames that were asked for besides, under the names of their sections: "criteria",
        "alternatives".
    remarks: Sentences on the rows, such as which are never held out.
    work: How many searches and nodes the result has taken.
    seconds: Seconds of the whole call; None where they are not shown.
    """

    name: str
    names: Sequence[str]
    target: str
    problem: SparseRidgeProblem
    design: Design
    model: FittedModel
    tau: int
    gamma: float
    limit: float | None = None
    study: Study | None = None
    choice: Choice | None = None
    choices: dict[str, Choice] = field(default_factory=dict)
    expected: NestedError | None = None
    nests: bool = False
    answers: dict[str, DataFrame] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    work: str = ""
    seconds: float | None = None

    @classmethod
    def of_choices(
        cls,
        name: str,
        names: Sequence[str],
        target: str,
        study: Study,
        choices: dict[str, Choice],
        **more: Any,
    ) -> Result:
        """What a study has found, whose rule has made one of the choices."""
        choice, full = choices[study.rule], study.data.full()
        found = study.design, chosen_model(study, choice), choice.tau, choice.gamma
        more |= {"study": study, "choice": choice, "choices": choices}
        more["nests"] = study.data.raw is not None
        return cls(name, names, target, full, *found, **more)

    @cached
    def sizes(self) -> SizeModels:
        """The model of every size; after a cross-validation nothing is searched for."""
        if self.study is not None and self.choice is not None:
            return models_by_size(self.study, self.choice)
        return models_at_gamma(self.problem, self.design, self.tau, self.model, self.limit)

    @property
    def knows_sizes(self) -> bool:
        """Whether the model of every size is known, so that nothing has to be fitted for it."""
        projected = self.choice is not None and self.choice.projection is not None
        return projected or "sizes" in vars(self)

    @cached
    def subsets(self) -> SizeModels:
        """The best known subset of every size for the response itself."""
        if self.study is not None and self.choice is not None:
            return subsets_by_size(self.study, self.choice)
        return self.sizes

    def criteria(self) -> DataFrame:
        """The criteria of the model of every size."""
        return criteria_frame(self.sizes, self._criteria(), self.names)

    def _criteria(self) -> dict[str, Array]:
        """The values of all criteria, each for every size."""
        return criteria(self.problem, self.design, [model.support for model in self.sizes.models])

    def alternatives(self, n: int, seconds: float | None) -> DataFrame:
        """The n best subsets of every size.

        seconds: As of :func:`~sparsecv.selection.alternatives.ranked_by_size`.
        """
        if self.study is not None:
            found = alternatives(self.study, self.subsets, n, seconds)
        else:
            known = self.problem, self.design, self.sizes
            found = alternatives_table(*known, ranked_by_size(*known, n, seconds), None)
        return alternatives_frame(found, self.names)

    def compare(self) -> DataFrame:
        """What every rule chooses; where nothing is held out, every criterion."""
        if self.study is None:
            return least_criteria_frame(self.sizes, self._criteria(), self.names)
        study = self.study
        study.begin_again()
        choices = choose(study, compare=True)
        supports = (known_model(study, choice).support for choice in choices.values())
        return choices_frame(choices, supports, self.names)

    @property
    def title(self) -> str:
        """The name, and how many columns the model has."""
        return f"{self.name}: {self.model.support.size} of {self.design.p} columns"

    @property
    def marks(self) -> SizeMarks:
        """The sizes that tables and pictures mark."""
        at = np.flatnonzero(self.sizes.tau == self.tau)
        chosen = int(at[0]) if at.size else None
        if self.study is None or self.choice is None:
            return SizeMarks(chosen)
        return size_marks(self.study, self.choice, self.sizes, chosen)

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
    def within(self) -> str:
        """Words behind a proof that holds among the models that obey constraints; else none.

        Groups alone, such as the levels of a factor, leave no models out: they are features.
        """
        asked = self.design.constraints
        narrow = asked.include.any() or asked.exclude.any() or asked.bounded
        return ", within the constraints" if narrow else ""

    def spread(self, study: Study, choice: Choice) -> tuple[float, bool]:
        """The standard error of the choice's CV error, and whether that error is exact."""
        if (found := choice.projection) is not None:
            t = found.chosen
            return float(found.sizes.std_error[t]), bool(found.proved[t])
        one = study.surface.by_gamma[choice.gamma_index]
        return float(one.std_error[choice.tau_index]), bool(one.exact[choice.tau_index])


def known_model(study: Study, choice: Choice) -> FittedModel:
    """The model of all rows of a choice as far as it is known; nothing more is searched for."""
    if not choice.is_pair:
        return chosen_model(study, choice)
    full, one = study.data.full(), study.surface.by_gamma[choice.gamma_index]
    return one.model(study.design, full, choice.tau_index)


def constraints(asked: ResolvedRules | None, names: Sequence[str]) -> dict[str, Any] | None:
    """The constraints on columns as JSON values; None where there are none.

    Groups of one column are left out. The sizes are those that a model may have.
    """
    if asked is None:
        return None
    by_position = asked.by_position()
    return {
        "include": [names[j] for j in by_position.include],
        "exclude": [names[j] for j in by_position.exclude],
        "groups": {name: [names[j] for j in g] for name, g in asked.groups.items() if len(g) > 1},
        "bounds": {
            names[j]: [None if np.isinf(end) else end for end in ends]
            for j, ends in by_position.bounds.items()
        },
        "sizes": list(asked.sizes),
    }
