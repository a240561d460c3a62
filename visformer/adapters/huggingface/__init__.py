"""Models of the transformers library, any family: the same Trace, with the same names, as our own Transformer."""
