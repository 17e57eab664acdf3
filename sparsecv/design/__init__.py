"""From columns to training problems and back: protocol, folds, moments."""
