"""Finished fits on disk: a run that is cut short goes on from them."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ..cv.checkpoint_file import made_folder, read_sealed, write_sealed
from ..selection.partial_errors import Array, Index, Learner, losses_of

ANEW = "its fits are made anew"


class Shelf:
    """A folder of losses, one file for every (rows, candidates) of one problem.

    folder: Made if it does not exist.
    settings: What else the losses depend on.
    Raises InputError: The folder cannot be made.
    """

    def __init__(self, folder: Any, X: Any, y: Any, label: Index, settings: Any) -> None:
        self.folder = made_folder(folder)
        self.key, self.n = str(joblib.hash((X, y, label, settings))), int(label.size)

    def find(self, training: Index, candidates: Sequence[int]) -> Array | None:
        """Losses that are kept here.

        training: Rows fitted to.
        Returns, shape (c, n), or None.
        """
        key, path = self._place(training, candidates)
        shape = (len(candidates), self.n)
        return read_sealed(path, key, lambda content: _array(content, shape), ANEW)

    def keep(self, training: Index, candidates: Sequence[int], losses: Array) -> None:
        """Store losses.

        losses, shape (c, n).
        Raises InputError: The file cannot be written.
        """
        key, path = self._place(training, candidates)
        data = np.ascontiguousarray(losses, dtype=np.float64)
        content = {"shape": list(data.shape), "data": b64encode(data.tobytes()).decode()}
        write_sealed(path, key, content)

    def _place(self, training: Index, candidates: Sequence[int]) -> tuple[str, Path]:
        digest = hashlib.sha256(self.key.encode())
        digest.update(np.asarray(training, dtype=np.int64).tobytes())
        digest.update(np.asarray(candidates, dtype=np.int64).tobytes())
        key = digest.hexdigest()
        return key, self.folder / f"stability-{key[:24]}.json"


def kept_losses(
    learner: Learner,
    tasks: Sequence[tuple[Index, Sequence[int]]],
    shelf: Shelf | None,
    n_jobs: int | None,
    verbose: bool = False,
) -> list[Array]:
    """Losses of models: those on a shelf, and the others fitted and put there as they come.

    tasks, sequence of (rows, candidates).
    verbose: Print how many are there.
    Returns, shape (c, n).
    """
    known = [None if shelf is None else shelf.find(*task) for task in tasks]
    left = [i for i, losses in enumerate(known) if losses is None]
    there = len(tasks) - len(left)

    def keep(index: int, losses: Array) -> None:
        nonlocal there
        there += 1
        if shelf is not None:
            shelf.keep(*tasks[left[index]], losses)
        if verbose:
            print(f"fits: {there} of {len(tasks)}")

    found = iter(losses_of(learner, [tasks[i] for i in left], n_jobs, keep))
    return [next(found) if losses is None else losses for losses in known]


def _array(content: Any, shape: tuple[int, int]) -> Array:
    """The losses of a file."""
    if tuple(content["shape"]) != shape:
        raise ValueError(f"its losses are not {shape[0]} × {shape[1]}")
    losses = np.frombuffer(b64decode(content["data"])).reshape(shape)
    if np.isnan(losses).any():
        raise ValueError("it holds values that are not numbers")
    return losses.copy()
