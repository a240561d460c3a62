"""Word links of any values, and the alignment error of every method."""

import numpy as np
import pytest

from tests.analysis.models import model_of
from tests.support import tiny_translator
from tests.training.evaluation.test_alignment import GOLD
from visformer.analysis import (
    METHODS,
    Aligned,
    alignment,
    alignment_error,
    alti,
    alti_plus,
    attention_gradient,
    gradient_x_input,
    masking,
    needed,
    norm_weighted,
    rollout,
)
from visformer.analysis.word_alignment import by_words
from visformer.errors import ShapeError, VisformerError

OTHER = Aligned(("She", "likes", "school", "."), ("她", "喜欢", "学校", "。"), "She likes school.", "她喜欢学校。",
                GOLD.sure, GOLD.possible)  # fmt: skip
FIRST_LAYER = "decoder.0.cross_attn"


def aer_by_hand(model, pairs, values_of, row):
    """AER of one array of values for each pair, by sets of links."""
    right = size = 0
    for pair in pairs:
        table = by_words(model, values_of(pair), pair)[row]
        links = {(int(i), j) for j, i in enumerate(table.argmax(axis=-1))}
        right += len(links & pair.sure) + len(links & pair.possible)
        size += len(links) + len(pair.sure)
    return 1 - right / size


def of_trace(method):
    def values(model, pair):
        trace = model.trace(pair.source_text, pair.target_text, record=needed(model, "alti"))
        return method(trace)

    return values


VALUES = {
    "raw": of_trace(lambda trace: trace[f"{FIRST_LAYER}.pattern"].value.mean(axis=0)),
    "norm": of_trace(lambda trace: norm_weighted(trace, FIRST_LAYER)),
    "alti": of_trace(lambda trace: alti(trace, FIRST_LAYER)[:, :-1]),
    "alti+": of_trace(lambda trace: alti_plus(trace)[0]),
    "rollout": of_trace(lambda trace: rollout(trace)[0]),
    "gradient": lambda model, pair: gradient_x_input(model, pair.source_text, pair.target_text),
    "attention x gradient": lambda model, pair: attention_gradient(model, pair.source_text, pair.target_text),
    "masking": lambda model, pair: masking(model, pair.source_text, pair.target_text),
}


@pytest.mark.parametrize("row", ["prediction", "input"])
@pytest.mark.parametrize("method", METHODS)
def test_the_error_of_a_method_is_that_of_its_links(method, row):
    model, pairs = tiny_translator(n_decoder_layers=1), [GOLD, OTHER]
    if METHODS[method].of == "model" and row == "input":
        with pytest.raises(VisformerError, match="has no rows that are read as 'input'"):
            alignment_error(model, pairs, method=method, row=row)
        return
    told = alignment_error(model, pairs, method=method, row=row).set_index("choice")
    assert [*told.index] == {"heads": ["head", "layer"], "layers": ["layer"]}.get(METHODS[method].of, ["-"])
    of_all = told.iloc[-1]  # a single layer: nothing to choose
    expected = aer_by_hand(model, pairs, lambda pair: VALUES[method](model, pair), row)
    assert of_all["error"] == pytest.approx(expected)
    assert of_all["low"] <= of_all["error"] <= of_all["high"]
    assert (of_all["n"], of_all["row"], of_all["method"], of_all["share"]) == (2, row, method, 1)


def test_links_are_those_of_the_greatest_pooled_values():
    model = tiny_translator()
    trace = model.trace("I like school.", "我喜欢学校。", record=("*.pattern",))
    words = {side: [w for w, special in zip(trace.words[side], trace.special[side], strict=True) if not special]
             for side in ("src", "next", "tgt")}  # fmt: skip
    n_src, n_tgt = len(set(words["src"])), len(set(words["next"]))
    rng = np.random.default_rng(0)
    for row, side in (("prediction", "next"), ("input", "tgt")):
        values = rng.normal(size=(len(trace.tokens["tgt"]), len(trace.tokens["src"])))
        links = alignment(values, trace, row=row)
        numbered = {word: i for i, word in enumerate(dict.fromkeys(words[side]))}
        assert sorted(j for _, j in links) == [*range(len(numbered))]
        for word, j in numbered.items():
            rows = [q for q, w in enumerate(trace.words[side]) if w == word and not trace.special[side][q]]
            sums = [
                np.mean([sum(values[q, k] for k, w in enumerate(trace.words["src"]) if w == source) for q in rows])
                for source in dict.fromkeys(words["src"])
            ]
            assert (int(np.argmax(sums)), j) in links
    assert n_src >= 4
    assert n_tgt >= 1


def test_raw_heads_have_the_errors_that_evaluation_reports():
    from visformer.training.evaluation.alignment import align, read_aligned
    from visformer.training.supplement import FOLDER

    model, gold = model_of("en-zh"), read_aligned(FOLDER / "alignment.tsv")[:12]
    report = align(model, gold, to="zh")
    for row in ("prediction", "input"):
        told = alignment_error(model, gold, method="raw", row=row, to="zh").iloc[0]
        assert tuple(told[["error", "low", "high", "chosen"]]) == tuple(
            report[row][name] for name in ("aer", "low", "high", "head")
        )


def test_what_cannot_be_aligned_is_refused():
    model = tiny_translator()
    trace = model.trace("I like school.", "我喜欢学校。")
    with pytest.raises(ShapeError, match=r"values has the shape \(1, 1\)"):
        alignment([[1.0]], trace, row="prediction")
    for call in (
        lambda row: alignment([[1.0]], trace, row=row),
        lambda row: alignment_error(model, [GOLD], method="raw", row=row),
    ):
        with pytest.raises(VisformerError, match="row='output' must be one of prediction, input"):
            call("output")
    with pytest.raises(VisformerError, match="shap has no rows"):
        alignment_error(model, [GOLD], method="shap")
    for other, pairs in ((model, []), (model_of("bart"), [GOLD])):
        with pytest.raises(VisformerError, match="needs pairs with gold links, and a translator of visformer"):
            alignment_error(other, pairs, method="raw")


def test_the_row_of_an_input_is_the_one_after_the_row_that_predicted_it():
    model = tiny_translator()
    trace = model.trace(GOLD.source_text, GOLD.target_text)
    values = np.random.default_rng(0).random((len(trace.tokens["tgt"]), len(trace.tokens["src"])))
    expected = by_words(model, np.roll(values, -1, axis=0), GOLD)["prediction"]
    np.testing.assert_array_equal(by_words(model, values, GOLD)["input"], expected)
