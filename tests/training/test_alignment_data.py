"""The hand-aligned sentence pairs: every row parses and every link points at a word."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "supplement"
HEADER = ["en", "zh", "sure", "possible"]
WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z]+)?|[^\sA-Za-z0-9]")
LINKS = re.compile(r"(?:\d+-\d+(?: \d+-\d+)*)?")
REFUSED = ["I went to Northeastern University.", "我去东北大学。", "我去了东北大学。"]


def read(name):
    lines = (FOLDER / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return [line.split("\t") for line in lines]


def plain(text):
    return re.sub(r"[\W_]+", "", text).lower()


def links(cell):
    assert LINKS.fullmatch(cell), cell
    return [tuple(map(int, pair.split("-"))) for pair in cell.split()]


TABLE = read("alignment.tsv")
ROWS = TABLE[1:]
each_row = pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])


def test_header_and_size():
    assert TABLE[0] == HEADER
    assert len(ROWS) == 50


def test_no_duplicates():
    for column in (0, 1):
        assert len({plain(row[column]) for row in ROWS}) == len(ROWS)


@each_row
def test_words_rebuild_the_sentences(row):
    assert len(row) == len(HEADER)
    en, zh = row[:2]
    assert " ".join(en.split()) == en
    assert "".join(WORD.findall(en)) == en.replace(" ", "")
    assert " ".join(zh.split()) == zh
    assert 4 <= sum(word[0].isalnum() for word in WORD.findall(en)) <= 12
    # A run of Latin letters or digits would need its spaces back; there is none.
    assert re.fullmatch(r"[\u4e00-\u9fff ]+(?: ， [\u4e00-\u9fff ]+)?[。？！]", zh)


@each_row
def test_links_are_in_range_and_apart(row):
    en, zh = WORD.findall(row[0]), row[1].split(" ")
    sure, possible = links(row[2]), links(row[3])
    both = sure + possible
    assert len(set(both)) == len(both)
    assert all(i < len(en) and j < len(zh) for i, j in both)
    assert sure == sorted(sure) and possible == sorted(possible)
    assert (len(en) - 1, len(zh) - 1) in sure


@each_row
def test_marks_link_only_to_marks(row):
    en, zh = WORD.findall(row[0]), row[1].split(" ")
    for i, j in links(row[2]) + links(row[3]):
        assert en[i][0].isalnum() == zh[j][0].isalnum(), (en[i], zh[j])


def test_forbidden_sentences_are_absent():
    held_out = [cell for row in read("held_out.tsv")[1:] for cell in row[:2]]
    forbidden = {plain(text) for text in REFUSED + held_out}
    assert not forbidden & {plain(cell) for row in ROWS for cell in row[:2]}
