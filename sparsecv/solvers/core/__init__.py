"""What all solvers need: the problem, its solution, limits, and the plan of searches."""
