"""The training supplement: its lists are valid, and generated sentences follow its rules."""

import re
from collections import Counter
from pathlib import Path

import pytest

from visformer.training import supplement as generate

FOLDER = Path(__file__).resolve().parents[2] / "supplement"

NAME_FILES = ("places.tsv", "universities.tsv", "people.tsv")
COLUMNS = {
    "places.tsv": 3,
    "universities.tsv": 3,
    "people.tsv": 3,
    "syllables.tsv": 3,
    "frames.tsv": 4,
    "held_out_frames.tsv": 3,
    "held_out.tsv": 5,
}


@pytest.fixture(scope="module")
def supplement():
    return generate.load(FOLDER)


@pytest.fixture(scope="module")
def many(supplement):
    return [pair for seed in range(6) for pair in generate.sample(supplement, 1000, seed=seed)]


def plain(text):
    return re.sub(r"[\W_]+", "", text).lower()


def rows_of(name):
    return generate.read_rows(FOLDER / name, columns=COLUMNS[name])


def test_cells_have_text_without_outer_spaces_and_lists_no_duplicates():
    for name in COLUMNS:
        rows = rows_of(name)
        assert rows and all(cell and cell == cell.strip() for row in rows for cell in row), name
    for names, column in ((NAME_FILES, 0), (NAME_FILES, 1), (["syllables.tsv"], 0), (["frames.tsv"], 0)):
        counts = Counter(row[column] for name in names for row in rows_of(name))
        assert [text for text, count in counts.items() if count > 1] == []


def test_both_sentences_of_a_frame_have_its_placeholders_and_the_same_final_mark():
    for row in (*rows_of("frames.tsv"), *rows_of("held_out_frames.tsv")):
        slots = sorted(row[2].split("+"))
        assert len(set(slots)) == len(slots)
        assert sorted(re.findall(r"\{(\w+)\}", row[0])) == sorted(re.findall(r"\{(\w+)\}", row[1])) == slots, row
        assert row[0][-1] + row[1][-1] in {".。", "?？", "!！", "}}"}, row


def test_frames_map_one_to_one_and_do_not_include_held_out_ones():
    frames, held_out = (
        [[re.sub(r"\{\w+\}", "X", sentence) for sentence in row[:2]] for row in rows_of(name)]
        for name in ("frames.tsv", "held_out_frames.tsv")
    )
    forward, backward = {}, {}
    for en, zh in frames:
        assert forward.setdefault(en, zh) == zh
        assert backward.setdefault(zh, en) == en
    for en, zh in held_out:
        assert en not in forward
        assert zh not in backward


def test_pairs_depend_only_on_the_seed(supplement):
    first = generate.sample(supplement, 300, seed=7)
    assert first == generate.sample(generate.load(FOLDER), 300, seed=7)
    assert first != generate.sample(supplement, 300, seed=8)


def test_the_example_of_the_course_is_never_generated_but_its_parts_are(supplement, many):
    for en, zh, _ in many:
        assert plain(en) != "iwenttonortheasternuniversity"
        assert plain(zh) != "我去东北大学"
    assert any("Northeastern University" in en and "东北大学" in zh for en, zh, _ in many)
    assert any(
        re.fullmatch(r"I went to \w+ University\.", en) and re.fullmatch("我去.+大学。", zh) for en, zh, _ in many
    )
    for en in ("I went to Northeastern University.", "I went to Northeastern University", "x"):
        for zh in ("我去东北大学。", "我去东北大学", "y"):
            assert generate.refused(supplement, en, zh) == ((en, zh) != ("x", "y"))


def test_held_out_names_are_never_generated(supplement, many):
    text = "\n".join(f"{en}\t{zh}" for en, zh, _ in many).lower()
    places = {en: zh for en, zh, _ in rows_of("places.tsv")}
    rows = rows_of("held_out.tsv")
    assert [sum(row[4] == kind for row in rows) for kind in ("copy", "pinyin", "composed")] == [20, 15, 15]
    for source, expected, direction, name, kind in rows:
        assert name.lower() not in text
        if kind == "composed":
            assert places[name.removesuffix(" University")] + "大学" not in text
        en, zh = (source, expected) if direction == "en-zh" else (expected, source)
        assert generate.refused(supplement, en, zh)


def test_expected_translations_of_held_out_names_follow_the_rules(supplement):
    for source, expected, direction, name, kind in rows_of("held_out.tsv"):
        assert direction in {"en-zh", "zh-en"}
        if kind == "copy":
            assert name in source and name in expected
        elif kind == "pinyin":
            spelled = {spell(name, supplement.syllables) for spell in (generate.spell, generate.spell_person)}
            assert name in source and any(word in expected for word in spelled)


def test_generated_pairs_have_the_intended_shares_and_punctuation(many):
    pinyin = sum(direction == "zh-en" for *_, direction in many) / len(many)
    latin = sum(bool(re.search("[A-Za-z]", zh)) for _, zh, _ in many) / len(many)
    assert {direction for *_, direction in many} <= {"both", "en-zh", "zh-en"}
    assert pinyin == pytest.approx(0.20, abs=0.02)
    assert latin == pytest.approx(0.23, abs=0.02)
    for en, zh, _ in many:
        assert (en[-1] in ".?!") == (zh[-1] in "。？！")
        assert not re.search(r"[一-鿿。，？] | [一-鿿]", zh)
        assert "{" not in en + zh


def test_names_are_spelled_by_the_table_of_syllables(supplement):
    table = supplement.syllables
    assert generate.spell("青崖", table) == "Qingya"
    assert generate.spell_person("王晓岚", table) == "Wang Xiaolan"
    assert generate.spell("晓安", table) == "Xiao'an"
    rng = generate.random.Random(3)
    for slot in ("person", "university", "place", "surname"):
        for _ in range(200):
            en, zh = generate.pinyin_name(supplement, slot, rng)
            core = re.sub("(大学|[市县镇村])$", "", zh) if " " in en and slot != "person" else zh
            word = re.sub(" (University|City|County|Town|Village)$", "", en)
            assert re.sub("[' ]", "", word).lower() == "".join(table[c] for c in core)


def test_composed_universities_do_not_include_listed_ones(supplement):
    listed = {text for pair in supplement.universities for text in pair}
    assert len(supplement.composed) > 100
    assert not listed & {text for pair in supplement.composed for text in pair}
