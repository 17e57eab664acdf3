"""Good supports without a proof."""
