"""Errors and warnings that reach a user."""

from collections.abc import Iterator
from contextlib import contextmanager


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


@contextmanager
def file_faults(what: str) -> Iterator[None]:
    """Have a file that cannot be read or written complained about by name.

    Parameters
    ----------
    what : str
        What the one line begins with.

    Yields
    ------
    None

    Raises
    ------
    InputError
        In place of any OSError.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{what}: {error.strerror or error}") from None
