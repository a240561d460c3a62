"""The Transformer of "Attention Is All You Need", in pure torch, to be read beside the paper."""
