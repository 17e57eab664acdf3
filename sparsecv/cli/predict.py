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


def predict(model: Model, data: New, out: Out = None, encoding: Encoding = "utf-8") -> None:
    """Predict the rows of a table by a saved model."""
    from ..design.saved import SavedModel
    from ..tables.features import read_features

    check_files(out=out)
    saved = SavedModel.read(model)
    rows = read_features(data, saved.columns(), saved.support, encoding, saved.fills)
    blocks = _predictions(saved, rows, data)
    first = next(blocks)  # Rows that cannot be used are refused before the file is opened.
    with file_faults(f"--out {out}"):
        chosen = nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8")
    with chosen as file:
        print("prediction", file=file)
        for values in chain([first], blocks):
            file.writelines(f"{value!r}\n" for value in values)
    raise typer.Exit(Exit.DONE)


def _predictions(saved: SavedModel, blocks: Iterable[Any], data: str) -> Iterator[list[float]]:
    """Yield the predictions of every block of rows, and refuse predictions that are not finite.

    blocks: Features of the rows, in arrays of shape (m, features of the model).
    data: The table's name in messages.
    """
    done = 0
    for X in blocks:
        values = saved.predict(X)
        if not np.isfinite(values).all():
            row = done + int(np.argmin(np.isfinite(values))) + 1
            raise InputError(
                f"{data}: the prediction of data row {row} is too large for a number: its values "
                "are far from those that the model was fitted to, or the model file is damaged"
            )
        done += len(X)
        yield values.tolist()
