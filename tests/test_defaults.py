"""What is shown first agrees with what its text says."""

import json

import numpy as np
import pytest

from scripts.choose_heads import FIRST, partners, start
from tests.kinds import model_of
from visformer.adapters.checkpoints import folder_of
from visformer.analysis.word_alignment import by_words
from visformer.training.evaluation.alignment import forced_pattern


@pytest.fixture(scope="module")
def model():
    return model_of("en-zh")


def first():
    return json.loads((folder_of("en-zh") / "start.json").read_text(encoding="utf-8"))


def test_each_word_of_the_first_example_reads_its_partner_in_the_head_that_is_shown_first(model):
    table = by_words(model, forced_pattern(model, FIRST, to="zh"), FIRST)["input"][first()["layer"], first()["head"]]
    assert {(int(source), target) for target, source in enumerate(table.argmax(axis=-1))} == FIRST.sure


@pytest.mark.full
def test_the_head_that_is_shown_first_is_the_best_by_its_measure(model):
    assert start(model) == first()


def test_the_measure_is_the_share_of_content_words_that_read_their_partner(model):
    """Counted by hand for the first example: 4 words, of which the head of the first text finds all."""
    heads = partners(model, [FIRST], to="zh")
    assert heads.sizes == [4]
    pattern = forced_pattern(model, FIRST, to="zh")  # one token for each word, behind <zh>
    by_hand = [(pattern[layer, head, 1:5].argmax(axis=-1) == [0, 1, 3, 4]).sum() for layer, head in np.ndindex(3, 8)]
    assert heads.hits[:, 0].tolist() == by_hand
