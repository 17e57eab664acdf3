"""Which model to take, from an evaluated surface h(γ, τ)."""
