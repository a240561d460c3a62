"""Traces of every kind of model that the picture of the whole model meets: bundled, of transformers, plain arrays."""

from functools import cache

import numpy as np

import visformer as vf
from tests.adapters.huggingface.hub import tiny_model
from visformer.adapters.base import TracedModel
from visformer.pictures.map import RECORD
from visformer.trace import Trace

TEXT = "I went to the river and saw you again today"
TARGET = "the river"
BUNDLED = ("en-zh", "mini-gpt")
FAMILIES = ("bert", "gpt2", "gptj", "bart", "lfm2")
"""An encoder, a decoder, one whose blocks are parallel, both stacks, and a decoder with layers without attention."""
PLAIN = ("attention", "decoder", "maps")
"""Arrays without a model: patterns of both stacks, of a decoder alone, and maps of both stacks."""
KINDS = (*BUNDLED, *FAMILIES, *PLAIN)


@cache
def model_of(kind: str) -> TracedModel:
    """Return the model of a kind that has one."""
    return vf.load(kind) if kind in BUNDLED else tiny_model(kind)


@cache
def trace_of(kind: str) -> Trace:
    """Return a Trace with all that the picture needs, as far as this kind has it."""
    if kind in PLAIN:
        return _plain(kind)
    model = model_of(kind)
    return model.trace(TEXT, TARGET if kind == "bart" else None, record=model.available(RECORD))


def _plain(kind: str) -> Trace:
    rng = np.random.default_rng(0)
    src, tgt = ("[CLS]", "我", "去", "[SEP]"), ("<s>", "I", "go")
    encoder, cross = rng.random((2, 3, 4, 4)), rng.random((2, 3, 3, 4))
    decoder = rng.random((2, 3, 3, 3)) * np.tri(3)
    if kind == "maps":
        return Trace.from_maps(src, encoder - 0.5, target=tgt, decoder=decoder, cross=cross)
    encoder, cross, decoder = (each / each.sum(-1, keepdims=True) for each in (encoder, cross, decoder))
    if kind == "decoder":
        return Trace.from_attention(target=tgt, decoder=decoder)
    return Trace.from_attention(src, encoder, target=tgt, decoder=decoder, cross=cross)
