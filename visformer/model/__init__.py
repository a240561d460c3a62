"""The Transformer of "Attention Is All You Need", in pure torch, written to be read beside the paper."""
