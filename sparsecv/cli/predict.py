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
from ..design.saved import SavedModel
from ..errors import InputError, file_faults
from ..tables.datasets import locate
from ..tables.factors import features
from ..tables.faults import Faults
from . import outputs
from .console import reading
from .options import Exit


def predict(
    model: Path,
    data: str,
    out: Path | None,
    coverage: float | None,
    ids: list[str] | None,
    unknown: str | None,
    **text: str | None,
) -> Exit:
    """Predict the rows of a table by a saved model; a row that cannot be predicted stays empty.

    text: The options that say how numbers and missing values are written; by default they are
        written as in the table that the model was fitted to.
    """
    outputs.refuse_unwritable(SimpleNamespace(out=out))
    saved, asked = SavedModel.read(model), coverage is not None
    if asked:
        checked_coverage(coverage)
        if saved.intervals is None:
            raise InputError(
                f"{model} keeps nothing for intervals. sparsecv cv --save FILE does, where the "
                "folds hold out every row once and rows have no weights or missing values"
            )
    source, _ = locate(data, reading(text, saved.reading))
    names = list(ids or ())
    labels = source.texts(names)
    coding = saved.coding(asked)
    faults = Faults(source.label, None, bool(saved.fills), coding.names)
    # Of the rows without a prediction, a message lists at most the numbers of this many rows of
    # each column at fault, and counts all of them. The number is a choice.
    faults.max_rows = 100
    how: dict[str, Any] = {"fills": saved.fills, "unknown": unknown or saved.unknown}
    X = features(source, coding, saved.needed(asked), faults, **how)
    values = _predictions(saved, X, faults, coverage)
    known = np.isfinite(values[:, 0])
    bad = int(np.count_nonzero(~known))
    with ExitStack() as opened:
        target = sys.stdout  # ``main`` reports what goes wrong with standard output.
        if out is not None:
            opened.enter_context(file_faults(f"--out {out}"))
            target = opened.enter_context(out.open("w", encoding="utf-8"))
        table = csv.writer(target, lineterminator="\n")
        table.writerow([*names, "prediction", *("lower", "upper") * asked])
        labels = labels or [[]] * len(values)
        for there, row, own in zip(known, values.tolist(), labels, strict=True):
            cells = map(repr, row) if there else [""] * len(row)
            table.writerow([*own, *cells])
    if bad:
        what = f"{bad:,} of {len(values):,} rows have no prediction: {faults.message()}"
        print(what, file=sys.stderr)
    return Exit.GAP if bad else Exit.DONE


def _predictions(
    saved: SavedModel, X: NDArray[np.float64], faults: Faults, coverage: float | None
) -> NDArray[np.float64]:
    """The predictions of rows, one for each row; those of rows at fault are not finite.

    X: The features that ``saved.needed`` names, which are the features of the model first.
    faults: Gets the rows whose prediction is no number.
    coverage: With a number, the ends of the prediction interval follow every prediction.
    """
    models, names = saved.intervals if coverage is not None else None, saved.needed(True)
    place = [] if models is None else [names.index(saved.features[c]) for c in models.columns]
    usable = np.isfinite(X).all(axis=1)
    values = np.full(len(X), np.nan)
    values[usable] = saved.predict(X[usable, : len(saved.support)])
    far = np.flatnonzero(usable & ~np.isfinite(values))
    if far.size:
        what = "the prediction is too large for a number: the values are far from those fitted"
        faults.add("prediction", what, ["correct the row"], far)
    if models is None or coverage is None:
        return values[:, None]
    ends = np.full((len(X), 2), np.nan)
    ends[usable] = models.interval(X[usable][:, place], coverage)
    return np.column_stack([values, ends])
