"""The perspective relaxation, its bounds and what they prove."""
