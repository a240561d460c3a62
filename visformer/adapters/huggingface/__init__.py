"""Models of transformers, of whatever family: the same Trace, with the same names, as our own Transformer."""
