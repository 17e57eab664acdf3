"""Errors and warnings that reach a user."""


class InputError(ValueError):
    """Bad input: one line that names the column, row or option at fault and what to do."""


class ClusterError(RuntimeError):
    """A cluster could not do its part: one line that says what happened and what to do."""


class ConstantColumnWarning(UserWarning):
    """A column holds one value only and was left out."""


class UnprovedWarning(UserWarning):
    """A limit was reached, so an answer is an interval rather than a number."""


class CheckpointWarning(UserWarning):
    """A checkpoint file was damaged or of another run, and was passed over."""
