"""What people type first: the lists, what is drawn from them, and what is held out."""

import random
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from visformer.training import first_sentences, supplement
from visformer.training.data import Pair
from visformer.training.first_sentences import CAP, COPIED, FOLDER, FirstSentences, capped, filled
from visformer.training.mixture import is_judged
from visformer.training.refusals import evaluation_texts
from visformer.training.supplement import Frame, kind_of, plain, read_rows

SUPPLEMENT = Path(__file__).resolve().parents[2] / "supplement"


@pytest.fixture(scope="module")
def names():
    return supplement.load(SUPPLEMENT)


@pytest.fixture(scope="module")
def lists():
    return FirstSentences.load(SUPPLEMENT)


@pytest.fixture(scope="module")
def judged():
    return frozenset(map(plain, evaluation_texts(SUPPLEMENT)))


def test_all_slots_are_filled_with_the_same_text_on_both_sides_or_a_name_and_its_translation(names, lists):
    rng = random.Random(0)
    for frame in (*lists.journeys, *lists.copies):
        kinds = {kind_of(slot) for slot in frame.slots}
        assert {f"{{{slot}}}" for slot in frame.slots} == {*re.findall(r"\{\w+\}", frame.en)}, frame
        assert {*re.findall(r"\{\w+\}", frame.en)} == {*re.findall(r"\{\w+\}", frame.zh)}, frame
        assert kinds <= {*COPIED, "place", "region", "person", "university"}, frame
        pairs = [filled(names, frame, rng, lists.words) for _ in range(3)]
        assert all(pair is None or "{" not in pair.en + pair.zh for pair in pairs)


@pytest.mark.parametrize("kind", COPIED)
def test_what_is_copied_keeps_its_case_and_differs_each_time(names, lists, kind):
    frame, rng = (
        Frame("{0} is here.".replace("0", kind), "{0}在这里。".replace("0", kind), (kind,), 1),
        random.Random(1),
    )
    drawn = [filled(names, frame, rng, lists.words) for _ in range(60)]
    texts = [pair.en.removesuffix(" is here.") for pair in drawn if pair]
    assert all(pair.zh == f"{text}在这里。" for pair, text in zip(filter(None, drawn), texts, strict=True))
    assert len({*texts}) > 30 and not any("\t" in text or not text for text in texts)


def test_what_is_judged_is_never_drawn_and_what_is_taught_stands_in_the_phrases(names, lists, judged):
    is_held_out = partial(is_judged, judged=judged)
    kept = lists.without(is_held_out)
    drawn = kept.sample(names, 2_000, seed=1, judged=is_held_out)
    assert not [pair for pair in drawn if is_held_out(pair)]
    assert drawn == kept.sample(names, 2_000, seed=1, judged=is_held_out)
    texts = {plain(text) for pair in kept.phrases for text in (pair.en, pair.zh)}
    for name in ("first", "phrases"):
        taught = read_rows(SUPPLEMENT / FOLDER / "taught" / f"{name}.tsv", columns=6 if name == "first" else 5)
        missing = [row[0] for row in taught if plain(row[0]) not in texts]
        assert len(missing) <= 0.2 * len(taught), missing
    assert {"howareyou", "attentionisallyouneed"} <= texts


def test_a_name_of_another_pair_makes_room_for_one_to_copy_if_it_stands_there_once(names, lists):
    pairs = [
        Pair("Tom's dog likes Beijing.", "汤姆的狗喜欢北京。"),
        Pair("Tom knows Mary.", "汤姆认识玛丽。"),
        Pair("Tomorrow it rains.", "明天下雨。"),
        Pair("Tom said that Tom was ill.", "汤姆说他病了。"),
        Pair("Tom is here.", "他在这里。"),
    ]
    renamed = lists.with_frames_of(pairs, names.given).renamed
    assert [(frame.en, frame.zh) for frame in renamed] == [("{copy}'s dog likes Beijing.", "{copy}的狗喜欢北京。")]


@pytest.mark.full
def test_the_shares_are_those_stated(names, lists):
    lists = lists.with_frames_of([Pair("Tom is here.", "汤姆在这里。")], names.given)
    drawn = lists.sample(names, 1_000, seed=2, judged=lambda pair: False)
    assert sum(first_sentences.SHARES.values()) == pytest.approx(1) and len(drawn) == pytest.approx(1_000, abs=3)
    assert sum(pair in {*lists.phrases} for pair in drawn) == pytest.approx(
        1_000 * first_sentences.SHARES["phrases"], abs=30
    )


def test_a_target_of_many_sources_is_drawn_a_few_times_in_each_turn():
    pairs = [Pair(f"Hello {n}", "你好", "en-zh") for n in range(50)] + [Pair("Bye", "再见", "en-zh")]
    drawn = capped(pairs, 4 * (CAP + 1), random.Random(0))
    assert Counter(pair.zh for pair in drawn) == {"你好": 4 * CAP, "再见": 4}
