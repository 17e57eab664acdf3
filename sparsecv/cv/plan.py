"""The plan of a run: which phases it has and until when, decided once and read everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..design.fold_data import FoldData
from ..solvers.core.limits import Limits, StopFlag
from ..solvers.core.plan import one_tree_proves
from ..solvers.core.rows import MAX_COLUMNS
from .settings import Settings

# Where no tree proves all sizes of a problem, this many folds or more are too many to search a tree
# for each of them. Estimates then search no tree, and proofs search one tree for all folds if every
# fold holds out few rows; with fewer folds, each fold has trees of its own. The number is a choice.
MANY_FOLDS = 20
# Many folds share one tree if the largest of them holds out at most this many rows. The number
# decides on speed alone and is a choice: a bound on all rows is the weaker for a fold, the more
# rows the fold leaves out.
MAX_ROWS_LEFT_OUT = 4


@dataclass(frozen=True)
class RunPlan:
    """What a run does, in this order: estimate, prove for the choice, prove its model, the rest.

    What a run proves by the method "exact" follows from its settings and the number of columns:

    ==================== ============================= ======================================
    settings             up to 45 columns              more columns
    ==================== ============================= ======================================
    ``prove="choice"``   what the choice needs, and    what the choice needs, which is nothing
                         then the rest                 where its rule averages models
    ``prove="all"``      everything                    everything
    ``time_limit=0``     nothing                       nothing
    ==================== ============================= ======================================

    A surface is h(γ, τ) of one partition into folds. The time is shared out as follows. Of the time
    that remains, a surface gets one part of as many equal parts as there are surfaces still to
    come, this one included; what is done after the last surface counts as up to two surfaces
    (:meth:`part`, ``Study.work_after_partitions``). Of its part, estimates may take nine tenths,
    and proofs nine tenths of what the estimates leave (``SHARE_OF_THE_MODEL``). What remains
    in the end belongs to the model of the pair (γ, τ) that is chosen.

    all_size_trees: Whether trees of all sizes answer and prove the problems, as there are at most
        45 columns; beyond, folds are proved at one pair (γ, τ) after the other.
    one_tree_for_rows: Whether one of these trees serves all leave-one-out folds at a γ.
    joint_pairs: Whether one tree proves all folds at a pair, where folds are proved pair by pair.
    tries_all_sizes: Whether trees of all sizes are tried where folds are proved pair by pair.
    many_folds: Whether the folds are too many to search trees for each of them pair by pair.
    method: "exact" estimates h at every γ and then proves it; "search" and "grid" solve every γ
        alone, by Algorithm 1 and as one problem per fold and τ.
    proves: What is proved: "choice" is what the choice needs, and with trees the rest afterwards,
        for as long again, at most a second; "all" is everything, and "nothing" is nothing.
    limits: The time for everything. A copy that is made for a part of the run has a share of it.
    estimates_in_time: Whether estimates end with the time, too; a time limit of 0 asks for
        estimates that take as long as they need.
    needs_no_proof: Whether the choice is made from estimates, as its rule averages many models and
        they could only be proved one after the other.
    """

    all_size_trees: bool
    one_tree_for_rows: bool
    joint_pairs: bool
    tries_all_sizes: bool
    many_folds: bool
    method: str
    proves: str
    limits: Limits
    estimates_in_time: bool
    needs_no_proof: bool

    @classmethod
    def of(
        cls,
        settings: Settings,
        data: FoldData,
        *,
        averages: bool = False,
        deadline: Limits | None = None,
    ) -> RunPlan:
        """The plan of a run.

        averages: Whether the rule averages many models.
        deadline: The limits of the whole call; by default the time of the settings begins now.
        """
        trees, folds = one_tree_proves(data.constraints), data.folds
        many = not trees and folds.k >= MANY_FOLDS
        method = "search" if settings.searches else "grid" if settings.grid else "exact"
        no_proof = averages and settings.prove == "choice" and method == "exact" and not trees
        return cls(
            all_size_trees=trees,
            one_tree_for_rows=trees and data.tree_deletes_rows,
            joint_pairs=many and int(folds.sizes.max()) <= MAX_ROWS_LEFT_OUT,
            tries_all_sizes=not (trees or many) and data.p <= MAX_COLUMNS,
            many_folds=many,
            method=method,
            proves="nothing" if no_proof or settings.time_limit == 0 else settings.prove,
            limits=deadline or settings.deadline(),
            estimates_in_time=settings.time_limit != 0,
            needs_no_proof=no_proof,
        )

    def part(self, pieces: float) -> RunPlan:
        """The same plan within the next of ``pieces`` equal pieces of the time that remains."""
        return replace(self, limits=self.limits.share(pieces))

    @property
    def stop(self) -> StopFlag:
        """The flag that Ctrl-C raises."""
        assert self.limits.stop is not None
        return self.limits.stop

    @property
    def estimates(self) -> Limits:
        """The limits of estimates."""
        return self.limits if self.estimates_in_time else Limits(None, None, self.stop)

    @property
    def solves_gammas_alone(self) -> bool:
        """Whether every γ is solved when it is visited, and not with the other γ after the visits.

        The methods "search" and "grid" do so.
        """
        return self.method != "exact"

    @property
    def proves_needed_pairs(self) -> bool:
        """Whether trees prove the pairs (γ, τ) that a choice needs, and other pairs afterwards."""
        exact = not self.solves_gammas_alone
        return self.all_size_trees and self.proves == "choice" and exact

    @property
    def estimates_by_heuristics(self) -> bool:
        """Whether estimates look for good supports alone, and try no small tree besides.

        They do where nothing is proved, or where a method of its own proves.
        """
        return self.solves_gammas_alone or self.proves == "nothing"

    @property
    def estimates_by_row_tree(self) -> bool:
        """Whether estimates search the tree that serves all leave-one-out folds."""
        return self.one_tree_for_rows and not self.estimates_by_heuristics

    @property
    def estimates_by_fold_trees(self) -> bool:
        """Whether an estimate of a fold tries a small tree of the fold's own.

        Where all folds share a tree, none does: the fold's own tree would be searched only where
        the shared tree has not proved the fold, and that depends on rows that the fold holds out.
        Many folds would take too many trees.
        """
        return not (self.estimates_by_heuristics or self.one_tree_for_rows or self.many_folds)

    @property
    def proves_models(self) -> bool:
        """Whether models that count in an average are proved after their estimates."""
        return self.all_size_trees and self.proves != "nothing"

    @property
    def model_solver(self) -> str:
        """The solver (``paths.support_path``) of models that are compared, as in an average.

        "heuristic" proves nothing. Where models are proved, "estimate" proves what takes few nodes,
        and "auto", where everything is to be proved, proves all.
        """
        if not self.proves_models:
            return "heuristic"
        return "auto" if self.proves == "all" else "estimate"

    @property
    def out_of_time(self) -> bool:
        """Whether no further γ is to be estimated."""
        return self.estimates.reached(0) is not None

    @property
    def time_is_up(self) -> bool:
        """Whether the time for everything is up, or Ctrl-C was pressed."""
        return self.limits.reached(0) is not None
