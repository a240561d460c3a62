"""Evaluate a translator, with intervals: BLEU, judged sentences, names, how sure it is, and word alignment."""
