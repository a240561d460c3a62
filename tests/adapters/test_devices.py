"""A model on another device than the CPU: texts go there, and what is shown comes back."""

from functools import partial

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import tiny_model
from tests.devices import Away
from tests.support import tiny_gpt, tiny_translator
from visformer.edits import Block, Silence
from visformer.model.positions import POSITIONS

TEXTS = ["I went to school.", "She likes the school.", "a"]


def everything(model):
    """All that a model computes, as plain numbers and texts."""
    edits = [Silence("decoder.0.self_attn", head=0), Block("decoder.1.self_attn", query=2, key=0)]
    return [
        model.trace(TEXTS[0], TEXTS[1], record=("*", "output.w")),
        model.trace(TEXTS[0], "likes", record="*", edits=edits[0]),
        model.translate(TEXTS[0], max_new_tokens=3),
        model.translate(TEXTS[0], max_new_tokens=3, edits=edits),
        model.translate(TEXTS[0], max_new_tokens=3, beam_size=3, prefix="I"),
        model.translate(TEXTS[0], max_new_tokens=3, temperature=2.0, top_k=5, top_p=0.9, seed=1),
        *model.trace_many(TEXTS, TEXTS[::-1], record="*", edits=edits[0]),
        *model.translate_many(TEXTS, max_new_tokens=3),
    ]


def same_on_both(model, all_of=everything):
    here = all_of(model)
    with Away(model.module):
        there = all_of(model)
    for one, other in zip(there, here, strict=True):
        if isinstance(one, vf.Trace):
            assert one.tokens == other.tokens and one.names() == other.names()
            for name, value in {**one.tensors, **one.params}.items():
                np.testing.assert_array_equal(value, {**other.tensors, **other.params}[name])
        else:
            assert (one.ids, one.text, one.confidence) == (other.ids, other.text, other.confidence)
            assert [step.chosen for step in one.steps] == [step.chosen for step in other.steps]


@pytest.mark.parametrize("position", POSITIONS)
def test_our_models_compute_on_another_device_what_they_do_on_the_cpu(position):
    same_on_both(tiny_translator(position=position, max_len=64))


@pytest.mark.full
@pytest.mark.parametrize(
    "make", [tiny_gpt, *(partial(tiny_model, family) for family in ("gpt2", "llama", "bloom", "marian", "t5"))]
)
def test_decoders_and_those_of_transformers_too(make):
    same_on_both(make())


def test_a_trace_that_begins_with_a_translation_too():
    """With learned positions: those that are computed are cached, and belong to the device of the test before."""
    model = tiny_translator(position="learned", max_len=64)
    same_on_both(model, lambda model: [model.trace(TEXTS[0], record=("*", "output.w"))])


def test_the_device_refuses_what_stayed_on_the_cpu():
    model = tiny_gpt()
    with Away(model.module), pytest.raises(AssertionError, match="to be on the same device"):
        model.module(torch.tensor([[1, 2]]))
