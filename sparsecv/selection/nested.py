"""The error to expect on new data: the whole fit, its rule included, cross-validated.

The least of many CV errors is below what new data give, because the folds that measure the errors
chose the model. Here every outer fold is predicted by a model that is found anew from the other
rows alone: with their own scaling, inner folds, weights, values of γ and choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.executor import Late, OutOfTime
from ..cv.results import mean_over_folds
from ..design.design import Array, Design
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds, Index, make_folds
from ..design.missing import fill
from ..design.model import Model
from ..design.prepare import rows_design
from ..design.row_table import RowTable
from ..errors import InputError
from ..tables.table import joined
from .choice import chosen_from, known_model
from .study import Study
from .surfaces import evaluate_partition, first_partition, named_report


class NestedSettings(NamedTuple):
    """The number of outer folds where the user names none, and when a command nests unasked."""

    # Tables of 31 to 200 rows (or groups) have this many outer folds.
    outer_folds: int = 10
    # Tables of more rows (or groups) have fewer outer folds: models of five folds lack a fifth of
    # the rows, which matters where rows are few.
    max_rows_of_ten_folds: int = 200
    # Tables of more than 200 rows (or groups) have this many outer folds.
    outer_folds_of_more_rows: int = 5
    # In tables of at most this many rows (or groups) every row is an outer fold: models of ten
    # folds lack a tenth of the rows, which at 20 rows makes the error 11 to 14 % too large
    # (docs/benchmarks.md).
    max_rows_left_out_one_by_one: int = 30
    # A command nests a fit unasked where all outer fits together are expected to take at most this
    # many seconds. An outer fit takes about as long as the fit took to choose its model. Tables of
    # few rows need the error to expect most: of 30 rows, 30 outer fits take about a second. Beyond
    # 45 columns no command nests unasked. The number is a choice.
    max_seconds_unasked: float = 2.0
    # A command nests a fit of more folds than this only where it is asked to, because every outer
    # fit has as many inner folds. The number is a choice.
    max_folds_unasked: int = 20


NESTED = NestedSettings()


class NestedError(NamedTuple):
    """The error to expect on new data, in the units of the CV error.

    error, std_error: Mean squared error on the rows of all outer folds, and its standard error,
        which is NaN where only one of them counts.
    folds: The number of outer folds that were fitted, which is smaller where the time was up.
    outer: All outer folds, in the order in which they are fitted; the first ``folds`` of them were.
    sums, shape (folds, 2): The weighted squared errors of every outer fold, in the units of raw y,
        and the weight of its rows.
    """

    error: float
    std_error: float
    folds: int
    outer: Folds
    sums: Array


class PeerError(NamedTuple):
    """The error of another learner on the same outer folds, in the units of the CV error.

    error, std_error: As of :class:`NestedError`.
    above, std_error_above: By how much it exceeds the error of the fit on the same folds, below 0
        where it is smaller, and the standard error of that difference over folds.
    """

    error: float
    std_error: float
    above: float
    std_error_above: float


class GivenRows(NamedTuple):
    """X, shape (n, p), and y as the user gave them, with weights and groups of rows, or None."""

    X: Array
    y: Array
    weights: Array | None
    groups: NDArray[Any] | None

    def some(self, index: Index) -> GivenRows:
        """The rows whose numbers are in ``index``; the arrays are copies."""
        weights = None if self.weights is None else self.weights[index]
        groups = None if self.groups is None else self.groups[index]
        # X and y are views of one array, which the folds of these rows share.
        both = joined(self.X[index], self.y[index])
        return GivenRows(both[:, :-1], both[:, -1], weights, groups)


def refuse_nested(data: FoldData, cv: Any, nested: Any = True, groups: Any = None) -> None:
    """Raise an InputError, before anything is computed, where a fit cannot be nested.

    It cannot where no outer folds can be drawn, or where an outer fold leaves too few rows for its
    own folds. Where the folds are those of a splitter of scikit-learn none is drawn here, because
    splitters may use y and draw random numbers.

    data: All rows.
    cv: The folds of the fit as the user asked for them.
    nested, groups: As of :func:`nested_error`; nothing is refused where ``nested`` is False.
    """
    if isinstance(nested, (bool, np.bool_)):
        if not nested:
            return
    elif not isinstance(nested, Integral) or nested < 2:
        raise InputError(f"nested must be True, False or outer folds >= 2; got {nested!r}")
    if not isinstance(cv, (str, Integral)) and not hasattr(cv, "split"):
        raise InputError(
            "nested needs folds that can be drawn again on fewer rows: give cv as a number K, "
            "'loo', 'size:M', 'time:K' or a splitter, not as pairs of row indices"
        )
    weights = data.rows_for("nested needs").rows.weights
    if not isinstance(cv, (str, Integral)):
        return
    n, groups = data.folds.n, None if groups is None else np.asarray(groups)
    cv = _folds_again(data.folds, cv)
    # These are the folds of seed 0. Where other folds leave too few rows, the outer fit refuses.
    folds = _outer_folds(n, cv, nested, seed=0, groups=groups)
    for j, (train, _) in enumerate(folds.splits()):
        with _named(j, folds.k, train):
            make_folds(cv, train.size, groups=None if groups is None else groups[train])
            if weights is not None and np.count_nonzero(weights[train]) < 2:
                raise InputError("fewer than 2 of them have a weight above 0")


def _folds_again(folds: Folds, cv: Any) -> Any:
    """What a fit to some of the rows has as folds; "loo" where every row, or group, is a fold.

    folds: Those of the fit to all rows.
    cv: These folds as the user asked for them.
    """
    named = isinstance(cv, (str, Integral)) and folds.one_for_each
    return "loo" if named else cv


@contextmanager
def _named(j: int, k: int, train: Index) -> Iterator[None]:
    """Have InputErrors name outer fold j of k, which is fitted to the rows ``train``."""
    try:
        yield
    except InputError as error:
        text = f"nested, outer fold {j + 1} of {k}, fitted to {train.size} rows: {error}"
        raise InputError(text) from None


def nested_by_default(study: Study, seconds: float, groups: Any = None) -> bool:
    """Whether outer fits take so little time that a command nests the fit without being asked.

    It never does beyond 45 columns, by the methods grid and search, with more folds than
    :class:`NestedSettings` says, where rows are not in memory, or where the time is up.

    study: That of the fit, which has just ended.
    seconds: The seconds until the fit had chosen its model. An outer fit ends there, too.
    groups, shape (n,), optional: Group of every row.
    """
    settings, plan, folds = study.settings, study.plan, study.data.folds
    if study.data.raw is None or not plan.all_size_trees or settings.grid or settings.searches:
        return False
    if folds.k > NESTED.max_folds_unasked or plan.time_is_up:
        return False
    return _n_outer(folds.n, groups) * seconds <= NESTED.max_seconds_unasked


def nested_error(
    study: Study, cv: Any, nested: bool | int = True, groups: Any = None
) -> NestedError:
    """Cross-validate a whole fit, its rule included, on the rows as the user gave them.

    The outer fits share the time that the fit has left; what an outer fit does not prove is
    estimated from its training rows, as in any fit. Once the time is up no outer fit begins, except
    for the first, and one whose rule cannot choose in time is left out, except for the first; the
    error is then that of fewer outer folds.

    study: That of the fit to all rows, whose rule, protocol, γ, sizes, settings and seed every
        outer fit uses. Its data are not released.
    cv: The folds of the fit as the user asked for them; every outer fit has such folds again.
    nested: The number of outer folds. With True the outer folds are those of the splitter ``cv``,
        or as many as :class:`NestedSettings` says.
    groups, shape (n,), optional: Group of every row.
    Raises InputError: As :func:`refuse_nested`; or the rows of an outer fit are too few for the
        folds or the rule.
    """
    refuse_nested(study.data, cv, nested, groups)
    rows = _given_rows(study, groups)
    folds = _outer_folds(rows.y.size, cv, nested, study.settings.seed, rows.groups, rows.X, rows.y)
    if rows.weights is not None:
        folds.check_weights(rows.weights > 0.0, "outer folds of nested")
    squares = list[tuple[float, float]]()
    for j, (train, test) in enumerate(folds.splits()):
        if j and study.plan.out_of_time:
            break
        with _named(j, folds.k, train):
            try:
                model, fills = _fitted(study, cv, rows.some(train), j, folds.k)
            except OutOfTime:
                break
        squares.append(_squares(rows.some(test), model, fills))
    sums = np.array(squares)
    return NestedError(*_mean(study, *sums.T), len(squares), folds, sums)


def peer_errors(
    study: Study,
    cv: Any,
    own: NestedError,
    peers: Callable[[RowFolds], Mapping[str, Array]],
    groups: Any = None,
) -> dict[str, PeerError]:
    """The errors of other learners on the outer folds of a nested error, by the learners' names.

    A learner that has no coefficients in some fold is left out. Where the time is up before the
    last fold, the result is empty.

    study, cv, groups: As :func:`nested_error` took them.
    own: The nested error.
    peers: Takes the training rows of an outer fold, in folds of their own, and returns under the
        name of each learner its coefficients of the solved columns, shape (p,).
    Raises InputError: The rows are not in memory.
    """
    rows, squares = _given_rows(study, groups), dict[str, list[float]]()
    for train, test in list(own.outer.splits())[: own.folds]:
        if study.plan.out_of_time:
            return {}
        data, design, fills = _training(study, cv, rows.some(train))
        plain = replace(design, asked=None)  # Bounds on coefficients are those of the fit alone.
        for name, beta in peers(data).items():
            coef, intercept = plain.coefficients(beta)
            # Predictions need neither τ nor γ, which are 0 here.
            model = Model(np.flatnonzero(coef), coef, intercept, 0, 0.0)
            squares.setdefault(name, []).append(_squares(rows.some(test), model, fills)[0])
    sums, weights = own.sums.T
    return {
        name: PeerError(*_mean(study, found, weights), *_mean(study, found - sums, weights))
        for name, found in ((name, np.array(found)) for name, found in squares.items())
        if found.size == own.folds
    }


def _given_rows(study: Study, groups: Any) -> GivenRows:
    """The rows of a study as the user gave them; once released, without columns that do not vary.

    Such columns are 0 then, in the place that they had. No model of some of the rows has them.

    Raises InputError: The rows are not in memory.
    """
    data, design = study.data.rows_for("nested needs"), study.design
    groups = None if groups is None else np.asarray(groups)
    if (raw := data.raw) is None:
        assert design.protocol.name == "honest"  # Else the rows are solved ones, and not released.
        given = data.rows.given
        X = np.zeros((len(given), design.p_raw))
        X[:, design.kept] = given[:, :-1]
        raw = X, given[:, -1]
    return GivenRows(*raw, data.rows.weights, groups)


def _mean(study: Study, sums: Array, weights: Array) -> tuple[float, float]:
    """The mean over rows of sums over folds, in the units of the CV error, and its standard error.

    One fold, beside which there are none of a weight above 0, has a mean and no standard error.

    sums, shape (folds,): Sums over the rows of each fold, in the units of raw y, squared.
    weights, shape (folds,): The number of rows of each fold, or the sum of their weights.
    """
    mean, std_error = mean_over_folds(sums / study.design.y_scale**2, weights)
    return float(mean), float(std_error) if np.count_nonzero(weights) > 1 else float("nan")


def _squares(rows: GivenRows, model: Model, fills: Array | None) -> tuple[float, float]:
    """The sum of a model's weighted squared errors on held-out rows, and the sum of the weights.

    Errors are in the units of raw y.

    rows: The held-out rows, whose missing values are filled in place.
    fills, shape (p_raw,): What the model fills missing values with; None where it fills none.
    """
    if fills is not None:
        fill(rows.X, fills)
    weights = np.ones(rows.y.size) if rows.weights is None else rows.weights
    squares = (rows.y - (rows.X @ model.coef + model.intercept)) ** 2
    return float(weights @ squares), float(weights.sum())


def _outer_folds(
    n: int, cv: Any, nested: bool | int, seed: Any, groups: Any, X: Any = None, y: Any = None
) -> Folds:
    """The outer folds of n rows: as many as the user or :class:`NestedSettings` says.

    Where ``cv`` is a splitter and ``nested`` is True, the splitter draws them. Outer folds of folds
    in order of time are in order of time, too.

    cv, nested, groups: As of :func:`nested_error`; ``nested`` is not False.
    X, y: The rows, for splitters that look at them.
    """
    in_time = str(cv).strip().lower().startswith("time:")
    if not isinstance(nested, (bool, np.bool_)):
        cv = f"time:{nested}" if in_time else int(nested)
    elif isinstance(cv, (str, Integral)) and not in_time:
        cv = _n_outer(n, groups)
    return make_folds(cv, n, seed=seed, X=X, y=y, groups=groups)


def _n_outer(n: int, groups: Any) -> int:
    """The number of outer folds of n rows, or of their groups, where the user names none.

    groups, shape (n,), or None: Group of every row.
    """
    units = n if groups is None else np.unique(groups).size
    if units <= NESTED.max_rows_left_out_one_by_one:
        return units
    few = units <= NESTED.max_rows_of_ten_folds
    return NESTED.outer_folds if few else NESTED.outer_folds_of_more_rows


def _fitted(study: Study, cv: Any, rows: GivenRows, j: int, k: int) -> tuple[Model, Array | None]:
    """Fit a model to the training rows of outer fold j of k, in an even share of the time left.

    study: That of the fit to all rows.
    cv: The folds of the fit as the user asked for them.
    rows: The training rows.
    Returns: The model, and what its training rows fill missing values with, shape (p_raw,); None
        where missing values are errors.
    Raises InputError: The rows are too few for the folds or the rule.
    Raises OutOfTime: The time does not suffice for the rule, and the outer fold is not the first.
    """
    data, design, fills = _training(study, cv, rows)
    # A rare 0/1 column may be constant in these rows, so that they have fewer columns than the
    # sizes asked for.
    least = max(int(study.sizes[0] > 0), data.constraints.min_size)
    most = data.constraints.max_size
    name = f"the error to expect, outer fold {j + 1} of {k}, "
    taus = None if study.settings.taus is None else np.clip(study.sizes, least, most)
    inner = Study.of(
        data,
        design,
        replace(study.settings, taus=taus, rule=study.rule, size=None),
        study.wings,
        deadline=study.plan.limits.share(k - j),
        progress=named_report(study.progress, name),
        checkpoint=study.checkpoint,
    )
    partition = first_partition(inner)._replace(late=Late.LEFT_OUT if j else Late.DONE)
    first, choice = chosen_from(inner, evaluate_partition(inner, partition))
    if j and choice.rule != inner.rule:
        raise OutOfTime
    return known_model(inner, first.result, choice), fills


def _training(study: Study, cv: Any, rows: GivenRows) -> tuple[RowFolds, Design, Array | None]:
    """The training rows of an outer fold in folds of their own, and how they are scaled and filled.

    study: The study of the fit to all rows.
    cv: The folds of the fit as the user asked for them.
    rows: The training rows.
    Returns: The rows in folds, their design, and what these rows fill missing values with, shape
        (p_raw,); None where missing values are errors.
    Raises InputError: The rows are too few for the folds.
    """
    X, y, weights, groups = rows
    if weights is not None and np.count_nonzero(weights) < 2:
        raise InputError("fewer than 2 of them have a weight above 0")
    protocol, missing = study.design.protocol, study.data.rows_for("nested needs").rows.missing
    design, fills = rows_design(X, y, protocol, weights, missing, asked=study.design.asked)
    cv = _folds_again(study.data.folds, cv)
    folds = make_folds(cv, y.size, seed=study.settings.seed, X=X, y=y, groups=groups)
    return RowFolds(RowTable.of(design, X, y, weights, missing), folds), design, fills
