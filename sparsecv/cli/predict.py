"""The command ``sparsecv predict``, which predicts the responses of new rows by a saved model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..errors import InputError, file_faults
from .options import Encoding, Exit, check_files

if TYPE_CHECKING:
    from ..design.saved import SavedModel

Model = Annotated[Path, typer.Argument(help="A file that --save has written.")]
New = Annotated[str, typer.Argument(help="A table, as for cv; its columns are matched by name.")]
Out = Annotated[Path | None, typer.Option(help="CSV of the predictions; default: the screen.")]

Coverage = Annotated[
    float | None,
    typer.Option(
        help="Also the ends of prediction intervals of this coverage, such as 0.9, of a model that "
        "sparsecv cv --save FILE --intervals wrote."
    ),
]


def predict(
    model: Model,
    data: New,
    out: Out = None,
    coverage: Coverage = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Predict the rows of a table by a saved model."""
    from ..design.fold_models import checked_coverage
    from ..design.saved import SavedModel
    from ..tables.datasets import read_features

    check_files(out=out)
    saved = SavedModel.read(model)
    asked = coverage is not None
    if asked:
        checked_coverage(coverage)
        if saved.intervals is None:
            raise InputError(
                f"{model} keeps nothing for intervals: sparsecv cv --save FILE --intervals does"
            )
    names = saved.needed(asked), saved.columns(asked)
    rows = read_features(data, names[1], names[0], encoding, saved.fills)
    blocks = _predictions(saved, rows, data, coverage)
    first = next(blocks)  # Rows that cannot be used are refused before the file is opened.
    # ``main`` reports what goes wrong with standard output.
    faults = nullcontext() if out is None else file_faults(f"--out {out}")
    with (
        faults,
        nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8") as file,
    ):
        print("prediction,lower,upper" if asked else "prediction", file=file)
        for values in chain([first], blocks):
            file.writelines(",".join(map(repr, row)) + "\n" for row in values)
    raise typer.Exit(Exit.DONE)


def _predictions(
    saved: SavedModel, blocks: Iterable[Any], data: str, coverage: float | None
) -> Iterator[list[list[float]]]:
    """Yield the predictions of every block of rows, and refuse predictions that are not finite.

    blocks: Features of the rows, in arrays of shape (m, features): those that ``saved.needed``
        names, which are the features of the model first.
    data: The table's name in messages.
    coverage: With a number, the ends of the prediction interval follow every prediction.
    """
    models, names = saved.fold_models if coverage is not None else None, saved.needed(True)
    place = [] if models is None else [names.index(saved.features[c]) for c in models.columns]
    width = len(saved.support)
    done = 0
    for X in blocks:
        values = saved.predict(X[:, :width])
        if not np.isfinite(values).all():
            row = done + int(np.argmin(np.isfinite(values))) + 1
            raise InputError(
                f"{data}: the prediction of data row {row} is too large for a number: its values "
                "are far from those that the model was fitted to, or the model file is damaged"
            )
        done += len(X)
        parts = [values[:, None]]
        if models is not None and coverage is not None:
            parts.append(models.interval(X[:, place], coverage))
        yield np.hstack(parts).tolist()
