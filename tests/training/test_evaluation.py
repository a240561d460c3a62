"""Evaluation: alignment error rate, BLEU, judged sentences and held-out names."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.support import tiny_tokenizer, tiny_translator
from tests.training.test_supplement import FOLDER
from visformer.errors import DataError
from visformer.training.data import Pair
from visformer.training.evaluation import (
    Aligned,
    align,
    alignment_error_rate,
    bleu,
    error_rates,
    forced,
    held_out_names,
    judged,
    read_aligned,
    wilson,
)
from visformer.training.supplement import read_rows

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
    """A model whose only head reads the first token of the k-th source word while it predicts the k-th word.

    ``later``: so many rows later, 1: in the row of that word itself.
    """

    tokenizer = tiny_tokenizer()

    def __init__(self, later=0):
        self.later = later

    def trace(self, source, target, *, to, record):
        trace = tiny_translator().trace(source, target, to=to, record=record)
        tensor = trace["decoder.0.cross_attn.pattern"]
        pattern = np.zeros((1, *tensor.shape[1:]), dtype=np.float32)
        for row, word in enumerate(trace.words["next"]):
            pattern[0, (row + self.later) % len(trace.words["next"]), trace.words["src"].index(word)] = 1
        return replace(trace, tensors={tensor.name: replace(tensor, value=pattern)})


@pytest.mark.parametrize(("to", "gold"), [("zh", GOLD), ("en", GOLD.reversed())])
def test_a_head_that_reads_word_for_word_has_no_alignment_error(to, gold):
    report = align(WordForWord(), [gold], to=to)
    assert report["best heads"]["layer 1 head 1"] == pytest.approx({"aer": 0, "entropy": 0}, abs=1e-6)
    assert report["aer of diagonal"] == pytest.approx(0)
    assert 0.5 < report["aer of uniform"] < 1


@pytest.mark.parametrize("later", [0, 1])
def test_a_row_belongs_to_the_word_that_it_predicts_or_to_its_own(later):
    rows = forced(WordForWord(later), [GOLD], to="zh")
    errors = [error_rates(rows, [GOLD], own=own).item() for own in (False, True)]
    assert errors[later] == pytest.approx(0)
    assert errors[1 - later] > 0.5


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


class Parrot:
    """Translates from a list."""

    def __init__(self, translations):
        self.translations = translations

    def translate_batch(self, sources, *, to):
        return [self.translations[source] for source in sources]


@pytest.mark.parametrize(
    ("output", "right"),
    [
        ("My hair is long.", True),
        ("MY HAIR IS LONG", True),
        ("This, my hair, is lengthy.", True),
        ("My chair is long.", False),
        ("My hair is long, his is short.", False),
        ("My hair.", False),
    ],
)
def test_a_sentence_is_right_if_it_has_its_words_and_none_of_the_others(tmp_path, output, right):
    (tmp_path / "judged").mkdir()
    rows = {"everyday": ["我的头发很长。", "zh-en", "ordinary", "hair long|lengthy", "his short"], "minimal_pairs": []}
    for name, row in rows.items():
        (tmp_path / "judged" / f"{name}.tsv").write_text("header\n" + "\t".join(row), encoding="utf-8")
    (result,) = judged(Parrot({"我的头发很长。": output}), tmp_path)
    assert (result.kind, result.outputs, result.right) == ("ordinary", (output,), right)


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        ("汤姆帮玛丽。", "玛丽帮汤姆。", True),
        ("汤姆帮玛丽。", "汤姆帮玛丽。", False),
        ("玛丽帮汤姆。", "汤姆帮玛丽。", False),
    ],
)
def test_a_pair_is_right_if_both_sentences_are(tmp_path, first, second, right):
    (tmp_path / "judged").mkdir()
    (tmp_path / "judged" / "everyday.tsv").write_text("header\n", encoding="utf-8")
    one, other = "汤姆.*玛丽", "玛丽.*汤姆"
    row = ["roles", "en-zh", "Tom helped Mary.", one, other, "Mary helped Tom.", other, one]
    (tmp_path / "judged" / "minimal_pairs.tsv").write_text("header\n" + "\t".join(row), encoding="utf-8")
    (result,) = judged(Parrot({row[2]: first, row[5]: second}), tmp_path)
    assert (result.kind, result.right) == ("pairs", right)


def test_the_judged_lists_are_whole():
    sentences = read_rows(FOLDER / "judged" / "everyday.tsv", columns=5)
    pairs = read_rows(FOLDER / "judged" / "minimal_pairs.tsv", columns=8)
    assert Counter(row[2] for row in sentences) == {"ordinary": 150, "hard": 150}
    assert len(pairs) == 60
    assert all(row[3].strip() for row in sentences)
    assert all(cell for row in pairs for cell in row), "an empty expression would match every translation"
    assert {row[1] for row in (*sentences, *pairs)} == {"en-zh", "zh-en"}


@pytest.mark.parametrize(
    ("right", "n", "interval"),
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (1, 29, (0.0061, 0.1718))],
)
def test_wilsons_interval_is_the_one_in_newcombe_1998(right, n, interval):
    assert wilson(right, n) == pytest.approx(interval, abs=5e-5)


def test_a_row_with_missing_columns_is_refused_with_its_number(tmp_path):
    path = tmp_path / "alignment.tsv"
    path.write_text("en\tzh\tsure\tpossible\na\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"alignment\.tsv, line 2: 2 columns instead of 4"):
        read_aligned(path)
