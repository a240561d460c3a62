"""The hand-aligned sentence pairs: words, links between them, and no overlap with other data."""

import re

from tests.training.test_supplement import FOLDER, plain
from visformer.training.evaluation.alignment import read_aligned
from visformer.training.supplement import read_rows

ROWS = read_rows(FOLDER / "alignment.tsv", columns=4)


def test_fifty_different_pairs_have_words_that_rebuild_them_and_valid_links():
    assert len(ROWS) == 50
    assert all(len({plain(row[column]) for row in ROWS}) == len(ROWS) for column in (0, 1))
    for (en, zh, *cells), pair in zip(ROWS, read_aligned(FOLDER / "alignment.tsv"), strict=True):
        assert en == " ".join(en.split()) and en.replace(" ", "") == "".join(pair.source)
        assert zh == " ".join(pair.target)
        assert 4 <= sum(word[0].isalnum() for word in pair.source) <= 12, en
        # A run of Latin letters or digits would need its spaces back; there is none.
        assert re.fullmatch(r"[\u4e00-\u9fff ]+(?: ， [\u4e00-\u9fff ]+)?[。？！]", zh), zh

        sure, further = ([tuple(map(int, link.split("-"))) for link in cell.split()] for cell in cells)
        assert sure == sorted(sure) and further == sorted(further), en
        assert len({*sure, *further}) == len(sure) + len(further), en
        assert (pair.sure, pair.possible) == ({*sure}, {*sure, *further})
        assert (len(pair.source) - 1, len(pair.target) - 1) in pair.sure, en
        for i, j in pair.possible:
            words = pair.source[i], pair.target[j]
            assert words[0][0].isalnum() == words[1][0].isalnum(), ("punctuation is linked to punctuation", en, words)


def test_held_out_sentences_are_absent():
    held_out = [cell for row in read_rows(FOLDER / "held_out.tsv", columns=5) for cell in row[:2]]
    examples = ["I went to Northeastern University.", "我去东北大学。", "我去了东北大学。"]
    assert not {*map(plain, examples + held_out)} & {plain(cell) for row in ROWS for cell in row[:2]}
