"""Errors and warnings that reach a user."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NOT_THE_USER = (
    "sparsecv",
    "sklearn",
    "joblib",
    "pysindy",
)  # Warnings point at no line of these packages.


class InputError(ValueError):
    """The input is bad; the message is one line on the column, row or option, and what to do."""


class SolverUnavailable(ValueError):
    """An outside solver's package or licence is missing; the message is one line."""


class ConstantColumnWarning(UserWarning):
    """A column holds one value only and was left out."""


class LoweredSizeWarning(UserWarning):
    """No model can have as many columns as were asked for, and a smaller size is used."""


class UnprovedWarning(UserWarning):
    """A limit was reached, so an answer is an interval rather than a number."""


class CheckpointWarning(UserWarning):
    """A checkpoint file could not be written, or was ignored because its hash is wrong."""


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, beyond scikit-learn's decorators and searches."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_USER:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def not_installed(package: str, extra: str) -> str:
    """One line for an optional package that is missing: which extra of sparsecv brings it."""
    return f'{package} is not installed: pip install "sparsecv[{extra}]"'


def first_line(error: BaseException, otherwise: str | None = None) -> str:
    """The first line of an error's message; where it has none, other words or the error's name."""
    return (str(error) or otherwise or type(error).__name__).splitlines()[0]


@contextmanager
def file_faults(what: str) -> Iterator[None]:
    """Raise an InputError in place of any OSError on a file that is read or written.

    what: Words that name the file, with which the message begins.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{what}: {error.strerror or error}") from None


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises OSError: The file cannot be read.
    Raises ValueError: The file holds no JSON that can be taken; the text says why.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it holds no JSON, which is text in UTF-8: save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it holds no JSON: {error}") from None
    except (ValueError, RecursionError):
        text = "its JSON is nested too deeply or has a number of too many digits"
        raise ValueError(text) from None


def is_number(value: Any) -> bool:
    """Whether a value of a JSON document is a finite number."""
    known = type(value) in (int, float)
    return known and abs(value) <= sys.float_info.max  # an int may have 400 digits
