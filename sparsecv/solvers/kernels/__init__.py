"""Compiled routines that know no problem: each numerical routine once."""
