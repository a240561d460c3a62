import random
from collections import Counter
from pathlib import Path

import pytest

from visformer.errors import DataError
from visformer.training import mixture as mixing
from visformer.training.data import Pair
from visformer.training.mixture import CONTINUED, SCHEDULE, Mixture, as_typed, stage_of, taking_turns
from visformer.training.refusals import evaluation_texts
from visformer.training.supplement import plain, read_rows

SHARES = ("corpus", "grammar", "everyday", "names", "first")
SUPPLEMENT = Path(__file__).resolve().parents[2] / "supplement"
CORPUS = [Pair(f"Tom has {n} apples.", f"汤姆有{n}个苹果。") for n in range(10, 60)]


def write(path, rows):
    path.write_text("".join(f"{en}\t{zh}\n" for en, zh in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("corpus") / "pairs.tsv", [(pair.en, pair.zh) for pair in CORPUS])
    return Mixture.load(path, SUPPLEMENT)


def everyday_pairs():
    return [row for name in mixing.EVERYDAY for row in read_rows(SUPPLEMENT / name, columns=2)]


def test_each_stage_shares_out_an_epoch_and_the_last_is_mostly_corpus():
    for stage in (*SCHEDULE, *CONTINUED):
        assert stage.corpus + stage.grammar + stage.everyday + stage.names + stage.first == pytest.approx(1)
    assert [stage.until for stage in SCHEDULE] == sorted({stage.until for stage in SCHEDULE})
    assert stage_of(0.0) is SCHEDULE[0]
    assert stage_of(SCHEDULE[0].until) is SCHEDULE[1]
    assert stage_of(0.999) is SCHEDULE[-1]
    for stages in (SCHEDULE, CONTINUED):
        assert stages[-1].until == 1 and stages[-1].bpe_dropout == 0
    assert SCHEDULE[-1].corpus == max(getattr(SCHEDULE[-1], name) for name in SHARES)


@pytest.mark.full
def test_everyday_pairs_are_none_twice_and_nearly_all_unlike_what_translators_are_judged_on(mixture):
    rows = everyday_pairs()
    for column in zip(*rows, strict=True):
        assert len(set(column)) == len(rows) > 13_000
    assert sum(mixture.sentences.refusals.refuse(en, zh) for en, zh in rows) < 0.01 * len(rows)


def test_an_epoch_has_its_shares(mixture, monkeypatch):
    for name in ("CAPITALS", "LOWER_CASE", "NO_STOP"):
        monkeypatch.setattr(mixing, name, 0)
    everyday = {*map(tuple, everyday_pairs())}
    pairs, bpe_dropout = mixture.epoch(9, of=10, size=200, seed=1)
    kinds = Counter(
        "corpus" if pair in CORPUS else "everyday" if (pair.en, pair.zh) in everyday else "drawn" for pair in pairs
    )
    last = SCHEDULE[-1]
    assert bpe_dropout == last.bpe_dropout
    assert kinds["corpus"] == round(200 * last.corpus)
    assert kinds["everyday"] == pytest.approx(200 * last.everyday, abs=2)
    assert len(pairs) == pytest.approx(200, abs=2)


def test_epochs_are_seeded_and_differ(mixture):
    first = mixture.epoch(0, of=4, size=100, seed=1)
    assert first == mixture.epoch(0, of=4, size=100, seed=1)
    assert first != mixture.epoch(0, of=4, size=100, seed=2)
    assert not set(first[0][-40:]) & set(mixture.epoch(1, of=4, size=100, seed=1)[0][-40:]), "drawn afresh"


def test_pairs_take_turns():
    drawn = taking_turns(CORPUS, 0, 30, seed=1) + taking_turns(CORPUS, 30, 95, seed=1)
    assert drawn == taking_turns(CORPUS, 0, 125, seed=1)
    assert set(drawn[:50]) == set(drawn[50:100]) == set(CORPUS)
    assert drawn[:50] != drawn[50:100]


def test_no_pair_with_a_judged_sentence_is_trained_on(tmp_path):
    """Whatever its punctuation and case, and on either side."""
    judged = SUPPLEMENT / "judged"
    sentences = read_rows(judged / "everyday.tsv", columns=5)
    english = next(row[0] for row in sentences if row[1] == "en-zh")
    chinese = next(row[0] for row in sentences if row[1] == "zh-en")
    second = read_rows(judged / "minimal_pairs.tsv", columns=8)[0][5]
    aligned = read_rows(SUPPLEMENT / "alignment.tsv", columns=4)[0][1].replace(" ", "")
    bad = [(english.upper().strip(".?!"), "一。"), ("Two.", chinese + "！"), (second, "三。"), ("Four.", aligned)]
    mixture = Mixture.load(write(tmp_path / "pairs.tsv", [*bad, (CORPUS[0].en, CORPUS[0].zh)]), SUPPLEMENT)
    assert mixture.left_out == len(bad)
    assert mixture.corpus == CORPUS[:1]
    refused = {plain(text) for text in evaluation_texts(SUPPLEMENT)}
    pairs, _ = mixture.epoch(0, of=4, size=2000, seed=1)
    assert [pair for pair in pairs if plain(pair.en) in refused or plain(pair.zh) in refused] == []


def test_a_corpus_without_a_pair_is_named(tmp_path):
    judged = next(row for row in read_rows(SUPPLEMENT / "judged" / "everyday.tsv", columns=5) if row[1] == "en-zh")
    path = write(tmp_path / "pairs.tsv", [(judged[0], "一。")])
    with pytest.raises(DataError, match=r"pairs\.tsv has no pair to train with, only sentences that"):
        Mixture.load(path, SUPPLEMENT)


def test_only_english_that_is_read_is_typed_carelessly():
    once = [*CORPUS, *(Pair(f"Xi'an {n}", f"西安{n}", "zh-en") for n in range(50))]
    typed = list(as_typed(once * 40, random.Random(0)))
    directed = [triple for pair in typed for triple in pair.directed()]
    assert len(directed) == 40 * (2 * 50 + 50), "each direction of each pair once"
    english = [source for source, _, to in directed if to == "zh"]
    shares = Counter("upper" if text.isupper() else "lower" if text.islower() else "usual" for text in english)
    assert shares["upper"] / len(english) == pytest.approx(mixing.CAPITALS, abs=0.015)
    assert shares["lower"] / len(english) == pytest.approx(mixing.LOWER_CASE, abs=0.015)
    assert all(target[0].isupper() and not target.isupper() for _, target, to in directed if to == "en")
    ends = [(source[-1] in ".。", target[-1] in ".。") for source, target, _ in directed if "apples" in source + target]
    assert all(one == other for one, other in ends)
    assert ends.count((False, False)) / len(ends) == pytest.approx(mixing.NO_STOP, abs=0.02)


def test_the_tokenizer_learns_from_all_of_it(mixture, monkeypatch):
    monkeypatch.setattr(mixing, "GRAMMAR_TEXTS", 30)
    texts, syllables = mixture.texts(seed=1)
    assert "xiao" in syllables
    for wanted in (CORPUS[7].zh, mixture.everyday[0].zh, "Beijing"):
        assert any(wanted.rstrip("。") in text for text in texts)
    known = {text for pair in (*CORPUS, *mixture.everyday) for text in (pair.en, pair.zh)}
    assert sum(text not in known for text in texts[-60:]) > 50, "sentences of the grammar"
