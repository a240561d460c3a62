"""vf.explorer: a notebook cell that starts at a chosen head, view and cell; what does not exist is refused."""

import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest

import visformer as vf
from benchmarks.messages import read_message
from tests.support import tiny_translator
from tests.web.support import made_up_trace, with_gaps
from tests.web.test_page import Elements, messages
from visformer.analysis.heads import first_head
from visformer.app.session import url_state
from visformer.errors import TraceError
from visformer.pictures.registry.options import OptionError
from visformer.web.selection import Selection

TRACE = made_up_trace(n_layers=3, n_heads=4)


def shown(cell):
    """Return the header of the picture in a cell."""
    document = dict(Elements(cell._repr_html_()).attributes)["srcdoc"]
    return read_message(messages(document)["picture"])[0]


def test_it_starts_at_the_chosen_head_and_view():
    for stack, name in (
        ("decoder.cross_attn", "decoder.cross_attn"),
        ("decoder.self_attn", "decoder.self_attn"),
        (None, "encoder.self_attn"),
    ):
        start = shown(vf.explorer(TRACE, stack=stack, layer=1, head=3, view="arcs"))["start"]
        assert (start["stack"], start["layer"], start["head"], start["view"]) == (name, 1, 3, "arcs")


def test_everything_that_a_link_can_choose_can_be_chosen():
    chosen = {"query": 2, "key": 0, "combine": "mean", "order": "entropy", "limit": "mass-0.9", "rows": "input"}
    flags = dict.fromkeys(("merging", "hiding", "renormalising"), True)
    without = ["user", "template"]
    header = shown(
        vf.explorer(TRACE, heads=[(2, 1), (0, 3)], cells=[(1, 0)], lang="zh", without=without, **chosen, **flags)
    )
    assert header["start"] == {
        **Selection(*first_head(TRACE), view="tokens", heads="2-1.0-3", cells="1-0", without="user.template").start(),
        **chosen,
        **flags,
    }
    assert header["text"]["lang"] == "zh"


def test_a_trace_alone_in_a_cell_is_the_explorer_without_a_choice():
    assert TRACE._repr_html_() == vf.explorer(TRACE)._repr_html_()
    assert repr(vf.explorer(TRACE)).startswith("Explorer(")


def test_without_a_layer_it_starts_at_the_first_that_the_trace_holds():
    start = shown(vf.explorer(with_gaps(TRACE), head=0))["start"]
    assert (start["stack"], start["layer"], start["head"]) == ("encoder.self_attn", 1, 0)


def test_what_does_not_exist_is_refused_with_what_there_is():
    for wrong, message in (
        ({"layer": 3}, "encoder.self_attn has no layer 3: there are 0–2, counted from 0"),
        ({"head": -1}, "has no head -1: there are 0–3, counted from 0"),
        ({"stack": "decoder.self_attn", "query": 4}, "decoder.self_attn has no query 4: there are 0–3"),
        ({"stack": "decoder.cross_attn", "key": 5}, "decoder.cross_attn has no key 5: there are 0–4"),
        ({"heads": [(0, 4)]}, "has no head 4"),
        ({"heads": [(0, 1)] * 12}, "heads has 12 heads; up to 11 can be shown"),
        ({"stack": "cross"}, "stack='cross' is unknown: choose one of encoder.self_attn"),
        ({"view": "lines"}, "view is 'lines': .*heatmap"),
        ({"combine": "sum"}, "combine is 'sum': .*mean"),
        ({"order": "beauty"}, "order is 'beauty': .*entropy"),
        ({"limit": "0.9"}, "limit is '0.9': a threshold is written weight-0.05 or mass-0.9"),
        ({"lang": "xx"}, "lang is 'xx'; it can be en, zh"),
    ):
        with pytest.raises(TraceError, match=message):
            pytest.fail(f"{wrong} is taken: {vf.explorer(TRACE, **wrong)}")


def test_tokens_of_a_long_text_are_not_silently_kept_where_they_should_be_hidden():
    trace = vf.load("mini-gpt").trace("We went to school.", record="overview")
    for how in ({"hiding": True}, {"without": ["system"]}):
        with pytest.raises(TraceError, match=r"none can be hidden here, .*open vf.link\(trace\) in the app"):
            vf.explorer(trace, **how)


def model_of(cell):
    """Return the header of the whole model in a cell."""
    document = dict(Elements(cell._repr_html_()).attributes)["srcdoc"]
    return read_message(messages(document)["model"])[0]


def test_the_whole_model_is_that_of_a_trace_or_of_a_model_and_its_text():
    model = vf.load("en-zh")
    drawn = model_of(vf.figures.map(model, "I went to school.", stack="decoder.cross_attn", layer=2, head=3, lang="zh"))
    trace = model.trace("I went to school.")
    assert drawn["tokens"] == {side: list(tokens) for side, tokens in trace.tokens.items()}
    assert [step["tokens"][0] for step in drawn["steps"]] == list(trace.tokens["next"])  # greedy: the likeliest
    assert drawn["focus"] == {"stack": "decoder.cross_attn", "layer": 2, "head": 3}
    assert drawn["text"]["lang"] == "zh"
    assert model_of(vf.figures.map(trace))["steps"] == []


def test_the_whole_model_of_patterns_alone_has_its_layers_and_heads():
    drawn = model_of(vf.figures.map(TRACE))
    assert [(column["stack"], len(column["layers"])) for column in drawn["columns"]] == [("encoder", 3), ("decoder", 3)]
    with pytest.raises(OptionError, match="no layer 3"):
        vf.figures.map(TRACE, layer=3)
    with pytest.raises(TraceError, match="lang is 'xx'"):
        vf.figures.map(TRACE, lang="xx")


@pytest.mark.full
def test_a_notebook_needs_nothing_of_the_app(tmp_path):
    """As visformer was installed, where none of the app's packages can be imported; `make test-lowest` has none."""
    code = """
import sys
sys.modules |= dict.fromkeys(("streamlit", "starlette", "uvicorn", "websockets", "prometheus_client", "segno"))
import visformer as vf
trace = vf.load("en-zh").trace("I went to school.")
assert "<iframe" in trace._repr_html_()
assert vf.figures.attention_head(trace, "decoder.0.cross_attn.pattern", head=3).to_json()
for ending in ("html", "svg", "png", "csv", "json"):
    vf.export.save(trace, f"attention.{ending}")
trace.save("trace.safetensors")
assert vf.Trace.load("trace.safetensors").tokens == trace.tokens
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_two_passes_are_compared_in_a_cell_and_in_a_file(tmp_path):
    model = tiny_translator()
    texts = ["I went to school", "I went to bed"]
    shown = vf.compare(*(model.trace(text, "我") for text in texts))
    assert "iframe" in shown.html
    assert shown.drawn.titles == tuple(texts)
    assert not shown.drawn.matched
    vf.export.save(shown, tmp_path / "both.html")
    assert (tmp_path / "both.html").stat().st_size > 10_000
    of_models = vf.compare(model, tiny_translator(norm="pre"), "I went", target="我", titles=("post", "pre"))
    assert of_models.drawn.titles == ("post", "pre")
    with pytest.raises(TraceError, match="pass it after the two"):
        vf.compare(model, model)


def test_a_link_opens_what_a_trace_shows():
    trace = vf.load("en-zh").trace("I went to school.", "我去学校。")
    address = urlsplit(
        vf.link(trace, base="http://example.org/", stack="decoder.cross_attn", layer=1, head=2, view="arcs")
    )
    state, wrong = url_state.read({name: text for name, (text,) in parse_qs(address.query).items()})
    assert not wrong
    assert address.path == "/attention"
    assert (state.text, state.target) == ("I went to school.", "我去学校。")
    chosen = state.selection
    assert (chosen.stack, chosen.layer, chosen.head, chosen.view) == ("decoder.cross_attn", 1, 2, "arcs")
    with pytest.raises(TraceError, match="this one has none"):
        vf.link(vf.Trace.from_attention(["a", "b"], [[[[1.0, 0.0], [0.5, 0.5]]]]))
