"""The version of sparsecv, which files and pages name."""

__version__ = "0.2.0"
