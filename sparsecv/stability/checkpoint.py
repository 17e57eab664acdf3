"""Finished fits on disk: a run that is cut short goes on from them."""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ..cv.sealed import read_sealed, write_sealed
from ..errors import InputError
from ..selection.partial_errors import Array, Index, Learner

ANEW = "its fits are made anew"


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
        self.key, self.n = str(joblib.hash((X, y, label, settings))), int(label.size)

    def of(self, learner: Learner) -> Learner:
        """The learner, looking here first.

        Parameters
        ----------
        learner : Learner

        Returns
        -------
        Learner
        """

        def losses(training: Index, candidates: Sequence[int]) -> Array:
            digest = hashlib.sha256(self.key.encode())
            digest.update(np.asarray(training, dtype=np.int64).tobytes())
            digest.update(np.asarray(candidates, dtype=np.int64).tobytes())
            key = digest.hexdigest()
            path = self.folder / f"stability-{key[:24]}.json"
            shape = (len(candidates), self.n)
            known = read_sealed(path, key, lambda content: _array(content, shape), ANEW)
            if known is not None:
                return known
            found = learner(training, candidates)
            data = np.ascontiguousarray(found, dtype=np.float64)
            content = {"shape": list(data.shape), "data": b64encode(data.tobytes()).decode()}
            try:
                write_sealed(path, key, content)
            except OSError as error:
                raise InputError(f"checkpoint {self.folder}: {error.strerror}") from None
            return found

        return losses


def _array(content: Any, shape: tuple[int, int]) -> Array:
    """The losses of a file."""
    if tuple(content["shape"]) != shape:
        raise ValueError(f"its losses are not {shape[0]} × {shape[1]}")
    losses = np.frombuffer(b64decode(content["data"])).reshape(shape)
    if np.isnan(losses).any():
        raise ValueError("it holds values that are not numbers")
    return losses.copy()
