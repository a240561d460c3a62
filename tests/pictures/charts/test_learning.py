"""The history_curves of a training, of tables made by hand and of the bundled histories."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import visformer as vf
from visformer.adapters.checkpoints import head_scores
from visformer.errors import CheckpointError
from visformer.i18n import translations
from visformer.pictures.charts.learning import history_curves
from visformer.pictures.registry.setting import Setting, Source

SETTING = Setting(Source())
MOMENTS = pd.DataFrame({"moment": [0, 1, 2], "step": [0, 9, 99], "tokens": [0, 5, 9], "loss": [4.0, 2.0, np.nan]})


def heads(*scores, label="induction", head=0):
    row = {"stack": "decoder.self_attn", "layer": 1, "head": head, "label": label, "null_high": 0.1, "n": 8}
    return pd.DataFrame([{"moment": moment, **row, "score": score} for moment, score in enumerate(scores)])


def axes_of(figure):
    """Return the titles of the panels, from above."""
    layout = figure.to_plotly_json()["layout"]
    found = sorted((axis["domain"], axis["title"]["text"]) for name, axis in layout.items() if name.startswith("yaxis"))
    assert all(below[1] < above[0] for (below, _), (above, _) in pairwise(found))
    return [title for _, title in reversed(found)]


def trace(figure, name):
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def test_step_0_has_a_place_and_the_axis_tells_steps():
    figure = history_curves(MOMENTS, SETTING)
    assert axes_of(figure) == ["Loss, nats"]
    loss = trace(figure, "loss on held-out text")
    assert [*loss.x] == [0.0, 1.0, 2.0] and [*loss.customdata[:2]] == ["step 0: 4", "step 9: 2"]
    x = figure.layout.xaxis
    assert [*x.ticktext] == ["0", "1", "10", "100"][: len(x.ticktext)] and x.tickvals[0] == 0.0
    assert [10**place - 1 for place in x.tickvals] == pytest.approx([0, 1, 10, 100][: len(x.ticktext)])
    assert x.range[0] < 0 < 2 < x.range[1]


def test_of_each_label_the_best_head_is_drawn_and_each_head_that_appears_is_marked():
    table = pd.concat([heads(0.2, 0.1, 0.8), heads(0.1, 0.4, 0.7, head=3), heads(0.2, 0.2, 0.2, label="positional")])
    figure = history_curves(MOMENTS, SETTING, heads=table)
    assert axes_of(figure) == ["Loss, nats", "Score of the best head"]
    best = trace(figure, "Induction head")
    assert [*best.y] == [0.2, 0.4, 0.8]
    assert [*best.customdata] == ["step 0: 0.2 (L2 H1)", "step 9: 0.4 (L2 H4)", "step 99: 0.8 (L2 H1)"]
    assert [*trace(figure, "Positional head").y] == [0.2] * 3
    (marks,) = [trace for trace in figure.data if trace.mode == "markers+text"]
    assert [*marks.text] == ["L2 H4, step 9", ""] and [*marks.x] == [1.0, 2.0] and [*marks.y] == [0.4, 0.8]
    assert marks.customdata[1] == "Induction head · L2 H1, step 99"
    assert not [
        trace for trace in history_curves(MOMENTS, SETTING, heads=heads(0.1)).data if trace.mode == "markers+text"
    ]


def test_a_vertical_line_shows_a_moment_in_every_panel():
    plain, lined = (history_curves(MOMENTS, SETTING, moment, heads=heads(0.1, 0.2, 0.3)) for moment in (None, 1))
    lines = lined.data[len(plain.data) :]
    assert [(*line.x, line.yaxis) for line in lines] == [(1.0, 1.0, "y"), (1.0, 1.0, "y2")]
    assert [*history_curves(MOMENTS, SETTING, -1).data[-1].x] == [2.0, 2.0]
    with pytest.raises(IndexError):
        history_curves(MOMENTS, SETTING, 3)


def test_the_bundled_histories_have_their_panels_and_marks_in_both_languages_and_themes():
    en, zh = (
        Setting(Source(theme=theme, gettext=translations(lang).gettext))
        for theme, lang in (("light", "en"), ("dark", "zh"))
    )
    assert axes_of(history_curves("en-zh", en)) == ["Loss, nats", "BLEU and AER, %", "Score of the best head"]
    assert axes_of(history_curves("mini-gpt", zh)) == ["损失（nat）", "最好的头的分数"]
    (marks,) = [trace for trace in history_curves("mini-gpt", en).data if trace.mode == "markers+text"]
    assert {words for words in marks.text if words} == {"L3 H5, step 1,982", "L1 H3, step 1,982"}
    told = history_curves("en-zh", en).layout.meta["table"]
    assert told["BLEU en→zh"] == vf.moments("en-zh")["bleu_en_zh"].tolist()
    assert told["Alignment head"][-1] == pytest.approx(1 - told["AER en→zh"][-1] / 100, abs=0.005)
    assert all(len(column) == len(told["step"]) == 10 for column in told.values())


def test_a_history_without_scores_shows_what_its_moments_know():
    table = MOMENTS.assign(train_loss=[5.0, 3.0, 1.0])
    figure = history_curves(table, SETTING)
    assert axes_of(figure) == ["Loss, nats"]
    assert trace(figure, "loss in training").showlegend and trace(figure, "loss on held-out text").showlegend
    assert not trace(history_curves(MOMENTS, SETTING), "loss on held-out text").showlegend  # its axis has the name
    assert head_scores("mini-gpt-2") is None
    with pytest.raises(CheckpointError, match="has no history"):
        history_curves("mini-gpt-2", SETTING)


def test_the_picture_is_a_figure_by_name():
    assert axes_of(vf.figures.training_curves()) == axes_of(vf.figures.training_curves(training="en-zh"))
    assert axes_of(vf.figures.training_curves(training="mini-gpt")) == ["Loss, nats", "Score of the best head"]
