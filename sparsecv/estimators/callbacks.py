"""What a fit tells while it runs: lines, and scikit-learn's callbacks where there are any."""

from __future__ import annotations

from typing import Any

from ..cv.progress import Report

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing."""

    def with_callbacks(method: Any) -> Any:
        """The method itself."""
        return method


class Progress:
    """Prints a line for everything it is told, and hands it to the estimator's callbacks.

    A callback sees the fit as a task; below it one for every stage (folds, another partition, the
    proofs), named by what is done first; and in a stage one for every unit, named by what was done.

    estimator: The one that is fitted.
    verbose: Print lines.
    X, y: What was passed to ``fit``, for callbacks that ask.
    """

    def __init__(self, estimator: Any, verbose: bool, X: Any, y: Any) -> None:
        self._estimator, self._verbose, self._fit = estimator, verbose, None
        self._stage: Any = None
        self._done = 0
        if hasattr(estimator, "_init_callback_context"):
            context = estimator._init_callback_context(max_subtasks=None)
            self._fit = context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._verbose:
            print(f"{what}: {done} of {total}")
        if self._fit is None or not hasattr(self._estimator, "_skl_callbacks"):
            return
        stage, about = self._stage, {"estimator": self._estimator}
        if stage is None or total != stage.max_subtasks or done < self._done:
            self._end_stage()
            self._stage = stage = self._fit.subcontext(task_name=what, max_subtasks=total)
            stage.call_on_fit_task_begin(**about)
        for _ in range(self._done, done):
            unit = stage.subcontext(task_name=what)
            unit.call_on_fit_task_begin(**about).call_on_fit_task_end(**about)
        self._done = done

    def named(self, name: str) -> Report:
        """This progress, with stages whose names begin with ``name``."""
        return lambda what, done, total: self(name + what, done, total)

    def _end_stage(self) -> None:
        if self._stage is not None:
            self._stage.call_on_fit_task_end(estimator=self._estimator)
        self._stage, self._done = None, 0

    def end(self) -> None:
        """Say that the fit is done."""
        self._end_stage()
        if self._fit is not None:
            self._fit.call_on_fit_task_end(estimator=self._estimator)
