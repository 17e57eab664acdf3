"""The problem, its solution, and the limits of a search: the ground of all solvers."""
