"""The command ``sparsecv predict``, which predicts the responses of new rows by a saved model."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from ..errors import InputError, file_faults
from .files import check_files
from .options import Encoding, Exit

if TYPE_CHECKING:
    from ..design.saved import SavedModel
    from ..tables.features import FeatureRows

Model = Annotated[Path, typer.Argument(help="A file that --save has written.")]
New = Annotated[str, typer.Argument(help="A table, as for cv; its columns are matched by name.")]
Out = Annotated[Path | None, typer.Option(help="CSV of the predictions; default: the screen.")]

Coverage = Annotated[
    float | None,
    typer.Option(
        help="Also the ends of prediction intervals of this coverage, such as 0.9, of a model that "
        "sparsecv cv --save FILE wrote."
    ),
]


Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id", help="A column of the table that is written before the prediction; repeatable."
    ),
]
Unknown = Annotated[
    Literal["error", "zero"] | None,
    typer.Option(
        help="A text that is no level of its column leaves the row without a prediction (error), "
        "or counts as no level (zero); default: as the model was saved."
    ),
]


def predict(
    model: Model,
    data: New,
    out: Out = None,
    coverage: Coverage = None,
    ids: Ids = None,
    unknown: Unknown = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Predict the rows of a table by a saved model; a row that cannot be predicted stays empty."""
    from ..design.fold_models import checked_coverage
    from ..design.saved import SavedModel
    from ..tables.datasets import locate
    from ..tables.features import FeatureRows, texts_of

    check_files(out=out)
    saved = SavedModel.read(model)
    asked = coverage is not None
    if asked:
        checked_coverage(coverage)
        if saved.intervals is None:
            raise InputError(
                f"{model} keeps nothing for intervals: sparsecv cv --save FILE does, where the "
                "folds hold out every row once and rows have no weights or missing values"
            )
    file, _ = locate(data, encoding)
    names = list(ids or ())
    labels = texts_of(file, names)
    how: dict[str, Any] = {"fills": saved.fills, "unknown": unknown or saved.unknown}
    rows = FeatureRows(file, saved.coding(asked), saved.needed(asked), **how)
    # Of the rows without a prediction, a message lists at most the numbers of this many rows of
    # each column at fault, and counts all of them. The number is a choice.
    rows.faults.max_rows = 100
    columns = ["prediction", "lower", "upper"] if asked else ["prediction"]
    bad = 0
    # ``main`` reports what goes wrong with standard output.
    faults = nullcontext() if out is None else file_faults(f"--out {out}")
    with (
        faults,
        nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8") as target,
    ):
        table = csv.writer(target, lineterminator="\n")
        table.writerow([*names, *columns])
        for values in _predictions(saved, rows, coverage):
            known = np.isfinite(values[:, 0])
            bad += int(np.count_nonzero(~known))
            for there, row in zip(known, values.tolist(), strict=True):
                cells = map(repr, row) if there else [""] * len(row)
                table.writerow([*next(labels), *cells])
    if bad:
        print(
            f"{bad:,} of {rows.n:,} rows have no prediction: {rows.faults.message()}",
            file=sys.stderr,
        )
    raise typer.Exit(Exit.GAP if bad else Exit.DONE)


def _predictions(
    saved: SavedModel, rows: FeatureRows, coverage: float | None
) -> Iterator[NDArray[np.float64]]:
    """Yield the predictions of every block of rows; those of rows at fault are not finite.

    rows: The features that ``saved.needed`` names, which are the features of the model first.
    coverage: With a number, the ends of the prediction interval follow every prediction.
    """
    models, names = saved.fold_models if coverage is not None else None, saved.needed(True)
    place = [] if models is None else [names.index(saved.features[c]) for c in models.columns]
    width = len(saved.support)
    done = 0
    for X in rows.blocks():
        usable = np.isfinite(X).all(axis=1)
        values = np.full(len(X), np.nan)
        values[usable] = saved.predict(X[usable, :width])
        far = np.flatnonzero(usable & ~np.isfinite(values))
        if far.size:
            what = "the prediction is too large for a number: the values are far from those fitted"
            rows.faults.at_rows("prediction", what, ["correct the row"], done + far)
        done += len(X)
        parts = [values[:, None]]
        if models is not None and coverage is not None:
            ends = np.full((len(X), 2), np.nan)
            ends[usable] = models.interval(X[usable][:, place], coverage)
            parts.append(ends)
        yield np.hstack(parts)
