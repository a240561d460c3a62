"""The models whose methods are tested: bundled ones, and tiny ones of transformers."""

from functools import cache

import visformer as vf
from tests.adapters.huggingface.hub import tokenizer
from tests.adapters.huggingface.test_weights import distinct
from visformer.adapters.base import TracedModel
from visformer.analysis import needed
from visformer.trace import Trace

TEXT, TARGET = "I went to the river", "the river"
BUNDLED = {"en-zh": "I went to Northeastern University.", "mini-gpt": "I went to school with my friend."}
KINDS = (*BUNDLED, "bert", "gpt2", "bart", "llama", "mbart", "t5")
"""Post-norm: en-zh, BERT, BART; pre-norm: mini-gpt, GPT-2, mBART; with RMSNorm: Llama, T5."""


@cache
def model_of(kind: str) -> TracedModel:
    """Return a model of this kind."""
    return vf.load(kind) if kind in BUNDLED else vf.wrap(distinct(kind), tokenizer())


def texts_of(kind: str) -> tuple[str, str | None]:
    """Return a text, and the target of an untrained encoder-decoder."""
    tiny = kind not in BUNDLED
    return BUNDLED.get(kind, TEXT), TARGET if tiny and model_of(kind).info.kind == "encoder-decoder" else None


@cache
def trace_of(kind: str) -> Trace:
    """Return a Trace with what all methods of Traces need."""
    model = model_of(kind)
    source, target = texts_of(kind)
    return model.trace(source, target, record=(*needed(model, "alti"), *model.available(("*.out", "*.heads"))))


def paths_of(trace: Trace) -> list[str]:
    """Return the paths of all attentions."""
    return [name.removesuffix(".pattern") for name in trace if name.endswith(".pattern")]
