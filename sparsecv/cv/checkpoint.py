"""Proved results on disk, a file per γ, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

from ..errors import CheckpointWarning, InputError
from .ledger import Page

FORMAT = 1


class Checkpoint:
    """A folder with one file for every γ of which something is proved.

    Files are written whole or not at all, name the run they belong to and carry a hash of their
    content; one that is damaged, or of another run, is passed over with a warning and computed
    anew. Two runs may share a folder.

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
        self.reused: list[float] = []
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--checkpoint {self.folder}: {error.strerror}") from None
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(data)
        self._key = digest.hexdigest()

    def _path(self, gamma: float) -> Path:
        return self.folder / f"cv-{self._key[:16]}-{gamma!r}.json"

    def load(self, page: Page) -> None:
        """Enter what is proved of a page's γ; a file that cannot be believed counts as none."""
        path = self._path(page.gamma)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError):
            stored = None
        try:
            if not isinstance(stored, dict) or stored.get("format") != FORMAT:
                raise ValueError("it is not a checkpoint of this version")
            if stored.get("key") != self._key:
                raise ValueError("it belongs to other data or settings")
            if stored.get("hash") != _hash(stored.get("page")):
                raise ValueError("its content was changed")
            page.restore(stored["page"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            warnings.warn(
                f"checkpoint file {path} is passed over, γ = {page.gamma:g} is computed anew: "
                f"{error}",
                CheckpointWarning,
                stacklevel=2,
            )
            return
        self.reused.append(page.gamma)

    def save(self, page: Page) -> None:
        """Store what is proved of a page; the file appears whole or not at all."""
        content = page.proved()
        if content is None:
            return
        path = self._path(page.gamma)
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        document = {"format": FORMAT, "key": self._key, "hash": _hash(content), "page": content}
        try:
            partial.write_text(json.dumps(document), encoding="utf-8")
            os.replace(partial, path)
        except OSError as error:
            raise InputError(f"--checkpoint {self.folder}: {error.strerror}") from None


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
