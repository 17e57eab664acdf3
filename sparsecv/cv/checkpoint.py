"""Proved results on disk, so that an interrupted run goes on where it stopped.

A file holds what is proved of one training problem at one γ, for all τ, as JSON. The file's name
is a hash of everything that the content depends on, and the content carries a hash of itself and
of the name. A file whose hash differs is ignored with a warning; nothing else is checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..errors import CheckpointWarning, file_faults, read_json, warn_caller
from .estimate import units
from .ledger import Ledger


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """The path of a folder for checkpoints, which is made where it does not exist.

    Raises InputError: The folder cannot be made.
    """
    path = Path(folder)
    with file_faults(f"--checkpoint {path}"):
        path.mkdir(parents=True, exist_ok=True)
    return path


def file_name(*question: Any) -> str:
    """The name of the file that answers a question to this version of sparsecv.

    question: Plain JSON values: everything that the answer depends on.
    """
    text = json.dumps([__version__, *question], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest() + ".json"


def read_checkpoint(path: Path, warned: set[str]) -> Any:
    """The content of a file; None where there is no file, or, with a warning, no sound file.

    warned: The texts of the warnings that this run has given, each of which is given once.
    """
    try:
        stored = read_json(path)
        if stored["hash"] == _seal(path, stored["content"]):
            return stored["content"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    text = (
        f"--checkpoint {path.parent}: files that are damaged, or changed by something else than "
        "sparsecv, are ignored, and what they should hold is computed anew"
    )
    _warn_once(text, f"{text}; the first one is {path.name}", warned)
    return None


def write_checkpoint(path: Path, content: Any, warned: set[str]) -> bool:
    """Write ``content``, plain JSON values, so that the file appears whole or not at all.

    The file is first written under a name that no other writer uses. A file that stood at the path
    before is replaced. Where the file cannot be written (a full disk), there is a warning.

    warned: As of :func:`read_checkpoint`.
    Returns: Whether the file was written.
    """
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    document = {"hash": _seal(path, content), "content": content}
    try:
        unfinished.write_text(json.dumps(document), encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        text = f"--checkpoint {path.parent}: {error.strerror or error}; the run goes on, and what "
        text += "could not be kept would be computed again"
        _warn_once(text, text, warned)
        return False
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return True


def _seal(path: Path, content: Any) -> str:
    """The SHA-256 of a file's name and of its content."""
    return hashlib.sha256(json.dumps([path.name, content], sort_keys=True).encode()).hexdigest()


def _warn_once(key: str, text: str, warned: set[str]) -> None:
    """Warn of something that this run has not warned of yet.

    key: What tells warnings apart.
    warned: The keys of earlier warnings, to which this one is added.
    """
    if key not in warned:
        warned.add(key)
        warn_caller(text, CheckpointWarning)


class Checkpoint:
    """A folder of files, each with what is proved of the problems of a unit of work, at one γ.

    A file is replaced where more is proved of its problems. Where several runs write the same file
    at once, the file of the last one stays.

    folder: The folder, which is created where it does not exist.
    data: A digest of the data and the order of their rows.
    settings: Everything else a result depends on (folds, protocol, method, constraints).
    warned: The warnings of a run, which all checkpoints of the run share.
    Raises InputError: The folder cannot be made.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        data: bytes,
        settings: dict[str, Any],
        warned: set[str] | None = None,
    ) -> None:
        self.folder = made_folder(folder)
        self.reused: list[float] = []
        self._question = data.hex(), settings
        self._warned: set[str] = set() if warned is None else warned
        # For every γ that was loaded, what the files hold (``Ledger.progress``).
        self._kept: dict[float, Any] = {}

    def _path(self, ledger: Ledger, g: int, problems: NDArray[np.intp]) -> Path:
        """The file of the problems of a unit of work at the γ of row g."""
        asked = ledger.gammas[g], ledger.taus.tolist(), problems.tolist()
        return self.folder / file_name(*self._question, *asked)

    def load(self, ledger: Ledger, g: int) -> None:
        """Enter into row g of the ledger what the files of its γ hold, if there are any."""
        gamma = ledger.gammas[g]
        for problems in units(ledger.data):
            content = read_checkpoint(self._path(ledger, g, problems), self._warned)
            if content is not None:
                ledger.restore(g, content)
                self.reused += [gamma] if gamma not in self.reused[-1:] else []
        self._kept[gamma] = ledger.progress(g)

    def save(self, ledger: Ledger, g: int) -> None:
        """Write what is new of the problems at the γ of row g, which must have been loaded.

        No file is written where nothing is proved. Where a file cannot be written there is a
        warning, and the next call tries again.
        """
        # Four numbers for every τ and problem, shape (4, τ, k + 1): the first is 1 where an answer
        # is finished, the others are bounds. Problem k, of all rows, follows those of the folds.
        kept, known = self._kept[ledger.gammas[g]], ledger.progress(g)
        new = (known != kept).any(axis=(0, 1))
        if not (new.any() and known[0, :, : ledger.k].any()):
            return
        for problems in units(ledger.data):
            if not new[problems].all():
                continue
            path, content = self._path(ledger, g, problems), ledger.stored(g, problems)
            if write_checkpoint(path, content, self._warned):
                kept[..., problems] = known[..., problems]
                new[problems] = False
