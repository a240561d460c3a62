"""Judged translations: words and names that have to be there, minimal pairs, and whether confidence tells them."""

from collections import Counter

import numpy as np
import pytest

from tests.training.evaluation.support import Parrot
from tests.training.test_supplement import FOLDER
from visformer.model.decoding import Decoding
from visformer.training.evaluation.judged import (
    KEPT,
    Judged,
    Judgement,
    auroc,
    calibration,
    halves,
    held_out_names,
    judged,
    judged_report,
    names_report,
    reliability,
)
from visformer.training.supplement import read_rows


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
    assert (result.kind, [one.output for one in result.sentences], result.right) == ("ordinary", [output], right)
    share = judged_report([result, result])["ordinary"]
    assert (share["right"], share["n"]) == (2 * right, 2)


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
    (result,) = judged(Parrot({row[2]: first, row[5]: second}, {row[5]: 0.25}), tmp_path)
    assert (result.kind, result.right) == ("pairs", right)
    assert [sentence.right for sentence in result.sentences] == [first == "汤姆帮玛丽。", second == "玛丽帮汤姆。"]
    assert [sentence.confidence for sentence in result.sentences] == [0.5, 0.25]


def test_the_judged_lists_are_whole():
    sentences = read_rows(FOLDER / "judged" / "everyday.tsv", columns=5)
    pairs = read_rows(FOLDER / "judged" / "minimal_pairs.tsv", columns=8)
    assert Counter(row[2] for row in sentences) == {"ordinary": 150, "hard": 150}
    assert len(pairs) == 60
    assert all(row[3].strip() for row in sentences)
    assert all(cell for row in pairs for cell in row), "an empty expression would match every translation"
    assert {row[1] for row in (*sentences, *pairs)} == {"en-zh", "zh-en"}


def row(kind, *told):
    return Judged(kind, tuple(Judgement("source", "output", confidence, right) for confidence, right in told))


def test_the_area_is_that_of_hanley_and_mcneil_1982():
    """Ratings of 58 normal and 51 abnormal images, from definitely abnormal to definitely normal: table I."""
    normal, abnormal = (2, 11, 6, 6, 33), (33, 11, 2, 2, 3)
    ratings = [rating for counts in (normal, abnormal) for rating, n in enumerate(counts) for _ in range(n)]
    is_normal = np.arange(len(ratings)) < sum(normal)
    assert auroc(np.array(ratings, dtype=float), is_normal) == pytest.approx(0.893, abs=5e-4)


def test_halves_share_no_row_and_have_each_kind_alike():
    rows = [row("ordinary", (i / 100, True)) for i in range(30)] + [row("pairs", (0.5, True), (0.5, False))] * 10
    first, second = halves(rows)
    assert len(first) == len(second) == 20
    assert sorted(map(id, first + second)) == sorted(map(id, rows))
    for half in (first, second):
        assert sum(one.kind == "pairs" for one in half) == 5
    assert halves(rows) == (first, second)


def many(n, confidence_of):
    """Return rows of which every fourth is wrong."""
    rng = np.random.default_rng(0)
    return [row("ordinary", (float(confidence_of(i % 4 > 0, rng)), i % 4 > 0)) for i in range(n)]


def test_a_confidence_that_knows_is_perfect_and_the_threshold_leaves_nearly_all_right_ones():
    told = calibration(many(800, lambda right, rng: rng.uniform(0.5, 1) if right else rng.uniform(0, 0.4)))
    assert told["auroc"]["value"] == told["auroc"]["low"] == told["auroc"]["high"] == 1
    assert told["threshold"] == pytest.approx(0.515, abs=0.01)
    assert told["recall"]["share"] == 1
    assert told["kept"]["share"] == pytest.approx(KEPT, abs=0.03)
    assert told["kinds"] == {"ordinary": {"recall": told["recall"], "kept": told["kept"], "auroc": 1.0}}
    assert told["kept"]["n"] + told["recall"]["n"] == told["auroc"]["n"] == 400
    marked = told["precision"]
    assert marked["n"] == told["recall"]["right"] + told["kept"]["n"] - told["kept"]["right"]
    assert marked["right"] == told["recall"]["right"]


def test_a_confidence_that_knows_nothing_has_a_half_in_its_interval():
    told = calibration(many(800, lambda right, rng: rng.uniform()))["auroc"]
    assert told["low"] < 0.5 < told["high"]
    # Hanley & McNeil 1982: the standard error for 100 wrong and 300 right ones is 0.033.
    assert told["high"] - told["low"] == pytest.approx(2 * 1.96 * 0.033, rel=0.15)


def test_the_threshold_is_chosen_on_one_half_and_scored_on_the_other():
    rows = many(400, lambda right, rng: rng.uniform(0.3 * right, 0.7 + 0.3 * right))
    choosing, scoring = halves(rows)
    told = calibration(rows)
    right = [s.confidence for one in choosing for s in one.sentences if s.right]
    assert np.mean(np.array(right) < told["threshold"]) == pytest.approx(1 - KEPT, abs=1 / len(right))
    wrong = [s.confidence < told["threshold"] for one in scoring for s in one.sentences if not s.right]
    assert told["recall"] | {"low": 0, "high": 0} == {
        "n": len(wrong),
        "right": sum(wrong),
        "share": sum(wrong) / len(wrong),
        "low": 0,
        "high": 0,
    }


def test_nothing_can_be_said_if_all_is_right_or_all_is_wrong():
    for right in (True, False):
        assert calibration([row("ordinary", (0.5, right))] * 6) is None


def test_reliability_counts_what_is_in_each_tenth():
    confidence, right = np.array([0.05, 0.42, 0.48, 0.9, 1.0]), np.array([False, True, False, True, True])
    table = reliability(confidence, right)
    ends = [(one["from"], one["to"]) for one in table]
    assert ends == [(0.0, 0.1), (0.4, 0.5), (0.9, 1.0)]
    assert [(one["n"], one["right"], one["confidence"]) for one in table] == [
        (1, 0, pytest.approx(0.05)),
        (2, 1, pytest.approx(0.45)),
        (2, 2, pytest.approx(0.95)),
    ]


class Echo:
    """Translates nothing."""

    def translate_many(self, sources, *, to, batch):
        return [Decoding(source, (), (), (), 1.0) for source in sources]


def test_a_copy_of_the_source_has_most_names_to_copy_right_but_no_sentence():
    results = held_out_names(Echo(), FOLDER)
    assert len(results) == 50
    assert all(row.name and row.name in row.expected for row in results)
    assert all(not row.exact for row in results)
    copies = [row for row in results if row.kind == "copy"]
    assert sum(row.name_right for row in copies) >= len(copies) - 4  # "X University" is not a copy of "X大学"
    table = names_report(results)
    assert table["all"]["sentences"] == 50 == sum(table[kind]["sentences"] for kind in ("copy", "pinyin", "composed"))
    assert table["copy"]["name_right"] == sum(row.name_right for row in copies)
