"""Columns become training problems, and coefficients return to the units of the table."""
