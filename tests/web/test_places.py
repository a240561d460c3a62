"""Places of the whole model: as texts, whether a Trace has them, and the sum behind a cell, compared with torch."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.messages import read_message
from tests.kinds import TARGET, TEXT, model_of, trace_of
from visformer.errors import LinkError
from visformer.pictures.head import Place
from visformer.trace import Trace
from visformer.web.map import pack_place
from visformer.web.places import INSIDE, MOST_KEYS, MOST_TERMS, RECORD, Zoom, cell, inside

WRITTEN = re.compile(r"(en|de)coder\.[1-9](\.ffn|\.self_attn|(\.ffn|\.self_attn)\.[1-9](\.[1-9]\.[1-9])?)?")
numbers = st.integers(0, 998)
zooms = st.one_of(
    st.builds(Zoom, st.sampled_from(["encoder", "decoder"]), numbers),
    st.builds(Zoom, st.just("decoder"), numbers, st.sampled_from(["self_attn", "cross_attn", "ffn"])),
    st.builds(Zoom, st.just("decoder"), numbers, st.just("cross_attn"), numbers),
    st.builds(Zoom, st.just("decoder"), numbers, st.just("self_attn"), numbers, numbers, numbers),
)


@given(zooms)
def test_a_place_is_read_as_it_is_written(zoom):
    assert Zoom.read(str(zoom)) == zoom


def test_numbers_in_a_text_count_from_1():
    assert Zoom.read("decoder.2.cross_attn.3.4.5") == Zoom("decoder", 1, "cross_attn", 2, 3, 4)


@given(
    st.text(max_size=30) | st.from_regex(r"(encoder|decoder)\.[0-9]\.(self_attn|ffn|out)(\.[0-9]){0,4}", fullmatch=True)
)
def test_any_other_text_is_refused(text):
    refused = pytest.raises(LinkError, match=r"decoder\.2\.cross_attn\.3")
    with nullcontext() if WRITTEN.fullmatch(text) else refused:
        assert str(Zoom.read(text)) == text


def test_a_place_that_a_model_does_not_have_is_refused_with_what_it_has():
    for kind, text, said in (
        ("bert", "decoder.1", "no such stack"),
        ("en-zh", "decoder.4", "1–3"),
        ("lfm2", "decoder.7", "1–6"),
        ("mini-gpt", "decoder.1.cross_attn", "no such sublayer"),
        ("en-zh", "encoder.1.ffn.1", "no heads"),
        ("lfm2", "decoder.1.self_attn.1", "no heads"),
        ("en-zh", "decoder.2.cross_attn.9", "heads of a layer are 1 to 8"),
        ("en-zh", "decoder.2.cross_attn.8.99.1", "query tokens here are 1 to"),
        ("en-zh", "decoder.2.cross_attn.8.1.99", "key tokens here are 1 to"),
    ):
        with pytest.raises(LinkError, match=re.escape(said)):
            pytest.fail(f"{kind} has {text}: {Zoom.read(text).require_in(trace_of(kind))}")


def test_another_text_or_model_keeps_what_it_has_of_a_place():
    for kind, text, closest in (
        ("en-zh", "decoder.2.cross_attn.8.2.3", "decoder.2.cross_attn.8.2.3"),
        ("en-zh", "decoder.2.cross_attn.8.99.1", "decoder.2.cross_attn.8"),
        ("en-zh", "decoder.2.cross_attn.9.1.1", "decoder.2.cross_attn"),
        ("mini-gpt", "decoder.2.cross_attn.1", "decoder.2"),
        ("mini-gpt", "encoder.1.self_attn.1", None),
    ):
        found = Zoom.read(text).within(trace_of(kind))
        assert closest == (None if found is None else str(found)), (kind, text)


def test_the_message_of_a_place_without_a_cell_is_small():
    message = pack_place("encoder.1", opened=3, way={"label": "On", "href": "block"}, to="map")
    header, _ = read_message(message)
    assert (header["zoom"], header["opened"], header["cell"]) == ("encoder.1", 3, None)
    assert header["way"] == {"label": "On", "href": "block"}
    assert len(json.dumps(header)) < 200


PATHS = {
    "en-zh": "decoder.1.cross_attn", "mini-gpt": "decoder.2.self_attn", "bert": "encoder.1.self_attn",
    "gpt2": "decoder.1.self_attn", "bart": "decoder.2.cross_attn", "t5": "encoder.1.self_attn",
    "bloom": "decoder.1.self_attn", "gemma2": "decoder.0.self_attn", "gpt_oss": "decoder.0.self_attn",
}  # fmt: skip
"""With a bias: T5, BLOOM; with a factor and a cap of its own, and shared keys: Gemma 2; with sinks: GPT-OSS."""
DIVIDED = {"en-zh", "mini-gpt", "bert", "gpt2", "bart", "bloom", "gpt_oss"}


def cell_trace(kind, path):
    model = model_of(kind)
    target = TARGET if model.info.kind == "encoder-decoder" and kind != "en-zh" else None
    return model.trace(TEXT, target, record=model.available([glob.format(path=path) for glob in RECORD]))


@pytest.fixture(scope="module")
def traces():
    return {kind: cell_trace(kind, path) for kind, path in PATHS.items()}


def row_of(trace, path, head, query):
    """Return the products (key, dimension), the masked scores and the weights of a row as torch computes them."""
    tensor = {name: torch.from_numpy(trace[f"{path}.{name}"].value.copy()) for name in ("q", "k", "scores", "mask")}
    k = tensor["k"].repeat_interleave(len(tensor["q"]) // len(tensor["k"]), dim=0)[head].double()
    scores = tensor["scores"][head, query].double().masked_fill(~tensor["mask"][head, query], -torch.inf)
    sink = float(trace[f"{path}.sink"].value[head, query]) if f"{path}.sink" in trace else 0.0
    weights = torch.softmax(scores, dim=-1) * (1 - sink)
    return (tensor["q"][head, query].double() * k).numpy(), scores.numpy(), weights.numpy()


@given(st.sampled_from(sorted(PATHS)), st.data())
def test_every_number_is_that_of_torch(traces, kind, data):
    trace, path = traces[kind], PATHS[kind]
    shape = trace[f"{path}.pattern"].shape
    head, query, key = (data.draw(st.integers(0, n - 1)) for n in shape)
    products, scores, weights = row_of(trace, path, head, query)
    found = cell(trace, Place(path, head, query), key)
    total = found.sum
    assert total.d_k == products.shape[1]
    assert len(total.terms) == min(MOST_TERMS, total.d_k)
    for term in total.terms:
        assert term.product == pytest.approx(products[key, term.dimension])
    sizes = [abs(term.product) for term in total.terms]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] >= np.abs(np.delete(products[key], [term.dimension for term in total.terms])).max(initial=0)
    assert total.product == pytest.approx(products[key].sum(), rel=1e-5, abs=1e-5)
    assert sum(term.product for term in total.terms) + total.others == pytest.approx(products[key].sum(), abs=1e-9)
    assert total.hidden == np.isneginf(scores[key])
    if not total.hidden:
        assert total.score == pytest.approx(scores[key])
    assert found.weight == pytest.approx(weights[key], rel=1e-4, abs=1e-6)
    assert key in [one.place for one in found.keys]
    assert len(found.keys) in (min(len(weights), MOST_KEYS), MOST_KEYS + 1)
    assert len(found.keys) + found.n_others == len(weights)
    for one in found.keys:
        assert (one.score, one.weight) == (
            pytest.approx(scores[one.place]),
            pytest.approx(weights[one.place], abs=1e-6),
        )
    shown = sum(one.weight for one in found.keys) + found.others + (found.sink or 0)
    assert shown == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", PATHS)
def test_the_way_from_the_product_to_the_score_is_told_only_where_it_is_that_of_the_paper(traces, kind):
    trace, path = traces[kind], PATHS[kind]
    told = cell(trace, Place(path, 1, 1), 0).sum.written
    assert ("√" in told) == (kind in DIVIDED)
    assert ("(b)" in told) == (kind in ("t5", "bloom"))
    assert told.startswith("This model computes its scores") == (kind == "gemma2")


@pytest.mark.parametrize(("key", "said"), [(2, "sets this score to −∞"), (0, "others are"), (None, "No key is masked")])
def test_the_mask_is_told(traces, key, said):
    kind = "mini-gpt"
    last = len(traces[kind].tokens["tgt"]) - 1
    found = cell(traces[kind], Place(PATHS[kind], 0, last if key is None else 1), key or 0)
    assert said in found.sum.masked
    assert found.sum.softmax.startswith("0\n= exp(−∞)") == found.sum.hidden


def test_a_model_without_queries_has_the_row_of_weights_alone():
    trace = model_of("lfm2").trace(TEXT, record="*.pattern")
    found = cell(trace, Place("decoder.2.self_attn", 1, 3), 2)
    row = trace["decoder.2.self_attn.pattern"].value[1, 3]
    assert found.sum is None
    assert found.weight == row[2]
    assert {one.place: (one.score, one.weight) for one in found.keys}.items() <= {
        i: (None, float(weight)) for i, weight in enumerate(row)
    }.items()


def test_of_a_long_row_the_largest_and_the_cells_own_weights_are_shown():
    weights = np.linspace(1, 2, 30)[None, None, None]
    trace = Trace.from_attention([f"t{i}" for i in range(30)], np.repeat(weights / weights.sum(), 30, axis=2))
    found = cell(replace(trace), Place("encoder.0.self_attn", 0, 4), 3)
    assert [one.place for one in found.keys] == [3, *range(22, 30)]
    assert found.n_others == 21
    assert found.others == pytest.approx(1 - sum(one.weight for one in found.keys))


@pytest.mark.parametrize(
    ("kind", "zoom", "norm"),
    [
        ("en-zh", "encoder.1.ffn", "post"),
        ("en-zh", "decoder.3.ffn", "post"),
        ("mini-gpt", "decoder.2.ffn", "pre"),
    ],
)
def test_the_inside_of_a_feed_forward_network_is_computed_from_its_input(kind, zoom, norm):
    model, place = model_of(kind), Zoom.read(zoom)
    names = [name.format(path=place.path, stack=place.stack, layer=place.layer) for name in INSIDE]
    found = inside(model.trace(TEXT, record=model.available(names)), place, norm)
    layer = model.module.get_submodule(f"{place.stack}.layers.{place.layer}.ffn")
    with torch.no_grad():
        x = torch.tensor(np.array(found.rows["input"]))
        units = x @ layer.w_1.weight.T + layer.w_1.bias
        units = torch.nn.functional.gelu(units) if kind == "mini-gpt" else units.clamp(min=0)
        out = units @ layer.w_2.weight.T + layer.w_2.bias
    np.testing.assert_allclose(found.rows["hidden"], units.numpy(), atol=1e-4)
    np.testing.assert_allclose(found.rows["out"], out.numpy(), atol=1e-4)
    share = float((units > 0).float().mean())
    assert found.active == (None if kind == "mini-gpt" else pytest.approx(share, abs=1e-3))
    header, numbers = read_message(pack_place(zoom, inside=found))
    for name, row in header["inside"]["rows"].items():
        values = np.frombuffer(numbers, "<f4", int(np.prod(row["shape"])), row["at"]).reshape(row["shape"])
        assert np.array_equal(values, found.rows[name].astype("<f4"))


def test_a_network_that_is_not_recorded_has_no_inside():
    assert inside(trace_of("en-zh"), Zoom.read("encoder.1.ffn"), "post") is None
