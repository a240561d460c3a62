"""The model that the pages run on in tests: the bundled one, or where it is not there yet, a small one of its kind."""

from dataclasses import replace
from pathlib import Path

import torch

import visformer as vf
from visformer.checkpoints import FOLDER, save_checkpoint
from visformer.config import TransformerConfig
from visformer.model.transformer import Transformer
from visformer.tokenizer import Tokenizer, training_words
from visformer.ui.examples import EXAMPLES


def model_for_tests(folder: Path) -> str:
    """A name or folder for ``VISFORMER_MODEL``."""
    if (FOLDER / "en-zh" / "example.safetensors").exists():
        return "en-zh"
    words = [word for text in EXAMPLES for word in training_words(text, lambda run: [run[:2], run[2:]]) if word]
    tokenizer = Tokenizer.train(words * 2, vocab_size=600)
    torch.manual_seed(0)
    sizes = {"d_model": 32, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 64}
    module = Transformer(TransformerConfig(src_vocab=len(tokenizer), tgt_vocab=len(tokenizer), **sizes))
    save_checkpoint(folder, module, tokenizer)
    example = vf.load(folder).trace(EXAMPLES[0], "我去东北大学。")  # as if it were its own translation
    replace(example, meta={**example.meta, "forced": False}).save(folder / "example.safetensors")
    return str(folder)
