"""The subjects of measurement: the bundled model, and texts and ids of a given length."""

from dataclasses import dataclass
from itertools import cycle

import torch
from torch import Tensor

import visformer
from visformer.adapters.own import Translator
from visformer.errors import CheckpointError
from visformer.model.config import TransformerConfig
from visformer.model.tokenizer import EOS, LANGUAGE_TOKEN, SPECIALS, Tokenizer
from visformer.model.transformer import Transformer
from visformer.pictures.examples import EXAMPLES

BUNDLED = "en-zh"

BUNDLED_SIZE = {"d_model": 256, "n_heads": 8, "n_encoder_layers": 3, "n_decoder_layers": 3, "d_ff": 1024}
"""Size of the bundled model, for a copy of the repository without its weights."""

_VOCABULARY = 8000
WORDS = "the book that she gave him yesterday was not on the table because he took it home".split()
"""Each is one token of MiniLM."""

_WORDS = {
    "en": WORDS,
    "zh": [sentence for sentence in EXAMPLES if sentence[0] > "\u2e80"],
}


def bundled_translator() -> tuple[Translator, str]:
    """Return the bundled model, or an untrained one of its size, and a description of it."""
    try:
        return visformer.load(BUNDLED), f"{BUNDLED}, bundled"
    except CheckpointError:
        config = TransformerConfig(src_vocab=_VOCABULARY, tgt_vocab=_VOCABULARY, tie_embeddings=True, **BUNDLED_SIZE)
        torch.manual_seed(0)
        letters = Tokenizer.train([word for words in _WORDS.values() for word in words], vocab_size=600)
        return Translator(Transformer(config).eval(), letters), "untrained, of the bundled model's size"


@dataclass(frozen=True)
class Sentences:
    """A pair of texts with the same number of tokens, and their ids."""

    source: str
    target: str
    src_ids: Tensor
    tgt_ids: Tensor


def sentences(tokenizer: Tokenizer, n: int) -> Sentences:
    """Make an English source and a Chinese target of n tokens each, counting </s> in the source, <zh> in the target."""
    source, target = text_of(tokenizer, n - 1, "en"), text_of(tokenizer, n - 1, "zh")
    return Sentences(source, target, *encoded(tokenizer, source, target))


def encoded(tokenizer: Tokenizer, source: str, target: str) -> tuple[Tensor, Tensor]:
    """Return the two (1, token) tensors that the model gets when the pair is traced."""
    src = [*tokenizer.encode(source), tokenizer.token_id(EOS)]
    tgt = [tokenizer.token_id(LANGUAGE_TOKEN["zh"]), *tokenizer.encode(target)]
    return torch.tensor([src]), torch.tensor([tgt])


def text_of(tokenizer: Tokenizer, n: int, language: str) -> str:
    """Make a text of exactly n tokens: words as long as they fit, then commas, each of them a token."""
    joint = " " if language == "en" else ""
    text = ""
    for word in cycle(_WORDS[language]):
        longer = f"{text}{joint}{word}".strip()
        if len(tokenizer.encode(longer)) > n:
            break
        text = longer
    while (missing := n - len(tokenizer.encode(text))) > 0:
        text += "," * missing
    return text


def random_ids(vocabulary: int, n: int, *, seed: int = 0) -> Tensor:
    """Draw (1, n) ids, without special ones: 0 would be padding."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(len(SPECIALS), vocabulary, (1, n), generator=generator)
