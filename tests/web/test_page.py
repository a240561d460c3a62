"""Standalone pages: their content, their size, and that the visitor's text never becomes markup."""

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.test_history import trained_in
from tests.web.support import heads_of, made_up_trace, shapes_of
from visformer.errors import BudgetError, TraceError
from visformer.figures import source_of
from visformer.i18n import translations
from visformer.pictures.attention import HISTORY, History
from visformer.trace import Trace
from visformer.web.chunks import RESIDENT_BYTES
from visformer.web.page import frame, history_page, model_page, page

HOSTILE = ["</script><script>alert(1)</script>", "</title><img src=x onerror=alert(2)>", "<!--", "-->", "\"&'", "]]>"]


class Elements(HTMLParser):
    """Collects all tags and attributes, and the text of each script by its id or type."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.attributes = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open = dict(attrs)

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and data.strip():
            self.scripts.setdefault(self.open.get("id") or self.open.get("type"), data)


def messages(text):
    scripts = Elements(text).scripts
    return {name: base64.b64decode(scripts[name]) for name in ("picture", "weights", "model") if name in scripts}


def exact_heads(text):
    """Return every head whose exact weights are in the page."""
    heads, shapes = {}, None
    for message in messages(text).values():
        header, numbers = read_message(message)
        shapes = shapes or shapes_of(header)
        heads |= heads_of(header, numbers, shapes)
    return heads


def test_a_page_of_32_tokens_and_48_heads_is_below_500_kb_and_has_every_head():
    trace = made_up_trace(n_src=32, n_tgt=32, n_layers=2, n_heads=8, tokens=["我去东北大学"] * 31)
    text = page(trace)
    assert len(text.encode()) < 500_000
    heads = exact_heads(text)
    assert len(heads) == 48
    exact = trace["decoder.1.cross_attn.pattern"].value[7]
    np.testing.assert_allclose(heads["decoder.cross_attn", 1, 7], exact, rtol=6e-4, atol=1e-8)


def test_text_never_becomes_markup():
    plain, hostile = (page(made_up_trace(tokens=tokens)) for tokens in (["a"] * len(HOSTILE), HOSTILE))
    assert Elements(hostile).tags == Elements(plain).tags
    assert read_message(messages(hostile)["picture"])[0]["tokens"]["src"][:-1] == HOSTILE
    cell = frame(made_up_trace(tokens=HOSTILE))
    assert Elements(cell).tags == ["iframe"]
    document = dict(Elements(cell).attributes)["srcdoc"]
    assert Elements(document).tags == [tag for tag in Elements(plain).tags if tag != "h1"]


def test_a_page_loads_nothing_and_its_policy_forbids_it():
    text = page(made_up_trace())
    elements = Elements(text)
    assert not [value for name, value in elements.attributes if name == "src"]
    assert [value for name, value in elements.attributes if name == "href"] == ["data:,"]
    policy = next(unescape(value) for _, value in elements.attributes if value and value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not re.search(r"</script|<!--", elements.scripts["module"])


def test_a_limited_page_has_the_heads_nearest_to_its_start_and_a_note_says_how_many():
    trace = made_up_trace(n_src=200, n_tgt=200, n_layers=3, n_heads=8)
    start = {"stack": "decoder.cross_attn", "layer": 2, "head": 1}
    complete, limited = (page(trace, start=start, **limit) for limit in ({}, {"limit": RESIDENT_BYTES}))
    assert len(exact_heads(complete)) == 72
    assert "exact weights" not in complete
    heads = set(exact_heads(limited))
    assert len(heads) == RESIDENT_BYTES // (2 * 200 * 200) == 30
    assert {("decoder.cross_attn", layer, head) for layer in range(3) for head in range(8)} <= heads
    assert "30 of 72 heads have exact numbers here (up to 2.4 MB)" in limited
    chinese = page(trace, start=start, limit=RESIDENT_BYTES, gettext=translations("zh").gettext, lang="zh")
    assert "72 个头中" in unescape(chinese)


def test_a_trace_displays_itself_in_a_notebook_or_explains_why_not():
    assert made_up_trace()._repr_html_().startswith("<iframe srcdoc=")
    empty = Trace(tokens={}, special={}, words={}, tensors={})
    assert empty._repr_html_().startswith("<p>This trace holds no attention patterns")


def test_a_page_is_ascii_so_that_the_digests_of_its_policy_hold_in_any_encoding():
    trace = made_up_trace(n_src=4, n_tgt=3, n_layers=1, n_heads=1, tokens=["我去东北大学"] * 3)
    trace = replace(trace, meta={**trace.meta, "source": "我去东北大学。", "target": "I → you"})
    for text in (page(trace, lang="zh"), model_page(trace, lang="zh")):
        assert text.isascii()
        style, code = re.search("<style>(.*?)</style>.*<script type=.module.>(.*?)</script>", text, re.DOTALL).groups()
        assert "\\u2026" in code
        for part in (style, code):
            assert base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() in text
        assert unescape(re.search("<title>(.*?)</title>", text)[1]) == "我去东北大学。 → I → you"


# A training: each checkpoint has the numbers of its Trace

TEXT = "I went to school."


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The checkpoint of a training that kept five moments."""
    folder = tmp_path_factory.mktemp("run")
    trained_in(folder)
    return folder / "checkpoint"


def messages_of(page):
    scripts = Elements(page).scripts
    return {
        name: read_message(base64.b64decode(text)) for name, text in scripts.items() if name not in ("module", None)
    }


def test_each_moment_has_the_attention_the_text_and_the_probabilities_of_its_model(own):
    history = HISTORY.make(source_of(vf.load(f"{own}@2"), TEXT), {"stack": "decoder.cross_attn", "head": 1})
    page = history_page(history, gettext=translations("zh").gettext, lang="zh")
    assert "@" not in page.split("<small>")[1].split("</small>")[0]
    found = messages_of(page)
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
