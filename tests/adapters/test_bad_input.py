"""What vf.load, vf.wrap, trace and translate refuse, each with a sentence that says what was passed."""

from functools import partial

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import tiny_model, tiny_module, tokenizer
from tests.support import tiny_config, tiny_gpt, tiny_tokenizer, tiny_translator
from visformer.edits import Block
from visformer.errors import BudgetError, CheckpointError, ConfigError, TextError, TraceError, VisformerError

TEXT = "I went to school"


@pytest.mark.parametrize("record", [3, [None], [("*.pattern",)]])
def test_a_record_that_names_nothing_is_refused(record):
    with pytest.raises(TraceError, match="names no tensors: pass names or glob patterns"):
        tiny_translator().trace(TEXT, record=record)


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("beam_size", value) for value in (0, -1, 2.5, True, "3", None)),
        *(("temperature", value) for value in (0, -1.0, float("nan"), float("inf"), "hot", True)),
        *(("top_k", value) for value in (0, -1, 2.5, True, "3")),
        *(("top_p", value) for value in (0, 1.1, float("nan"), "most", True)),
        *(("seed", value) for value in (-1, 0.5, "x", None)),
        *(("max_new_tokens", value) for value in (0, -1, 2.5, "3", True)),
        *(("to", value) for value in (5, ["zh"])),
    ],
)
def test_a_setting_out_of_range_is_refused_with_its_value(make, setting, value):
    with pytest.raises(VisformerError) as error:
        make().translate(TEXT, **{setting: value})
    assert f"{setting}={value!r} " in str(error.value)


def test_beams_and_a_temperature_exclude_each_other():
    with pytest.raises(VisformerError, match="beam_size=2"):
        tiny_translator().translate(TEXT, beam_size=2, temperature=1.0)


@pytest.mark.parametrize("value", [2, np.int64(2)])
def test_whole_numbers_of_numpy_are_settings_too(value):
    model = tiny_translator()
    assert model.translate(TEXT, beam_size=value, max_new_tokens=value).ids
    sampled = model.translate(TEXT, top_k=value, temperature=np.float32(0.5), seed=value, max_new_tokens=value)
    assert sampled == model.translate(TEXT, top_k=2, temperature=0.5, seed=2, max_new_tokens=2)


def test_a_pair_or_prefix_that_is_no_text_is_refused():
    model = tiny_model("bert")
    with pytest.raises(TextError, match="5 is not a text"):
        model.trace(TEXT, pair=5)
    with pytest.raises(TextError, match="None is not a text"):
        tiny_translator().translate(TEXT, prefix=None)
    with pytest.raises(TextError, match="surrogate"):
        tiny_translator().translate(TEXT, prefix="\ud800")


def test_a_prefix_longer_than_the_model_s_positions_is_refused():
    for model in (tiny_gpt(), tiny_model("gpt2"), tiny_model("bart")):
        with pytest.raises(TextError, match="tokens long and the limit is"):
            model.translate(TEXT, prefix=[5] * 70)


@pytest.mark.parametrize("other", [None, "en-zh", "a tokenizer of another library"])
def test_wrap_needs_the_tokenizer_of_the_model(other):
    wrong = {"en-zh": tiny_tokenizer()}.get(other, other)
    with pytest.raises(VisformerError, match=f"wrap needs the tokenizer of this model, .* not {type(wrong).__name__}"):
        vf.wrap(tiny_module("bert"), wrong)
    wrong = None if other is None else tokenizer()
    for module in (tiny_translator().module, tiny_gpt().module):
        with pytest.raises(VisformerError, match=f"visformer.model.tokenizer.Tokenizer, not {type(wrong).__name__}"):
            vf.wrap(module, wrong)


@pytest.mark.parametrize("sizes", [{"src_vocab": 300}, {"tgt_vocab": 300}])
def test_a_tokenizer_with_more_tokens_than_the_model_has_embeddings_is_refused(sizes):
    with pytest.raises(CheckpointError, match="out of range for 300 embeddings: this is another model's tokenizer"):
        vf.wrap(vf.Transformer(tiny_config(**sizes)), tiny_tokenizer())


def test_a_vocabulary_may_be_larger_than_the_tokenizer():
    size = len(tiny_tokenizer())
    model = vf.wrap(vf.Transformer(tiny_config(src_vocab=size + 5, tgt_vocab=size + 9)), tiny_tokenizer())
    assert max(model.translate(TEXT, beam_size=2, max_new_tokens=5).ids, default=0) < size
    assert model.trace(TEXT, record="logits")["logits"].shape[1] == size + 9


@pytest.mark.parametrize("device", ["cuda" if not torch.cuda.is_available() else "cuda:99", "gpu", "", 1.5])
def test_a_device_that_cannot_be_used_is_refused(device):
    for name in ("en-zh", "untrained-8x1-enc1-dec1-ff8"):
        with pytest.raises(
            ConfigError, match=rf"device={device!r} cannot be used here \(.*\): leave it out to compute"
        ):
            vf.load(name, device=device)


@pytest.mark.parametrize("dtype", ["float16", torch.int8, torch.complex64, np.float32, 16])
def test_what_is_no_dtype_of_weights_is_refused(dtype):
    with pytest.raises(ConfigError, match=r"dtype=.* is not known: choose one of torch.float32, torch.float64"):
        vf.load("en-zh", dtype=dtype)


def test_an_untrained_model_names_the_wrong_choice():
    with pytest.raises(ConfigError, match="norm='middle' is not known"):
        vf.untrained(norm="middle")
    with pytest.raises(TypeError, match="n_layers"):
        vf.untrained(n_layers=3)


# How long a text may be -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "limit"),
    [({"max_len": 600}, 600), ({"max_len": 40, "position": "learned"}, 40), ({"position": "rotary"}, None),
     ({"position": "alibi"}, None), ({"position": "none"}, None)],
)  # fmt: skip
def test_a_model_takes_as_many_tokens_as_its_config_allows(choices, limit):
    model = tiny_translator(**choices)
    assert model.info.max_tokens == limit
    ids = [5] * (limit or 700)
    assert model.trace(ids, [6] * (len(ids) - 1), record="encoder.out")["encoder.out"].shape == (len(ids), 16)
    if limit is not None:
        with pytest.raises(TextError, match=f"{limit + 1} tokens long and the limit is {limit}"):
            model.trace([*ids, 5])


@pytest.mark.parametrize(
    ("family", "limit"), [("gpt2", 64), ("llama", 64), ("roberta", 62), ("t5", None), ("bloom", None), ("bart", 64)]
)
def test_a_model_of_transformers_takes_as_many_tokens_as_its_config_allows(family, limit):
    model = tiny_model(family)
    assert model.info.max_tokens == limit
    model.trace([5] * (limit or 600), record="*.resid_post")
    if limit is not None:
        with pytest.raises(TextError, match=f"{limit + 1} tokens long and the limit is {limit}"):
            model.trace([5] * (limit + 1))


def test_a_text_whose_scores_would_not_fit_into_memory_is_refused(monkeypatch):
    model = tiny_translator(position="rotary")
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", 4 * 2 * 50**2)
    assert model.trace([5] * 50, [5], record="tgt.embed")
    message = "51 tokens: the scores of one layer alone would take 20,808 bytes, and the limit is 20,000"
    for call in (partial(model.trace, record="tgt.embed"), model.translate):
        with pytest.raises(BudgetError, match=message):
            call([5] * 51)
    assert model.trace([5] * 51, [5], record="tgt.embed", max_bytes=20_808)
    (trace,) = model.trace_many([[5] * 51], [[5]], record="tgt.embed", max_bytes=20_808)
    assert len(trace.tokens["src"]) == 51
    monkeypatch.setenv("VISFORMER_TRACE_BYTES", "20808")
    assert model.trace([5] * 51, [5], record="tgt.embed")
    with pytest.raises(BudgetError, match=r"52 tokens: .* the limit is 20,808: .*VISFORMER_TRACE_BYTES"):
        model.trace([5] * 52, [5], record="tgt.embed")
    for wrong in (0, True, "1 GB"):
        with pytest.raises(VisformerError, match="max_bytes"):
            model.trace([5], [5], max_bytes=wrong)


def test_a_model_of_transformers_is_bounded_only_where_it_holds_scores(monkeypatch):
    model, text = tiny_model("llama"), [5 + i % 20 for i in range(60)]
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", 4 * model.info.n_heads * 50**2)
    whole = model.trace(text, record="decoder.out")
    assert whole["decoder.out"].shape[0] == 60
    block = Block("decoder.0.self_attn", query=5, key=0)
    for call in (model.trace, model.generate):
        with pytest.raises(BudgetError, match="60 tokens: the scores of one layer alone"):
            call(text, edits=block, **({"record": "decoder.out"} if call == model.trace else {}))
    edited = model.trace(text, record="decoder.out", edits=block, max_bytes=10**6)
    assert not np.allclose(edited["decoder.out"], whole["decoder.out"])
