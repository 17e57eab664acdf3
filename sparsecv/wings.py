"""What estimators and commands may ask for beside the core, as functions.

The core names what it calls (:class:`~sparsecv.selection.study.Wings`) and imports none of it.
"""

from __future__ import annotations

from .cv.alternating import alternate
from .cv.global_gamma import least_over_range
from .cv.tau_search import search_tau
from .selection.stable_errors import stable_errors
from .selection.study import Wings

# What a fit may call in its course: the search over τ, the alternation between τ and γ, the search
# over a range of γ, and the errors of the rule "stability".
WINGS = Wings(search_tau, alternate, least_over_range, stable_errors)
