"""Branch and bound on the relaxation: one problem, or a family that differs by few rows."""
