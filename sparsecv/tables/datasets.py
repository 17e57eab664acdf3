"""Data sets that have names: two built-in ones, and the files in the folder SPARSECV_DATA."""

import difflib
import os
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, file_faults
from .columns import FloatArray, quoted, quoted_names
from .marks import AS_SHOWN, Reading
from .source import Source, source_of_arrays
from .sources import name_of, open_file, table_of
from .synthetic import make_synthetic
from .table import Table

__all__ = ["make_synthetic", "resolve"]

_SUFFIXES = (".csv", ".csv.gz")  # of data sets; a file that is named by its path may have others
_SUBFOLDER = "processed"
# Names of the diabetes data are scikit-learn's; the response is the last one.
_DIABETES = ["age", "sex", "bmi", "bp", *(f"s{j}" for j in range(1, 7)), "target"]
_SYNTHETIC = "synthetic:n,p,tau_true,rho,nu,seed"


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


def _synthetic(text: str) -> FloatArray:
    """A draw of :func:`make_synthetic`, shape (n, p + 1), whose last column is the response.

    text: Its arguments n, p, tau_true, rho, nu and seed, of which the last ones may be missing.
    Raises InputError: The text holds something else, or values that are refused.
    """
    kinds = (int, int, int, float, float, int)  # Of the arguments, in their order.
    values = text.split(",") if text else []
    try:
        if len(values) > len(kinds):
            raise ValueError
        given = [kind(value) for kind, value in zip(kinds, values, strict=False)]
    except ValueError:
        raise InputError(f"{quoted('synthetic:' + text)}: write {_SYNTHETIC}") from None
    X, y, _ = make_synthetic(*given)
    return np.column_stack([X, y])


def _builtin(name: str, reading: Reading) -> Source | None:
    """The built-in data set of this name, which needs no file; None if there is none."""
    kind, _, arguments = name.partition(":")
    if name == "diabetes":
        values, names = _diabetes(), _DIABETES
    elif kind == "synthetic":
        values = _synthetic(arguments)
        names = [*(f"x{j}" for j in range(values.shape[1] - 1)), "y"]
    else:
        return None
    return source_of_arrays(name, dict(zip(names, values.T, strict=True)), reading)


def _folder() -> Path | None:
    """The folder that the environment variable SPARSECV_DATA names."""
    stated = os.environ.get("SPARSECV_DATA")
    return Path(stated).expanduser() if stated else None


def _find(name: str) -> Path | None:
    """The file of a data set in the folder that SPARSECV_DATA names, or in its subfolder.

    Returns: None where there is no such file. A name with a path separator has none.
    """
    folder = _folder()
    if folder is None or not name or Path(name).name != name:
        return None
    places = [
        place / f"{name}{end}" for place in (folder, folder / _SUBFOLDER) for end in _SUFFIXES
    ]
    return next((path for path in places if path.is_file()), None)


def _unknown(name: str) -> InputError:
    """The error to raise for a name that is neither a data set nor a file."""
    folder = _folder()
    known = ["diabetes", "synthetic"]
    if folder is None:
        remedy = "set SPARSECV_DATA to the folder that holds the data files"
    elif not folder.is_dir():
        remedy = f"SPARSECV_DATA names {folder}, which is not a folder"
    else:
        remedy = f"no {name}.csv or {name}.csv.gz in SPARSECV_DATA ({folder})"
        places = [place / f"*{end}" for place in (Path(), Path(_SUBFOLDER)) for end in _SUFFIXES]
        files = [file for place in places for file in folder.glob(str(place))]
        known += [file.name.partition(".csv")[0] for file in files]
    # Whoever left out the suffix of a file in the current folder learns its whole name.
    whole_names = (name + suffix for suffix in (".csv", ".tsv", ".txt", ".parquet"))
    close = [file for file in whole_names if Path(file).is_file()]
    close += difflib.get_close_matches(name, dict.fromkeys(known), n=3)
    hint = f"did you mean {quoted_names(close)}? " if close else ""
    return InputError(f"no data set or file {quoted(name)}; {hint}{remedy}")


def locate(data: str | PathLike[str], reading: Reading = AS_SHOWN) -> tuple[Source, str]:
    """Find a built-in data set or a file, and return it with its name for output.

    Names of built-in data sets come first. A text with a path separator or a suffix is a file. Any
    other text is the name of a data set, or else of a file without suffix. "-" is the standard
    input.

    reading: What the user says of the text in the file.
    Raises InputError: There is no such data set, or no such file.
    """
    text = os.fspath(data)
    if (made := _builtin(text, reading)) is not None:
        return made, text
    is_path = Path(text).name != text or bool(Path(text).suffix) or text == "-"
    with file_faults(quoted(text)):
        path = None if is_path else _find(text)
        if is_path or (path is None and Path(text).exists()):
            return open_file(text, reading), name_of(text)
    if path is None:
        raise _unknown(text)
    return open_file(path, reading), text


def resolve(data: str | PathLike[str], *, reading: Reading = AS_SHOWN, **options: Any) -> Table:
    """Open a built-in data set, a data set of the folder SPARSECV_DATA, or a file.

    Each factor becomes one 0/1 column per level, in order and named ``feature=level``. A factor of
    two levels gets the 0/1 column of its second level alone.

    Parameters
    ----------
    data : str or path
        ``diabetes``; ``synthetic``, or ``synthetic:n,p,tau_true,rho,nu,seed`` with arguments of
        :func:`make_synthetic`; the name, without its suffix, of a .csv or .csv.gz file in the
        folder that the environment variable SPARSECV_DATA names, or in its subfolder ``processed``;
        or the path of a file. These are tried in this order. A text with a path separator or a
        suffix is always a path.

        A file is ``.csv``, ``.tsv`` or ``.txt`` (also ``.gz``): text with a header line, separated
        by comma, semicolon, tab or bar, whose numbers show whether a comma is a decimal mark;
        ``.parquet`` or ``.pq``: Parquet (extra ``parquet``); or ``.xlsx``, ``.xls`` or ``.ods``:
        the first sheet (extra ``excel``). Any other suffix is tried as text; ``-`` is text on the
        standard input. A first column without a name that only counts the rows, the index of an
        exported data frame, is left out.
    reading : Reading
        What the user says of the text in the file: its encoding, its marks in numbers, and codes of
        missing values.
    **options
        ``target``: the response; by default the last column that is not dropped. In Parquet files
        from pandas the index does not count as a column unless the index is named here.

        ``drop``: the name of a column to leave out, or several names.

        ``factors``: names of columns that are factors, whatever their cells are. Columns of text
        are factors without being named, and so are the categories of a Parquet file.

        ``weights``, ``groups``: names of columns that are no features: the weights of the rows, and
        the groups that folds hold together. Groups may be text.

        ``offset``: the name of a column of numbers that are taken off the response.

        ``missing``: "drop", "mean" or None; what becomes of missing values, which are errors by
        default. "drop" leaves out the rows that lack a value. With "mean" ``load`` returns NaN,
        which cross-validation fills with the mean of a column over the training rows of every fold;
        the 0/1 columns of a factor are filled like others. Rows without a response are left out.
        All rows decide the unit in which the penalty is measured, the standard deviation of every
        column (missing values filled by all rows), and never anything of y; where folds leave rows
        aside, as in order of time, the training rows of every fold decide it.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        There is no such data set or file, or it cannot be used; the message of one line names the
        columns, rows or options at fault.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv"
    ...     _ = path.write_text("a;price" + chr(10) + "1;2,5" + chr(10) + "2;3,5")
    ...     X, y = resolve(path).load()
    >>> y.tolist()
    [2.5, 3.5]
    >>> table = resolve("diabetes")
    >>> table.n, table.p
    (442, 10)
    """
    return table_of(*locate(data, reading), **options)
