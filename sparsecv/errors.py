"""Errors and warnings that reach a user."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_NOT_THE_USER = ("sparsecv", "sklearn", "joblib")  # packages whose lines no warning points at


class InputError(ValueError):
    """Bad input: one line that names the column, row or option at fault and what to do."""


class GammaTooSmall(InputError):
    """γ cannot be told from zero in double precision beside dependent columns of this length."""


class ClusterError(RuntimeError):
    """A cluster could not do its part: one line that says what happened and what to do."""


class ConstantColumnWarning(UserWarning):
    """A column holds one value only and was left out."""


class UnprovedWarning(UserWarning):
    """A limit was reached, so an answer is an interval rather than a number."""


class CheckpointWarning(UserWarning):
    """A checkpoint file was damaged or of another run, and was passed over."""


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, beyond scikit-learn's decorators and searches.

    category, subclass of Warning.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_USER:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


@contextmanager
def file_faults(what: str) -> Iterator[None]:
    """Have a file that cannot be read or written complained about by name.

    what: What the one line begins with.
    Raises InputError: In place of any OSError.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{what}: {error.strerror or error}") from None
