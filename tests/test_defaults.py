"""What is shown first agrees with what its text says."""

import base64
import json
import re

import numpy as np
import pytest

from scripts.choose_heads import FIRST, partners, start
from tests.kinds import model_of
from visformer import export
from visformer.adapters.checkpoints import folder_of
from visformer.analysis import guesses
from visformer.analysis.heads import clearest_head, first_head, strongest_word
from visformer.analysis.word_alignment import by_words
from visformer.export.attention import selected
from visformer.figures import source_of
from visformer.pictures.examples import EXAMPLES
from visformer.pictures.registry.picture import pictures
from visformer.trace.stacks import stack_named
from visformer.training.evaluation.alignment import forced_pattern
from visformer.web.selection import BEGINNING, START_VIEW, Selection


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


def test_the_word_that_is_chosen_first_is_the_name_and_reads_its_partner(model):
    trace = model.trace(EXAMPLES[0])
    pattern = trace["decoder.0.cross_attn.pattern"].value[7]
    row = strongest_word(
        pattern, trace.tokens["tgt"], trace.tokens["src"], (trace.special["tgt"], trace.special["src"])
    )
    assert (trace.tokens["tgt"][row], trace.tokens["src"][pattern[row].argmax()]) == ("东北", "Northeastern")
    assert pattern[row].max() == pytest.approx(0.96, abs=0.005)


@pytest.mark.parametrize("text", EXAMPLES)
def test_what_is_asked_first_has_a_word_as_its_answer(model, text):
    trace = model.trace(text)
    readers = guesses.words_of(trace, "tgt")
    where = {"layer": first()["layer"], "head": first()["head"]}
    rows = [guesses.word_row(trace, "decoder.cross_attn", at, **where) for at in range(len(readers))]
    at = guesses.to_ask(readers, rows)
    answer = rows[at].words[int(rows[at].weights.argmax())].text
    assert any(map(str.isalpha, answer)) and answer != "</s>"
    assert any(map(str.isalpha, readers[at].text)) and readers[at].text not in ("<zh>", "<en>")


def test_no_word_is_asked_about_where_all_read_punctuation():
    words = [guesses.Word(text, (i,), is_special=text == "</s>") for i, text in enumerate(["a", "b", ".", "</s>"])]
    rows = [guesses.WordRow(tuple(words), np.array(weights)) for weights in ([0.1, 0.2, 0.7, 0], [0.1, 0.2, 0, 0.7])]
    assert guesses.to_ask(words[:2], rows) is None


def test_the_strongest_word_is_no_mark_and_no_special_token_and_of_equal_ones_the_longest():
    queries, keys = ["<zh>", "我", "东北", "。"], ["I", "Northeastern", ".", "</s>"]
    pattern = np.array([[0, 0, 0, 1.0], [0.964, 0, 0, 0.036], [0, 0.961, 0, 0.039], [0, 1.0, 0, 0]])
    special = ([True, False, False, False], [False, False, False, True])
    assert strongest_word(pattern, queries, keys, special) == 2, "both .96"
    pattern[2] = [0, 0.94, 0, 0.06]
    assert strongest_word(pattern, queries, keys, special) == 1, ".96 and .94"
    pattern[1:3] = [[0, 0, 0.99, 0.01], [0.4, 0.1, 0.3, 0.2]]
    assert strongest_word(pattern, queries, keys, special) == 2, "what reads a word goes before what reads a mark"
    assert strongest_word(pattern[[0, 3]], ["<zh>", "。"], keys, ([True, False], special[1])) is None


def test_other_models_begin_with_the_head_whose_words_read_another_word_most():
    """Counted in loops: the mean over the words of the largest weight on another word."""
    trace = model_of("mini-gpt").trace(EXAMPLES[0])
    tokens, is_special = trace.tokens["tgt"], trace.special["tgt"]
    words = [i for i, token in enumerate(tokens) if not is_special[i] and any(map(str.isalnum, token))]
    score = {}
    for layer, pattern in trace.layers("decoder.self_attn").items():
        for head, rows in enumerate(pattern.value):
            most = [max(float(rows[i, j]) for j in words if j != i) for i in words]
            score[layer, head] = sum(most) / len(words)
    assert clearest_head(trace, stack_named("decoder.self_attn")) == max(score, key=score.get)


@pytest.mark.parametrize("name", ["en-zh", "mini-gpt"])
def test_files_notebooks_and_the_command_line_begin_with_the_head_of_the_pages(name, tmp_path):
    trace = model_of(name).trace(EXAMPLES[0], record=model_of(name).available(("*",)))
    stack, layer, head = place = first_head(trace)
    assert place == (tuple(first().values()) if name == "en-zh" else (stack, *clearest_head(trace, stack_named(stack))))
    assert place[1:] != (0, 0), "otherwise this test would not tell them apart"
    assert BEGINNING.within(trace) == Selection(*place, view=START_VIEW)
    assert selected(trace) == Selection(*place)
    assert f'"stack":"{stack}","layer":{layer},"head":{head},' in first_message(export.page(trace))
    for picture in (one for one in pictures().values() if one.shows_head and not one.name.startswith("compare")):
        setting = picture.setting(source_of(trace), {})
        values = dict(zip(("stack", "layer", "head"), place, strict=True))
        assert {option: setting[option] for option in values if option in picture.names}.items() <= values.items()


def test_a_part_of_a_place_means_the_first_of_the_rest(model):
    """As in links."""
    trace = model.trace(EXAMPLES[0])
    assert selected(trace, layer=1) == Selection(layer=1)
    assert selected(trace, stack="decoder.cross_attn") == Selection("decoder.cross_attn")
    setting = pictures()["query"].setting(source_of(trace), {"head": 2})
    assert (setting["stack"], setting["layer"], setting["head"]) == ("encoder.self_attn", 0, 2)


def first_message(page):
    """The first message of a saved page, as text."""
    return base64.b64decode(re.search(r'id="picture">([^<]+)<', page)[1]).decode(errors="replace")
