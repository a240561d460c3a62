"""Models of transformers, compared with transformers itself: output_attentions, hidden states, generate."""

import copy
import json
import logging
import pickle
import threading

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import SIZE, tiny_module, tokenizer
from visformer.adapters.huggingface.families import FAMILIES
from visformer.edits import Block, Open, SetPattern, Silence
from visformer.errors import BudgetError, EditError, MissingTensor, TextError, TraceError, VisformerError
from visformer.pictures.head import Place, steps
from visformer.web.payload import pack

TEXT = "I went to the river and saw you again today"
ENCODERS = [name for name, family in FAMILIES.items() if family.kind == "encoder"]
DECODERS = [name for name, family in FAMILIES.items() if family.kind == "decoder"]
BOTH = [name for name, family in FAMILIES.items() if family.kind == "encoder-decoder"]
OTHERS = {"megatron-bert": {}, "xglm": {"d_model": 16, "ffn_dim": 24, "num_layers": 2, "attention_heads": 4}}


def model_of(family, **changes):
    return vf.wrap(tiny_module(family, **changes), tokenizer())


def close(ours, theirs, atol=1e-5):
    np.testing.assert_allclose(np.asarray(ours), theirs.detach().numpy(), atol=atol, rtol=1e-5)


def ids_of(trace, side):
    return torch.tensor([trace.meta["ids"][side]])


def expected(family, trace):
    """The outputs of an unwrapped copy of the model, with transformers' own eager attention."""
    twin = tiny_module(family)
    options = {"output_attentions": True, "output_hidden_states": True, "return_dict": True}
    with torch.no_grad():
        if FAMILIES[family].kind == "encoder":
            return twin(ids_of(trace, "src"), **options)
        if FAMILIES[family].kind == "decoder":
            return twin(ids_of(trace, "tgt"), use_cache=False, **options)
        return twin(ids_of(trace, "src"), decoder_input_ids=ids_of(trace, "tgt"), use_cache=False, **options)


def stacks(family, output):
    """Attention path to (layer) patterns, as transformers returns them."""
    if FAMILIES[family].kind == "encoder-decoder":
        return {
            "encoder.{}.self_attn": output.encoder_attentions,
            "decoder.{}.self_attn": output.decoder_attentions,
            "decoder.{}.cross_attn": output.cross_attentions,
        }
    return {f"{FAMILIES[family].kind}.{{}}.self_attn": output.attentions}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_shown_as_transformers_computes_it(family):
    model = model_of(family)
    assert model.patterns_only == FAMILIES[family].patterns_only
    trace = model.trace(TEXT, record=("*",))
    theirs = expected(family, trace)
    check_patterns(family, trace, theirs)
    check_residual_stream(family, trace, theirs)
    check_attention(trace)
    check_sums(family, trace)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_outline_knows_all_but_the_numbers_and_goes_to_another_process(family):
    model = model_of(family)
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
    scaled = family in ("granite", "gemma2", "gemma3_text", "olmo2")  # a factor, or a norm, on what is added
    for name in trace:
        part = name.rpartition(".")[0]
        if name.endswith("resid_self") and not scaled and f"{part}.self_attn.out" in trace:
            total = trace[f"{part}.resid_pre"].value + trace[f"{part}.self_attn.out"].value
            np.testing.assert_allclose(trace[f"{part}.attn_sum"], total, atol=2e-4)
        if name.endswith("resid_cross"):
            total = trace[f"{part}.resid_self"].value + trace[f"{part}.cross_attn.out"].value
            np.testing.assert_allclose(trace[f"{part}.cross_sum"], total, atol=2e-4)
        if name.endswith("ffn_sum") and not scaled and f"{part}.ffn.out" in trace:
            before = f"{part}.resid_cross" if f"{part}.resid_cross" in trace else f"{part}.resid_self"
            total = trace[before].value + trace[f"{part}.ffn.out"].value
            np.testing.assert_allclose(trace[f"{part}.ffn_sum"], total, atol=2e-4)


@pytest.mark.parametrize(
    ("family", "norm"),
    [
        ("bert", "embeddings.LayerNorm"),
        ("roberta", "embeddings.LayerNorm"),
        ("distilbert", "embeddings.LayerNorm"),
        ("bart", "model.encoder.layernorm_embedding"),
        ("marian", None),
        ("m2m_100", None),
        ("gpt2", None),
    ],
)
def test_the_input_is_the_sum_of_embedding_and_position(family, norm):
    model = model_of(family)
    trace = model.trace(TEXT, record=("*",))
    side = "tgt" if family == "gpt2" else "src"
    parts = [trace[f"{side}.{part}"].value for part in ("embed", "segment", "position") if f"{side}.{part}" in trace]
    total = torch.tensor(sum(parts))
    with torch.no_grad():
        total = model.module.get_submodule(norm)(total) if norm else total
    np.testing.assert_allclose(trace[f"{side}.input"], total, atol=1e-5)


@pytest.mark.parametrize(
    "family", ["gpt2", "llama", "gemma2", "mistral", "gpt_oss", "bloom", "falcon", "marian", "t5", "m2m_100"]
)
def test_greedy_generation_is_that_of_transformers(family):
    model, twin = model_of(family), tiny_module(family)
    said = model.generate(TEXT, max_new_tokens=8)
    ids = torch.tensor([tokenizer()(TEXT)["input_ids"]])
    bad = [[i] for i in range(len(tokenizer()), SIZE)]
    whole = twin.generate(ids, do_sample=False, num_beams=1, max_new_tokens=8, bad_words_ids=bad)[0].tolist()
    new = whole[1:] if FAMILIES[family].kind == "encoder-decoder" else whole[ids.shape[1] :]
    assert list(said.ids) == [i for i in new if i != 2]
    assert len(said.steps) == len(new)
    for step in said.steps:
        assert sum(float(p) for p in step.log_probabilities.exp()) <= 1 + 1e-4


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "bart", "t5", "bloom"])
def test_steps_of_generation_are_rows_of_the_trace(family):
    model = model_of(family)
    said = model.generate(TEXT, max_new_tokens=6)
    trace = model.trace(TEXT, said.ids, record=("logits",))
    rows = torch.tensor(trace["logits"].value).softmax(dim=-1)
    first = len(tokenizer()(TEXT)["input_ids"]) - 1 if FAMILIES[family].kind == "decoder" else 0
    for row, step in enumerate(said.steps[: len(said.ids)], start=first):
        assert trace.meta["ids"]["next"][row] == step.chosen.id
        for candidate in step.candidates:
            assert float(rows[row, candidate.id]) == pytest.approx(candidate.probability, abs=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "bart", "t5"])
def test_cached_beam_search_finds_what_uncached_finds(family):
    model = model_of(family)
    nothing = Silence("*.0.self_attn", head=0, scale=1.0)  # an edit that changes nothing: decoding is then uncached
    cached = model.generate(TEXT, beam_size=3, max_new_tokens=5)
    uncached = model.generate(TEXT, beam_size=3, max_new_tokens=5, edits=[nothing])
    assert cached.ids == uncached.ids
    assert [[b.id for b in step] for step in cached.beams] == [[b.id for b in step] for step in uncached.beams]
    drawn = model.generate(TEXT, temperature=2.0, seed=3, max_new_tokens=5)
    assert drawn.ids == model.generate(TEXT, temperature=2.0, seed=3, max_new_tokens=5).ids


@pytest.mark.parametrize("family", OTHERS)
def test_a_family_outside_the_table_shows_patterns_and_says_why_no_more(family):
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
    config = AutoConfig.for_model(family, vocab_size=SIZE, pad_token_id=0, **(OTHERS[family] or sizes))
    kind = AutoModel if family == "megatron-bert" else AutoModelForCausalLM
    module = kind.from_config(config, attn_implementation="eager").eval()
    model = vf.wrap(module, tokenizer())
    trace = model.trace(TEXT)
    part = model.info.kind
    with torch.no_grad():
        theirs = module(ids_of(trace, "src" if part == "encoder" else "tgt"), output_attentions=True)
    for layer, pattern in enumerate(theirs.attentions):
        close(trace[f"{part}.{layer}.self_attn.pattern"], pattern[0])
    with pytest.raises(MissingTensor, match="not in visformer's table"):
        trace[f"{part}.0.self_attn.q"]
    with pytest.raises(EditError, match=r"matches nothing"):
        model.trace(TEXT, edits=[Silence(f"{part}.0.self_attn", head=0)])
    n = pattern.shape[-1]
    uniform = tuple(tuple([1 / n] * n) for _ in range(n))
    with pytest.raises(EditError, match="does not let it be changed"):
        model.trace(TEXT, edits=[SetPattern(f"{part}.0.self_attn", head=0, pattern=uniform)])


# What families have of their own --------------------------------------------------------------------------------------


def test_grouped_queries_are_shown_as_groups(tmp_path):
    trace = model_of("llama").trace(TEXT, record=("*",))
    assert trace["decoder.0.self_attn.k"].axes[0].name == "kv_head"
    assert [len(trace[f"decoder.0.self_attn.{name}"]) for name in ("q", "k", "v", "heads")] == [4, 2, 2, 4]
    assert trace.meta["n_kv_heads"] == 2
    trace.save(tmp_path / "trace.safetensors")
    again = vf.Trace.load(tmp_path / "trace.safetensors")
    assert again["decoder.0.self_attn.k"].axes == trace["decoder.0.self_attn.k"].axes


@pytest.mark.parametrize("at", range(4))
def test_inside_a_head_its_own_group_is_read(at):
    trace = model_of("llama").trace(TEXT, record=("*",))
    (q, k), _, (v, _sum) = steps(trace, Place("decoder.0.self_attn", at, 3))
    pattern, scores, out = (
        trace[f"decoder.0.self_attn.{name}"].value[at, 3] for name in ("pattern", "scores", "heads")
    )
    np.testing.assert_allclose(pattern @ v.values, out, atol=1e-5)
    np.testing.assert_allclose((k.values @ q.values[0])[:4] / np.sqrt(k.values.shape[1]), scores[:4], atol=1e-5)


WINDOWED = ["mistral", "ministral", "mixtral", "gemma2", "gemma3_text", "gpt_oss", "phi3", "starcoder2", "smollm3"]


@pytest.mark.parametrize("family", [*WINDOWED, "modernbert", "gpt_neo", "llama", "qwen2", "bert"])
def test_what_is_said_of_windows_is_what_the_model_does(family):
    changes = {"sliding_window": 3} if family in WINDOWED else {}
    if family == "smollm3":
        changes |= {"use_sliding_window": True, "layer_types": ["sliding_attention", "full_attention"] * 2}
        changes |= {"num_hidden_layers": 4}
    model = model_of(family, **changes)
    trace = model.trace(TEXT, record=("*.pattern",))
    tensors = [trace[name].value[0] for name in trace if name.endswith("pattern")]
    place = np.arange(tensors[0].shape[0])
    ahead = place[:, None] - place  # how far back the key is
    windows = trace.meta.get("windows") or [None] * len(tensors)
    assert (family in (*WINDOWED, "modernbert", "gpt_neo")) == any(windows)
    for pattern, window in zip(tensors, windows, strict=True):
        if model.info.kind == "encoder":
            allowed = abs(ahead) <= (window or 99)
        else:
            allowed = (ahead >= 0) & (ahead < (window or 99))
        assert np.array_equal(pattern > 0, allowed)


def test_a_sink_takes_what_the_rows_lack():
    model = model_of("gpt_oss")
    trace = model.trace(TEXT)
    sink = trace["decoder.0.self_attn.sink"].value
    assert sink.max() > 0.3
    np.testing.assert_allclose(trace["decoder.0.self_attn.pattern"].value.sum(axis=-1), 1 - sink, atol=1e-5)
    scores = model.trace(TEXT, record=("*.scores", "*.mask"))
    learned = model.module.model.layers[0].self_attn.sinks.detach().numpy()
    for head in range(4):
        row = scores["decoder.0.self_attn.scores"][head, -1][scores["decoder.0.self_attn.mask"][head, -1]]
        mass = np.exp(learned[head]) / (np.exp(learned[head]) + np.exp(row).sum())
        assert mass == pytest.approx(sink[head, -1], abs=1e-5)
    with pytest.raises(EditError, match="sink"):
        model.trace(TEXT, edits=[lambda name, x: x + 1 if name.endswith("sink") else x])


@pytest.mark.parametrize("family", ["t5", "mt5", "umt5"])
def test_the_bias_is_what_the_scores_add_to_the_products(family):
    model = model_of(family)
    trace = model.trace(TEXT, "to school", record=("*",))
    assert not any("cross_attn.bias" in name for name in trace)
    for part, n in (("encoder", len(trace.tokens["src"])), ("decoder", len(trace.tokens["tgt"]))):
        stack = tiny_module(family).get_submodule(part)
        for layer in range(3):
            path = f"{part}.{layer}.self_attn"
            owner = stack.block[layer if family == "umt5" else 0].layer[0].SelfAttention
            close(trace[f"{path}.bias"], owner.compute_bias(n, n)[0])
            products = trace[f"{path}.q"].value @ trace[f"{path}.k"].value.swapaxes(1, 2)
            np.testing.assert_allclose(trace[f"{path}.scores"], products + trace[f"{path}.bias"].value, atol=1e-4)


def test_the_bias_can_be_changed():
    """Without it the model is one whose table of biases is zero."""
    model, twin = model_of("t5"), tiny_module("t5")
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
def test_models_say_what_they_have_instead_of_an_added_position(family, reason):
    side = "src" if family == "t5" else "tgt"
    with pytest.raises(MissingTensor, match=reason):
        model_of(family).trace(TEXT)[f"{side}.position"]


def test_a_parallel_block_says_why_there_is_no_sum_between():
    with pytest.raises(MissingTensor, match="parallel block"):
        model_of("gpt_neox").trace(TEXT)["decoder.0.resid_self"]
    with pytest.raises(MissingTensor, match="not recorded"):
        model_of("gpt_neox").trace(TEXT)["decoder.0.self_attn.q"]


def test_a_pair_of_sentences_is_two_segments():
    model = model_of("bert")
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
        model_of("gpt2").trace("I", pair="you")
    with pytest.raises(VisformerError, match="second text as pair"):
        model.trace("I", "you")
    with pytest.raises(VisformerError, match="generates no text"):
        model.generate("I")


def test_a_decoder_fills_the_target_and_an_encoder_the_source():
    trace = model_of("gpt2").trace(TEXT)
    assert set(trace.tokens) == {"tgt", "next"}
    assert trace.tokens["next"][:-1] == trace.tokens["tgt"][1:]
    assert set(model_of("bert").trace(TEXT).tokens) == {"src"}
    longer = model_of("gpt2").trace("I went", "to school")
    assert longer.tokens["tgt"] == ("<s>", "I", "went", "</s>", "to", "school")
    assert longer.meta["forced"]


def test_a_forced_target_is_what_the_rows_predict():
    trace = model_of("bart").trace("I went", "to school", record=("*",))
    assert trace.tokens["tgt"] == ("</s>", "<s>", "to", "school")
    assert trace.tokens["next"] == ("<s>", "to", "school", "</s>")


# Edits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family", ["bert", "modernbert", "gpt2", "llama", "gemma2", "gpt_oss", "marian", "t5", "albert"]
)
def test_edits_reach_what_the_model_goes_on_with(family):
    model = model_of(family)
    where = "decoder.1.self_attn" if FAMILIES[family].decoder else "encoder.1.self_attn"
    target = "to school" if FAMILIES[family].kind == "encoder-decoder" else None
    usual = model.trace(TEXT, target, record=("*",))

    silent = model.trace(TEXT, target, record=("*",), edits=[Silence(where, head=2)])
    assert not silent[f"{where}.heads"][2].any()
    out = "self_attn.out"
    path = where.removesuffix("self_attn") + out
    assert not np.allclose(silent[path], usual[path], atol=1e-3)
    last = "encoder.out" if FAMILIES[family].kind == "encoder" else "logits"
    assert not np.allclose(silent[last], usual[last], atol=1e-4)

    blocked = model.trace(TEXT, target, record=("*",), edits=[Block(where, query=1, key=0)])
    assert not blocked[f"{where}.pattern"][:, 1, 0].any()
    opened = model.trace(TEXT, target, record=("*",), edits=[Open(where, head=0, query=0, key=2)])
    assert opened[f"{where}.pattern"][0, 0, 2] > 0
    n = len(usual[f"{where}.pattern"][0])
    even = tuple(tuple([1 / n] * n) for _ in range(n))
    fixed = model.trace(TEXT, target, record=("*",), edits=[SetPattern(where, head=1, pattern=even)])
    np.testing.assert_allclose(fixed[f"{where}.pattern"][1], 1 / n, atol=1e-6)
    groups = len(usual[f"{where}.pattern"]) // len(usual[f"{where}.v"])
    mean = fixed[f"{where}.v"][1 // groups].mean(axis=0)
    np.testing.assert_allclose(fixed[f"{where}.heads"][1], np.broadcast_to(mean, (n, len(mean))), atol=1e-5)

    again = model.trace(TEXT, target, record=("*",))  # nothing stays behind
    assert all(np.array_equal(again[name], usual[name]) for name in usual)


def test_a_silenced_head_is_one_whose_output_columns_are_nought():
    """Compared with an independent way to silence a head: zeros in W_O."""
    model, twin = model_of("llama"), tiny_module("llama")
    with torch.no_grad():
        twin.model.layers[1].self_attn.o_proj.weight[:, 8:12] = 0.0  # head 2 of width 4
        trace = model.trace(TEXT, record=("logits",), edits=[Silence("decoder.1.self_attn", head=2)])
        close(trace["logits"], twin(ids_of(trace, "tgt")).logits[0])


def test_the_residual_stream_can_be_changed_where_the_model_goes_on_with_it():
    model = model_of("llama")

    def nothing_added(name, x):
        return torch.zeros_like(x) if name in ("decoder.1.self_attn.out", "decoder.1.ffn.out") else x

    trace = model.trace(TEXT, record=("*.resid_*",), edits=[nothing_added])
    assert np.array_equal(trace["decoder.1.resid_pre"], trace["decoder.1.resid_post"])
    with pytest.raises(EditError, match=r"decoder\.0\.(attn_sum|resid_self)"):
        model.trace(TEXT, edits=[lambda name, x: x * 2 if name.endswith("_self") and "resid" in name else x])
    bart = model_of("bart")
    moved = bart.trace("I", "to", record=("*",), edits=[lambda name, x: x * 0 if name == "encoder.out" else x])
    assert not moved["decoder.0.cross_attn.heads"].value.any() or not moved["encoder.out"].value.any()


def test_edits_that_a_model_cannot_honour_raise():
    with pytest.raises(EditError, match="matches nothing"):
        model_of("gpt2").trace(TEXT, edits=[Silence("encoder.0.self_attn", head=0)])
    with pytest.raises(EditError, match="not in 0 to 3"):
        model_of("gpt2").trace(TEXT, edits=[Silence("decoder.0.self_attn", head=4)])
    bloom = model_of("bloom")
    with pytest.raises(EditError, match="matches nothing"):
        bloom.trace(TEXT, edits=[Block("decoder.0.self_attn", query=1, key=0)])
    with pytest.raises(EditError, match="does not use further on"):
        bloom.trace(TEXT, edits=[lambda name, x: x * 0 if name.endswith("pattern") else x])
    with pytest.raises(EditError, match="matches nothing"):
        bloom.generate(TEXT, edits=[Silence("decoder.0.self_attn", head=0)])


def test_generation_under_edits_agrees_with_the_trace_under_edits():
    model = model_of("bart")
    edits = [Silence("decoder.0.cross_attn", head=1), Block("decoder.1.self_attn", query=3, key=1)]
    said = model.generate(TEXT, edits=edits, max_new_tokens=6)
    rows = torch.tensor(model.trace(TEXT, said.ids, edits=edits, record=("logits",))["logits"].value).softmax(dim=-1)
    for row, step in enumerate(said.steps[: len(said.ids)]):
        assert float(rows[row, step.chosen.id]) == pytest.approx(step.chosen.probability, abs=1e-5)
    assert said.steps[0].chosen.probability != model.generate(TEXT, max_new_tokens=1).steps[0].chosen.probability


# Limits and messages --------------------------------------------------------------------------------------------------


def test_what_is_too_large_is_refused_before_it_runs(monkeypatch):
    model = model_of("llama")
    trace = model.trace(TEXT, record=("*",))
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", trace.nbytes)
    assert model.trace(TEXT, record=("*",)).nbytes == trace.nbytes
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", trace.nbytes - 1)
    monkeypatch.setattr(model._engine, "decode", lambda *args, **kwargs: pytest.fail("it ran"))
    with pytest.raises(BudgetError, match=f"{trace.nbytes:,} bytes, 1 over"):
        model.trace(TEXT, record=("*",))


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_a_text_that_is_too_long_is_reported_once(family):
    """The library's own warning about it is suppressed, and no other."""
    told, log = [], logging.getLogger("transformers")
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    log.addHandler(handler)
    try:
        words = copy.deepcopy(tokenizer())
        words.model_max_length = 6
        model = vf.wrap(tiny_module(family), words)
        with pytest.raises(TextError, match="the limit is 6"):
            model.trace(TEXT)
        if family == "bart":
            model.tokenize("I")
            with pytest.raises(TextError, match="the limit is 6"):
                model.trace("I", TEXT)
        assert told == []
        words(TEXT)
        assert len(told) == 1, "whoever asks the tokenizer itself is told as ever"
    finally:
        log.removeHandler(handler)


def test_texts_that_cannot_be_run_are_refused():
    model = model_of("bert", max_position_embeddings=8)
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


def test_a_model_without_its_head_is_refused():
    with pytest.raises(VisformerError, match="AutoModelForCausalLM"):
        vf.wrap(tiny_module("gpt2").transformer, tokenizer())
    with pytest.raises(VisformerError, match="AutoModelForSeq2SeqLM"):
        vf.wrap(tiny_module("bart").model, tokenizer())
    with pytest.raises(VisformerError, match="not Linear"):
        vf.wrap(torch.nn.Linear(1, 1), tokenizer())


def test_attention_that_is_not_what_the_table_says_is_not_tapped(monkeypatch):
    """The check on a short text: if our function is wrong for a family, the family's own patterns are used."""
    import visformer.adapters.huggingface.taps as hf_taps

    monkeypatch.setattr(hf_taps, "_softmax", lambda scores, mask, sinks: (torch.ones_like(scores), None))
    model = model_of("gpt2")
    assert model.patterns_only
    trace = model.trace(TEXT)
    close(trace["decoder.0.self_attn.pattern"], expected("gpt2", trace).attentions[0][0])


def test_a_model_that_came_with_another_attention_is_made_eager():
    module = tiny_module("llama", attention="sdpa")
    model = vf.wrap(module, tokenizer())
    close(model.trace(TEXT)["decoder.2.self_attn.pattern"], expected("llama", model.trace(TEXT)).attentions[2][0])
    assert vf.wrap(module, tokenizer()).trace(TEXT).names() == model.trace(TEXT).names()  # once more, not twice


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_of_another_precision_are_shown_too(dtype):
    model = vf.wrap(tiny_module("llama").to(dtype), tokenizer())
    assert not model.patterns_only
    pattern = model.trace(TEXT)["decoder.0.self_attn.pattern"]
    assert pattern.value.dtype == np.float32
    np.testing.assert_allclose(pattern, model_of("llama").trace(TEXT)["decoder.0.self_attn.pattern"], atol=0.05)


def test_any_number_of_threads_share_a_model():
    model = model_of("albert")
    texts = [TEXT, "I went to school", "you saw the river", "I saw you today"]
    alone = [model.trace(text, record=("*",)) for text in texts]
    found = [None] * len(texts)

    def run(i):
        for _ in range(5):
            found[i] = model.trace(texts[i], record=("*",), edits=[Silence("encoder.0.self_attn", head=i)] if i else [])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(texts))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(np.allclose(found[0][name], alone[0][name], atol=1e-6) for name in alone[0])
    for i in range(1, len(texts)):
        assert not found[i]["encoder.0.self_attn.heads"][i].any()
        assert found[i].tokens == alone[i].tokens


# Pictures and files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gpt_oss", "t5", "bloom"])
def test_the_canvas_packs_any_kind_of_model(family, tmp_path):
    trace = model_of(family).trace(TEXT)
    message = pack(trace)
    header = json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")])
    parts = {"encoder": ["encoder.self_attn"], "decoder": ["decoder.self_attn"]}
    wanted = parts.get(FAMILIES[family].kind, ["encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"])
    assert [stack["name"] for stack in header["stacks"]] == wanted
    for stack in header["stacks"]:
        _, _, rows, columns = stack["shape"]
        assert rows == len(header["tokens"][stack["rows"]])
        assert columns == len(header["tokens"][stack["columns"]]) == len(header["special"][stack["columns"]])
        assert (header["tokens"][stack["columns"]][-1] == "sink") == (family == "gpt_oss")
    trace.save(tmp_path / "trace.safetensors")
    assert vf.Trace.load(tmp_path / "trace.safetensors").meta == trace.meta
