"""The result of a fit: the model, what it was chosen from, and what else is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..cv.results import CVResult
from ..design.design import Array, Design
from ..design.features import Features
from ..design.folds import Index
from ..design.model import Model
from ..design.prepare import Prepared
from ..errors import InputError
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.core.rounding import SUM_SHARE
from ..solvers.core.threads import cached
from .choice import Choice
from .claims import Claim, claim_of
from .nested import NestedError
from .sizes import SizeMarks, models_at_gamma, models_by_size, size_marks
from .study import Study
from .surfaces import Evaluated

if TYPE_CHECKING:
    from pandas import DataFrame


class Ended(NamedTuple):
    """How a run has ended, and what it took.

    limit: Optimal, or the worst limit that was met.
    n_nodes: Nodes of all searches that the rule asked for.
    reused: The γ whose proofs were read from a checkpoint; a γ counts once for every partition.
    seconds: Seconds until the model was chosen and proved; those of the search where nothing is
        held out.
    remaining: Seconds that a search for other sizes or subsets may take where nothing is held out;
        None for no limit. A cross-validation has a limit of its own.
    nests: Whether the error to expect on new data can be computed: the rows are in memory.
    """

    limit: Status
    n_nodes: int
    reused: Sequence[float] = ()
    seconds: float = 0.0
    remaining: float | None = None
    nests: bool = False


class HeldOut(NamedTuple):
    """What a model was chosen from, where rows were held out, and the choice.

    study: What the steps of the cross-validation read.
    surface: h(γ, τ), the CV error of the best subset of at most τ columns at the ridge weight γ, on
        the first partition into folds.
    choice: What the rule of the study chooses.
    """

    study: Study
    surface: CVResult
    choice: Choice


@dataclass
class Result:
    """A model of one response, all that was found with it, and what else is asked of the fit.

    table: The table, how its columns were standardised, and its folds.
    problem: All rows; where nothing is held out, at the γ and τ of the model.
    model: The model of all rows.
    ended: How the run has ended, and what it took.
    criterion: The criterion that has chosen the size; None for a size that was given.
    study, surface: As of :class:`HeldOut`; None where nothing was held out.
    choices: What rules choose, by their names, that of the study among them; empty where nothing
        was held out.
    first: The surface of the first partition, which takes further proofs; None where nothing was
        held out, and after Ctrl-C.
    expected: The error to expect on new data, where it was computed.
    answers: Frames that were asked for besides, under the names of their sections: "criteria",
        "alternatives", "inference".
    shown: What a report says of the call beside the fit itself.
    """

    table: Prepared
    problem: SparseRidgeProblem
    model: Model
    ended: Ended
    criterion: str | None = None
    study: Study | None = None
    surface: CVResult | None = None
    first: Evaluated | None = None
    choices: dict[str, Choice] = field(default_factory=dict)
    expected: NestedError | None = None
    answers: dict[str, DataFrame] = field(default_factory=dict)
    shown: Shown = field(default_factory=lambda: Shown())

    @property
    def held_out(self) -> HeldOut | None:
        """What the model was chosen from; None where nothing was held out."""
        if self.study is None or self.surface is None:
            return None
        return HeldOut(self.study, self.surface, self.choices[self.study.rule])

    @property
    def choice(self) -> Choice | None:
        """What the rule of the study chooses; None where nothing was held out."""
        return None if self.held_out is None else self.held_out.choice

    @property
    def claims(self) -> dict[str, Claim]:
        """What is claimed of each of the choices; empty where nothing was held out."""
        if self.study is None or self.surface is None:
            return {}
        study, surface = self.study, self.surface
        return {name: claim_of(study, surface, one) for name, one in self.choices.items()}

    @property
    def claim(self) -> Claim:
        """What is claimed of the choice of the study's rule; rows were held out."""
        held_out = self.held_out
        assert held_out is not None
        return claim_of(*held_out)

    def refuse_projection(self) -> None:
        """Raise an InputError where the columns are those of a projection of an average."""
        if self.choice is not None and self.choice.projection is not None:
            raise InputError(
                "these columns are those of a projection: they predict most like an average of "
                "models, and are not meant to be the best for y. Fit SparseRidge(tau, gamma), or "
                "take a rule that chooses one pair, such as rule='minimum'"
            )

    @property
    def status(self) -> Status:
        """Optimal where the choice and its model are proved, else the worst limit that was met.

        It is unproved where no limit was met: the plan had nothing more to prove.
        """
        if self.choice is None:
            return self.ended.limit
        if self.claim.proved and self.model.proved:
            return Status.OPTIMAL
        return Status.UNPROVED if self.ended.limit is Status.OPTIMAL else self.ended.limit

    @property
    def design(self) -> Design:
        """How the columns were standardised."""
        return self.table.design

    @property
    def name(self) -> str:
        """The name of the estimator or of the table."""
        return self.shown.name or self.table.source.name

    @property
    def names(self) -> Sequence[str]:
        """Names of all columns; ``design.kept`` of them vary."""
        return self.table.names

    @cached
    def features(self) -> Features:
        """The features that the columns are, alone or in groups, and what they are called."""
        source = self.table.source
        return Features.of(source.feature_names, self.design.asked, source.coding)

    @property
    def target(self) -> str:
        """What was fitted, in words: the name of the response, less that of its offset."""
        return self.table.source.response

    @cached
    def sizes(self) -> list[Model]:
        """The model of every size; after a cross-validation nothing is searched for.

        Where nothing is held out, the sizes are those up to the model's, and they are searched for.
        """
        if self.held_out is not None:
            return models_by_size(*self.held_out)
        return models_at_gamma(self.problem, self.design, self.model, self.ended.remaining)

    @property
    def knows_sizes(self) -> bool:
        """Whether the model of every size is known, so that nothing has to be fitted for it."""
        projected = self.choice is not None and self.choice.projection is not None
        return projected or "sizes" in vars(self)  # There once ``sizes`` was asked for.

    @property
    def title(self) -> str:
        """The name, and how many features the model has."""
        what = "features" if self.features.several else "columns"
        own, every = len(self.features.called(self.model.support)), self.design.n_units
        return f"{self.name}: {own} of {every} {what}"

    @property
    def marks(self) -> SizeMarks:
        """The sizes that tables and pictures mark."""
        taus = [model.tau for model in self.sizes]
        chosen = taus.index(self.model.tau) if self.model.tau in taus else None
        if self.held_out is None:
            return SizeMarks(chosen)
        return size_marks(self.held_out.surface, self.held_out.choice, self.sizes, chosen)

    @property
    def effects(self) -> Array:
        """Coefficients of the model's support times their columns' standard deviations, (s,).

        They are in units of y, in the order of the support of s columns.
        """
        return np.asarray((self.model.coef * self.design.raw_spread)[self.model.support])

    @property
    def by_effect(self) -> Index:
        """Positions in the model's support, those of the largest effects first."""
        return np.argsort(-np.abs(self.effects), kind="stable")

    def feature_effects(self, model: Model) -> Array:
        """What one standard deviation of every feature adds to a prediction, in units of y, (k,).

        k is the number of features, and a feature that the model lacks has NaN. A single column has
        its coefficient times its standard deviation. A factor or a group has the standard deviation
        of what its columns add to a prediction, which has no sign.

        model: A model of this table, of any size.
        """
        design, found = self.design, np.full(len(self.features.names), np.nan)
        place, lengths = np.searchsorted(design.kept, np.arange(design.p_raw)), design.raw_spread
        for u in self.features.among(model.support).tolist():
            columns = np.intersect1d(self.features.columns[u], model.support)
            coef = model.coef[columns]
            if self.features.columns[u].size == 1:
                found[u] = coef[0] * lengths[columns[0]]
                continue
            solved = place[columns]
            part = self.problem.data.X[:, solved] @ (coef * design.scale[solved])
            # Without an intercept the columns of the problem are not centred.
            mean = 0.0
            if not design.protocol.intercept:
                mean = float(coef @ (design.mean[solved] - design.shift[solved]))
            found[u] = np.sqrt(max(part @ part / design.total - mean**2, 0.0))
        return found

    @property
    def effects_by_size(self) -> Array:
        """The effects of all features in the model of every size, shape (sizes, k)."""
        return np.array([self.feature_effects(model) for model in self.sizes])

    def r_squared(self, cv_error: float) -> float:
        """R² = 1 − CV error / variance of y about its mean; NaN where y does not vary.

        cv_error: In the units of the CV error, in which y may be scaled.
        """
        design = self.design  # The last entries of its arrays are those of y.
        mean = (design.mean[-1] - design.shift[-1]) / design.y_scale
        variance = (design.spread[-1] / design.y_scale) ** 2
        # A variance below this share of the mean square is rounding.
        varies = variance > SUM_SHARE * (variance + mean**2)
        return float(1.0 - cv_error / variance) if varies else np.nan

    def called(self, columns: Index) -> list[str]:
        """The names of the columns with these numbers."""
        return [self.names[c] for c in columns]


@dataclass
class Shown:
    """What a report says of a call beside the fit itself.

    name: The name of the estimator; empty for that of the table.
    searches: A sentence on the searches and nodes of the call.
    seconds: Seconds of the whole call; None where they are not shown.
    """

    name: str = ""
    searches: str = ""
    seconds: float | None = None
