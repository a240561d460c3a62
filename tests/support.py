"""An untrained translator and a decoder-only model, small enough for every test."""

import re
from functools import lru_cache

import torch

from visformer.adapters.own import LanguageModel, Translator
from visformer.model import decoding
from visformer.model.config import GPTConfig, TransformerConfig
from visformer.model.gpt import GPT
from visformer.model.tokenizer import EOS, Tokenizer, training_words
from visformer.model.transformer import Transformer

SENTENCES = ["I went to school.", "She likes the school.", "我去学校。", "她喜欢学校。", "我喜欢你。"] * 3


@lru_cache(maxsize=1)
def tiny_tokenizer() -> Tokenizer:
    words = [word for text in SENTENCES for word in training_words(text, lambda run: re.findall("喜欢|学校|.", run))]
    return Tokenizer.train(words, vocab_size=420)


def tiny_config(**changes) -> TransformerConfig:
    size = len(tiny_tokenizer())
    sizes = {"d_model": 16, "n_heads": 2, "n_encoder_layers": 2, "n_decoder_layers": 3, "d_ff": 24}
    return TransformerConfig(**({"src_vocab": size, "tgt_vocab": size} | sizes | changes))


def tiny_translator(*, seed: int = 0, **changes) -> Translator:
    torch.manual_seed(seed)
    module = Transformer(tiny_config(**changes))
    for weight in module.parameters():  # otherwise greedy decoding repeats one token
        torch.nn.init.normal_(weight, std=0.5)
    return Translator(module.eval(), tiny_tokenizer(), name="tiny")


def tiny_gpt(*, seed: int = 0, std: float = 0.5, **changes) -> LanguageModel:
    """Return an untrained decoder-only model."""
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 24, "max_len": 32}
    module = GPT(GPTConfig(len(tiny_tokenizer()), **(sizes | changes)))
    for weight in module.parameters():
        torch.nn.init.normal_(weight, std=std)
    return LanguageModel(module.eval(), tiny_tokenizer(), name="tiny")


def end_at_once(monkeypatch):
    """Make every translator end each sentence at its first step."""
    own, end = decoding.NextToken.log_probabilities, tiny_tokenizer().token_id(EOS)  # specials come first everywhere

    def ended(self, prefix):
        likely = torch.full_like(own(self, prefix), -100.0)
        likely[:, end] = -0.1
        return likely

    monkeypatch.setattr(decoding.NextToken, "log_probabilities", ended)
