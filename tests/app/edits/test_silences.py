"""Sentences that one silenced head changes, and what is said where no word changes."""

from unittest.mock import patch

import numpy as np
import pytest
import streamlit as st

from tests.addresses import address_of
from tests.app.support import choose, in_a_session, texts
from visformer.app.edits import comparison, silences
from visformer.app.session import boxes
from visformer.panel import Labels, Panel
from visformer.web.selection import Selection

TEXT, HEAD = "The cat did not drink the milk.", Selection("decoder.cross_attn", layer=1, head=4)


def test_an_example_opens_with_its_head_silenced(new_app, monkeypatch):
    monkeypatch.setattr(silences, "examples", lambda model: {"我去学校。": Selection(), TEXT: HEAD})
    app = new_app(page="understand/head", head_view="silence", head_scales="1.1.50", target="我")
    choose(app, "silence_example", TEXT)
    shown = {"text": TEXT, "stack": "cross", "layer": "2", "head": "5", "head_view": "silence", "head_scales": "2.5.0"}
    assert address_of(app) == shown
    assert app.text_input(key=boxes.SOURCE).value == TEXT
    assert texts(app, "After: "), "the head is silenced"


@pytest.mark.parametrize("model", [None, "en-zh@1", "untrained-16x2-enc1-dec1-ff32", "../en-zh"])
def test_only_a_bundled_model_has_examples(model):
    assert silences.examples(model) == {}


def test_examples_are_those_of_the_file(monkeypatch, tmp_path):
    content = '[{"text": "a", "stack": "decoder.cross_attn", "layer": 1, "head": 4}]'
    (tmp_path / "silences.json").write_text(content, encoding="utf-8")
    monkeypatch.setattr(silences, "folder_of", lambda name: tmp_path)
    monkeypatch.setattr(silences, "BUNDLED", ("x", "y"))
    assert silences.examples("x") == {"a": HEAD}
    (tmp_path / "silences.json").write_text("[{}", encoding="utf-8")
    assert silences.examples("y") == {}, "a damaged file takes nothing else from the page"


def test_an_edit_that_changes_no_word_is_told(new_app):
    app = new_app(page="understand/head", head_view="silence", head_scales="1.1.99")
    assert texts(app, "No word changes"), "one per cent less of one head"


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ([0.9, 0.3], "No word changes. The probability of b (2) moves most: from 0.500 to 0.300."),
        ([0.8, 0.5001], "No word changes. The probability of a (1) moves most: from 0.900 to 0.800."),
        ([0.9001, 0.4997], "No word changes, and no probability by as much as 0.001."),
    ],
)
def test_the_probability_that_moves_most_is_named(after, said):
    sides = {"rows": Labels(("before", "after")), "columns": Labels(("a", "b"))}
    told = Panel(name="out", title="", values=np.array([[0.9, 0.5], after]), **sides)
    with in_a_session({}), patch.object(st, "text") as text:
        comparison._tell_moved(told)
    text.assert_called_once_with(said)


def test_an_edit_behind_the_last_pattern_is_not_said_to_have_no_effect(new_app):
    app = new_app(page="understand/head", head_view="silence", stack="cross", head_scales="3.2.0")
    (said,) = [each.value for each in app.caption if each.value.startswith("No pattern changes")]
    assert "acts on the output alone" in said and "no effect" not in said
