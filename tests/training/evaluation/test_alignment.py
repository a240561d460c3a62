"""Word alignment by cross-attention: gold links, both readings of a row, and choosing a head."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import tiny_tokenizer, tiny_translator
from tests.training.test_supplement import FOLDER
from visformer.errors import DataError
from visformer.training import grammar
from visformer.training.evaluation import alignment
from visformer.training.evaluation.alignment import (
    READINGS,
    Aligned,
    Heads,
    align,
    error_rate,
    from_grammar,
    read_aligned,
)

GOLD = Aligned(
    source=("I", "like", "school", "."),
    target=("我", "喜欢", "学校", "。"),
    source_text="I like school.",
    target_text="我喜欢学校。",
    sure=frozenset({(0, 0), (1, 1), (2, 2), (3, 3)}),
    possible=frozenset({(0, 0), (1, 1), (2, 2), (3, 3), (2, 1)}),
)


def test_the_alignment_error_rate_equals_one_computed_by_hand():
    # |A| = 4, |S| = 4; school is linked to 喜欢: three links are sure, one is in neither.
    assert error_rate(GOLD.hits[[0, 1, 2, 3], [0, 1, 0, 3]].sum(), GOLD.size) == pytest.approx(1 - (3 + 3) / (4 + 4))
    # The link of "school" to 喜欢 is only possible: 1 - (3 + 4) / (4 + 4).
    assert error_rate(GOLD.hits[[0, 1, 2, 3], [0, 2, 2, 3]].sum(), GOLD.size) == pytest.approx(1 - (3 + 4) / (4 + 4))
    assert error_rate(GOLD.hits[[0, 1, 2, 3], [0, 1, 2, 3]].sum(), GOLD.size) == 0


class WordForWord:
    """A model whose only head reads the first token of the k-th source word in the rows of the k-th word."""

    tokenizer = tiny_tokenizer()

    def __init__(self, reading):
        self.reading = reading

    def trace(self, source, target, *, to, record):
        trace = tiny_translator().trace(source, target, to=to, record=record)
        tensor = trace["decoder.0.cross_attn.pattern"]
        pattern = np.full((1, *tensor.shape[1:]), 1e-3, dtype=np.float32)
        for row, word in enumerate(trace.words["next"][:-1]):
            pattern[0, row + READINGS[self.reading], trace.words["src"].index(word)] = 1
        return replace(trace, tensors={tensor.name: replace(tensor, value=pattern)})


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(("to", "gold"), [("zh", GOLD), ("en", GOLD.reversed())])
def test_a_head_that_reads_word_for_word_has_no_alignment_error(to, gold, reading):
    report = align(WordForWord(reading), [gold] * 20, to=to)
    other = next(name for name in READINGS if name != reading)
    assert (report[reading]["aer"], report[reading]["low"], report[reading]["high"]) == (0, 0, 0)
    assert (report[reading]["head"], report[reading]["chosen"]) == ("layer 1 head 1", 1)
    assert report[other]["aer"] > 0.4
    assert report["diagonal"] == report["best possible"] == 0
    assert 0.5 < report["uniform"] < 1


def test_the_entropy_of_uniform_heads_is_the_logarithm_of_the_source_length():
    model = tiny_translator(n_decoder_layers=1)
    for weight in model.module.parameters():
        weight.data.zero_()
    report = align(model, [GOLD] * 2, to="zh")
    for reading in READINGS:
        assert report[reading]["entropy"] == pytest.approx(np.log(len(model.tokenize(GOLD.source_text))), rel=1e-5)


def heads_of(hits):
    return Heads(tuple(map(str, range(len(hits)))), hits, np.full(hits.shape[1], 10.0), np.zeros(len(hits)))


def test_the_best_of_many_heads_that_know_nothing_is_not_better_than_they_are():
    hits = np.random.default_rng(0).binomial(10, 0.5, size=(200, 40)).astype(float)
    told = heads_of(hits).chosen_and_scored()
    assert told["low"] < 0.5 < told["high"]
    assert 1 - hits.sum(axis=1).max() / 400 < 0.44, "chosen and scored on the same pairs, it would be"


def test_a_head_that_is_best_on_every_pair_is_chosen_each_time_and_its_interval_is_that_of_its_mean():
    rng = np.random.default_rng(0)
    hits = np.stack([rng.integers(2, 5, size=100), rng.integers(6, 9, size=100)]).astype(float)
    told = heads_of(hits).chosen_and_scored()
    assert (told["head"], told["chosen"]) == ("1", 1)
    assert told["aer"] == pytest.approx(1 - hits[1].mean() / 10, abs=2e-3)
    assert (told["high"] - told["low"]) / 2 == pytest.approx(1.96 * hits[1].std() / 10 / 100**0.5, rel=0.1)


@pytest.mark.parametrize("n", [20, pytest.param(500, marks=pytest.mark.full)])
def test_gold_sentences_of_the_grammar_have_something_held_out_and_their_words(n, monkeypatch):
    rules = grammar.load(FOLDER / "grammar")
    monkeypatch.setattr(grammar, "load", {FOLDER / "grammar": rules}.get)
    monkeypatch.setattr(alignment, "GRAMMAR_SENTENCES", n)
    gold = from_grammar(FOLDER / "grammar")
    assert len(gold) == n
    assert gold == from_grammar(FOLDER / "grammar")
    assert [pair.source_text for pair in gold] == [
        one.en for one in grammar.sample(rules, n, seed=alignment.GRAMMAR_SEED, held_out=True)
    ]
    trained_on = {one.en for one in grammar.sample(rules, 3 * n, seed=0)}
    for pair in gold:
        assert pair.source_text not in trained_on
        assert "".join(pair.target) == pair.target_text
        assert "".join(pair.source) == pair.source_text.replace(" ", "")
        assert pair.sure == pair.possible
        assert all(i < len(pair.source) and j < len(pair.target) for i, j in pair.sure)


def test_a_row_with_missing_columns_is_refused_with_its_number(tmp_path):
    path = tmp_path / "alignment.tsv"
    path.write_text("en\tzh\tsure\tpossible\na\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"alignment\.tsv, line 2: 2 columns instead of 4"):
        read_aligned(path)
