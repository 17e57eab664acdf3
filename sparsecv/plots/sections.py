"""What a fit has found, and the sections in which the screen and a page show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array, Design
from ..design.model import FittedModel
from ..selection.choice import Choice
from ..selection.nested import NestedError
from ..selection.sizes import SizeModels
from ..selection.study import Study


class Fact(NamedTuple):
    """One line of an answer: a label, a figure, which may be empty, and what it means."""

    label: str
    figure: str
    meaning: str = ""


class Column(NamedTuple):
    """A column of a table: its name, its cells, and what they are.

    kind: The cells of a "number" or of "words" are texts; those of a "bar" are shares between 0 and
        1, which are drawn.
    """

    head: str
    cells: Sequence[Any]
    kind: str = "number"


class Table(NamedTuple):
    """A table with typed columns, all of the same length.

    chosen: Position of the row that is emphasised.
    what: What the rows are, in the plural.
    """

    columns: Sequence[Column]
    chosen: int | None = None
    what: str = "rows"

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(self.columns[0].cells)

    def around(self, most: int) -> Table:
        """The table itself, or the ``most`` rows around the emphasised row or at the beginning."""
        centre = 0 if self.chosen is None else self.chosen
        start = max(0, min(centre - most // 2, self.length - most))
        columns = [one._replace(cells=one.cells[start : start + most]) for one in self.columns]
        return Table(columns, None if self.chosen is None else self.chosen - start, self.what)


def filled(*columns: Column) -> list[Column]:
    """The columns that have a cell which is not empty."""
    return [one for one in columns if any(one.cells)]


def errors(values: Iterable[float], exact: Iterable[bool]) -> list[str]:
    """Numbers as texts, after ≈ where they are not exact."""
    return [number(value, bool(known)) for value, known in zip(values, exact, strict=True)]


class Section(NamedTuple):
    """A part of a result: a title, facts, a table, sentences, and on a page a picture.

    picture: Draws a figure of matplotlib, and its description; the screen does without.
    """

    title: str
    facts: Sequence[Fact] = ()
    table: Table | None = None
    sentences: Sequence[str] = ()
    picture: Callable[[], tuple[Any, str]] | None = None


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
    names: list[str]
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

    def chosen(self, sizes: SizeModels) -> int | None:
        """Position of the model's size among all sizes; None where it has no place there."""
        if self.choice is not None and self.choice.weights is not None:
            return None
        at = np.flatnonzero(sizes.tau == self.tau)
        return int(at[0]) if at.size else None

    def effects(self) -> Array:
        """Coefficients of the model's support times the standard deviations of their columns."""
        return np.asarray((self.model.coef * self.design.raw_spread)[self.model.support])

    def r_squared(self, cv_error: float) -> float | None:
        """R² = 1 − CV error / variance of y about its mean; None where y does not vary."""
        design = self.design
        mean = (design.mean[-1] - design.shift[-1]) / design.y_scale
        variance = (design.spread[-1] / design.y_scale) ** 2
        return 1.0 - cv_error / variance if variance > 1e-12 * (variance + mean**2) else None

    def called(self, columns: NDArray[np.intp], most: int | None = None) -> str:
        """The names of some columns, or of the first ``most`` of them and how many more."""
        known = [self.names[c] for c in columns[:most]]
        return listed(known, len(columns))

    def spread(self) -> tuple[float, bool]:
        """The standard error of the choice's CV error, and whether that error is exact."""
        study, choice = self.study, self.choice
        assert study is not None
        assert choice is not None
        if choice.weights is not None:
            return study.average_error[1], choice.certified
        if (found := choice.projection) is not None:
            return float(found.of_size(found.std_error)[found.chosen]), found.proved
        one = study.surface.by_gamma[choice.gamma_index]
        return float(one.std_error[choice.tau_index]), bool(one.exact[choice.tau_index])


def listed(names: Sequence[str], count: int) -> str:
    """Some names with commas between, and how many of ``count`` names are left out."""
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return ", ".join(names) + more


def number(value: float, exact: bool = True) -> str:
    """A number with six significant digits, after ≈ where it is an estimate; empty for NaN."""
    if math.isnan(value):
        return ""
    return ("" if exact else "≈") + f"{value + 0.0:.6g}"  # The sum turns −0 into 0.


def percent(share: float, digits: int = 2) -> str:
    """A share in percent, with some significant digits; empty for NaN."""
    return "" if math.isnan(share) else f"{100.0 * share:.{digits}g} %"


def counted(features: int) -> str:
    """A number and the word "feature" or "features"."""
    return f"{features} feature{'' if features == 1 else 's'}"
