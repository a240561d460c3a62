"""The sum behind a cell, compared with torch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import TARGET, TEXT, model_of
from visformer.pictures.head import Place
from visformer.trace import Trace
from visformer.web.places.cell import MOST_KEYS, MOST_TERMS, RECORD, cell

PATHS = {
    "en-zh": "decoder.1.cross_attn", "mini-gpt": "decoder.2.self_attn", "bert": "encoder.1.self_attn",
    "gpt2": "decoder.1.self_attn", "bart": "decoder.2.cross_attn", "t5": "encoder.1.self_attn",
    "bloom": "decoder.1.self_attn", "gemma2": "decoder.0.self_attn", "gpt_oss": "decoder.0.self_attn",
}  # fmt: skip
"""With a bias: T5, BLOOM; with a factor and a cap of its own, and shared keys: Gemma 2; with sinks: GPT-OSS."""
DIVIDED = {"en-zh", "mini-gpt", "bert", "gpt2", "bart", "bloom", "gpt_oss"}


def trace_of(kind, path):
    model = model_of(kind)
    target = TARGET if model.info.kind == "encoder-decoder" and kind != "en-zh" else None
    return model.trace(TEXT, target, record=model.available([glob.format(path=path) for glob in RECORD]))


@pytest.fixture(scope="module")
def traces():
    return {kind: trace_of(kind, path) for kind, path in PATHS.items()}


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
    trace = trace_of("lfm2", "decoder.2.self_attn")
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
