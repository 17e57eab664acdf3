"""Estimators that other packages call."""
