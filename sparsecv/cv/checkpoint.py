"""Results of finished γ on disk, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..solvers import Status
from .results import GammaResult


class Checkpoint:
    """A folder with one file per finished γ.

    Parameters
    ----------
    folder : path
        Created where it is missing.
    data : bytes
        Digest of the data and their order.
    settings : dict
        Everything else a result depends on (folds, τ, protocol, method, version).

    Raises
    ------
    InputError
        The folder cannot be made or written.
    """

    def __init__(
        self, folder: str | os.PathLike[str], data: bytes, settings: dict[str, Any]
    ) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--checkpoint {self.folder}: {error.strerror}") from None
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(data)
        self._key = digest.hexdigest()[:16]

    def _path(self, gamma: float) -> Path:
        return self.folder / f"cv-{self._key}-{gamma!r}.json"

    def load(self, gamma: float) -> GammaResult | None:
        """Return the stored result of ``gamma``, or None; an unreadable file counts as none."""
        try:
            stored = json.loads(self._path(gamma).read_text(encoding="utf-8"))
            return GammaResult.from_dict(stored)
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            return None

    def save_proved(self, result: GammaResult) -> None:
        """Store a result if everything in it is proved."""
        if result.status == Status.OPTIMAL:
            self.save(result)

    def save(self, result: GammaResult) -> None:
        """Store a finished result; the file appears whole or not at all."""
        path = self._path(result.gamma)
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            partial.write_text(json.dumps(result.to_dict()), encoding="utf-8")
            os.replace(partial, path)
        except OSError as error:
            raise InputError(f"--checkpoint {self.folder}: {error.strerror}") from None
