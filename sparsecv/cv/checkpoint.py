"""Proved results on disk, a file per γ, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from .checkpoint_file import made_folder, only_writer, read_sealed
from .ledger import Ledger


class Checkpoint:
    """A folder with one file for every γ of which something is proved.

    Files are written whole or not at all, name the run they belong to and carry a hash of their
    content; one that is damaged, or of another run, is passed over with a warning and computed
    anew. Two runs may share a folder: what one has proved is added to what the other writes.

    folder: Created where it is missing.
    data, bytes: Digest of the data and their order.
    settings: Everything else a result depends on (folds, τ, protocol, method, version).
    Raises InputError: The folder cannot be made or written.
    """

    def __init__(
        self, folder: str | os.PathLike[str], data: bytes, settings: dict[str, Any]
    ) -> None:
        self.folder = made_folder(folder)
        self.reused: list[float] = []
        self._seen: dict[Path, tuple[int, ...] | None] = {}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(data)
        self._key = digest.hexdigest()

    def _path(self, gamma: float) -> Path:
        return self.folder / f"cv-{self._key[:16]}-{gamma!r}.json"

    def load(self, ledger: Ledger, g: int) -> None:
        """Enter what is proved of one γ; a file that is not believed counts as none."""
        self._seen.pop(self._path(ledger.gammas[g]), None)
        if self._read(ledger, g):
            self.reused.append(ledger.gammas[g])

    def _read(self, ledger: Ledger, g: int) -> bool:
        """Add what a file holds to a row, unless this run has read or written the file so."""
        gamma = ledger.gammas[g]
        path, anew = self._path(gamma), f"γ = {gamma:g} is computed anew"
        if (state := _state(path)) == self._seen.get(path):
            return False
        self._seen[path] = state
        taken = read_sealed(path, self._key, partial(ledger.restore, g), anew)
        return taken is not None

    def save(self, ledger: Ledger, g: int) -> None:
        """Store what is proved of one γ, and what another run has proved of it in the meantime.

        Nothing is written where nothing of it is proved.

        Raises InputError: The file cannot be written.
        """
        if ledger.stored(g) is None:
            return
        path = self._path(ledger.gammas[g])
        with only_writer(path) as write:
            self._read(ledger, g)
            write(self._key, ledger.stored(g))
            self._seen[path] = _state(path)


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes with a file's content; None where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
