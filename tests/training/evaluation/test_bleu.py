"""BLEU: sacreBLEU's own figures, its paired bootstrap, and what held-out pairs have in common with others."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from tests.training.evaluation.support import Parrot
from tests.training.test_supplement import FOLDER
from visformer.analysis.intervals import percentiles
from visformer.training import grammar
from visformer.training.data import Pair
from visformer.training.evaluation.bleu import outputs, overlaps, resampled, score, scores, statistics

PAIRS = [
    Pair("I went to the school today.", "我今天去学校了。"),
    Pair("She likes this very much.", "她非常喜欢这个。"),
    Pair("The cat is sleeping on the sofa now.", "猫现在正在沙发上睡觉。"),
    Pair("We eat dinner at seven o'clock.", "我们七点吃晚饭。"),
]
PERFECT = {p.en: p.zh for p in PAIRS} | {p.zh: p.en for p in PAIRS}
EARLIER = PERFECT | {
    PAIRS[0].en: "我去学校了。",
    PAIRS[2].zh: "The cat sleeps on the sofa now.",
    PAIRS[3].zh: "We eat.",
}


def test_a_perfect_translator_has_100_and_is_better_than_another():
    told = scores(PAIRS, *(outputs(Parrot(each), PAIRS) for each in (PERFECT, EARLIER)))
    assert told["pairs"] == 4
    for direction in ("en-zh", "zh-en"):
        one = told[direction]
        assert (one["bleu"], one["chrf"]) == pytest.approx((100, 100))
        assert one["against"]["difference"] == pytest.approx(100 - one["against"]["bleu"])
        assert 0 <= one["against"]["low"] < one["against"]["difference"] < one["against"]["high"]


@pytest.mark.parametrize(("direction", "source", "target"), [("en-zh", "en", "zh"), ("zh-en", "zh", "en")])
def test_scores_and_signatures_are_those_of_sacrebleu(direction, source, target):
    texts = [EARLIER[getattr(pair, source)] for pair in PAIRS]
    references = [getattr(pair, target) for pair in PAIRS]
    told = scores(PAIRS, outputs(Parrot(EARLIER), PAIRS))[direction]
    tokenizer = "zh" if target == "zh" else "13a"
    expected = sacrebleu.corpus_bleu(texts, [references], tokenize=tokenizer).score
    assert told["bleu"] == pytest.approx(expected)
    assert told["chrf"] == pytest.approx(sacrebleu.corpus_chrf(texts, [references]).score)
    assert score(statistics(texts, references, direction).sum(axis=0)) == pytest.approx(expected)
    assert f"tok:{tokenizer}|smooth:exp" in told["signatures"]["bleu"]
    assert "against" not in told


def test_resamples_are_those_of_sacrebleus_paired_bootstrap():
    rng = np.random.default_rng(1)
    words = [f"word{i}" for i in range(12)]
    references = [" ".join(rng.choice(words, size=9)) for _ in range(60)]
    systems = {}
    for name, wrong in (("one", 0.2), ("other", 0.4)):
        lines = [[w if rng.random() > wrong else "wrong" for w in line.split()] for line in references]
        systems[name] = [" ".join(line) for line in lines]
    ours = {name: resampled(statistics(lines, references, "zh-en")) for name, lines in systems.items()}
    _, told = PairedTest([*systems.items()], {"BLEU": BLEU()}, [references], test_type="bs", n_samples=1000)()
    for name, theirs in zip(told["System"], told["BLEU"], strict=True):
        assert ours[name].mean() == pytest.approx(theirs.mean, abs=1e-3)
        low, high = percentiles(ours[name])
        assert (high - low) / 2 == pytest.approx(theirs.ci, rel=0.02)
    low, high = percentiles(ours["one"] - ours["other"])
    assert 0 < low < ours["one"].mean() - ours["other"].mean() < high
    assert told["BLEU"][1].p_value < 0.05, "sacreBLEU finds the difference too"


def test_a_held_out_pair_is_like_a_seen_one_by_a_side_or_by_its_content_words():
    known = grammar.load(FOLDER / "grammar").refusals
    seen = [Pair("The dog drank the milk.", "狗喝了牛奶。"), Pair("Why me?", "为什么是我？")]
    held_out = [
        Pair("THE DOG DRANK THE MILK", "那只狗把牛奶喝完了。"),
        Pair("Do dogs drink milk?", "小狗会喝奶吗？"),
        Pair("The dog drank the water.", "狗喝了水。"),
        Pair("Is it you?", "是你吗？"),
    ]
    assert overlaps(held_out, seen, known) == ["equal", "content", "", ""]
