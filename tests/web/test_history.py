"""The page with every moment of a training: each moment has the numbers of that moment's Trace."""

import base64

import numpy as np
import pytest

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.test_history import trained_in
from tests.web.support import heads_of, made_up_trace, shapes_of
from tests.web.test_page import Elements
from visformer.errors import BudgetError, TraceError
from visformer.figures import source_of
from visformer.i18n import translations
from visformer.pictures.attention import HISTORY, History
from visformer.web.history import history_page

TEXT = "I went to school."


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The checkpoint of a training that kept five moments."""
    folder = tmp_path_factory.mktemp("run")
    trained_in(folder)
    return folder / "checkpoint"


def messages(page):
    scripts = Elements(page).scripts
    return {
        name: read_message(base64.b64decode(text)) for name, text in scripts.items() if name not in ("module", None)
    }


def test_each_moment_has_the_attention_the_text_and_the_probabilities_of_its_model(own):
    history = HISTORY.make(source_of(vf.load(f"{own}@2"), TEXT), {"stack": "decoder.cross_attn", "head": 1})
    page = history_page(history, gettext=translations("zh").gettext, lang="zh")
    assert "@" not in page.split("<small>")[1].split("</small>")[0]
    found = messages(page)
    told = found.pop("history")[0]["moments"]
    assert [*found] == [f"moment-{at}" for at in range(5)]
    steps = vf.moments(own).step
    for at in (0, 2, 4):
        header, numbers = found[f"moment-{at}"]
        trace = vf.load(own, moment=at).trace(TEXT, record=("*.pattern", "logits"))
        assert (header["start"]["stack"], header["start"]["head"]) == ("decoder.cross_attn", 1)
        exact = trace["decoder.0.cross_attn.pattern"].value[1]
        found_head = heads_of(header, numbers, shapes_of(header))["decoder.cross_attn", 0, 1]
        np.testing.assert_allclose(found_head, exact, rtol=6e-4, atol=1e-8)
        moment = told[at]
        assert moment["title"] == " → ".join(filter(None, (TEXT, trace.meta["target"])))
        assert moment["said"].startswith(f"第 {steps[at]} 步，共 {steps.iloc[-1]} 步")
        assert [step["next"] for step in moment["steps"]] == [*trace.tokens["next"]]
        odds = np.exp(trace["logits"].value.astype(float))
        expected = (odds / odds.sum(-1, keepdims=True)).max(-1)
        assert [step["probabilities"][0] for step in moment["steps"]] == pytest.approx(expected, rel=1e-3)
    assert len({moment["title"] for moment in told}) > 1, "it learns to translate"


def test_a_forced_target_is_read_at_every_moment(own):
    history = HISTORY.make(source_of(vf.load(own), TEXT, "她去学校。"))
    assert {trace.tokens["tgt"] for trace in history.traces} == {history.traces[0].tokens["tgt"]}
    assert "她" in "".join(history.traces[0].tokens["tgt"])


def test_what_is_too_large_or_has_no_history_is_refused_with_a_sentence():
    traces = tuple(made_up_trace(seed=seed) for seed in range(3))
    history = History(traces, ({"step": 0}, {"step": 5}, {"step": 9}), ("encoder.self_attn", 0, 0))
    with pytest.raises(BudgetError, match=r"moments 0 to 1 of 3 takes \d+ kB, and a page holds at most 12 kB: shorten"):
        history_page(history, limit=12_000)
    with pytest.raises(TraceError, match="No moments of this model's training were kept"):
        HISTORY.make(source_of(vf.load("untrained-16x2-enc1-dec1-ff32"), TEXT, "我"))
