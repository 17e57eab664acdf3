"""Data sets that have names: two built-in ones, and the files in the folder SPARSECV_DATA."""

import csv
import difflib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, file_faults, warn_caller
from .columns import FloatArray, quoted, quoted_names
from .files import File, Matrix
from .row_source import RowSource
from .sources import name_of, open_file, open_table
from .synthetic import make_synthetic

__all__ = ["list_datasets", "load_dataset", "make_synthetic"]

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy")

MAX_HASHED_BYTES = 50 * 2**20
"""The SHA-256 of a file of this many bytes or more is not compared with the registry's.

Such a file is used without a warning, to save the time: the SHA-256 of this many bytes takes 0.1 s,
whenever the data set is loaded."""


@dataclass(frozen=True)
class DatasetInfo:
    """Facts about a named data set.

    Attributes
    ----------
    name : str
        The name by which commands and functions know the data set.
    n, p : int
        Number of rows and of features.
    response : str
        Name of the response, and what the response measures.
    task : str
        ``regression`` or ``classification`` (y is then +1 or -1).
    source, licence : str
        Where the published data come from, and their licence if it is stated.
    recipe : str
        How the design matrix is made from the published columns.
    notes : str
        Remarks on the data.
    design : str
        How the recipe was found: ``stated``, ``inferred``, ``conjecture`` or ``companion``;
        ``built-in`` for the data sets that are part of the package.
    sha256 : str
        SHA-256 of the file; empty for built-in data sets.
    file : str
        Path of the file below SPARSECV_DATA; empty for built-in data sets.
    builtin : bool
        Whether the data set is part of the package.
    available : bool
        Whether the data set can be loaded now.
    """

    name: str
    n: int
    p: int
    response: str
    task: str
    source: str
    licence: str
    recipe: str
    notes: str
    design: str
    sha256: str = ""
    file: str = ""
    builtin: bool = False
    available: bool = False


def _diabetes() -> FloatArray:
    """scikit-learn's diabetes data in original units, shape (442, 11): 10 features and response.

    The data are read from scikit-learn's files, because importing its function takes 2 seconds.
    """
    spec = find_spec("sklearn")
    folder = Path(str(spec and spec.origin)).parent / "datasets" / "data"
    try:
        X = np.loadtxt(folder / "diabetes_data_raw.csv.gz")
        y = np.loadtxt(folder / "diabetes_target.csv.gz")
    except OSError:  # Another version of scikit-learn may keep the files elsewhere.
        from sklearn.datasets import load_diabetes

        X, y = load_diabetes(return_X_y=True, scaled=False)
    return np.column_stack([X, y])


def _synthetic() -> FloatArray:
    """The default draw of :func:`make_synthetic`, shape (200, 21): 20 features and the response."""
    drawn = make_synthetic()
    return np.column_stack([drawn.X, drawn.y])


# For every built-in data set, a function that makes its numbers, with the response last, and the
# names of its columns. Names of the diabetes data are scikit-learn's. registry.csv has every set.
_BUILTIN: dict[str, tuple[Callable[[], FloatArray], list[str]]] = {
    "diabetes": (_diabetes, ["age", "sex", "bmi", "bp", *(f"s{j}" for j in range(1, 7)), "target"]),
    "synthetic": (_synthetic, [*(f"x{j}" for j in range(20)), "y"]),
}


@cache
def _registry() -> dict[str, DatasetInfo]:
    """The data sets of registry.csv, the built-in ones first."""
    text = resources.files("sparsecv.tables").joinpath("registry.csv").read_text(encoding="utf-8")
    infos: dict[str, DatasetInfo] = {}
    for row in csv.DictReader(text.splitlines()):
        builtin = row["name"] in _BUILTIN
        cells: dict[str, Any] = {**row, "n": int(row["n"]), "p": int(row["p"]), "builtin": builtin}
        if not builtin:
            cells["response"] = f"y ({row['response']})"  # the column's name, and what it holds
        infos[row["name"]] = DatasetInfo(**cells, available=builtin)
    return infos


def _folder() -> Path | None:
    """The folder that the environment variable SPARSECV_DATA names."""
    stated = os.environ.get("SPARSECV_DATA")
    return Path(stated).expanduser() if stated else None


def _find(name: str) -> Path | None:
    """The file of a data set in the folder SPARSECV_DATA, if there is such a file."""
    folder = _folder()
    if folder is None or not name or Path(name).name != name:
        return None
    places = [folder / f"{name}{suffix}" for suffix in _SUFFIXES]
    places += [folder / "processed" / place.name for place in places]
    if name in _registry():
        places.append(folder / _registry()[name].file)
    return next((path for path in places if path.is_file()), None)


def _check_hash(name: str, path: Path) -> None:
    """Warn if the file of a data set differs from the file that the registry describes.

    Files of another name than in the registry, such as another format's, are not compared.
    """
    info = _registry().get(name)
    if info is None or Path(info.file).name != path.name or path.stat().st_size >= MAX_HASHED_BYTES:
        return
    if hashlib.sha256(path.read_bytes()).hexdigest() != info.sha256:
        text = f"{path} differs from the file the registry describes for {name!r} (another SHA-256)"
        warn_caller(f"{text}; it is used all the same", UserWarning)


def _unknown(name: str) -> InputError:
    """The error to raise for a name that is no data set, or whose file is missing."""
    known, folder = list(_registry()), _folder()
    if folder is None:
        remedy = "set SPARSECV_DATA to the folder that holds the data files"
    elif not folder.is_dir():
        remedy = f"SPARSECV_DATA names {folder}, which is not a folder"
    else:
        remedy = f"no {name}.csv, .csv.gz, .parquet or .npy in SPARSECV_DATA ({folder})"
    if name in known:
        return InputError(f"data set {quoted(name)} is known but its file is not here: {remedy}")
    beside = (name + suffix for suffix in (".csv", ".tsv", ".txt", ".parquet", ".npy"))
    close = [file for file in beside if Path(file).is_file()]
    close += difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {quoted_names(close)}? " if close else ""
    return InputError(
        f"no data set or file {quoted(name)}; {hint}`sparsecv datasets` lists the names; {remedy}"
    )


def locate(data: str | PathLike[str], encoding: str = "utf-8") -> tuple[File, str]:
    """Find a built-in data set or a file, and return it with its name for output.

    Names of built-in data sets come first. A text with a path separator or a suffix is a file. Any
    other text is the name of a data set, or else of a file without suffix. "-" is the standard
    input.

    encoding: Encoding of text.
    Raises InputError: There is no such data set, or no such file.
    """
    text = os.fspath(data)
    if text in _BUILTIN:
        read, names = _BUILTIN[text]
        values = read()
        matrix = Matrix(text, names, lambda: values)
        matrix.max_bytes_in_memory = values.nbytes
        return matrix, text
    is_path = Path(text).name != text or bool(Path(text).suffix) or text == "-"
    with file_faults(quoted(text)):
        if is_path or (_find(text) is None and Path(text).exists()):
            return open_file(text, encoding), name_of(text)
        path = _find(text)
    if path is None:
        raise _unknown(text)
    _check_hash(text, path)
    return open_file(path, encoding), text


def load_dataset(name: str) -> RowSource:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        ``diabetes`` or ``synthetic``, or the stem of a .csv, .csv.gz, .parquet or .npy file in the
        folder that the environment variable SPARSECV_DATA names, or in its subfolder
        ``processed``.

    Returns
    -------
    RowSource

    Raises
    ------
    InputError
        The name is unknown, or the file cannot be used.

    Warns
    -----
    UserWarning
        The file differs from the file that the registry describes.

    Examples
    --------
    >>> from sparsecv.tables.datasets import load_dataset
    >>> table = load_dataset("diabetes")
    >>> table.n, table.p
    (442, 10)
    """
    if name not in _BUILTIN and _find(name) is None:  # Files elsewhere do not count.
        raise _unknown(name)
    return resolve(name)


def resolve(data: str | PathLike[str], *, encoding: str = "utf-8", **options: Any) -> RowSource:
    """Open a data set by name, or a file, as :func:`locate` finds it.

    The options are those of :func:`sparsecv.tables.sources.open_table`.

    Raises InputError: The name is neither a data set nor a file, or the file cannot be used.
    """
    return open_table(locate(data, encoding), **options)


def describe(name: str) -> DatasetInfo:
    """The registry's facts about a data set, and whether the data set can be loaded now.

    Raises InputError: The name is not in the registry.
    """
    if name not in _registry():
        raise _unknown(name)
    info = _registry()[name]
    return replace(info, available=info.builtin or _find(name) is not None)


def list_datasets() -> list[DatasetInfo]:
    """Return every data set of the registry, the built-in ones first.

    Returns
    -------
    list of DatasetInfo

    Examples
    --------
    >>> from sparsecv.tables.datasets import list_datasets
    >>> [data.name for data in list_datasets()][:2]
    ['diabetes', 'synthetic']
    """
    return [describe(name) for name in _registry()]
