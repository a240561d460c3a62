"""The script that finds sentences for the page that silences heads, and the file of the bundled translator."""

import json
from functools import partial

import numpy as np
import pytest

import visformer as vf
from scripts import choose_silences
from scripts.choose_heads import heads_of
from scripts.choose_silences import changes, silences, smallest_change, write
from tests.support import SENTENCES, tiny_translator
from visformer.edits import Silence
from visformer.model.checkpoints import FOLDER


def test_changes_are_the_tokens_lost_and_gained():
    assert changes("abcd", "axcd") == (["b"], ["x"])
    assert changes("abcd", "abd") == (["c"], [])
    assert changes("ab", "ab") == ([], [])


@pytest.mark.parametrize("source", SENTENCES[:3])
def test_silencing_finds_the_smallest_change_of_all_heads(source, monkeypatch):
    model = tiny_translator(n_encoder_layers=1, n_decoder_layers=2, seed=2)
    monkeypatch.setattr(model, "translate", partial(model.translate, max_new_tokens=12))
    before = model.translate(source)
    sizes = {}
    for edit in heads_of(model):
        after = model.translate(source, edits=(edit,))
        lost, gained = changes(before.tokens, after.tokens)
        sizes[edit] = len(lost) + len(gained) if lost and gained else np.inf
    found = smallest_change(model, source, set())
    assert found[0] == min(sizes.values()) < np.inf
    assert smallest_change(model, source, {*before.tokens}) is None, "only common words are lost"


def test_each_offered_sentence_has_its_own_head_and_the_smallest_changes_come_first(monkeypatch, tmp_path):
    heads = [Silence("encoder.0.self_attn", 1), Silence("encoder.0.self_attn", 1), Silence("decoder.1.cross_attn", 0)]
    found = {text: (size, head, "b", "a") for text, size, head in zip("xyz", (4, 2, 3), heads, strict=True)}
    monkeypatch.setattr(choose_silences, "candidates", lambda model, n: [*"xyzw"])
    monkeypatch.setattr(choose_silences, "common_tokens", lambda model: set())
    monkeypatch.setattr(choose_silences, "smallest_change", lambda model, source, common: found.get(source))
    expected = [
        {"text": "y", "stack": "encoder.self_attn", "layer": 0, "head": 1},
        {"text": "z", "stack": "decoder.cross_attn", "layer": 1, "head": 0},
    ]
    assert silences(tiny_translator(), 1) == expected
    write(tiny_translator(), tmp_path)
    assert json.loads((tmp_path / "silences.json").read_text(encoding="utf-8")) == expected


@pytest.mark.full
def test_candidates_are_translated_as_they_are_written_down():
    model, n = vf.load("en-zh"), 2
    everyday = {tuple(row) for row in choose_silences.read_rows(choose_silences.FOLDER / "everyday.tsv", columns=2)}
    added = [text for text in choose_silences.candidates(model, n) if text not in choose_silences.EXAMPLES]
    assert len(added) == 2 * n
    for text in added:
        assert {(text, model.translate(text).text), (model.translate(text).text, text)} & everyday, text


def test_each_bundled_sentence_has_other_tokens_without_its_head():
    """Otherwise: ``python -m scripts.choose_silences``."""
    model = vf.load("en-zh")
    found = json.loads((FOLDER / "en-zh" / "silences.json").read_text(encoding="utf-8"))
    assert found
    for one in found:
        part, kind = one["stack"].split(".")
        edit = Silence(f"{part}.{one['layer']}.{kind}", one["head"])
        before, after = model.translate(one["text"]), model.translate(one["text"], edits=(edit,))
        assert all(changes(before.tokens, after.tokens)), one
