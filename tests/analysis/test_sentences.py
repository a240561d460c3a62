"""Lists of sentences to measure heads on."""

import csv
from pathlib import Path

import pytest

from visformer.analysis import effect_sentences, parse_sentences
from visformer.errors import TextError

ALIGNED = Path(__file__).parents[2] / "supplement" / "alignment.tsv"


def test_the_bundled_list_is_of_pairs_that_no_training_had():
    with ALIGNED.open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t")
        evaluated = [(row["en"], row["zh"].replace(" ", "")) for row in rows]
    assert list(effect_sentences()) == evaluated
    assert list(effect_sentences("gpt2")) == [source for source, _ in evaluated]


def test_a_line_is_a_sentence_or_a_pair():
    text = "\ufeffI went.\n\n  She left.\t她走了。 \r\n"
    assert parse_sentences(text) == ("I went.", ("She left.", "她走了。"))


def test_errors_name_the_line():
    for text, message in (
        ("a\nb\tc\td", "Line 2 has 3 columns"),
        ("a\n\tb", "Line 2: nothing is written on one side"),
        ("a\t ", "Line 1: nothing is written on one side"),
        (" \n\n", "The list is empty"),
    ):
        with pytest.raises(TextError, match=message):
            pytest.fail(f"{text!r} is read as {parse_sentences(text)}")
