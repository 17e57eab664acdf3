"""Compiled numerical routines on arrays; each routine is written once."""
