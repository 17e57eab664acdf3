"""The cross-validation error h(γ, τ): exact, searched for, or bounded."""
