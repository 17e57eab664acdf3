"""Puts this folder on the import path; hypothesis draws the same examples in every run.

``pytest --hypothesis-profile fresh`` draws others each time: a failing one is printed with what
repeats it, and kept below .hypothesis/.
"""

from hypothesis import HealthCheck, settings

COMMON = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("repeatable", COMMON, derandomize=True, database=None)
settings.register_profile("fresh", COMMON, print_blob=True)
settings.load_profile("repeatable")
