"""Token ids in place of a text, for every kind of model: used as they are, or refused."""

import re
from functools import cache, partial

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import visformer as vf
from tests.adapters.huggingface.hub import SIZE, tiny_model, tiny_module, tokenizer
from tests.adapters.huggingface.listed import FAMILIES
from tests.support import tiny_gpt, tiny_tokenizer, tiny_translator
from visformer.errors import TextError

TEXT = "I went to school"
HUB = ["bert", "llama", "bart"]
FORMS = [list, tuple, torch.tensor, lambda ids: np.array(ids, dtype=np.uint16), lambda ids: [*np.array(ids)]]


MODELS = {"translator": cache(tiny_translator), "gpt": cache(tiny_gpt)} | {f: partial(tiny_model, f) for f in HUB}


def source_side(model):
    return "tgt" if model.info.kind == "decoder" else "src"


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_ids_of_a_text_are_traced_and_translated_as_the_text_is(make):
    model = make()
    target = "I" if model.info.kind == "encoder-decoder" else None
    by_text = model.trace(TEXT, target, record="*")
    ids = by_text.meta["ids"][source_side(model)]
    for form in FORMS:
        assert model.tokenize(form(ids)) == model.tokenize(TEXT)
        assert model.trace(form(ids), target).meta["ids"] == by_text.meta["ids"]
    by_ids = model.trace(ids, target, record="*")
    assert by_ids.tokens == by_text.tokens and by_ids.meta["ids"] == by_text.meta["ids"]
    for name in by_text:
        np.testing.assert_array_equal(by_ids[name], by_text[name], err_msg=name)
    if model.info.kind != "encoder":
        assert model.translate(ids, max_new_tokens=4) == model.translate(TEXT, max_new_tokens=4)


@pytest.mark.parametrize("family", [*HUB, "t5", "bloom", "megatron-bert"])
def test_no_special_token_is_added_to_ids(family):
    """As if transformers' own model was called with them."""
    ids, model, twin = [6, 10, 11], tiny_model(family), tiny_module(family)
    side, row = source_side(model), torch.tensor([[6, 10, 11]])
    assert model.trace(ids).meta["ids"][side] == ids
    with torch.no_grad():
        if model.info.kind == "encoder-decoder":
            trace = model.trace(ids, [7, 8], record="logits")
            theirs = twin(row, decoder_input_ids=torch.tensor([trace.meta["ids"]["tgt"]])).logits[0]
            np.testing.assert_allclose(trace["logits"], theirs, atol=1e-4)
            assert trace.meta["ids"]["next"][-3:] == [7, 8, 2]
        else:
            theirs = twin(row, output_attentions=True).attentions[0][0]
            np.testing.assert_allclose(model.trace(ids)[f"{model.info.kind}.0.self_attn.pattern"], theirs, atol=1e-5)


def test_own_models_add_nothing_to_ids():
    translator, gpt = tiny_translator(), tiny_gpt()
    ids = tiny_tokenizer().encode("I went")
    assert translator.trace(ids).meta["ids"]["src"] == ids and translator.trace(ids).tokens["tgt"][0] == "<zh>"
    assert translator.trace(tiny_tokenizer().encode("我去学校")).tokens["tgt"][0] == "<en>", "as of its text"
    assert translator.trace(ids).meta["source"] == "I went"
    assert gpt.trace(ids).meta["ids"]["tgt"] == ids
    assert gpt.trace(ids, np.array(ids)).meta["ids"]["tgt"] == ids * 2
    assert gpt.tokenize(ids, ids) == gpt.tokenize(ids * 2)
    assert gpt.generate(ids, prefix=torch.tensor(ids), max_new_tokens=1).ids[: len(ids)] == tuple(ids)


def test_a_pair_of_ids_is_two_segments():
    model = tiny_model("bert")
    trace = model.trace([1, 6, 2], pair=[7, 8, 2], record="*")
    assert trace.meta["ids"]["src"] == [1, 6, 2, 7, 8, 2] and trace.meta["segments"] == [0, 0, 0, 1, 1, 1]
    assert model.tokenize([1, 6, 2], [7, 8, 2]) == trace.tokens["src"]
    for first, second in ((TEXT, [7, 8]), ([7, 8], TEXT)):
        with pytest.raises(TextError, match="A pair is two texts, or the token ids of both"):
            model.trace(first, pair=second)


BAD = [
    ([-1], "-1 (item 0"),
    ([5, 10**6], "1000000 (item 1"),
    ([5, True], "True (item 1"),
    ([5.0], "5.0 (item 0"),
    (["a"], "A list of 1 is not one text: pass one of them, or all of them to trace_many"),
    ([[5], [6]], "A list of 2 is not one text"),
    (np.array([5.0]), "5.0 (item 0"),
    (np.array([True]), "True (item 0"),
    (torch.tensor([[5], [6]]), "A list of 2 is not one text"),
    ([None], "None (item 0"),
    ([], "There are no token ids"),
    (np.array([], dtype=int), "There are no token ids"),
    (5, "5 is not a text"),
    (np.array(5), "is not a text"),
    (None, "None is not a text"),
    (b"bytes", "b'bytes' is not a text"),
    ({5: 6}, "{5: 6} is not a text"),
]


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_what_is_no_token_id_is_refused_with_its_value_and_the_range(make):
    model = make()
    known = len(model.tokenizer) if model.info.name == "tiny" else SIZE
    calls = [model.tokenize, model.trace, lambda ids: model.trace([5], pair=ids)]
    if model.info.kind != "encoder":
        calls = [model.tokenize, model.trace, model.translate, lambda ids: model.trace(TEXT, ids)]
        calls.append(lambda ids: model.translate(TEXT, prefix=ids))
    for ids, message in BAD:
        for call in calls[: 3 if ids is None else 4 if "no token ids" in message else 5]:  # a prefix may be empty
            if call is calls[2] and model.info.kind == "encoder" and ids is None:
                continue  # no pair
            with pytest.raises(TextError, match=re.escape(message)) as error:
                call(ids)
            assert "(item" not in message or str(error.value).endswith(f"from 0 to {known - 1}.")


def test_source_and_target_have_their_own_numbers_of_ids():
    module = tiny_module("fsmt", src_vocab_size=40, tgt_vocab_size=48)
    model = vf.wrap(module, tokenizer())
    assert FAMILIES.get("fsmt") is None
    with pytest.raises(TextError, match="from 0 to 39"):
        model.trace([44])
    assert model.trace([30], [44]).meta["ids"]["next"][0] == 44


def test_a_text_of_which_the_tokenizer_leaves_nothing_is_refused():
    library = Tokenizer(models.WordLevel({"<unk>": 0, "I": 1, "It": 2}, unk_token="<unk>"))
    library.normalizer = normalizers.Replace("dog", "")
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    bare = PreTrainedTokenizerFast(tokenizer_object=library, unk_token="<unk>")
    model = vf.wrap(tiny_module("llama"), bare)
    assert model.trace("I dog").tokens["tgt"] == ("I",)
    for call in (model.tokenize, model.trace, model.generate, lambda text: model.trace("I", text)):
        with pytest.raises(TextError, match="leaves nothing of 'dog'"):
            call("dog")
    twin = vf.wrap(tiny_module("bart"), bare)
    with pytest.raises(TextError, match="leaves nothing of 'dog'"):
        twin.trace("I", "dog")
