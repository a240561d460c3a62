"""The benchmarks compare what they claim to compare. Nothing is timed here."""

import ast

import pytest
import torch

from benchmarks import atlas, batches, models, subjects, untapped, whole_model
from benchmarks.measure import QUICK
from tests.support import tiny_tokenizer, tiny_translator


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_copy_without_taps_is_bit_identical_and_shares_the_weights(norm):
    model = tiny_translator(norm=norm, tie_embeddings=True).module
    copy = untapped.without_taps(model)
    src, tgt = subjects.random_ids(400, 9, seed=1), subjects.random_ids(400, 7, seed=2)
    src[0, -2:] = 0  # padding changes the masks
    with torch.inference_mode():
        assert torch.equal(copy(src, tgt), model(src, tgt))
    of_copy, of_model = ({weight.data_ptr() for weight in module.parameters()} for module in (copy, model))
    assert of_copy == of_model


def test_the_copy_has_no_taps_left():
    kinds = {type(module).__module__ for module in untapped.without_taps(tiny_translator().module).modules()}
    own = {name for name in kinds if not name.startswith("torch.")}
    assert own == {f"benchmarks.untapped.{name}" for name in ("attention", "embedding", "layers", "transformer")}
    for name in own:
        tree = ast.parse(untapped.source_without_taps(name.rpartition(".")[2]))
        assert not [
            node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.arg) and "tap" in ast.unparse(node)
        ]


@pytest.mark.parametrize("n", [16, 64, 256])
def test_benchmark_sentences_have_exactly_n_tokens(n):
    translator = tiny_translator()
    pair = subjects.sentences(tiny_tokenizer(), n)
    assert pair.src_ids.shape == pair.tgt_ids.shape == (1, n)
    trace = translator.trace(pair.source, pair.target)
    assert len(trace.tokens["src"]) == len(trace.tokens["tgt"]) == n
    assert trace.meta["to"] == "zh"


@pytest.mark.full
def test_both_sides_of_each_comparison_give_the_same_output(monkeypatch):
    monkeypatch.setattr(models, "LENGTHS", (16,))
    rows = list(models.rows(tiny_translator(), QUICK))  # raises if outputs differ
    assert [row.goal for row in rows] == [1.15, None, 1.04, 1.1, 0.6]


@pytest.mark.full
def test_the_whole_model_is_measured_with_sentences_of_their_length_and_its_own_bytes():
    for size, model, text in whole_model.subjects():
        assert len(model.trace(text).tokens["src"]) == int(size.split(",")[0])
    rows = list(whole_model.model_rows(QUICK))
    assert [row.goal for row in rows] == [1.2, 1.0, 1.2, 1.0]
    assert all(100 < row.ours < 3000 for row in rows[1::2])


@pytest.mark.full
def test_a_batch_of_ours_and_of_transformers_record_the_same_patterns():
    rows = list(batches.rows(QUICK))  # raises if they differ
    assert [row.goal for row in rows] == [1.25, 0.7]


@pytest.mark.full
def test_an_atlas_and_bare_passes_see_the_same_weights():
    rows = list(atlas.rows(QUICK))  # raises if they differ
    assert [row.goal for row in rows] == [1.5, 1.5]
