"""Estimators that other packages call.

The package adds an optimiser for PySINDy. Without it the equations of a system are fitted one by
one.
"""
