"""What all solvers need: the problem, answers and leaves of searches, limits, and the plan."""
