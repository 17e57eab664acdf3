"""Proved results on disk, a file per γ, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from .checkpoint_file import made_folder, only_writer, read_checkpoint
from .ledger import Ledger


class Checkpoint:
    """A folder with one file for every γ of which something is proved.

    A file is written whole or not at all, names its run and carries a hash of its content. A file
    that is damaged, or of another run, is ignored with a warning, and its γ is computed again. Two
    runs may share a folder: each adds to a file what the other run has proved.

    folder: The folder, which is created where it does not exist.
    data, bytes: A digest of the data and the order of their rows.
    settings: Everything else a result depends on (folds, τ, protocol, method, version).
    Raises InputError: The folder cannot be made.
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
        """Enter into row g of the ledger what a file holds of its γ, if there is a valid file."""
        self._seen.pop(self._path(ledger.gammas[g]), None)
        if self._read(ledger, g):
            self.reused.append(ledger.gammas[g])

    def _read(self, ledger: Ledger, g: int) -> bool:
        """Enter what a file holds into row g, unless the file is unchanged since the last look.

        Returns: Whether a file was read and entered.
        """
        gamma = ledger.gammas[g]
        path, instead = self._path(gamma), f"γ = {gamma:g} is computed anew"
        if (state := _state(path)) == self._seen.get(path):
            return False
        self._seen[path] = state
        taken = read_checkpoint(path, self._key, partial(ledger.restore, g), instead)
        return taken is not None

    def save(self, ledger: Ledger, g: int) -> None:
        """Write what is proved at the γ of row g, by this run or by another run in the meantime.

        No file is written where nothing is proved.

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
    """Numbers that change whenever a file is written; None where there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
