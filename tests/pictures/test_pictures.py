"""The panels of each page: values, labels and scales."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

import visformer as vf
from tests.support import tiny_translator
from visformer import formulas
from visformer.edits import Open, Silence
from visformer.errors import VisformerError
from visformer.model.masks import causal_mask
from visformer.model.positions import POSITIONS
from visformer.panel import AXIS_TITLES, Labels
from visformer.pictures import block, decoding, embedding, head, lab, masks, positions
from visformer.pictures.worked import compute, differs
from visformer.trace import Trace
from visformer.training.evaluation.alignment import read_aligned
from visformer.training.supplement import FOLDER

sizes = st.tuples(st.integers(1, 40), st.integers(1, 33), st.sampled_from([10.0, 100.0, 10000.0]))


@given(st.integers(0, 50), st.integers(-50, 50), st.integers(0, 7))
def test_a_rotation_maps_the_encoding_of_a_position_to_that_of_another(position, offset, pair):
    turn, start, product, end = positions.rotation(position, offset, pair=pair, d_model=16)
    assert np.allclose(turn.values @ start.values, product.values)
    assert np.allclose(product.values, end.values, atol=1e-9)
    table = formulas.sinusoidal_encoding(position + 1, 16)
    assert np.allclose(start.values[:, 0], table[position, 2 * pair : 2 * pair + 2])


def test_the_similarity_of_encodings_depends_only_on_their_distance():
    table = positions.similarity(20, 16).values
    for offset in range(20):
        assert np.ptp(np.diagonal(table, offset)) < 1e-9
    assert np.allclose(np.diagonal(table), 8), "each pair adds sin² + cos²"


def test_a_learned_encoding_has_no_values_beyond_its_table_and_a_sinusoid_has():
    table = positions.learned(10, 4, max_len=6).values
    assert np.isfinite(table[:6]).all()
    assert np.isnan(table[6:]).all()
    assert np.isfinite(positions.encoding(10, 4).values).all()


@pytest.mark.parametrize("make", [positions.encoding, positions.similarity])
def test_positions_counted_from_0_are_labelled_with_their_tokens(make):
    panel = make(4, 6, tokens=("I", "went"))
    assert panel.rows.texts == ("0: I", "1: went", "2", "3")
    assert np.array_equal(panel.values, make(4, 6).values)
    assert make(1, 6, tokens=("I", "went")).rows.texts == ("0: I",)
    assert math.isclose(positions.encoding(4, 6, tokens=("I", "went")).values[1, 0], math.sin(1))


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_embedding_and_position_add_up_to_the_input_of_the_first_layer(trace, side):
    embed, position, total = embedding.sums(trace, side)
    assert np.allclose(total.values, trace[f"{side}.input"].value, atol=1e-6)
    assert embed.end == position.end == total.end == max(np.abs(p.values).max() for p in (embed, position, total))
    raw = embedding.sums(trace, side, scaled=False)[0]
    assert np.allclose(raw.values * math.sqrt(raw.values.shape[1]), embed.values, atol=1e-5)
    assert all(panel.rows.texts == trace.tokens[side] for panel in (embed, position, total))


ANGLE, BARE_ANGLE = "∠ embedding · √d, sum (°)", "∠ embedding, embedding + PE (°)"


def test_the_table_has_norms_and_angles_of_embeddings_and_sums(trace):
    table = embedding.table(trace, "src")
    embed, total = trace["src.embed"].value[2], trace["src.input"].value[2]
    assert table["|embedding · √d|"][2] == pytest.approx(np.linalg.norm(embed), rel=1e-5)
    cosine = embed @ total / np.linalg.norm(embed) / np.linalg.norm(total)
    assert table["pos"].tolist() == list(range(len(table)))
    assert (table["no."] == table["pos"] + 1).all()
    assert table[ANGLE][2] == pytest.approx(math.degrees(math.acos(cosine)), rel=1e-4)
    assert (table[ANGLE] < table[BARE_ANGLE]).all(), "the reason for the factor √d"


def test_a_token_at_two_positions_has_one_embedding_and_two_inputs(trace):
    first, second = embedding.repeated(trace, "src")
    assert trace.tokens["src"][first] == trace.tokens["src"][second]
    compared = embedding.compare(trace, "src", first, second)
    assert compared["embedding"] == pytest.approx((0.0, 1.0), abs=1e-6)
    assert compared["sum"][0] == pytest.approx(compared["PE"][0], rel=1e-5)
    assert compared["sum"][0] > 0.1


def trace_of(src, tgt):
    """Return a Trace without tensors."""
    sides = {"src": src, "tgt": tgt, "next": tgt}
    special = {side: (False,) * len(tokens) for side, tokens in sides.items()}
    words = {side: tuple(range(len(tokens))) for side, tokens in sides.items()}
    return Trace(tokens=sides, special=special, words=words, tensors={})


@pytest.mark.parametrize("hidden_is_one", [False, True])
def test_the_masks_of_a_batch(hidden_is_one):
    traces = [trace_of(("a", "b", "c", "</s>"), ("<zh>", "e", "f")), trace_of(("d", "</s>"), ("<zh>", "g"))]
    panels = masks.batch(traces, hidden_is_one=hidden_is_one)
    causal, padding, both, cross = (1 - panel.values if hidden_is_one else panel.values for panel in panels)
    assert causal.tolist() == np.tri(3).tolist()
    assert padding.tolist() == [[1, 1, 0]] * 3, "a column of <pad> is hidden from every row"
    assert both.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert cross.tolist() == [[1, 1, 0, 0]] * 3
    assert panels[3].columns.texts == ("d", "</s>", "<pad>", "<pad>")


def test_the_pattern_is_the_softmax_of_the_masked_scores(trace):
    scores, mask, masked, pattern = masks.before_and_after(trace, "decoder.1.self_attn", 1)
    assert np.array_equal(np.isnan(masked.values), mask.values == 0)
    assert np.allclose(formulas.softmax(np.nan_to_num(masked.values, nan=-np.inf)), pattern.values, atol=1e-6)
    assert masked.end == scores.end


def test_the_causal_mask_is_revealed_row_by_row():
    mask = masks.revealed("我去东北大", 3).values
    assert np.array_equal(mask[:3], np.tri(5)[:3])
    assert np.isnan(mask[3:]).all()


def test_later_tokens_are_read_only_if_the_mask_is_opened(trace, model):
    assert masks.future_mass(trace, "decoder.0.self_attn.pattern").max() == 0
    opened = model.trace(
        "She likes the school.", "我喜欢学校。", record=("*.pattern", "logits"), edits=[Open("decoder.*.self_attn")]
    )
    assert masks.future_mass(opened, "decoder.0.self_attn.pattern").min() > 0
    panel = masks.next_tokens([("opened", opened)])
    probabilities = formulas.softmax(opened["logits"].value)
    assert panel.values[0, 1] == pytest.approx(probabilities[1, opened.meta["ids"]["next"][1]])


PLACES = [
    head.Place("encoder.1.self_attn", 1, 2),
    head.Place("decoder.2.self_attn", 0, 3),
    head.Place("decoder.0.self_attn", 0, 0),  # a masked key has the highest score
    head.Place("decoder.0.cross_attn", 1, 1),
]


def panels_of(columns):
    return {panel.name: panel for column in columns for panel in column}


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_steps_of_a_query_follow_from_each_other_and_the_stages_name_their_numbers(trace, place):
    shown = {name: panel.values for name, panel in panels_of(head.steps(trace, place)).items()}
    values = {name: each.astype(np.float64) for name, each in shown.items()}
    assert np.allclose(values["q"] @ values["k"].T, values["products"], atol=1e-4)
    assert np.allclose(values["products"] / math.sqrt(values["q"].shape[1]), values["scores"], atol=1e-6)
    mask = trace[f"{place.path}.mask"].value[place.head, place.query]
    assert ("masked" in values) == (not mask.all()), "a mask that hides nothing is not a step"
    assert "masked" not in values or np.array_equal(~np.isnan(values["masked"][0]), mask)
    assert np.allclose(formulas.softmax(values["scores"], mask[None]), values["pattern"], atol=1e-6)
    assert np.allclose(values["pattern"] @ values["v"], values["heads"], atol=1e-4)

    at = int(shown["pattern"].argmax())
    product, score, weight = (f"{shown[name][0, at]:.2f}" for name in ("products", "scores", "pattern"))
    stages = head.stages(trace, place)
    told = {(stage.panel, i): stage.said.replace("−", "-") for i, stage in enumerate(stages)}
    masked = "masked" if "masked" in values else "scores"
    weighed = ["products", "scores", masked, "pattern"]
    assert [stage.panel for stage in stages] == ["q", "k", "v", *weighed, "heads", "heads", "out"]
    assert product in told["products", 3] and product in told["scores", 4] and f"becomes {score}." in told["scores", 4]
    n_masked = int((~mask).sum())
    assert f"{n_masked} of" in told[masked, 5] if n_masked else "No key is masked" in told[masked, 5]
    assert "sums to 1.00" in told["pattern", 6] and f"gets {weight}." in told["pattern", 6]
    assert f"summed: {weight} of it" in told["heads", 7]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_play_projects_the_input_and_puts_the_heads_together(place, norm):
    """Compared with torch's linear layers, from the input of the sublayer."""
    traced = tiny_translator(norm=norm).trace("She likes the school.", "我喜欢学校。", record=("*",))
    stages = head.stages(traced, place)
    stack, layer, kind = place.path.split(".")
    stream = {"self_attn": "resid_pre", "cross_attn": "resid_self"}[kind]
    own = f"{stack}.{layer}.norm_{kind.removesuffix('_attn')}" if norm == "pre" else f"{stack}.{layer}.{stream}"
    inputs = {"q": own, "k": "encoder.out" if kind == "cross_attn" else own}
    inputs["v"] = inputs["k"]
    d_k = traced[f"{place.path}.q"].shape[-1]
    part = slice(place.head * d_k, (place.head + 1) * d_k)

    def linear(x, name):
        weight, bias = (torch.tensor(traced.params[f"{place.path}.{kind}_{name}"].value) for kind in "wb")
        return torch.nn.functional.linear(torch.tensor(x), weight.T, bias).numpy()

    for (what, name), stage in zip(inputs.items(), stages, strict=False):
        shown, x = panels_of(stage.shown), traced[name].value
        x = x[place.query, None] if what == "q" else x
        assert np.array_equal(shown["input"].values, x) and stage.panel == what
        assert np.allclose(shown[what].values, linear(x, what)[:, part], atol=2e-6)
        product = shown["input"].values @ shown[f"w_{what}"].values + shown[f"b_{what}"].values
        assert np.allclose(product, shown[what].values, atol=1e-5)
        assert shown[what].title.endswith(f"W_{what.upper()} + b_{what.upper()}") and shown[what].before == "="
    last = {name: panel.values for name, panel in panels_of(stages[-1].shown).items()}
    concatenated = traced[f"{place.path}.heads"].value[:, place.query].ravel()
    assert np.allclose(last["out"][0], linear(concatenated, "o"), atol=2e-6)
    assert np.allclose(last["heads"] @ last["w_o"], last["share"], atol=1e-5)
    assert np.allclose(last["share"] + last["others"], last["out"], atol=1e-5)


def test_the_stages_do_not_claim_a_scale_that_a_model_does_not_have(trace):
    place = PLACES[0]
    name = f"{place.path}.scores"
    scored = replace(trace[name], value=trace[name].value * 2)
    other = replace(trace, tensors={**trace.tensors, name: scored})
    assert "√" in head.stages(trace, place)[4].said
    assert "in its own way" in head.stages(other, place)[4].said


def test_without_weights_the_stages_claim_no_product(trace):
    some = replace(trace, params={})
    q, *_, out = head.stages(some, PLACES[0])
    assert {panel.before for panel in panels_of(q.shown).values()} == {"", "→"} and "W_Q" not in q.said
    assert [*panels_of(out.shown)] == ["out"]
    assert "not shown here" in head.written_out(some, PLACES[0], "q", 0)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_written_out_sum_has_names_and_gives_the_value_of_the_cell(trace, place):
    last = head.stages(trace, place)[-1].shown
    panels = panels_of([*last, *head.steps(trace, place)])
    for name in ("q", "k", "v", "products", "scores", "pattern", "heads", "share", "out"):
        row, column = panels[name].values.shape[0] - 1, 1
        text = head.written_out(trace, place, name, column, row)
        assert "-" not in text, "minus signs are typographic"
        first, *lines = text.replace("−", "-").split("\n")
        value = float(panels[name].values[row, column])
        if name in ("scores", "pattern"):
            assert first.startswith({"scores": "score[", "pattern": "softmax["}[name])
            number = (first if name == "scores" else lines[0]).split("= ")[-1]
            assert float(number) == pytest.approx(value, abs=1e-5)
            continue
        *terms, result = lines
        assert float(result.split(" = ")[-1]) == pytest.approx(value, abs=1e-5), name
        assert sum(float(term.split(" = ")[-1]) for term in terms) == pytest.approx(value, abs=6e-4), name
        for factors in (term.split(" = ")[1] for term in terms if term.count(" = ") == 2):
            assert eval(factors.replace("·", "*")) == pytest.approx(
                float(next(term for term in terms if factors in term).split(" = ")[-1]), abs=1e-3
            )
        names = {"q": "W_Q[", "k": "W_K[", "v": "W_V[", "products": "k[", "heads": "softmax[", "share": "W_O["}
        assert names.get(name, "share[head") in terms[0]
        if name in ("q", "k", "v", "out"):
            assert terms[-1].strip().startswith(f"b_{'O' if name == 'out' else name.upper()}[{column}] =")
    for name, column, row in (("products", 99, 0), ("k", 0, 99), ("q", 999, 0), ("input", 0, 0)):
        assert head.written_out(trace, place, name, column, row) == "", "a cell outside the Trace, or one of the input"


def test_the_query_shown_first_is_a_content_word_that_reads_its_partner():
    """In the head shown first: for the first example, and for most of the everyday sentences."""
    model = vf.load("en-zh")

    def first_query(text):
        source = vf.figures.source_of(model, text)
        setting = head.STEPS.setting(source, {"stack": "decoder.cross_attn", "layer": 0, "head": 7}, on_page=True)
        pattern = setting.patterns["decoder.0.cross_attn.pattern"].value[7, setting["query"]]
        return setting.patterns, setting["query"], pattern

    trace, query, pattern = first_query("I went to Northeastern University.")
    assert trace.tokens["tgt"][query] == "东北" and trace.tokens["src"][pattern.argmax()] == "Northeastern"
    assert pattern.max() == pytest.approx(0.960, abs=5e-4)
    strong = []
    for pair in read_aligned(FOLDER / "alignment.tsv")[:40]:
        trace, query, pattern = first_query(pair.source_text)
        assert not trace.special["tgt"][query]
        strong.append(not trace.special["src"][pattern.argmax()] and pattern.max() > 0.5)
    assert np.mean(strong) > 0.8


@pytest.mark.parametrize(("stack", "token"), [("encoder", 2), ("decoder", 3)])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_inside_of_the_feed_forward_network_is_torchs(stack, token, norm):
    traced = tiny_translator(norm=norm).trace("She likes the school.", "我喜欢学校。", record=("*",))
    path = f"{stack}.1"
    stream = "resid_self" if stack == "encoder" else "resid_cross"
    x = torch.tensor(traced[f"{path}.norm_ffn" if norm == "pre" else f"{path}.{stream}"].value[token])
    w_1, b_1, w_2, b_2 = (
        torch.tensor(traced.params[f"{path}.ffn.{name}"].value) for name in ("w_1", "b_1", "w_2", "b_2")
    )
    before = torch.nn.functional.linear(x, w_1.T, b_1)
    after = torch.relu(before)
    out = torch.nn.functional.linear(after, w_2.T, b_2)

    stages = block.inside_stages(traced, stack, 1, token)
    relu, summed = stages[1], stages[3]
    shown = {name: panel.values for stage in stages[:3] for name, panel in panels_of(stage.shown).items()}
    flat = {name: shown[name].ravel()[: len(before)] for name in ("before", "after")}
    assert np.array_equal(shown["input"][0], x)
    assert np.allclose(flat["before"], before, atol=2e-6) and np.allclose(flat["after"], after, atol=2e-6)
    assert np.isnan(shown["before"].ravel()[len(before) :]).all()
    assert np.allclose(shown["out"][0], out, atol=2e-6)
    assert np.allclose(shown["shares"].sum(axis=0) + shown["others"][0], out, atol=1e-5)

    order = after.argsort(descending=True, stable=True)[:8]
    units = panels_of(relu.shown)["strongest"].rows.texts
    assert units == tuple(str(int(i)) for i in order if after[i] > 0)
    strongest = shown["strongest"][0]
    at = int(units[0])
    assert np.allclose(strongest, [before[at] - b_1[at], b_1[at], before[at], after[at]], atol=5e-6)
    assert np.allclose(shown["w_1"], w_1[:, [*map(int, units)]].T)
    assert np.allclose(shown["shares"][0], after[at] * w_2[at], atol=2e-6)
    zeros = int((after == 0).sum())
    assert f"leaves {zeros} of {len(after)} units at 0, {zeros / len(after):.1%}" in relu.said
    assert f"unit {at}: {after[at]:.2f}" in relu.said
    rows = {name: panel.values[0] for name, panel in panels_of(summed.shown).items()}
    assert np.allclose(rows["input"] + rows["out"], rows["scores"], atol=1e-5)
    assert ("LayerNorm follows" in summed.said) == (norm == "post")


def test_without_weights_the_inside_shows_only_what_was_recorded(trace):
    stages = block.inside_stages(replace(trace, params={}), "encoder", 0, 1)
    assert [[*panels_of(stage.shown)] for stage in stages[:3]] == [
        ["input", "after"],
        ["after", "strongest"],
        ["strongest", "out"],
    ]
    assert "W_1" not in stages[0].said and "W_2" not in stages[2].said


def test_w_o_multiplies_the_concatenated_heads(trace):
    place = PLACES[2]
    heads, lengths, out = head.joined(trace, place)
    weight, bias = (trace.params[f"{place.path}.{name}"].value for name in ("w_o", "b_o"))
    assert np.allclose(heads.values.ravel() @ weight + bias, out.values.ravel(), atol=1e-4)
    for one, length in enumerate(lengths.values.ravel()):
        alone = np.zeros_like(heads.values)
        alone[one] = heads.values[one]
        assert np.linalg.norm(alone.ravel() @ weight) == pytest.approx(length, rel=1e-4), "all other heads silenced"
    assert [panel.name for panel in head.joined(replace(trace, params={}), place)] == ["heads", "out"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_residual_stream_shows_how_much_each_sublayer_adds(norm):
    trace = tiny_translator(norm=norm).trace("She likes the school.", "我喜欢学校。", record=("*",))
    panel = block.stream(trace, "decoder")
    assert panel.columns.texts[:4] == ("self 1", "cross 1", "ffn 1", "self 2") and len(panel.columns) == 3 * 3
    for column, part in ((0, "self"), (1, "cross"), (2, "ffn")):
        squares = {each.name: (each.values**2).sum(axis=1) for each in block.added(trace, "decoder", 0, part)}
        expected = np.sqrt(squares["out"] / squares["input"])
        assert np.allclose(panel.values[:, column], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("stack", "part"), [("encoder", "self"), ("encoder", "ffn"), ("decoder", "cross"), ("decoder", "ffn")]
)
def test_a_sublayer_is_added_and_the_sum_normalised(trace, stack, part):
    x, out, total, norm = block.added(trace, stack, 1, part)
    assert np.allclose(x.values + out.values, total.values, atol=1e-4)
    gain, bias = (trace.params[f"{stack}.1.norm_{part}.{name}"].value for name in ("gamma", "beta"))
    assert np.allclose(formulas.layer_norm(total.values, gain=gain, bias=bias), norm.values, atol=1e-4)
    assert x.end == out.end == total.end


def test_the_share_of_zeros_in_the_hidden_layer_has_its_mean_in_the_middle_of_the_scale(trace):
    zeros = block.silent_share(trace, "encoder")
    assert zeros.values[1, 0] == (trace["encoder.1.ffn.hidden"].value[0] == 0).mean()
    assert zeros.middle == pytest.approx(zeros.values.mean())
    assert zeros.end == pytest.approx(np.abs(zeros.values - zeros.values.mean()).max())


def test_every_layer_has_a_panel_of_cosines(trace):
    first = block.similarities(trace, "encoder")[0]
    assert np.allclose(np.diagonal(first.values), 1, atol=1e-6)
    titles = [panel.title for panel in block.similarities(trace, "decoder")]
    assert titles == ["input", "after layer 1", "after layer 2", "after layer 3"]


def test_layers_that_were_not_recorded_leave_the_others_their_numbers(trace):
    some = replace(trace, tensors={name: t for name, t in trace.tensors.items() if ".0." not in name})
    whole, part = (block.stream(each, "decoder") for each in (trace, some))
    assert part.columns.texts == whole.columns.texts[3:] and part.columns.texts[0] == "self 2"
    assert np.array_equal(part.values, whole.values[:, 3:])
    assert [panel.title for panel in block.similarities(some, "decoder")] == ["input", "after layer 2", "after layer 3"]
    zeros, all_zeros = (block.silent_share(each, "decoder") for each in (some, trace))
    assert zeros.rows.texts == ("2", "3") and np.array_equal(zeros.values, all_zeros.values[1:])
    assert block.sublayers(some, "decoder") == ("self", "cross", "ffn") and not block.norms_first(some, "decoder")
    assert (
        vf.figures.sublayer(some, stack="decoder.self_attn").to_json()
        == vf.figures.sublayer(trace, stack="decoder.self_attn", layer=1).to_json()
    )
    with pytest.raises(VisformerError, match="layer"):
        vf.figures.sublayer(some, stack="decoder.self_attn", layer=0)


@pytest.mark.parametrize(("stack", "n_norms"), [("encoder", 2), ("decoder", 3)])
def test_the_table_of_sublayers_has_effects_between_tokens_and_parameters(trace, model, stack, n_norms):
    """The effect is measured: how far other tokens' vectors move if the first changes by 1."""
    parts = {str(part.name): part for part in block.who_talks(trace, stack)}
    attention = ["self-attention", "cross-attention"] if stack == "decoder" else ["self-attention"]
    others = ["feed-forward", "layer norm", "residual sum"]
    assert {name: part.talks for name, part in parts.items()} == {
        **dict.fromkeys(attention, True), **dict.fromkeys(others, False)
    }  # fmt: skip
    x = torch.tensor(trace[f"{stack}.0.resid_pre"].value)[None]
    changed = x.clone()
    changed[0, 0] += 1
    attend, mask = getattr(model.module, stack).layers[0].self_attn, causal_mask(x.shape[1])
    with torch.inference_mode():
        before, after = (attend(y, y, y, mask=mask if stack == "decoder" else None) for y in (x, changed))
    assert parts["self-attention"].moved == pytest.approx((after - before)[0, 1:].abs().max().item(), rel=1e-3)
    assert all(parts[name].moved == 0 for name in others)
    for name in attention:
        assert parts[name].parameters == 4 * (16 * 16 + 16)
    assert parts["feed-forward"].parameters == 16 * 24 + 24 + 24 * 16 + 16
    assert parts["layer norm"].parameters == n_norms * 2 * 16, "gamma and beta"
    assert parts["residual sum"].parameters == 0


def test_only_learned_positions_have_parameters_and_an_end():
    kinds = positions.kinds(10, 4, max_len=6)
    assert list(kinds) == list(POSITIONS)
    learned = kinds.pop("learned")
    assert (learned.parameters, learned.missing) == (torch.nn.Embedding(6, 4).weight.numel(), 4)
    assert not any(kind.parameters or kind.missing for kind in kinds.values())


def test_what_rotary_and_alibi_leave_of_a_score_equals_what_transformers_and_torch_compute():
    config = LlamaConfig(hidden_size=8, num_attention_heads=1)
    cos, sin = LlamaRotaryEmbedding(config)(torch.ones(1), torch.arange(9)[None])
    assert np.allclose(positions.rotary(9, 8).values, cos[0, :, :4], atol=1e-6)
    turned, _ = apply_rotary_pos_emb(torch.ones(1, 1, 9, 8), torch.ones(1, 1, 9, 8), cos, sin)
    scores = (turned @ turned[:, :, :1].mT / 8).flatten().numpy()
    np.testing.assert_allclose(positions.rotary_scores(9, 8), scores, atol=1e-6)

    panel = positions.alibi(9, 4)
    for h, row in enumerate(panel.values, start=1):
        scores = torch.zeros(9) - 2.0 ** (-8 * h / 4) * torch.arange(9)  # all of equal queries and keys, and the bias
        weights = torch.softmax(scores, dim=0)
        assert np.allclose(row, weights / weights[0], atol=1e-6)
    assert panel.rows.texts[0] == "1: 0.25"


def test_the_head_that_changes_most_is_found_after_the_silenced_one(trace, model):
    silenced = model.trace(trace.meta["source"], trace.meta["target"], edits=[Silence("decoder.1.self_attn", 0)])

    def change(name):
        """Return the mean change of each head."""
        return np.abs(trace[name].value - silenced[name].value).mean(axis=(1, 2))

    path, most = masks.changed_most(trace, silenced)
    assert path in ("decoder.1.cross_attn", "decoder.2.self_attn", "decoder.2.cross_attn"), "what follows"
    patterns = [name for name in silenced if name.endswith(".pattern")]
    assert change(f"{path}.pattern")[most] == max(change(name).max() for name in patterns)


def test_the_mask_of_several_heads_shows_the_share_of_those_that_may_attend(trace):
    n = len(trace.tokens["tgt"])
    switched = np.zeros((3, 2, n, n), dtype=np.bool_)
    switched[0, :, 0, 0] = True
    panel = masks.editable(trace, "decoder.0.self_attn", switched, np.tri(n, dtype=np.bool_))
    assert panel.values[0, 0] == pytest.approx(2 / 3)
    assert panel.note
    assert np.argwhere(panel.outlined).tolist() == [[0, 0]]
    assert np.array_equal(np.delete(panel.values.ravel(), 0), np.delete(np.tri(n).ravel(), 0))


def test_the_title_names_the_step_with_the_lowest_probability(model):
    steps = model.translate("She likes the school.", max_new_tokens=6).steps
    panel = decoding.sureness(steps, 2, lambda _: "{step}")
    probabilities = [step.log_probabilities.exp()[step.chosen.id].item() for step in steps]
    assert panel.values[0].tolist() == pytest.approx(probabilities, rel=1e-5)
    assert panel.title == f"{np.argmin(probabilities) + 1}"
    assert np.argwhere(panel.outlined).tolist() == [[0, 2]], "the selected step"


def test_rows_of_cross_attention_after_the_selected_step_are_empty(trace):
    panel = decoding.growing(trace, 1, 2)
    assert np.isnan(panel.values[3:]).all()
    assert np.allclose(panel.values[:3], trace["decoder.1.cross_attn.pattern"].value.mean(axis=0)[:3])


def view_of(name, **changes):
    """Return the view of an example, with some inputs changed, and its results."""
    example = lab.examples()[name]
    inputs = {**example.inputs, **changes}
    results = compute(example, inputs)
    return lab.LabView(example, inputs, dict.fromkeys(example.choices({**inputs, **results}), 1)), results


def test_printed_results_are_beside_the_computed_ones():
    view, results = view_of("mended")
    ours, theirs = lab.beside(view, "Q·Kᵀ", results["Q·Kᵀ"])
    assert (ours.title, theirs.title) == ("Q·Kᵀ", "Q·Kᵀ, as printed")
    assert (ours.note, theirs.note) == ("computed", "as printed in the course notes")
    assert ours.end == theirs.end == 104
    assert theirs.outlined.tolist() == [[False] * 3, [True] * 3]
    assert theirs.before == "≠"
    view, results = view_of("sum")
    assert lab.beside(view, "E + P", results["E + P"])[1].before == "="


def test_with_changed_inputs_frames_still_mark_what_differs_from_the_printed_numbers():
    view, results = view_of("mended", Q=np.array([[1.0, 3.0], [4.0, 9.0]]))
    assert view.changed
    ours, printed = lab.beside(view, "Q·Kᵀ", results["Q·Kᵀ"])
    assert printed.outlined.tolist() == differs(ours.values, printed.values).tolist()
    assert printed.outlined[0].any(), "a row that agreed before the edit"
    assert printed.before == "≠"


def test_a_printed_result_of_another_shape_is_not_shown():
    view, results = view_of("mended", Q=np.array([[1.0, 2.0]]))
    assert len(lab.beside(view, "Q·Kᵀ", results["Q·Kᵀ"])) == 1


def test_a_slice_of_a_tensor_is_labelled_with_its_tokens():
    view, results = view_of("shapes")
    panels = {name: lab.beside(view, name, values)[0] for name, values in results.items()}
    pattern = panels["softmax(Q·Kᵀ / √d_k)"]
    assert pattern.rows.texts == pattern.columns.texts == ("欢迎", "来", "到", "上海")
    assert np.array_equal(pattern.values, results["softmax(Q·Kᵀ / √d_k)"][1, 1])
    assert np.array_equal(panels["cut into heads"].values, panels["head before token: Q"].values)
    assert np.array_equal(panels["cut into heads"].values, panels["X · W_Q"].values[:, 64:128])


def test_tokens_and_heads_of_the_lab_count_from_1_and_dimensions_from_0():
    counted = {AXIS_TITLES[name] for name in ("token", "query", "key", "head")}
    seen = set()
    for name in [name for name, example in lab.examples().items() if not example.instead]:
        for panel in lab.drawn(*view_of(name), str):
            for side in (panel.rows, panel.columns):
                if side.numeric and side.title:
                    assert side.texts[0] == ("1" if side.title in counted else "0"), (name, panel.name)
                    seen.add(side.title in counted)
    assert seen == {True, False}


def test_rows_of_encodings_are_labelled_with_the_given_positions():
    view, results = view_of("sinusoid", pos=np.array([[2.0], [0.5]]))
    assert lab.beside(view, "PE", results["PE"])[0].rows.texts == ("2", "0.5")


def test_rounding_errors_do_not_count_as_overflow(trace):
    """In float32, the cosine of a vector with itself is often slightly above 1."""
    panels = block.similarities(trace, "encoder")
    assert not any(panel.overflows for panel in panels)
    value = np.array([[1.0000002, 0.5], [0.5, -1.0000002]])
    small = replace(panels[0], rows=Labels(("a", "b")), columns=Labels(("a", "b")), values=value)
    assert not small.overflows
    assert replace(small, values=value * 1.001).overflows


def test_the_colour_scale_ends_below_outliers_and_a_note_says_so(trace):
    plain = block.stream(trace, "encoder")
    value = (out := trace["encoder.0.ffn.out"]).value.copy()
    value[0] *= 1000
    tensors = {**trace.tensors, out.name: replace(out, value=value)}
    panel = block.stream(replace(trace, tensors=tensors), "encoder")
    assert panel.overflows and panel.end <= 1.5 * plain.end
    assert block.note_overflow(panel, lambda _: "to {limit:.2f}").note == f"to {panel.end:.2f}"
    complete = replace(panel, limit=None)
    assert block.note_overflow(complete) is complete, "without overflow there is no note"


def test_a_panel_below_another_has_labels_of_its_columns(trace):
    """Where panels stand below each other, column by column, those of the first serve for all."""
    panels = block.added(trace, "encoder", 0, "ffn")
    assert len(panels) > 2 and all(panel.columns.written for panel in panels)
    for stacked in head.steps(trace, PLACES[0]):
        stacked = [panel for panel in stacked if panel.name != "input"]  # x is wider, and its place is in the readout
        assert len(stacked) > 1
        assert [panel.columns.written for panel in stacked] == [True] + [False] * (len(stacked) - 1)
        assert len({panel.columns.texts for panel in stacked}) == 1
