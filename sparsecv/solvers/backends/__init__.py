"""Other solvers as back ends, and what they are given."""
