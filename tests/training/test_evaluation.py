"""Evaluation: alignment error rate, BLEU, and held-out names."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import tiny_tokenizer, tiny_translator
from tests.training.test_supplement import FOLDER
from visformer.errors import DataError
from visformer.training.data import Pair
from visformer.training.evaluation import Aligned, align, alignment_error_rate, bleu, held_out_names, read_aligned

GOLD = Aligned(
    source=("I", "like", "school", "."),
    target=("我", "喜欢", "学校", "。"),
    source_text="I like school.",
    target_text="我喜欢学校。",
    sure=frozenset({(0, 0), (1, 1), (2, 2), (3, 3)}),
    possible=frozenset({(0, 0), (1, 1), (2, 2), (3, 3), (2, 1)}),
)


def test_the_alignment_error_rate_equals_one_computed_by_hand():
    assert alignment_error_rate([GOLD.sure], [GOLD]) == 0
    assert alignment_error_rate([frozenset()], [GOLD]) == 1
    # |A| = 2, |S| = 4; one link is sure, one only possible: 1 - (1 + 2) / (2 + 4).
    assert alignment_error_rate([frozenset({(0, 0), (2, 1)})], [GOLD]) == pytest.approx(0.5)


class WordForWord:
    """A model whose only head reads the first token of the k-th source word while it predicts the k-th word."""

    tokenizer = tiny_tokenizer()

    def trace(self, source, target, *, to, record):
        trace = tiny_translator().trace(source, target, to=to, record=record)
        tensor = trace["decoder.0.cross_attn.pattern"]
        pattern = np.zeros((1, *tensor.shape[1:]), dtype=np.float32)
        for row, word in enumerate(trace.words["next"]):
            pattern[0, row, trace.words["src"].index(word)] = 1
        return replace(trace, tensors={tensor.name: replace(tensor, value=pattern)})


@pytest.mark.parametrize(("to", "gold"), [("zh", GOLD), ("en", GOLD.reversed())])
def test_a_head_that_reads_word_for_word_has_no_alignment_error(to, gold):
    report = align(WordForWord(), [gold], to=to)
    assert report["best heads"]["layer 1 head 1"] == pytest.approx({"aer": 0, "entropy": 0}, abs=1e-6)
    assert report["aer of diagonal"] == pytest.approx(0)
    assert 0.5 < report["aer of uniform"] < 1


def test_the_entropy_of_uniform_heads_is_the_logarithm_of_the_source_length():
    model = tiny_translator(n_decoder_layers=1)
    for weight in model.module.parameters():
        weight.data.zero_()
    report = align(model, [GOLD], to="zh")
    for head in report["best heads"].values():
        assert head["entropy"] == pytest.approx(np.log(len(model.tokenize(GOLD.source_text))), rel=1e-5)


def test_a_perfect_translator_has_bleu_100():
    pairs = [
        Pair("I went to the school today.", "我今天去学校了。"),
        Pair("She likes this very much.", "她非常喜欢这个。"),
    ]
    answers = {p.en: p.zh for p in pairs} | {p.zh: p.en for p in pairs}

    class Perfect:
        def translate_batch(self, sources, *, to):
            return [answers[source] for source in sources]

    assert bleu(Perfect(), pairs) == pytest.approx({"en_zh": 100, "zh_en": 100, "pairs": 2})


def test_a_copy_of_the_source_has_most_names_to_copy_right_but_no_sentence():
    class Echo:
        def translate(self, source, *, to):
            return type("Decoding", (), {"text": source})

    results = held_out_names(Echo(), FOLDER)
    assert len(results) == 50
    assert all(row.name and row.name in row.expected for row in results)
    assert all(not row.exact for row in results)
    copies = [row for row in results if row.kind == "copy"]
    assert sum(row.name_right for row in copies) >= len(copies) - 4  # "X University" is not a copy of "X大学"


def test_a_row_with_missing_columns_is_refused_with_its_number(tmp_path):
    path = tmp_path / "alignment.tsv"
    path.write_text("en\tzh\tsure\tpossible\na\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"alignment\.tsv, line 2: 2 columns instead of 4"):
        read_aligned(path)
