"""The command ``sparsecv verify``, which checks a certificate with whole numbers alone."""

from __future__ import annotations

import typer

from ..errors import InputError, file_faults
from ..verify import Wrong, check


def verify(certificate: str, data: str) -> None:
    """Check a certificate; the file sparsecv/verify.py does the same without this package."""
    try:
        with file_faults("verify"):
            words = check(certificate, data)
    except Wrong as wrong:
        raise InputError(f"NOT VERIFIED: {wrong}") from wrong
    typer.echo("\n".join([*words, "VERIFIED"]))
