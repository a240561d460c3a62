"""Changes that a visitor makes to the model: cells of a mask, heads."""
