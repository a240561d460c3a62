"""Models of transformers, compared with transformers itself: output_attentions, hidden states, generate."""

import copy
import logging
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.huggingface.hub import (
    IS_OLD,
    SIZE,
    TEXT,
    made,
    one_of_each,
    target_of,
    tiny_model,
    tiny_module,
    tiny_trace,
    tokenizer,
)
from tests.adapters.huggingface.listed import FAMILIES
from tests.adapters.huggingface.test_heads import MASKED, with_head
from visformer.edits import Block, Open, SetPattern, Silence
from visformer.errors import BudgetError, EditError, MissingTensor, TextError, TraceError, VisformerError
from visformer.pictures.head import Place, steps
from visformer.web.payload import pack


def close(ours, theirs, atol=1e-5):
    np.testing.assert_allclose(np.asarray(ours), theirs.detach().numpy(), atol=atol, rtol=1e-5)


def ids_of(trace, side):
    return torch.tensor([trace.meta["ids"][side]])


def expected(family, trace):
    """Return the outputs of an unwrapped copy of the model, with transformers' own eager attention."""
    twin = made(family)
    options = {"output_attentions": True, "output_hidden_states": True, "return_dict": True}
    with torch.no_grad():
        if FAMILIES[family].kind == "encoder":
            return twin(ids_of(trace, "src"), **options)
        if FAMILIES[family].kind == "decoder":
            return twin(ids_of(trace, "tgt"), use_cache=False, **options)
        return twin(ids_of(trace, "src"), decoder_input_ids=ids_of(trace, "tgt"), use_cache=False, **options)


def stacks(family, output):
    """Return the path of each attention to its patterns, one for each layer, as transformers returns them."""
    if FAMILIES[family].kind == "encoder-decoder":
        return {
            "encoder.{}.self_attn": output.encoder_attentions,
            "decoder.{}.self_attn": output.decoder_attentions,
            "decoder.{}.cross_attn": output.cross_attentions,
        }
    return {f"{FAMILIES[family].kind}.{{}}.self_attn": output.attentions}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trace_of_a_family_equals_the_outputs_of_transformers_and_is_consistent(family):
    assert not tiny_model(family)._patterns_only
    trace = tiny_trace(family)
    theirs = expected(family, trace)
    check_patterns(family, trace, theirs)
    check_residual_stream(family, trace, theirs)
    check_attention(trace)
    check_sums(family, trace)
    check_outline(tiny_model(family))


def check_outline(model):
    """It knows all but the numbers, and goes to another process."""
    outline = pickle.loads(pickle.dumps(model.outline()))
    assert outline.info == model.info
    assert outline.tokenize(TEXT) == model.tokenize(TEXT)
    if model.info.kind != "encoder-decoder":
        assert outline.tokenize(TEXT, TEXT) == model.tokenize(TEXT, TEXT)
    globs = ("*.pattern", "*.w_q", "*.ffn.hidden", "*.nothing")
    assert outline.available(globs) == model.available(globs)
    assert outline.text.scheme == model.text.scheme and outline.text.pieces(TEXT) == model.text.pieces(TEXT)


def check_patterns(family, trace, theirs):
    for path, patterns in stacks(family, theirs).items():
        assert path.format(len(patterns)) + ".pattern" not in trace
        for layer, pattern in enumerate(patterns):
            close(trace[f"{path.format(layer)}.pattern"], pattern[0])
    if FAMILIES[family].decoder:
        close(trace["logits"], theirs.logits[0], atol=1e-4)


def check_residual_stream(family, trace, theirs):
    two = FAMILIES[family].kind == "encoder-decoder"
    for part in FAMILIES[family].stacks:
        hidden = theirs[f"{part}_hidden_states"] if two else theirs.hidden_states
        close(trace[f"{'src' if part == 'encoder' else 'tgt'}.input"], hidden[0][0])
        close(trace[f"{part}.out"], hidden[-1][0])
        for layer, after in enumerate(hidden[1:-1]):
            close(trace[f"{part}.{layer}.resid_post"], after[0])
            assert np.array_equal(trace[f"{part}.{layer}.resid_post"], trace[f"{part}.{layer + 1}.resid_pre"])


def check_attention(trace):
    """The pattern follows from scores and mask, and the heads follow from pattern and values."""
    for path in [name.removesuffix(".heads") for name in trace if name.endswith(".heads")]:
        values = trace[f"{path}.v"].value
        values = np.repeat(values, len(trace[f"{path}.pattern"]) // len(values), axis=0)
        np.testing.assert_allclose(trace[f"{path}.pattern"].value @ values, trace[f"{path}.heads"], atol=2e-5)
        masked = np.where(trace[f"{path}.mask"], trace[f"{path}.scores"], -np.inf).astype(np.float64)
        weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
        total = weights.sum(axis=-1, keepdims=True)
        if f"{path}.sink" in trace:
            total = total / (1 - trace[f"{path}.sink"].value[..., None].astype(np.float64))
        np.testing.assert_allclose(weights / total, trace[f"{path}.pattern"], atol=2e-5)


def check_sums(family, trace):
    """Each sum is x + sublayer, and the next sublayer adds to it."""
    scaled = family in ("granite", "gemma2", "gemma3_text", "glm4", "olmo2")  # a factor, or a norm, on what is added
    for name in trace:
        layer, _, last = name.rpartition(".")
        cross = f"{layer}.resid_cross" in trace
        terms = {
            "resid_self": ("attn_sum", "resid_pre", "self_attn.out"),
            "resid_cross": ("cross_sum", "resid_self", "cross_attn.out"),
            "ffn_sum": ("ffn_sum", "resid_cross" if cross else "resid_self", "ffn.out"),
        }.get(last)
        if terms and not scaled and (last == "resid_cross" or f"{layer}.{terms[2]}" in trace):
            total, x, added = (trace[f"{layer}.{term}"].value for term in terms)
            np.testing.assert_allclose(total, x + added, atol=2e-4)


@pytest.mark.parametrize(
    ("family", "norm"),
    [(family, "embeddings.LayerNorm") for family in ("bert", "roberta", "distilbert")]
    + [("bart", "model.encoder.layernorm_embedding"), ("marian", None), ("m2m_100", None), ("gpt2", None)],
)
def test_the_input_is_the_sum_of_embedding_and_position(family, norm):
    trace, side = tiny_trace(family), "tgt" if family == "gpt2" else "src"
    parts = [trace[f"{side}.{part}"].value for part in ("embed", "segment", "position") if f"{side}.{part}" in trace]
    total = torch.tensor(sum(parts))
    with torch.no_grad():
        total = tiny_module(family).get_submodule(norm)(total) if norm else total
    np.testing.assert_allclose(trace[f"{side}.input"], total, atol=1e-5)


GENERATING = ["gpt2", "gpt_neo", "gptj", "llama", "gemma2", "mistral", "gpt_oss", "deepseek_v3", "bloom", "falcon",
              "marian", "t5", "m2m_100"]  # fmt: skip


@pytest.mark.parametrize("family", one_of_each(GENERATING))
def test_greedy_generation_equals_that_of_transformers(family):
    model, twin = tiny_model(family), tiny_module(family)
    decoding = model.generate(TEXT, max_new_tokens=8)
    ids = torch.tensor([tokenizer()(TEXT)["input_ids"]])
    unused = [[i] for i in range(len(tokenizer()), SIZE)]
    whole = twin.generate(ids, do_sample=False, num_beams=1, max_new_tokens=8, bad_words_ids=unused)[0].tolist()
    new = whole[1:] if FAMILIES[family].kind == "encoder-decoder" else whole[ids.shape[1] :]
    assert list(decoding.ids) == [i for i in new if i != 2]
    assert len(decoding.steps) == len(new)


CHANGES = [Silence("decoder.0.cross_attn", head=1), Block("decoder.1.self_attn", query=3, key=1)]


@pytest.mark.parametrize(
    ("family", "edits"), [*((family, []) for family in ("gpt2", "gemma2", "bart", "t5", "bloom")), ("bart", CHANGES)]
)
def test_probabilities_of_generation_are_those_of_the_trace(family, edits):
    model = tiny_model(family)
    decoding = model.generate(TEXT, edits=edits, max_new_tokens=6)
    trace = model.trace(TEXT, decoding.ids, edits=edits, record=("logits",))
    rows = torch.tensor(trace["logits"].value).softmax(dim=-1)
    first = len(tokenizer()(TEXT)["input_ids"]) - 1 if FAMILIES[family].kind == "decoder" else 0
    for row, step in enumerate(decoding.steps[: len(decoding.ids)], start=first):
        assert trace.meta["ids"]["next"][row] == step.chosen.id
        for candidate in step.candidates:
            assert float(rows[row, candidate.id]) == pytest.approx(candidate.probability, abs=1e-5)
    if edits:
        plain = model.generate(TEXT, max_new_tokens=1)
        assert decoding.steps[0].chosen.probability != plain.steps[0].chosen.probability


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "bart", "t5"])
def test_beam_search_gives_the_same_beams_with_and_without_a_cache(family):
    model = tiny_model(family)
    no_change = Silence("*.0.self_attn", head=0, scale=1.0)  # with any edit, decoding has no cache
    cached = model.generate(TEXT, beam_size=3, max_new_tokens=5)
    uncached = model.generate(TEXT, beam_size=3, max_new_tokens=5, edits=[no_change])
    assert cached.ids == uncached.ids
    assert [[b.id for b in step] for step in cached.beams] == [[b.id for b in step] for step in uncached.beams]


@pytest.mark.parametrize("family", ["openai-gpt", "switch_transformers", "qwen2_vl", "fsmt"])
def test_an_unusual_family_is_traced_and_generates_as_transformers_does(family):
    """OpenAI's GPT keeps no cache, Switch reads routers, Qwen2-VL takes images, FSMT forgets its mask with a cache."""
    model, twin = tiny_model(family), tiny_module(family)
    decoder = model.info.kind == "decoder"
    trace = model.trace(TEXT, None if decoder else "to school and the river")
    inputs = {"input_ids": ids_of(trace, "tgt" if decoder else "src")}
    if not decoder:
        inputs["decoder_input_ids"] = ids_of(trace, "tgt")
    options = {} if family == "openai-gpt" else {"use_cache": False}
    with torch.no_grad():
        theirs = twin(**inputs, output_attentions=True, **options)
    for layer, pattern in enumerate(theirs.attentions if decoder else theirs.decoder_attentions):
        close(trace[f"decoder.{layer}.self_attn.pattern"], pattern[0])
    prefix = () if decoder else trace.meta["ids"]["next"][:2]
    step = model.generate(TEXT, prefix=prefix, max_new_tokens=2).steps[0]
    with torch.no_grad():
        if decoder:
            rows = twin(**inputs, **options).logits
        else:
            start = torch.tensor([[trace.meta["ids"]["tgt"][0], *prefix]])
            rows = twin(inputs["input_ids"], decoder_input_ids=start, **options).logits
    assert step.chosen.probability == pytest.approx(float(rows[0, -1].softmax(-1)[step.chosen.id]), abs=1e-5)


@pytest.mark.parametrize("family", ["megatron-bert", "xglm"])
def test_a_family_with_attention_code_of_its_own_has_patterns_and_errors_say_why_no_more(family):
    model = tiny_model(family)
    trace = model.trace(TEXT)
    part = model.info.kind
    with torch.no_grad():
        theirs = tiny_module(family)(ids_of(trace, "src" if part == "encoder" else "tgt"), output_attentions=True)
    for layer, pattern in enumerate(theirs.attentions):
        close(trace[f"{part}.{layer}.self_attn.pattern"], pattern[0])
    with pytest.raises(MissingTensor, match="this family has its own attention code, which exposes patterns"):
        trace[f"{part}.0.self_attn.q"]
    with pytest.raises(EditError, match=r"cannot be applied: this family has its own attention code"):
        model.trace(TEXT, edits=[Silence(f"{part}.0.self_attn", head=0)])
    with pytest.raises(EditError, match="does not let it be changed"):
        model.trace(TEXT, edits=[SetPattern(f"{part}.0.self_attn", head=0, pattern=uniform(pattern.shape[-1]))])


def uniform(n):
    """Return a pattern whose rows are uniform, for SetPattern."""
    return ((1 / n,) * n,) * n


# Peculiarities of families --------------------------------------------------------------------------------------------


def test_keys_and_values_that_heads_share_are_recorded_once(tmp_path):
    trace = tiny_trace("llama")
    assert trace["decoder.0.self_attn.k"].axes[0].name == "kv_head"
    assert [len(trace[f"decoder.0.self_attn.{name}"]) for name in ("q", "k", "v", "heads")] == [4, 2, 2, 4]
    assert trace.meta["n_kv_heads"] == 2
    trace.save(tmp_path / "trace.safetensors")
    loaded = vf.Trace.load(tmp_path / "trace.safetensors")
    assert loaded["decoder.0.self_attn.k"].axes == trace["decoder.0.self_attn.k"].axes


OWN_KINDS = ["bloom", "falcon", "mpnet", "deberta", "deberta-v2", "gpt_neo", "gptj", "deepseek_v3", "gpt_bigcode"]


@pytest.mark.parametrize("family", [*OWN_KINDS, "llama"])
def test_the_steps_inside_a_head_are_those_of_any_attention(family):
    """With values of another width, a bias, another scale, or keys and values of a group of heads."""
    trace, path = tiny_trace(family), f"{FAMILIES[family].kind}.1.self_attn"
    for head in range(4):
        shown = {panel.name: panel.values for panels in steps(trace, Place(path, head, 5)) for panel in panels}
        np.testing.assert_allclose(shown["q"] @ shown["k"].T, shown["products"], atol=1e-5)
        np.testing.assert_array_equal(shown["scores"][0], trace[f"{path}.scores"].value[head, 5])
        out = trace[f"{path}.heads"].value[head, 5]
        np.testing.assert_allclose((shown["pattern"] @ shown["v"])[0], out, atol=1e-5)
        if family == "llama":
            scaled = shown["products"] / np.sqrt(shown["k"].shape[1])
            np.testing.assert_allclose(scaled[0, :6], shown["scores"][0, :6], atol=1e-5)


WINDOWED = ["cohere2", "mistral", "ministral", "mixtral", "gemma2", "gemma3_text", "gpt_oss", "phi3", "starcoder2",
            "smollm3"]  # fmt: skip


@pytest.mark.parametrize("family", [*WINDOWED, "modernbert", "gpt_neo", "llama", "qwen2", "bert"])
def test_weights_are_positive_exactly_in_the_windows_of_the_metadata(family):
    changes = {"sliding_window": 3} if family in WINDOWED else {}
    if family == "smollm3":
        changes |= {"use_sliding_window": True, "layer_types": ["sliding_attention", "full_attention"] * 2}
        changes |= {"num_hidden_layers": 4}
    model = tiny_model(family, **changes)
    trace = tiny_trace(family, **changes)
    patterns = [trace[name].value[0] for name in trace if name.endswith("pattern")]
    position = np.arange(len(patterns[0]))
    distance = position[:, None] - position  # from the query back to the key
    windows = trace.meta.get("windows") or [None] * len(patterns)
    assert (family in (*WINDOWED, "modernbert", "gpt_neo")) == any(windows)
    for pattern, window in zip(patterns, windows, strict=True):
        if model.info.kind == "encoder":
            allowed = abs(distance) <= (window or 99)
        else:
            allowed = (distance >= 0) & (distance < (window or 99))
        assert np.array_equal(pattern > 0, allowed)


def test_a_sink_has_the_mass_that_its_row_lacks():
    model = tiny_model("gpt_oss")
    trace = tiny_trace("gpt_oss")
    sink = trace["decoder.0.self_attn.sink"].value
    assert sink.max() > 0.3
    np.testing.assert_allclose(trace["decoder.0.self_attn.pattern"].value.sum(axis=-1), 1 - sink, atol=1e-5)
    learned = model.module.model.layers[0].self_attn.sinks.detach().numpy()
    for head in range(4):
        row = trace["decoder.0.self_attn.scores"][head, -1][trace["decoder.0.self_attn.mask"][head, -1]]
        mass = np.exp(learned[head]) / (np.exp(learned[head]) + np.exp(row).sum())
        assert mass == pytest.approx(sink[head, -1], abs=1e-5)
    with pytest.raises(EditError, match="sink"):
        model.trace(TEXT, edits=[lambda name, x: x + 1 if name.endswith("sink") else x])


@pytest.mark.parametrize("family", ["t5", "mt5", "umt5"])
def test_the_bias_equals_that_of_transformers_and_the_scores_include_it(family):
    trace = tiny_trace(family)
    assert not any("cross_attn.bias" in name for name in trace)
    for part, n in (("encoder", len(trace.tokens["src"])), ("decoder", len(trace.tokens["tgt"]))):
        stack = tiny_module(family).get_submodule(part)
        for layer in range(3):
            path = f"{part}.{layer}.self_attn"
            owner = stack.block[layer if family == "umt5" else 0].layer[0].SelfAttention
            close(trace[f"{path}.bias"], owner.compute_bias(n, n)[0])
            products = trace[f"{path}.q"].value @ trace[f"{path}.k"].value.swapaxes(1, 2)
            np.testing.assert_allclose(trace[f"{path}.scores"], products + trace[f"{path}.bias"].value, atol=1e-4)


def test_a_bias_edited_to_zero_equals_a_model_whose_table_of_biases_is_zero():
    model, twin = tiny_model("t5"), tiny_module("t5")
    for part in ("encoder", "decoder"):
        twin.get_submodule(part).block[0].layer[0].SelfAttention.relative_attention_bias.weight.data.zero_()
    trace = model.trace(
        TEXT, "to school", record=("logits",), edits=[lambda name, x: x * 0 if name.endswith(".bias") else x]
    )
    with torch.no_grad():
        close(trace["logits"], twin(ids_of(trace, "src"), decoder_input_ids=ids_of(trace, "tgt")).logits[0], atol=1e-4)


@pytest.mark.parametrize(
    ("family", "reason"), [("llama", "rotary"), ("bloom", "ALiBi"), ("t5", "learned bias for each distance")]
)
def test_the_error_says_what_a_model_has_instead_of_added_positions(family, reason):
    side = "src" if family == "t5" else "tgt"
    with pytest.raises(MissingTensor, match=reason):
        tiny_trace(family)[f"{side}.position"]


def test_the_error_says_why_a_parallel_block_has_no_sum_between_its_sublayers():
    with pytest.raises(MissingTensor, match="parallel block"):
        tiny_trace("gpt_neox")["decoder.0.resid_self"]
    with pytest.raises(MissingTensor, match="not recorded"):
        tiny_model("gpt_neox").trace(TEXT)["decoder.0.self_attn.q"]


def test_an_encoder_takes_a_pair_of_texts_as_two_segments():
    model = tiny_model("bert")
    trace = model.trace("I went to school", pair="you saw the river", record=("*",))
    assert trace.tokens["src"] == ("<s>", "I", "went", "to", "school", "</s>", "you", "saw", "the", "river", "</s>")
    assert trace.special["src"] == tuple(t.startswith("<") for t in trace.tokens["src"])
    assert trace.meta["segments"] == [0] * 6 + [1] * 5
    assert not np.array_equal(trace["src.segment"][0], trace["src.segment"][-1])
    module = tiny_module("bert")
    both = tokenizer()("I went to school", "you saw the river", return_tensors="pt", return_token_type_ids=True)
    with torch.no_grad():
        close(trace["encoder.out"], module(**both).last_hidden_state[0])
    with pytest.raises(VisformerError, match="only an encoder takes a pair"):
        tiny_model("gpt2").trace("I", pair="you")
    with pytest.raises(VisformerError, match="second text as pair"):
        model.trace("I", "you")
    with pytest.raises(VisformerError, match="generates no text"):
        model.generate("I")


def test_the_text_is_the_target_of_a_decoder_and_the_source_of_an_encoder():
    trace = tiny_model("gpt2").trace(TEXT)
    assert set(trace.tokens) == {"tgt", "next"}
    assert trace.tokens["next"][:-1] == trace.tokens["tgt"][1:]
    assert set(tiny_model("bert").trace(TEXT).tokens) == {"src"}
    continued = tiny_model("gpt2").trace("I went", "to school")
    assert continued.tokens["tgt"] == ("<s>", "I", "went", "</s>", "to", "school")
    assert continued.meta["forced"]


def test_the_rows_of_an_encoder_decoder_predict_the_given_target():
    trace = tiny_model("bart").trace("I went", "to school")
    assert trace.tokens["tgt"] == ("</s>", "<s>", "to", "school")
    assert trace.tokens["next"] == ("<s>", "to", "school", "</s>")


# Edits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family",
    one_of_each(["bert", "modernbert", "gpt2", "llama", "gemma2", "gpt_oss", "bart", "t5", "marian", "albert"]),
)
def test_the_model_continues_with_edited_tensors_and_keeps_no_edit(family):
    model = tiny_model(family)
    path = "decoder.1.self_attn" if FAMILIES[family].decoder else "encoder.1.self_attn"

    def trace(*edits):
        return model.trace(TEXT, target_of(model), record=("*",), edits=edits)

    plain = trace()
    silent = trace(Silence(path, head=2))
    assert not silent[f"{path}.heads"][2].any()
    assert not np.allclose(silent[f"{path}.out"], plain[f"{path}.out"], atol=1e-3)
    last = "encoder.out" if FAMILIES[family].kind == "encoder" else "logits"
    assert not np.allclose(silent[last], plain[last], atol=1e-4)

    assert not trace(Block(path, query=1, key=0))[f"{path}.pattern"][:, 1, 0].any()
    assert trace(Open(path, head=0, query=0, key=2))[f"{path}.pattern"][0, 0, 2] > 0

    n = len(plain[f"{path}.pattern"][0])
    fixed = trace(SetPattern(path, head=1, pattern=uniform(n)))
    np.testing.assert_allclose(fixed[f"{path}.pattern"][1], 1 / n, atol=1e-6)
    group_size = len(plain[f"{path}.pattern"]) // len(plain[f"{path}.v"])
    mean = fixed[f"{path}.v"][1 // group_size].mean(axis=0)
    np.testing.assert_allclose(fixed[f"{path}.heads"][1], np.broadcast_to(mean, (n, len(mean))), atol=1e-5)

    again = trace()
    assert all(np.array_equal(again[name], plain[name]) for name in plain)


def test_silencing_a_head_equals_zeros_in_its_columns_of_w_o():
    model, twin = tiny_model("llama"), tiny_module("llama")
    with torch.no_grad():
        twin.model.layers[1].self_attn.o_proj.weight[:, 8:12] = 0.0  # head 2 of width 4
        trace = model.trace(TEXT, record=("logits",), edits=[Silence("decoder.1.self_attn", head=2)])
        close(trace["logits"], twin(ids_of(trace, "tgt")).logits[0])


def test_outputs_of_sublayers_can_be_edited_and_sums_that_the_model_does_not_use_cannot():
    model = tiny_model("llama")

    def without_layer_1(name, x):
        return torch.zeros_like(x) if name in ("decoder.1.self_attn.out", "decoder.1.ffn.out") else x

    trace = model.trace(TEXT, record=("*.resid_*",), edits=[without_layer_1])
    assert np.array_equal(trace["decoder.1.resid_pre"], trace["decoder.1.resid_post"])
    with pytest.raises(EditError, match=r"decoder\.0\.(attn_sum|resid_self)"):
        model.trace(TEXT, edits=[lambda name, x: x * 2 if name.endswith("_self") and "resid" in name else x])


def test_cross_attention_reads_the_edited_output_of_the_encoder():
    """If that is zero, the value of every source token is the bias."""
    model, without = tiny_model("bart"), lambda name, x: x * 0 if name == "encoder.out" else x
    trace = model.trace("I", "to", edits=without, record="*")
    values = trace["decoder.0.cross_attn.v"].value
    assert values.any()
    assert np.array_equal(values, np.broadcast_to(values[:, :1], values.shape))


def test_edits_that_a_model_does_not_support_are_refused():
    with pytest.raises(EditError, match="matches nothing"):
        tiny_model("gpt2").trace(TEXT, edits=[Silence("encoder.0.self_attn", head=0)])
    with pytest.raises(EditError, match="not in 0 to 3"):
        tiny_model("gpt2").trace(TEXT, edits=[Silence("decoder.0.self_attn", head=4)])
    xglm = tiny_model("xglm")
    with pytest.raises(EditError, match="has its own attention code"):
        xglm.trace(TEXT, edits=[Block("decoder.0.self_attn", query=1, key=0)])
    with pytest.raises(EditError, match="does not use further on"):
        xglm.trace(TEXT, edits=[lambda name, x: x * 0 if name.endswith("pattern") else x])
    with pytest.raises(EditError, match="has its own attention code"):
        xglm.generate(TEXT, edits=[Silence("decoder.0.self_attn", head=0)])


# Limits and errors ----------------------------------------------------------------------------------------------------


def test_a_trace_over_the_limit_is_refused_before_the_model_runs(monkeypatch):
    model = tiny_model("llama")
    trace = model.trace(TEXT, record=("*",))
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", trace.nbytes)
    assert model.trace(TEXT, record=("*",)).nbytes == trace.nbytes
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", trace.nbytes - 1)
    monkeypatch.setattr(model._engine, "decode", lambda *args, **kwargs: pytest.fail("the model ran"))
    with pytest.raises(BudgetError, match=f"{trace.nbytes:,} bytes, 1 over"):
        model.trace(TEXT, record=("*",))


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_an_error_about_a_long_text_comes_without_the_library_s_warning(family):
    warnings, log = [], logging.getLogger("transformers")
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())
    log.addHandler(handler)
    try:
        short = copy.deepcopy(tokenizer())
        short.model_max_length = 6
        model = vf.wrap(tiny_module(family), short)
        with pytest.raises(TextError, match="the limit is 6"):
            model.trace(TEXT)
        if family == "bart":
            with pytest.raises(TextError, match="the limit is 6"):
                model.trace("I", TEXT)
        assert warnings == []
        short(TEXT)
        assert len(warnings) == 1, "a direct call of the tokenizer still warns"
    finally:
        log.removeHandler(handler)


def test_a_text_that_the_model_cannot_take_is_refused():
    model = tiny_model("bert", max_position_embeddings=8)
    assert model.info.max_tokens == 8
    with pytest.raises(TextError, match="no text"):
        model.trace("  ")
    with pytest.raises(TextError, match="surrogate"):
        model.tokenize("a\ud800")
    with pytest.raises(TextError, match="12 tokens long and the limit is 8"):
        model.trace(TEXT)
    with pytest.raises(VisformerError, match="no choice of target language"):
        model.trace("I", to="zh")
    with pytest.raises(TraceError, match="matches no tensor"):
        model.trace("I", record=("decoder.*",))


def test_a_decoder_that_does_not_read_from_left_to_right_is_refused():
    with pytest.raises(VisformerError, match=r"decoder\.0\.self_attn, tokens attend to later ones.*is_decoder=False"):
        tiny_model("bert-generation")
    assert tiny_model("bert-generation", is_decoder=True).info.kind == "decoder"


def test_a_model_that_needs_an_image_is_refused():
    with pytest.raises(VisformerError, match=r"tokens of a text alone.*pixel_values"):
        tiny_model("blip")


def test_a_module_without_its_head_generates_nothing_and_the_error_names_the_one_with_it():
    for body, wanted in (
        (tiny_module("gpt2").transformer, "AutoModelForCausalLM"),
        (tiny_module("bart").model, "AutoModelForSeq2SeqLM"),
        (tiny_module("qwen2_vl").model, "AutoModelForImageTextToText"),
    ):
        with pytest.raises(VisformerError, match=f"predicts no tokens: pass the model .*{wanted}"):
            vf.wrap(body, tokenizer()).generate(TEXT)


if IS_OLD:

    @pytest.mark.parametrize("family", FAMILIES)
    def test_before_version_5_every_family_shows_at_least_its_patterns(family):
        """With the attention function that transformers chooses, as in a model that was loaded."""
        model = vf.wrap(made(family, attention=None), tokenizer())
        trace = model.trace(TEXT, target_of(model))
        theirs = stacks(family, expected(family, trace))
        assert sum(map(len, theirs.values())) == sum(name.endswith(".pattern") for name in trace.names())
        for path, patterns in theirs.items():
            for layer, pattern in enumerate(patterns):
                close(trace[f"{path.format(layer)}.pattern"], pattern[0])

    @pytest.mark.parametrize("page", ["models.md", "models.zh-CN.md"])
    def test_the_families_that_show_patterns_only_before_version_5_are_documented(page):
        less = {family for family in FAMILIES if vf.wrap(made(family), tokenizer())._patterns_only}
        text = (Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8")
        [line] = [line for line in text.splitlines() if "4.57" in line and "`bert`" in line]
        assert {*re.findall(r"`([\w-]+)`", line)} == less


def test_a_model_for_which_our_attention_is_wrong_has_only_its_own_patterns(monkeypatch):
    """As wrap finds out on a short text."""
    softmax = "visformer.adapters.huggingface.taps._softmax"
    monkeypatch.setattr(softmax, lambda scores, mask, sinks, **_: (torch.ones_like(scores), None))
    model = vf.wrap(tiny_module("gpt2"), tokenizer())
    assert model._patterns_only
    trace = model.trace(TEXT)
    close(trace["decoder.0.self_attn.pattern"], expected("gpt2", trace).attentions[0][0])


def test_a_module_with_another_attention_function_can_be_wrapped_also_twice():
    module = tiny_module("llama", attention="sdpa")
    trace = vf.wrap(module, tokenizer()).trace(TEXT)
    close(trace["decoder.2.self_attn.pattern"], expected("llama", trace).attentions[2][0])
    assert vf.wrap(module, tokenizer()).trace(TEXT).names() == trace.names()


def test_an_edit_of_a_copy_or_of_a_part_that_is_wrapped_again_is_made_once():
    def double(name, tensor):
        return tensor * 2 if name.endswith(("ffn.out", "ffn.hidden")) else tensor

    masked = with_head("bert", MASKED)
    for whole, part_of in ((tiny_module("gpt2"), copy.deepcopy), (masked, lambda module: module.bert)):
        model = vf.wrap(whole, tokenizer())
        other = vf.wrap(part_of(whole), tokenizer())
        wanted, got = (each.trace("I went", record="*", edits=double) for each in (model, other))
        for name in got:
            np.testing.assert_allclose(got[name], wanted[name], atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_patterns_of_a_model_in_another_precision_are_float32(dtype):
    model = vf.wrap(tiny_module("llama").to(dtype), tokenizer())
    assert not model._patterns_only
    pattern = model.trace(TEXT)["decoder.0.self_attn.pattern"]
    assert pattern.value.dtype == np.float32
    np.testing.assert_allclose(pattern, tiny_trace("llama")["decoder.0.self_attn.pattern"], atol=0.05)


def test_threads_with_different_edits_share_a_model():
    model = tiny_model("albert")
    texts = [TEXT, "I went to school", "you saw the river", "I saw you today"]
    alone = [model.trace(text, record=("*",)) for text in texts]

    def run(i):
        edits = [Silence("encoder.0.self_attn", head=i)] if i else []
        return [model.trace(texts[i], record=("*",), edits=edits) for _ in range(5)][-1]

    with ThreadPoolExecutor(len(texts)) as threads:
        together = list(threads.map(run, range(len(texts))))
    assert all(np.allclose(together[0][name], alone[0][name], atol=1e-6) for name in alone[0])
    for i in range(1, len(texts)):
        assert not together[i]["encoder.0.self_attn.heads"][i].any()
        assert together[i].tokens == alone[i].tokens


# Messages and files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gpt_oss", "t5", "bloom", "deepseek_v3"])
def test_any_kind_of_model_can_be_sent_to_the_explorer_and_saved(family, tmp_path):
    model = tiny_model(family)
    trace = model.trace(TEXT, target_of(model))
    header, _ = read_message(pack(trace))
    names = {"encoder": ["encoder.self_attn"], "decoder": ["decoder.self_attn"]}
    expected = names.get(FAMILIES[family].kind, ["encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"])
    assert [stack["name"] for stack in header["stacks"]] == expected
    for stack in header["stacks"]:
        _, _, rows, columns = stack["shape"]
        assert rows == len(header["tokens"][stack["rows"]])
        assert columns == len(header["tokens"][stack["columns"]]) == len(header["special"][stack["columns"]])
        assert (header["tokens"][stack["columns"]][-1] == "sink") == (family == "gpt_oss")
    trace.save(tmp_path / "trace.safetensors")
    assert vf.Trace.load(tmp_path / "trace.safetensors").meta == trace.meta
