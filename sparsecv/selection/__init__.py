"""A fit from top to bottom: rules choose a model from an evaluated surface h(γ, τ)."""
