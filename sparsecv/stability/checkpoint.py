"""Finished fits on disk: a run that is cut short goes on from them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ..errors import InputError
from ..selection.partial_errors import Array, Index, Learner


class Shelf:
    """A folder of losses, one file for every (rows, candidates) of one problem.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    X, y : array-like
    label : ndarray of int
    settings : object
        What else the losses depend on.

    Raises
    ------
    InputError
        The folder cannot be made.
    """

    def __init__(self, folder: Any, X: Any, y: Any, label: Index, settings: Any) -> None:
        self.folder = Path(os.fspath(folder))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"checkpoint {self.folder}: {error.strerror}") from None
        self.key = joblib.hash((X, y, label, settings))

    def of(self, learner: Learner) -> Learner:
        """The learner, looking here first."""

        def losses(training: Index, candidates: Sequence[int]) -> Array:
            digest = hashlib.sha256(np.asarray(training, dtype=np.int64).tobytes())
            digest.update(np.asarray(candidates, dtype=np.int64).tobytes())
            path = self.folder / f"{self.key}-{digest.hexdigest()[:24]}.npy"
            if path.exists():
                try:
                    return np.asarray(np.load(path))
                except (OSError, ValueError, EOFError):  # cut off while it was written
                    path.unlink(missing_ok=True)
            found = learner(training, candidates)
            partial = path.with_suffix(f".{os.getpid()}-{id(found)}.part")
            with partial.open("wb") as file:
                np.save(file, found)
            os.replace(partial, path)
            return found

        return losses
