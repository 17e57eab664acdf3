"""The error to expect on new data: the whole fit, its rule included, cross-validated.

The least of many CV errors is below what new data give, because the same folds chose the model.
Here every outer fold is predicted by a model that is found anew from the other rows alone: their
own scaling, inner folds, weights, values of γ and choice.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.results import mean_over_folds
from ..design.design import Array, Summary, make_design
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds, make_folds
from ..design.model import FittedModel
from ..errors import InputError
from ..solvers.leaps.all_sizes import TREE_ONLY
from .rules import choose, chosen_model
from .study import Study

# The number of outer folds where none is named, up to so many rows and beyond: models of five folds
# lack a fifth of the rows, which matters where rows are few.
OUTER_FOLDS, MAX_ROWS_OF_TEN_FOLDS, OUTER_FOLDS_OF_MORE_ROWS = 10, 200, 5
# With so many rows (or groups) or fewer each is an outer fold: models of ten folds lack a tenth of
# the rows, which at 20 rows makes the figure 11 to 14 % too large (docs/benchmarks.md).
LEAVE_ONE_OUT_ROWS = 30
# A command whose fit took more nodes does not nest it unasked: every outer fit takes about as many,
# half a second for so many.
MAX_NODES_BY_DEFAULT = 5_000_000


class NestedError(NamedTuple):
    """Mean squared error on the rows of all outer folds, its standard error, number of folds."""

    error: float
    std_error: float
    folds: int


def refuse_nested(data: FoldData, cv: Any, nested: Any = True) -> None:
    """Refuse, before anything is computed, what no outer folds can be drawn for.

    data, cv, FoldData and what its folds were made of.
    """
    if isinstance(nested, (bool, np.bool_)):
        if not nested:
            return
    elif not isinstance(nested, Integral) or nested < 2:
        raise InputError(f"nested must be True, False or outer folds >= 2; got {nested!r}")
    if not isinstance(cv, (str, Integral)) and not hasattr(cv, "split"):
        raise InputError(
            "nested needs folds that can be drawn again on fewer rows: give cv as a number K, "
            "'loo', 'size:M' or a splitter, not as pairs of row indices"
        )
    if not isinstance(data, RowFolds) or data.raw is None:
        raise InputError("nested needs the rows in memory: this table is read in parts")


def nested_by_default(study: Study) -> bool:
    """Whether outer fits are quick enough for a command that nobody has asked for them."""
    settings = study.settings
    return (
        isinstance(study.data, RowFolds)
        and study.data.p <= TREE_ONLY
        and not (settings.grid or settings.searches)
        and study.n_nodes <= MAX_NODES_BY_DEFAULT
        and study.limits.reached(0) is None
    )


def nested_error(
    study: Study, rule: str, cv: Any, nested: bool | int = True, groups: Any = None
) -> NestedError:
    """Cross-validate what was done to a table, from its rows as they came to the chosen model.

    The outer fits share the time that the study has left; what they do not prove is estimated from
    their training rows, as in any fit.

    study: That of all rows, done: its protocol, γ, sizes, settings, repeats and seed are used.
    rule, cv, str and folds: As they were asked for; "auto" is resolved in every outer fold.
    nested: The number of outer folds; True: those of a splitter, else :data:`OUTER_FOLDS`, or one
        for each of few rows.
    groups, shape (n,), optional.
    Returns: In the units of the CV error.
    Raises InputError: The rows of an outer fit are too few for the folds or the rule.
    """
    refuse_nested(study.data, cv, nested)
    assert isinstance(study.data, RowFolds)
    assert study.data.raw is not None
    rows = _Rows(
        *study.data.raw, study.data.weights, None if groups is None else np.asarray(groups)
    )
    folds = _outer_folds(study, rows, cv, nested)
    sums, weight = np.empty((2, folds.k))
    for j in range(folds.k):
        train, test = folds.split(j)
        try:
            model = _fitted(study, rule, cv, rows.at(train), (j, folds.k))
        except InputError as error:
            raise InputError(
                f"nested, outer fold {j + 1} of {folds.k}, fitted to {train.size} rows: {error}"
            ) from None
        except KeyboardInterrupt as interrupt:
            interrupt.partial = study.surface  # type: ignore[attr-defined]
            raise
        held = rows.at(test)
        counts = np.ones(test.size) if held.weights is None else held.weights
        sums[j] = counts @ (held.y - (held.X @ model.coef + model.intercept)) ** 2
        weight[j] = counts.sum()
    mean, spread = mean_over_folds(sums / study.design.y_scale**2, weight)
    return NestedError(float(mean), float(spread), folds.k)


class _Rows(NamedTuple):
    """Rows as they came."""

    X: Array
    y: Array
    weights: Array | None
    groups: NDArray[Any] | None

    def at(self, index: NDArray[np.intp]) -> _Rows:
        """Some of the rows."""
        X, y, weights, groups = self
        return _Rows(
            X[index],
            y[index],
            None if weights is None else weights[index],
            None if groups is None else groups[index],
        )


def _outer_folds(study: Study, rows: _Rows, cv: Any, nested: bool | int) -> Folds:
    """The folds of a splitter, or the number asked for, drawn with the study's seed."""
    X, y, _, groups = rows
    if not isinstance(nested, (bool, np.bool_)):
        cv = int(nested)
    elif isinstance(cv, (str, Integral)):
        units = y.size if groups is None else np.unique(groups).size
        many = units > MAX_ROWS_OF_TEN_FOLDS
        cv = OUTER_FOLDS_OF_MORE_ROWS if many else OUTER_FOLDS
        cv = units if units <= LEAVE_ONE_OUT_ROWS else cv
    return make_folds(cv, y.size, seed=study.seed, X=X, y=y, groups=groups)


def _fitted(study: Study, rule: str, cv: Any, rows: _Rows, at: tuple[int, int]) -> FittedModel:
    """The model of some rows, found as the study's was, in an even share of the time left."""
    (X, y, weights, groups), (j, k) = rows, at
    if weights is not None and np.count_nonzero(weights) < 2:
        raise InputError("fewer than 2 of them have a weight above 0")
    names = [f"column {c}" for c in range(X.shape[1])]
    design = make_design(Summary.of(X, y, weights), study.design.protocol, names, warn=False)
    folds = make_folds(cv, y.size, seed=study.seed, X=X, y=y, groups=groups)
    settings = replace(study.settings, proving=study.settings.proving / k)
    if (left := study.limits.share(k - j).remaining()) is not None:
        settings = replace(settings, time_limit=left)

    def told(what: str, done: int, total: int) -> None:
        study._tell(f"outer fold {j + 1} of {k}, {what}", done, total)

    inner = Study(
        RowFolds.of(design, X, y, folds, weights),
        design,
        study.gammas,
        # A rare 0/1 column may be constant in these rows: larger sizes are then cut.
        np.minimum(study.sizes, design.p) if study.sizes_named else None,
        settings,
        repeats=study.repeats,
        seed=study.seed,
        checkpoint=study.folder,
        progress=told,
    )
    used, choices = choose(inner, rule)
    return chosen_model(inner, choices[used])
