"""Rules choose a model from an evaluated surface h(γ, τ)."""
