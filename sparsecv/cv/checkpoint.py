"""Proved results on disk, a file per γ, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .ledger import Page
from .sealed import made_folder, read_sealed, write_sealed


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
        self.folder = made_folder(folder)
        self.reused: list[float] = []
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        digest.update(data)
        self._key = digest.hexdigest()

    def _path(self, gamma: float) -> Path:
        return self.folder / f"cv-{self._key[:16]}-{gamma!r}.json"

    def load(self, page: Page) -> None:
        """Enter what is proved of a page's γ; a file that cannot be believed counts as none.

        Parameters
        ----------
        page : Page
            Changed in place.
        """
        path, anew = self._path(page.gamma), f"γ = {page.gamma:g} is computed anew"

        def take(content: Any) -> bool:
            page.restore(content)
            return True

        if read_sealed(path, self._key, take, anew):
            self.reused.append(page.gamma)

    def save(self, page: Page) -> None:
        """Store what is proved of a page; the file appears whole or not at all.

        Parameters
        ----------
        page : Page
            Nothing is written where nothing of it is proved.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        content = page.proved()
        if content is not None:
            write_sealed(self._path(page.gamma), self._key, content)
