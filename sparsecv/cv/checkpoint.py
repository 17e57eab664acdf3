"""Proved results on disk, so that an interrupted run goes on where it stopped.

A file holds what is proved of the problems of one unit of work at one γ, for all τ, as JSON. The
file's name is a hash of everything that the content depends on, and the content carries a hash of
itself and of the name. A file is ignored with a warning where its hash differs, or where an error
is not between its own bounds. Nothing else is checked: whoever can write to the folder can forge a
proof.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..errors import CheckpointWarning, file_faults, read_json, warn_caller
from .ledger import Ledger

# For every unit of work the problems that it answers (:func:`sparsecv.cv.estimate.units`).
Units = Sequence[NDArray[np.intp]]


class CheckpointFolder:
    """A folder of files for all cross-validations of a run, which warns once of what is wrong.

    path: The folder, which is made where it does not exist.
    Raises InputError: The folder cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._warned = set[str]()
        with file_faults(f"--checkpoint {path}"):
            self.path.mkdir(parents=True, exist_ok=True)

    def file(self, *question: Any) -> Path:
        """The file that answers a question to this version of sparsecv.

        question: Plain JSON values: everything that the answer depends on.
        """
        return self.path / f"{_digest(__version__, *question)}.json"

    def read(self, file: Path, is_sound: Callable[[Any], bool] = lambda content: True) -> Any:
        """The content of a file; None where there is none, or, with a warning, no sound file.

        is_sound: Whether a content whose hash is right can be what it should be. A TypeError,
            ValueError or KeyError that it raises counts as no.
        """
        try:
            stored = read_json(file)
            content = stored["content"]
            if stored["hash"] == _digest(file.name, content) and is_sound(content):
                return content
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass
        text = "files that are damaged, or changed by something else than sparsecv, are ignored"
        self._warn(text, f"what they should hold is computed anew; the first one is {file.name}")
        return None

    def write(self, file: Path, content: Any) -> bool:
        """Write ``content``, plain JSON values, so that the file appears whole or not at all.

        The file is first written under a name that no other writer uses. A file that stood there
        before is replaced. Where the file cannot be written (a full disk), there is a warning.

        Returns: Whether the file was written.
        """
        unfinished = file.with_name(f"{file.name}.{uuid.uuid4().hex}.tmp")
        document = {"hash": _digest(file.name, content), "content": content}
        try:
            unfinished.write_text(json.dumps(document), encoding="utf-8")
            os.replace(unfinished, file)
        except OSError as error:
            text = "the run goes on, and what could not be kept would be computed again"
            self._warn(f"{error.strerror or error}", text)
            return False
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
        return True

    def _warn(self, what: str, more: str) -> None:
        """Warn of something that this run has not warned of yet; ``what`` tells warnings apart."""
        if what not in self._warned:
            self._warned.add(what)
            warn_caller(f"--checkpoint {self.path}: {what}; {more}", CheckpointWarning)


def _digest(*values: Any) -> str:
    """The SHA-256 of plain JSON values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _is_sound(content: Any) -> bool:
    """Whether bounds on errors are in order, and proved errors are between theirs.

    Raises TypeError, ValueError or KeyError: The content has another form.
    """
    lower, error, upper = (
        np.array(content[name], dtype=float) for name in ("lower", "error", "upper")
    )
    between = (lower <= error) & (error <= upper)
    return bool(((lower <= upper) & (between | ~np.array(content["exact"], dtype=bool))).all())


class Checkpoint:
    """The files of one cross-validation: what is proved of the problems of its units of work.

    A file is replaced where more is proved of its problems. Where several runs write the same file
    at once, the file of the last one stays.

    data: A digest of the data and the order of their rows.
    settings: Everything else a result depends on (folds, protocol, method, constraints).
    reused: The γ of which :meth:`load` has found files.
    """

    def __init__(self, folder: CheckpointFolder, data: bytes, settings: dict[str, Any]) -> None:
        self.folder, self._run = folder, _digest(data.hex(), settings)
        self.reused: list[float] = []
        # For every γ that was loaded, what the files hold (``Ledger.progress``).
        self._kept: dict[float, Any] = {}

    def _file(self, ledger: Ledger, g: int, problems: list[int]) -> Path:
        """The file of the problems of a unit of work, by their numbers, at the γ of row g."""
        return self.folder.file(self._run, ledger.gammas[g], ledger.taus.tolist(), problems)

    def load(self, ledger: Ledger, g: int, units: Units) -> None:
        """Enter into row g of the ledger what the files of its γ hold, if there are any.

        What the row holds afterwards counts as kept, and :meth:`save` does not write it; so nothing
        may be proved in the row before. A γ of which there are files is noted in ``reused``.
        """
        gamma = ledger.gammas[g]
        for problems in units:
            content = self.folder.read(self._file(ledger, g, problems.tolist()), _is_sound)
            if content is not None:
                ledger.restore(g, content)
                self.reused += [gamma] if gamma not in self.reused[-1:] else []
        self._kept[gamma] = ledger.progress(g)

    def save(self, ledger: Ledger, g: int, units: Units) -> None:
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
        for problems in units:
            if not new[problems].all():
                continue
            file, content = self._file(ledger, g, problems.tolist()), ledger.stored(g, problems)
            if self.folder.write(file, content):
                kept[..., problems] = known[..., problems]
                new[problems] = False
