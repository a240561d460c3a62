"""The visitor's edits of the model: cells of a mask, heads."""
