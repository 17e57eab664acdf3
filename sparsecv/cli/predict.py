"""The command ``sparsecv predict``, which predicts the responses of new rows by a saved model."""

from __future__ import annotations

import csv
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_models import checked_coverage
from ..design.missing import filled
from ..design.saved import SavedModel
from ..errors import InputError, file_faults
from ..tables.columns import quoted
from ..tables.datasets import locate
from ..tables.factors import features
from ..tables.faults import Faults
from ..tables.sources import refuse_names
from . import outputs
from .console import reading
from .options import Exit

# Of the rows without a prediction, a message lists at most the numbers of this many rows of each
# column at fault, and counts all of them. The number is a choice.
MAX_LISTED_ROWS = 100


def predict(model: Path, data: str, **options: Any) -> Exit:
    """Predict the rows of a table by a saved model; a row that cannot be predicted stays empty.

    Options that say how numbers and missing values are written are by default those of the table
    that the model was fitted to.

    data: What the user writes for the table.
    options: The values of all options of the command, under their names in ``options.py``.
    Returns: GAP where a row has no prediction, else DONE.
    Raises InputError: The model, the table or an option cannot be used.
    """
    asked = SimpleNamespace(**options)
    outputs.refuse_unwritable(asked)
    saved, with_intervals = SavedModel.read(model), asked.coverage is not None
    if with_intervals:
        checked_coverage(asked.coverage)
        if saved.intervals is None:
            raise InputError(
                f"{model} keeps nothing for intervals. sparsecv cv --save FILE does, where the "
                "folds hold out every row once and rows have no weights"
            )
    source, _ = locate(data, reading(asked, saved.reading))
    if asked.names is not None or asked.header is not None:
        refuse_names(source)
    ids = list(asked.ids or ())
    labels = source.texts(ids)
    coding = saved.coding(with_intervals)
    faults = Faults(source.label, missing_allowed=bool(saved.fills), columns=coding.names)
    faults.max_rows = MAX_LISTED_ROWS
    wanted = saved.needed(with_intervals)
    if saved.offset is not None:  # It is read as a column of numbers, which nothing fills.
        coding = coding._replace(names=list(dict.fromkeys([*coding.names, saved.offset])))
        wanted = [*wanted, saved.offset]
    unknown = asked.unknown or saved.unknown
    X = features(source, coding, wanted, faults, unknown=unknown)
    offset = np.zeros(len(X))
    if saved.offset is not None:
        offset, X = X[:, -1], X[:, :-1]
        if saved.fills:  # A missing offset is a fault where missing features are none.
            what = f"missing value in column {quoted(saved.offset)}"
            faults.add(saved.offset, what, ["fill it in"], np.flatnonzero(np.isnan(offset)))
    values = _predictions(saved, X, offset, faults, asked.coverage)
    predicted = np.isfinite(values[:, 0])
    with ExitStack() as opened:
        target = sys.stdout  # ``main`` reports what goes wrong with standard output.
        if asked.out is not None:
            opened.enter_context(file_faults(f"--out {asked.out}"))
            target = opened.enter_context(asked.out.open("w", encoding="utf-8"))
        table = csv.writer(target, lineterminator="\n")
        table.writerow([*ids, "prediction", *(("lower", "upper") if with_intervals else ())])
        for i, row in enumerate(values.tolist()):
            cells = map(repr, row) if predicted[i] else [""] * len(row)
            table.writerow([*(labels[i] if ids else ()), *cells])
    if predicted.all():
        return Exit.DONE
    bad = int(np.count_nonzero(~predicted))
    what = f"{bad:,} of {len(values):,} rows have no prediction: {faults.message()}"
    print(what, file=sys.stderr)
    return Exit.GAP


def _predictions(
    saved: SavedModel,
    X: NDArray[np.float64],
    offset: NDArray[np.float64],
    faults: Faults,
    coverage: float | None,
) -> NDArray[np.float64]:
    """The predictions of n rows, shape (n, 1), or (n, 3) with the ends of their intervals.

    The prediction of a row at fault is not finite, and the ends of its interval mean nothing. The
    ends of other rows are infinite where the coverage asks for more held-out rows than there are.

    X, shape (n, m): The features that ``saved.needed`` names: first those of the model's support,
        and with a coverage those that the models of the folds use besides. Missing values are NaN.
    offset, shape (n,): What is added to the predictions.
    faults: Gets the rows whose prediction is no number.
    coverage: Share of new responses that an interval is to hold; None for no intervals.
    """
    names, given = saved.needed(coverage is not None), X
    if saved.fills:
        X = filled(X, np.array([saved.fills[name] for name in names]))
    usable = np.isfinite(X).all(axis=1) & np.isfinite(offset)
    values = np.full(len(X), np.nan)
    values[usable] = saved.predict(X[usable, : len(saved.support)]) + offset[usable]
    far = np.flatnonzero(usable & ~np.isfinite(values))
    if far.size:
        what = "the prediction is too large for a number: the values are far from those fitted"
        faults.add("prediction", what, ["correct the row"], far)
    if saved.intervals is None or coverage is None:
        return values[:, None]
    ends = np.full((len(X), 2), np.nan)
    columns = [names.index(saved.features[c]) for c in saved.intervals.columns]
    ends[usable] = saved.intervals.interval(given[usable][:, columns], coverage)
    ends += offset[:, None]
    return np.column_stack([values, ends])
