"""Proved results on disk, so that an interrupted run goes on where it stopped.

A file is one JSON document that names its run by a key and carries a hash of its content. It is
written whole or not at all. A file that is damaged, changed or of another run is ignored with a
warning.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import CheckpointWarning, file_faults, read_json, warn_caller
from .ledger import Ledger

# The number of the format of a checkpoint's files. Files of another number are ignored. Whoever
# changes what a file contains adds 1.
FORMAT = 6
Content = TypeVar("Content")


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """The path of a folder for checkpoints, which is made where it does not exist.

    Raises InputError: The folder cannot be made.
    """
    path = Path(folder)
    with file_faults(f"--checkpoint {path}"):
        path.mkdir(parents=True, exist_ok=True)
    return path


def read_checkpoint(
    path: Path, key: str, take: Callable[[Any], Content], instead: str
) -> Content | None:
    """What ``take`` returns for a file's content; None, with a warning, where the file is invalid.

    path: The file; where it does not exist the result is None without a warning.
    key: A text that identifies the run: its data and everything else the content depends on.
    take: Checks the content; raises ValueError, TypeError or KeyError where a value is wrong.
    instead: Words for the warning that say what happens without the file.
    """
    try:
        stored = read_json(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        stored = None
    try:
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise ValueError("it is not a checkpoint of this version")
        if stored.get("key") != key:
            raise ValueError("it belongs to other data or settings")
        if stored.get("hash") != content_hash(stored.get("content")):
            raise ValueError("its content was changed")
        return take(stored["content"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        text = f"checkpoint file {path} is passed over, {instead}: {error}"
        warnings.warn(text, CheckpointWarning, stacklevel=3)
        return None


def write_checkpoint(path: Path, key: str, content: Any, warned: set[Path]) -> bool:
    """Write ``content``, plain JSON values, so that the file appears whole or not at all.

    The file is first written under a name that no other writer uses. A file that stood at the path
    before is replaced. Where the file cannot be written (a full disk), there is a warning, one for
    a folder in a run.

    key: A text that identifies the run.
    warned: The folders that a warning of this run has named, to which this one is added.
    Returns: Whether the file was written.
    """
    document = {"format": FORMAT, "key": key, "hash": content_hash(content), "content": content}
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        unfinished.write_text(json.dumps(document), encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        text = f"--checkpoint {path.parent}: {error.strerror or error}; the run goes on, and what "
        if path.parent not in warned:
            warned.add(path.parent)
            warn_caller(text + "could not be kept would be computed again", CheckpointWarning)
        return False
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return True


def content_hash(content: Any) -> str:
    """A hash of plain JSON values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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

    def _key_of(self, ledger: Ledger, g: int) -> str:
        """The key of the files of one γ, which holds everything that their content depends on."""
        return f"{self._key} {ledger.gammas[g]!r} {ledger.taus.tolist()} {ledger.k}"

    def _name(self, gamma: float, which: str) -> str:
        return f"cv-{self._key[:16]}-{gamma!r}-{which}.json"

    def load(self, ledger: Ledger, g: int) -> None:
        """Enter into row g of the ledger what the valid files of its γ hold, if there are any."""
        gamma = ledger.gammas[g]
        key, instead = self._key_of(ledger, g), f"γ = {gamma:g} is computed anew"
        self._files[gamma] = []
        for path in sorted(self.folder.glob(self._name(gamma, "*"))):
            if read_checkpoint(path, key, partial(ledger.restore, g), instead):
                self._files[gamma].append(path)
        self._kept[gamma] = ledger.progress(g)
        if self._files[gamma]:
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
        if not write_checkpoint(path, self._key_of(ledger, g), content, self._warned):
            return
        self._kept[gamma] = known
        for old in {*files} - {path} if whole else ():
            with suppress(OSError):  # Another run may have removed the file already.
                old.unlink()
        self._files[gamma] = [path] if whole else [*files, path]
