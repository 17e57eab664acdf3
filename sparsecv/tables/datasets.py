"""Named data sets: two that are always there, and those kept in the folder SPARSECV_DATA."""

import csv
import difflib
import hashlib
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .columns import as_names, listed, select_columns, shown
from .rows import ArraySource, RowSource
from .sources import open_table
from .synthetic import make_synthetic
from .weights_groups import Column, names_aside

__all__ = ["list_datasets", "load_dataset", "make_synthetic"]

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy")
_HASH_LIMIT = 50 * 2**20


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a named data set.

    n, p: Rows and features of the design.
    response: The column that is the target, and what it holds.
    task: ``regression`` or ``classification`` (y is then +1 or -1).
    source, licence: Where the published data were taken from, and their licence as far as it is
        stated.
    recipe: From the published columns to the design.
    design: How the recipe was found: ``stated``, ``inferred``, ``conjecture`` or ``companion``;
        ``built-in`` for the data sets that come with the package.
    sha256: Of the file; empty for built-in data sets.
    file: The file, relative to SPARSECV_DATA; empty for built-in data sets.
    available: Whether it can be loaded now.
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


def load_diabetes() -> ArraySource:
    """Return scikit-learn's diabetes data in the original units: X (442, 10), y (442,).

    Returns
    -------
    ArraySource

    Raises
    ------
    InputError
        scikit-learn is not installed.
    """
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("diabetes comes with scikit-learn, which is not installed")
    # Its files, not its function: importing that takes two seconds.
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "data"
    try:
        X = np.loadtxt(folder / "diabetes_data_raw.csv.gz")
        y = np.loadtxt(folder / "diabetes_target.csv.gz")
        names = ["age", "sex", "bmi", "bp", *(f"s{j}" for j in range(1, 7))]
    except OSError:  # kept elsewhere in other versions
        from sklearn.datasets import load_diabetes as load

        found = load(scaled=False)
        X, y, names = found.data, found.target, found.feature_names
    return ArraySource(X, y, names, "target", "diabetes")


def _load_synthetic() -> ArraySource:
    drawn = make_synthetic()
    names = [f"x{j}" for j in range(drawn.X.shape[1])]
    return ArraySource(drawn.X, drawn.y, names, "y", "synthetic")


_BUILTIN: dict[str, tuple[Callable[[], ArraySource], DatasetInfo]] = {
    "diabetes": (
        load_diabetes,
        DatasetInfo(
            name="diabetes",
            n=442,
            p=10,
            response="target (disease progression after one year)",
            task="regression",
            source="scikit-learn, load_diabetes(scaled=False)",
            licence="scikit-learn is BSD-3-Clause; data licence not stated",
            recipe="the 10 published features in their units, sex as one 1/2 column",
            notes="diabetes11 is the design with p = 11 of the papers",
            design="built-in",
            builtin=True,
            available=True,
        ),
    ),
    "synthetic": (
        _load_synthetic,
        DatasetInfo(
            name="synthetic",
            n=200,
            p=20,
            response="y (10 of the 20 features plus noise)",
            task="regression",
            source="make_synthetic()",
            licence="none needed: generated",
            recipe="tau_true = 10, rho = 0.7, nu = 1, seed 0; standardised",
            notes="the process of the papers' synthetic experiments",
            design="built-in",
            builtin=True,
            available=True,
        ),
    ),
}


@cache
def _registry() -> dict[str, DatasetInfo]:
    text = resources.files("sparsecv.tables").joinpath("registry.csv").read_text(encoding="utf-8")
    infos: dict[str, DatasetInfo] = {}
    for row in csv.DictReader(text.splitlines()):
        cells: dict[str, Any] = {**row, "n": int(row["n"]), "p": int(row["p"])}
        cells["response"] = f"y ({row['response']})"  # the column's name, and what it holds
        infos[row["name"]] = DatasetInfo(**cells)
    return infos


def _folder() -> Path | None:
    stated = os.environ.get("SPARSECV_DATA")
    return Path(stated).expanduser() if stated else None


def _find(name: str) -> Path | None:
    """The file of a data set in SPARSECV_DATA, if there is one."""
    folder = _folder()
    if folder is None or not name or Path(name).name != name:
        return None
    places = (folder, folder / "processed")
    candidates = [place / f"{name}{suffix}" for place in places for suffix in _SUFFIXES]
    if name in _registry():
        candidates.append(folder / _registry()[name].file)
    return next((path for path in candidates if path.is_file()), None)


def _check_hash(name: str, path: Path) -> None:
    """Warn when a file is not the one the registry describes; another format is not compared."""
    info = _registry().get(name)
    if info is None or Path(info.file).name != path.name or path.stat().st_size >= _HASH_LIMIT:
        return
    if hashlib.sha256(path.read_bytes()).hexdigest() != info.sha256:
        warnings.warn(
            f"{path} differs from the file the registry describes for {name!r} (another SHA-256); "
            "it is used all the same",
            UserWarning,
            stacklevel=4,
        )


def _known_names() -> list[str]:
    return list(dict.fromkeys([*_BUILTIN, *_registry()]))


def _unknown(name: str) -> InputError:
    known, folder = _known_names(), _folder()
    if folder is None:
        remedy = "set SPARSECV_DATA to the folder that holds the data files"
    elif not folder.is_dir():
        remedy = f"SPARSECV_DATA names {folder}, which is not a folder"
    else:
        remedy = f"no {name}.csv, .csv.gz, .parquet or .npy in SPARSECV_DATA ({folder})"
    if name in known:
        return InputError(f"data set {shown(name)} is known but its file is not here: {remedy}")
    beside = (name + suffix for suffix in (".csv", ".tsv", ".txt", ".parquet", ".npy"))
    close = [file for file in beside if Path(file).is_file()]
    close += difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {listed(close)}? " if close else ""
    return InputError(
        f"no data set or file {shown(name)}; {hint}`sparsecv datasets` lists the names; {remedy}"
    )


def locate(data: str | PathLike[str]) -> str | ArraySource:
    """Find a table: a built-in data set, or the path of a file.

    Built-in names come first. What has a path separator or a suffix is a file; anything else is
    the name of a data set, or else a file that has no suffix.

    data: The name or path.
    Returns: The rows, or a path; "-" is the standard input.
    Raises InputError: No such data set.
    """
    text = os.fspath(data)
    if text in _BUILTIN:
        return _BUILTIN[text][0]()
    is_path = Path(text).name != text or bool(Path(text).suffix) or text == "-"
    if is_path or (_find(text) is None and Path(text).exists()):
        return text
    path = _find(text)
    if path is None:
        raise _unknown(text)
    _check_hash(text, path)
    return str(path)


def _reselected(
    source: ArraySource,
    target: str | None,
    drop: tuple[str, ...],
    weights: str | None,
    groups: str | None,
) -> ArraySource:
    """The same rows with another target, or without some columns."""
    if target is weights is groups is None and not drop:
        return source
    X, y = source.load()
    names = [*source.feature_names, source.target_name]
    table = np.column_stack([X, y])
    aside = names_aside(source.name, names, target, drop, weights, groups)
    drop += tuple(name for name in aside if name is not None)
    features, response = select_columns(source.name, names, target, drop)
    made = ArraySource(
        table[:, features],
        table[:, response],
        [names[j] for j in features],
        names[response],
        source.name,
    )
    columns = (
        None if name is None else Column.of(source.name, name, table[:, names.index(name)])
        for name in aside
    )
    made.set_aside(*columns)
    return made


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
        The file differs from the one in the registry.

    Examples
    --------
    >>> from sparsecv.tables.datasets import load_dataset
    >>> table = load_dataset("diabetes")
    >>> table.n, table.p
    (442, 10)
    """
    if name not in _BUILTIN and _find(name) is None:  # a file of this name is not meant
        raise _unknown(name)
    return resolve(name)


def resolve(
    data: str | PathLike[str],
    *,
    target: str | None = None,
    one_hot: str | bool = False,
    drop: str | Iterable[str] = (),
    encoding: str = "utf-8",
    weights: str | None = None,
    groups: str | None = None,
) -> RowSource:
    """Open a data set by name, or a file, as :func:`locate` finds it.

    data: The name or path.
    target, one_hot, drop, encoding, weights, groups: As for
        :func:`sparsecv.tables.sources.open_table`; all but ``one_hot`` and ``encoding`` work on
        every data set.
    Raises InputError: Neither a data set nor a file, or the file cannot be used.
    """
    found, dropped = locate(data), as_names(drop)
    if isinstance(found, ArraySource):
        return _reselected(found, target, dropped, weights, groups)
    source = open_table(
        found,
        target=target,
        one_hot=one_hot,
        drop=dropped,
        encoding=encoding,
        weights=weights,
        groups=groups,
    )
    if found != os.fspath(data):
        source.name = os.fspath(data)
    return source


def describe(name: str) -> DatasetInfo:
    """Return what is known of a built-in or registered data set.

    Raises InputError: The name is not in the registry.
    """
    if name in _BUILTIN:
        return _BUILTIN[name][1]
    if name not in _registry():
        raise _unknown(name)
    info = _registry()[name]
    return replace(info, available=_find(name) is not None)


def list_datasets() -> list[DatasetInfo]:
    """Return every built-in and registered data set, the built-in ones first.

    Returns
    -------
    list of DatasetInfo

    Examples
    --------
    >>> from sparsecv.tables.datasets import list_datasets
    >>> [data.name for data in list_datasets()][:2]
    ['diabetes', 'synthetic']
    """
    return [describe(name) for name in _known_names()]
