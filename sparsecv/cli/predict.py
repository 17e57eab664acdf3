"""``sparsecv predict``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from ..errors import file_faults
from .options import DONE, Encoding, check_file

Model = Annotated[Path, typer.Argument(help="A file that --save has written.")]
New = Annotated[str, typer.Argument(help="A table, as for cv; its columns are matched by name.")]
Out = Annotated[Path | None, typer.Option(help="CSV of the predictions; default: the screen.")]


def predict(model: Model, data: New, out: Out = None, encoding: Encoding = "utf-8") -> None:
    """Predict the rows of a table by a saved model."""
    from ..design.saved import SavedModel
    from ..tables.features import read_features

    check_file("--out", out)
    saved = SavedModel.read(model)
    blocks = read_features(data, saved.columns(), saved.support, encoding)
    first = next(blocks)  # a fault is found before a file is begun
    with file_faults(f"--out {out}"):
        chosen = nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8")
    with chosen as file:
        print("prediction", file=file)
        for X in chain([first], blocks):
            file.writelines(f"{value!r}\n" for value in saved.predict(X).tolist())
    raise typer.Exit(DONE)
