"""The hand-aligned sentence pairs: words, links between them, and no overlap with other data."""

import re

import pytest

from tests.training.test_supplement import FOLDER, plain
from visformer.training.evaluation.alignment import read_aligned
from visformer.training.supplement import read_rows

ROWS = read_rows(FOLDER / "alignment.tsv", columns=4)
PAIRS = read_aligned(FOLDER / "alignment.tsv")
each = pytest.mark.parametrize(("row", "pair"), [*zip(ROWS, PAIRS, strict=True)], ids=[row[0] for row in ROWS])


def test_there_are_fifty_pairs_without_duplicates():
    assert len(ROWS) == 50
    for column in (0, 1):
        assert len({plain(row[column]) for row in ROWS}) == len(ROWS)


@each
def test_words_rebuild_the_sentences(row, pair):
    en, zh = row[:2]
    assert " ".join(en.split()) == en
    assert "".join(pair.source) == en.replace(" ", "")
    assert " ".join(pair.target) == zh
    assert 4 <= sum(word[0].isalnum() for word in pair.source) <= 12
    # A run of Latin letters or digits would need its spaces back; there is none.
    assert re.fullmatch(r"[\u4e00-\u9fff ]+(?: ， [\u4e00-\u9fff ]+)?[。？！]", zh)


@each
def test_links_are_sorted_and_valid_and_link_punctuation_only_to_punctuation(row, pair):
    sure, further = ([tuple(map(int, link.split("-"))) for link in cell.split()] for cell in row[2:])
    assert sure == sorted(sure) and further == sorted(further)
    assert len({*sure, *further}) == len(sure) + len(further)
    assert (pair.sure, pair.possible) == ({*sure}, {*sure, *further})
    assert (len(pair.source) - 1, len(pair.target) - 1) in pair.sure
    for i, j in pair.possible:
        assert pair.source[i][0].isalnum() == pair.target[j][0].isalnum(), (pair.source[i], pair.target[j])


def test_held_out_sentences_are_absent():
    held_out = [cell for row in read_rows(FOLDER / "held_out.tsv", columns=5) for cell in row[:2]]
    examples = ["I went to Northeastern University.", "我去东北大学。", "我去了东北大学。"]
    assert not {*map(plain, examples + held_out)} & {plain(cell) for row in ROWS for cell in row[:2]}
