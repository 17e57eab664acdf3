"""Losses of finished fits on disk, from which an interrupted run continues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ..cv.checkpoint import file_name, made_folder, read_checkpoint, write_checkpoint
from ..cv.progress import Report
from ..selection.partial_errors import Array, Learner, Task, losses_of


class KeptLosses:
    """A folder of losses, one file for every (rows, candidates) of one problem.

    folder: The folder, which is made where it does not exist.
    problem: Everything that the losses depend on beside rows and candidates.
    Raises InputError: The folder cannot be made.
    """

    def __init__(self, folder: Any, problem: Any) -> None:
        self.folder, self._key = made_folder(folder), joblib.hash(problem)
        self._warned: set[str] = set()

    def find(self, task: Task) -> Array | None:
        """The losses (c, n) of a task that the folder has, or None."""
        losses = read_checkpoint(self._path(task), self._warned)
        return None if losses is None else np.array(losses, dtype=np.float64)

    def keep(self, task: Task, losses: Array) -> None:
        """Write the losses (c, n) of a task to the folder; a full disk is a warning."""
        write_checkpoint(self._path(task), losses.tolist(), self._warned)

    def _path(self, task: Task) -> Path:
        return self.folder / file_name("losses", joblib.hash((self._key, task)))


def kept_losses(
    learner: Learner,
    tasks: Sequence[Task],
    kept: KeptLosses | None,
    n_jobs: int | None,
    report: Report = lambda *_: None,
) -> Iterator[tuple[int, Array]]:
    """Losses of models: read from a folder, or else fitted and written to the folder.

    report: Takes "fits", the number of finished fits and the number of all.
    Yields: The number of a task and its losses (c, n).
    """
    known = [None if kept is None else kept.find(task) for task in tasks]
    left = [index for index, losses in enumerate(known) if losses is None]
    yield from ((index, losses) for index, losses in enumerate(known) if losses is not None)
    report("fits", len(tasks) - len(left), len(tasks))
    fits = losses_of(learner, [tasks[index] for index in left], n_jobs)
    for there, (number, losses) in enumerate(fits, len(tasks) - len(left) + 1):
        if kept is not None:
            kept.keep(tasks[left[number]], losses)
        report("fits", there, len(tasks))
        yield left[number], losses
