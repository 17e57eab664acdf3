"""Pictures of curves and of bounds (matplotlib)."""
