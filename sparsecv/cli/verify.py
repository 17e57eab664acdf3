"""The command ``sparsecv verify``, which checks a certificate with whole numbers alone."""

from __future__ import annotations

import typer

from ..errors import InputError, file_faults
from ..verify import Wrong, check


def verify(certificate: str, data: str) -> None:
    """Check a certificate, and print what it proves and the word VERIFIED.

    The file sparsecv/verify.py does the same without this package.

    certificate, data: Paths of the certificate, and of the table that was written beside it.
    Raises InputError: The certificate proves nothing of this table, or a file cannot be read.
    """
    try:
        with file_faults("verify"):
            words = check(certificate, data)
    except Wrong as wrong:
        raise InputError(f"NOT VERIFIED: {wrong}") from wrong
    typer.echo("\n".join([*words, "VERIFIED"]))
