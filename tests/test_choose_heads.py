"""The script that chooses heads: its measures on made-up patterns, and its choices for the bundled translator."""

import json
from dataclasses import replace

import numpy as np
import pytest

import visformer as vf
from scripts import choose_heads
from scripts.choose_heads import (
    NAME,
    expected,
    points,
    previous,
    readers,
    reads_itself,
    start,
)
from visformer.model.checkpoints import FOLDER
from visformer.pictures.examples import EXAMPLES

WORDS = np.array([True, True, True, False])
ITSELF, UNIFORM = np.eye(4), np.full((4, 4), 0.25)
BEFORE = np.roll(np.eye(4), -1, axis=1)  # each row reads the key before it; the first one reads the last
SECOND = np.tile([0.0, 1, 0, 0], (4, 1))


@pytest.fixture(scope="module")
def model():
    return vf.load("en-zh")


def test_a_head_reads_itself_as_far_as_its_words_do():
    assert reads_itself(np.stack([ITSELF, UNIFORM, BEFORE]), WORDS).tolist() == [1, 0.25, 0]
    only_the_mark = np.diag([0.0, 0, 0, 1])
    assert reads_itself(only_the_mark, WORDS) == 0


def test_the_two_strongest_readers_of_a_word_are_other_words():
    assert readers(np.stack([SECOND, UNIFORM, ITSELF]), 1, WORDS).tolist() == [1, 0.25, 0]
    assert readers(np.array([[0, 0.5, 0.5, 0], [0, 1, 0, 0], [0, 0.25, 0.75, 0], [0, 1, 0, 0]]), 1, WORDS) == 0.375


def test_the_previous_token_counts_in_every_row_that_has_one(model):
    trace = model.trace(EXAMPLES[0])
    tensor = trace["decoder.0.self_attn.pattern"]
    shifted = np.eye(tensor.shape[1], k=-1)
    shifted[0, 0] = 1
    value = np.stack([shifted, np.eye(len(shifted))] * 4).astype(np.float32)
    values = previous(replace(trace, tensors={**trace.tensors, tensor.name: replace(tensor, value=value)}))
    assert values[0] == pytest.approx([1, 0] * 4)


@pytest.mark.full
def test_points_rank_the_heads_by_the_lesser_of_their_two_measures_and_the_best_reader_is_bundled(model, monkeypatch):
    found = list(points(model))
    for point in found:
        assert point.values.shape == (3, 8)
        assert ((point.values >= 0) & (point.values <= 1)).all()
        places = point.best()
        ranked = np.sort(np.minimum(point.first, point.general).ravel())[::-1]
        assert [point.values[place] for place in places] == ranked[:3].tolist()
        assert point.best(1, layer=0)[0][0] == 0

    (point,) = [point for point in found if point.says.startswith("It finds the name")]
    for first, pair in ((point.first, (EXAMPLES[0], NAME)), (point.general, (EXAMPLES[1], NAME[::-1]))):
        trace = model.trace(pair[0])
        row, key = trace.tokens["next"].index(pair[1][1]), trace.tokens["src"].index(pair[1][0])
        np.testing.assert_allclose(first, trace.stack("decoder.cross_attn")[:, :, row, key], rtol=1e-5)

    monkeypatch.setattr(choose_heads, "points", lambda model: found)
    bundled = json.loads((FOLDER / "en-zh" / "start.json").read_text(encoding="utf-8"))
    assert start(model) == bundled, "otherwise: python -m scripts.bundle"


def test_the_expected_probabilities_are_those_of_the_decoding(model):
    decoding = model.translate(EXAMPLES[0])
    shares, is_likeliest = expected(model, EXAMPLES[0], decoding.ids)
    assert is_likeliest
    assert shares == pytest.approx([step.chosen.probability for step in decoding.steps], rel=1e-4)
    assert not expected(model, EXAMPLES[0], decoding.ids[1:])[1]


@pytest.mark.full
def test_it_prints_heads_and_numbers(model, monkeypatch, capsys):
    monkeypatch.setattr(vf, "load", lambda name: model)
    monkeypatch.setattr("sys.argv", ["choose_heads"])
    choose_heads.main()
    printed = capsys.readouterr().out
    steps = model.translate(EXAMPLES[0]).steps
    for expected_line in (choose_heads.START, f"step 1: {steps[0].chosen.token} {steps[0].chosen.probability:.4f}"):
        assert expected_line in printed
