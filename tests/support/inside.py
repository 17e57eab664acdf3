"""What tests take from inside the package: every name that several of them need, once.

Where a function or class moves, its line here is the only one of the tests that changes. What users
import is imported in tests from where users import it.
"""

# ruff: noqa: F401

from sparsecv.cli.main import main
from sparsecv.clock import CLOCK
from sparsecv.cv import alternating
from sparsecv.cv.alternating import alternate
from sparsecv.cv.checkpoint import Checkpoint, CheckpointFolder
from sparsecv.cv.engine import Surface
from sparsecv.cv.gamma_step import FixedSupports
from sparsecv.cv.grid import grown_grid
from sparsecv.cv.grid_errors import cross_validate
from sparsecv.cv.ledger import Ledger
from sparsecv.cv.needs import Need
from sparsecv.cv.plan import RunPlan
from sparsecv.cv.prove_cells import CellProver
from sparsecv.cv.results import CVResult
from sparsecv.cv.settings import DEFAULT_GAMMAS, Settings
from sparsecv.cv.splits import split_unit
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import Folds, make_folds
from sparsecv.design.moment_folds import MomentFolds
from sparsecv.design.moments import FoldMoments, Moments, RowMoments
from sparsecv.design.prepare import prepare
from sparsecv.design.row_table import RowTable
from sparsecv.design.saved import SavedModel
from sparsecv.report.audit import audited, proof_of
from sparsecv.report.peers import linear_peers
from sparsecv.report.progress import Steps
from sparsecv.report.questions import removals_of_features
from sparsecv.selection.averaging import average_of, averaged_coefficients
from sparsecv.selection.certified_choice import near_certificate
from sparsecv.selection.choice import CHOOSERS, Choice, chosen_from
from sparsecv.selection.claims import claim_of, least_is_proved
from sparsecv.selection.inference import infer
from sparsecv.selection.inner_folds import inner_weights
from sparsecv.selection.projection import FoldAverages
from sparsecv.selection.rules import RULES
from sparsecv.selection.sizes import choice_of_size
from sparsecv.selection.study import PARTITIONS, Study
from sparsecv.selection.surfaces import all_partitions
from sparsecv.selection.truncated import Truncated
from sparsecv.selection.weights import SizeRound, model_weights
from sparsecv.solvers import certificate
from sparsecv.solvers.api import checked_backend
from sparsecv.solvers.backends.cuts import CutForm
from sparsecv.solvers.branching.enumeration import enumerated
from sparsecv.solvers.branching.family import search_alone, solve_jointly
from sparsecv.solvers.branching.row_deletion import LeftOut
from sparsecv.solvers.branching.search import Search, Tree
from sparsecv.solvers.branching.single import SizeAlone
from sparsecv.solvers.core import error_margin, plan, rounding
from sparsecv.solvers.core.constraints import UnitConstraints
from sparsecv.solvers.core.leaves import FREE, IN, OUT, Leaves
from sparsecv.solvers.core.limits import Limits, StopFlag
from sparsecv.solvers.core.plan import LEAPS, Way
from sparsecv.solvers.core.rows import Rows, independence
from sparsecv.solvers.kernels import compiled, envelope, linalg
from sparsecv.solvers.kernels.compiled import InnerKernel, Kernel, kernel
from sparsecv.solvers.leaps.all_sizes import n_best_subsets
from sparsecv.solvers.leaps.deleted_rows import DeletedRowSubsets
from sparsecv.solvers.leaps.gamma_trees import ridge_scale
from sparsecv.solvers.leaps.gathering import Comparison
from sparsecv.solvers.leaps.open_nodes import expand
from sparsecv.solvers.leaps.records import new_gathering
from sparsecv.solvers.leaps.selection_event import selection_events
from sparsecv.solvers.relaxation import diagonal
from sparsecv.solvers.relaxation import root as at_root
from sparsecv.solvers.relaxation.ellipsoid import Spectrum
from sparsecv.solvers.relaxation.extraction import extraction, largest_diagonal
from sparsecv.solvers.relaxation.gram import GramForm
from sparsecv.solvers.relaxation.relaxer import Relaxer
from sparsecv.solvers.ridge_fits import SupportPath, fit_supports
from sparsecv.solvers.supports import coefficients, path
from sparsecv.solvers.supports.path import SupportGrower
from sparsecv.stability.learners import EstimatorLearner
from sparsecv.stability.losses import checked_loss
from sparsecv.tables.dask_table import DaskTable
from sparsecv.tables.datasets import resolve
from sparsecv.tables.marks import Reading
from sparsecv.tables.synthetic import make_synthetic
from sparsecv.tables.table import Table, joined
from sparsecv.wings import WINGS
