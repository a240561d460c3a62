"""Judged sentences: words that have to be there, and minimal pairs."""

from collections import Counter

import pytest

from tests.training.evaluation.support import Parrot
from tests.training.test_supplement import FOLDER
from visformer.training.evaluation.judged import judged, judged_report
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
