"""The plan of a run: which phases it has and until when, decided once and read everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..design.fold_data import FoldData
from ..solvers.core.limits import Limits, StopFlag
from ..solvers.core.plan import TREE_ONLY
from .settings import Settings


@dataclass(frozen=True)
class RunPlan:
    """What a run does, in this order: estimate, prove for the choice, prove its model, the rest.

    trees: Whether trees of all sizes answer and prove the problems, as there are at most 45
        columns; beyond, folds are proved at one pair (γ, τ) after the other.
    method: "exact" estimates h at every γ and then proves it; "search" and "grid" solve every γ
        alone, by Algorithm 1 and as one problem per fold and τ.
    proves: What is proved: "choice" is what the choice needs, and with trees the rest afterwards,
        for as long again as the run has taken; "all" is everything, and "nothing" is nothing.
    limits: The time for everything. A copy that is made for a part of the run has a share of it.
    hurried: Whether estimates end with the time, too; a time limit of 0 asks for estimates that
        take as long as they need.
    estimates_serve: Whether the choice needs no proof, as its rule averages many models and they
        could only be proved one after the other.
    """

    trees: bool
    method: str
    proves: str
    limits: Limits
    hurried: bool
    estimates_serve: bool = False

    @classmethod
    def of(cls, settings: Settings, data: FoldData, *, averages: bool = False) -> RunPlan:
        """The plan of a run that begins now.

        averages: Whether the rule averages many models.
        """
        trees, seconds = data.n_units <= TREE_ONLY, settings.time_limit
        method = "search" if settings.searches else "grid" if settings.grid else "exact"
        serve = averages and settings.prove == "choice" and method == "exact" and not trees
        proves = "nothing" if serve or seconds == 0 else settings.prove
        limits = Limits(None if seconds is None else float(seconds), None, StopFlag())
        return cls(trees, method, proves, limits, seconds != 0, serve)

    def part(self, pieces: float) -> RunPlan:
        """The plan of the next of so many equal pieces of the time that is left."""
        return replace(self, limits=self.limits.share(pieces))

    @property
    def estimates(self) -> Limits:
        """The limits of estimates."""
        return self.limits if self.hurried else Limits(None, None, self.limits.stop)

    @property
    def alone(self) -> bool:
        """Whether every γ is solved alone, after its estimates."""
        return self.method != "exact"

    @property
    def proves_pairs(self) -> bool:
        """Whether the pairs (γ, τ) that a choice needs are proved, and no others before them."""
        return self.trees and self.proves == "choice" and not self.alone

    @property
    def solver(self) -> str:
        """The solver of estimates: it tries a small tree where proofs are wanted."""
        return "heuristic" if self.alone or self.proves == "nothing" else "estimate"

    @property
    def proves_models(self) -> bool:
        """Whether models that count in an average are proved after their estimates."""
        return self.trees and self.proves != "nothing"

    @property
    def model_solver(self) -> str:
        """The solver of models that are compared, such as those of an average.

        Where models are proved it proves what takes few nodes, and all where everything is proved.
        """
        if not self.proves_models:
            return "heuristic"
        return "auto" if self.proves == "all" else "estimate"

    @property
    def out_of_time(self) -> bool:
        """Whether no further γ is to be estimated."""
        return self.estimates.reached(0) is not None

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self.limits.reached(0) is not None
