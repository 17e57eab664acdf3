"""Proved results on disk, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .checkpoint_file import content_hash, made_folder, read_checkpoint, write_checkpoint
from .ledger import Ledger


class Checkpoint:
    """A folder of files, each with what one γ's unit of work has proved.

    A file is never changed: it appears whole, under a name that holds a hash of its content. What
    several files say of one γ is put together when they are read, so that any number of runs may
    write to a folder at once without waiting for each other. Where a γ has more files than
    problems, or is complete, the next file holds all that is known, and its writer then removes
    the files that it has read or written before.

    folder: The folder, which is created where it does not exist.
    data, bytes: A digest of the data and the order of their rows.
    settings: Everything else a result depends on (folds, τ, protocol, method, version).
    warned: Folders that could not be written, which all checkpoints of a run share, so that a full
        disk is one warning.
    Raises InputError: The folder cannot be made.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        data: bytes,
        settings: dict[str, Any],
        warned: set[Path] | None = None,
    ) -> None:
        self.folder = made_folder(folder)
        self.reused: list[float] = []
        self._warned = set() if warned is None else warned
        # For every γ that was loaded, what the files hold, and which files hold it.
        self._kept: dict[float, Any] = {}
        self._files: dict[float, list[Path]] = {}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(data)
        self._key = digest.hexdigest()

    def _name(self, gamma: float, which: str) -> str:
        return f"cv-{self._key[:16]}-{gamma!r}-{which}.json"

    def load(self, ledger: Ledger, g: int) -> None:
        """Enter into row g of the ledger what the valid files of its γ hold, if there are any."""
        gamma = ledger.gammas[g]
        taken, instead = partial(ledger.restore, g), f"γ = {gamma:g} is computed anew"
        files = sorted(self.folder.glob(self._name(gamma, "*")))
        valid = [read_checkpoint(path, self._key, taken, instead) is not None for path in files]
        self._files[gamma] = [path for path, there in zip(files, valid, strict=True) if there]
        self._kept[gamma] = ledger.progress(g)
        if any(valid):
            self.reused.append(gamma)

    def save(self, ledger: Ledger, g: int) -> None:
        """Write what is new of the problems at the γ of row g, which must have been loaded.

        No file is written where nothing is new or nothing is proved. Where a file cannot be
        written there is a warning, and the next call tries again.
        """
        # Four numbers for every τ and problem, shape (4, τ, k + 1): the first is 1 where an answer
        # is finished, the others are bounds. Problem k, of all rows, follows those of the folds.
        gamma, known = ledger.gammas[g], ledger.progress(g)
        new = (known != self._kept[gamma]).any(axis=(0, 1))
        if not (new.any() and known[0, :, : ledger.k].any()):
            return
        files = self._files[gamma]
        whole = ledger.complete(g) or len(files) > ledger.k
        content = ledger.stored(g, np.flatnonzero(new | whole))
        path = self.folder / self._name(gamma, content_hash(content)[:16])
        if not write_checkpoint(path, self._key, content, self._warned):
            return
        self._kept[gamma] = known
        for old in {*files} - {path} if whole else ():
            with suppress(OSError):  # Another run may have removed the file already.
                old.unlink()
        self._files[gamma] = [path] if whole else [*files, path]
