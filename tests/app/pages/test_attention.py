"""The first page: every control, every kind of bad input, both languages."""

import subprocess
import sys

import pytest

from benchmarks.messages import read_message
from tests.addresses import fields_of
from tests.app.support import address, address_of, in_a_session, pictures, went_ahead
from tests.web.support import digits, heads_of, shapes_of
from visformer import i18n
from visformer.app.pages import attention
from visformer.app.serving import workbench
from visformer.app.serving.admission import ADMISSION
from visformer.app.session import boxes, selection
from visformer.app.session.address import update as update_address
from visformer.app.session.examples import EXAMPLES
from visformer.web.selection import Selection

EMPTY = "There is no sentence yet: type one, or choose an example."


def messages(app):
    """Return headers and numbers of the messages to the view, the picture first."""
    view, *feeds = pictures(app)
    sent = [read_message(feed.proto.bytes) for feed in feeds]
    assert {header["to"] for header, _ in sent} == {view.proto.bytes.decode()}
    return sent


def payload(app):
    """Return header and numbers of the picture."""
    return messages(app)[0]


def draws_nothing(app):
    return [header["kind"] for header, _ in messages(app)] == ["nothing"]


def type_into(app, key, text):
    app.text_input(key=key).set_value(text)
    return app.run()


def test_the_first_picture_needs_no_torch(model_name):
    """Nor any other slow import; in its own process, before the model is loaded in the background."""
    code = f"""
import sys
from visformer.app.serving import models, workbench
from benchmarks.messages import read_message
workbench.MODEL, workbench.HEAD_START = {model_name!r}, 600
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("app.py", default_timeout=60).run()
assert app.get("bidi_component") and not app.exception
slow = ("torch", "transformers", "tokenizers", "plotly.io.json", "pandas", "babel")
print([name for name in slow if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr


def test_a_sentence_is_translated_and_traced(new_app, model_name):
    app = type_into(new_app(), boxes.SOURCE, "How are you?")
    assert not app.exception
    trace = workbench.workbench().trace("How are you?", None)
    header, numbers = payload(app)
    assert header["tokens"]["src"] == list(trace.tokens["src"])
    heads = heads_of(header, numbers, shapes_of(header))
    assert len(heads) == 3 * trace.stack("encoder").value[:, :, 0, 0].size
    for (stack, layer, head), weights in heads.items():
        part, kind = stack.split(".")
        assert digits(weights) == digits(trace[f"{part}.{layer}.{kind}.pattern"].value[head])
    assert trace.meta["target"] in app.text[0].value


def test_the_picture_of_a_new_sentence_is_sent_before_the_page(new_app):
    workbench.workbench().load().result()
    app = new_app(lang="zh")
    assert not went_ahead(app), "it was cached"
    before = dict(ADMISSION.counts.outcomes)
    type_into(app, boxes.SOURCE, "This one goes ahead.")
    assert went_ahead(app)
    _view, *sent = pictures(app)
    assert len(sent) == 1, "not sent again with the page"
    header, _ = payload(app)
    assert "goes" in header["tokens"]["src"]
    assert header["stacks"][0]["label"] == i18n.translations("zh").gettext("Encoder")
    after = ADMISSION.counts.outcomes
    assert (after["computed"] - before["computed"], after["cached"] - before["cached"]) == (1, 0)
    app.run()
    assert not went_ahead(app)
    assert payload(app)[0]["tokens"] == header["tokens"]


def test_a_page_does_not_wait_long_for_its_picture(new_app, monkeypatch):
    monkeypatch.setattr(attention, "PATIENCE", 0)
    workbench.workbench().load().result()
    app = type_into(new_app(), boxes.SOURCE, "This one comes in its place.")
    assert not went_ahead(app)
    assert "place" in payload(app)[0]["tokens"]["src"]


def test_no_picture_is_sent_before_another_page(new_app):
    workbench.workbench().load().result()
    app = type_into(new_app(page="see/embedding"), boxes.SOURCE, "This one stays behind.")
    assert not app.exception
    assert not went_ahead(app)


def test_a_picture_sent_ahead_has_the_selection_of_the_link(new_app):
    """A step of a lesson, say, which brings sentence and selection at once."""
    workbench.workbench().load().result()
    app = new_app()
    chosen = Selection(stack="decoder.cross_attn", layer=1, head=2)
    app.session_state[boxes.SOURCE] = "This one has a selection."
    app.session_state["start"] = chosen
    app.run()
    assert went_ahead(app)
    assert payload(app)[0]["start"] == {**chosen.start(), "opened": payload(app)[0]["start"]["opened"]}


def test_a_target_is_forced_and_dropped_with_its_sentence(new_app):
    app = type_into(new_app(), boxes.TARGET, "我去东北。")
    assert not app.exception
    assert app.text[0].value == "Target as typed: 我去东北。"
    assert payload(app)[0]["tokens"]["tgt"][0] == "<zh>"
    type_into(app, boxes.SOURCE, "How are you?")
    assert app.text_input(key=boxes.TARGET).value == ""
    assert app.text[0].value.startswith("Translation: ")
    type_into(app, boxes.TARGET, "我去东北。")
    app.selectbox(key=boxes.EXAMPLE).select(EXAMPLES[1]).run()
    assert app.text_input(key=boxes.TARGET).value == ""


def test_control_characters_of_a_target_are_visible(new_app):
    app = new_app(target="我\x07去")
    assert app.text[0].value.startswith("Target as typed: 我U+0007去")


@pytest.mark.parametrize("target", ["", "   "])
def test_an_empty_target_means_its_own_translation(new_app, target):
    app = type_into(new_app(), boxes.TARGET, target)
    assert app.text[0].value.startswith("Translation: ")


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("", "", EMPTY),
        ("\t\n ", "", EMPTY),
        ("word " * 2000, "", "10000 characters; at most 1000"),
        ("I like cats.", "我" * 5000, "5000 characters"),
    ],
)
def test_an_error_is_one_sentence_without_a_picture(new_app, source, target, said):
    app = new_app()
    app.text_input(key=boxes.TARGET).set_value(target)
    app.text_input(key=boxes.SOURCE).set_value(source).run()
    if target:  # a new sentence has cleared it
        type_into(app, boxes.TARGET, target)
    assert not app.exception
    (line,) = app.text
    assert said in line.value
    assert draws_nothing(app)


def test_megabytes_of_text_are_not_kept(new_app):
    app = type_into(new_app(), boxes.SOURCE, "word " * 2_000_000)
    assert len(app.session_state[boxes.SOURCE]) == 100_000
    assert "at most 1000" in app.text[0].value


def test_examples(new_app):
    app = new_app()
    for example in reversed(EXAMPLES):  # the first is the default
        app.selectbox(key=boxes.EXAMPLE).select(example).run()
        assert not app.exception
        assert app.text_input(key=boxes.SOURCE).value == example
        assert app.selectbox(key=boxes.EXAMPLE).value is None
        assert payload(app)[0]["tokens"]["src"][-1] == "</s>"


def test_the_language_of_a_link_precedes_the_browsers(new_app):
    app = new_app(lang="en", locale="zh-CN")
    assert app.text_input(key=boxes.SOURCE).label == "Sentence"
    assert payload(app)[0]["stacks"][0]["label"] == "Encoder"


def test_language_switch_stays_in_the_address(new_app):
    app = new_app()
    app.get("segmented_control")[0].set_value("zh")
    app.run()
    assert app.text_input(key=boxes.SOURCE).label == "句子"
    assert app.query_params["lang"] in ("zh", ["zh"])


# Selection


def inside(app):
    """Return the label of the link into the head in focus."""
    return next(link.proto.label for link in app.get("page_link") if "Inside this head" in link.proto.label)


def test_the_selection_reaches_the_address_and_the_head(new_app):
    """The component's own callback, since AppTest has no browser that could call it."""
    trace = workbench.workbench().trace("How are you?", None)
    began = {"start": Selection(), boxes.LANGUAGE: "zh", "language_is_chosen": True}
    with in_a_session(began) as session, address() as link:
        assert selection.take(Selection("decoder.self_attn", 7, 5, "tokens", 1, 2).start(), trace)
        update_address()
        assert fields_of(link) == {
            "lang": "zh",
            "stack": "decoder",
            "layer": "3",
            "head": "6",
            "view": "tokens",
            "query": "2",
            "key": "3",
        }
        n_tokens = len(trace.tokens["tgt"])
        kept = {name: value for name, value in session.items() if name.startswith("head_")}
        assert kept == {
            "head_stack": "decoder.self_attn",
            "head_layer_3": 3,
            "head_head_8": 6,
            f"head_query_{n_tokens}": 1,
        }
        assert selection.selection(trace) == Selection("decoder.self_attn", 2, 5, "tokens", 1, 2)
        assert selection.take(Selection().start(), trace)
        update_address()
        assert fields_of(link) == {"lang": "zh"}
        assert not selection.take({"stack": "<script>"}, trace)
        assert selection.selection(trace) == Selection(), "a browser may send anything"


def test_a_typed_sentence_is_in_the_address(new_app):
    app = new_app()
    assert "text" not in address_of(app), "the first example needs no link"
    type_into(app, boxes.SOURCE, "How are you?")
    assert address_of(app)["text"] == "How are you?"
    type_into(app, boxes.SOURCE, "好" * 900)
    assert "text" not in address_of(app), "9 characters each: too long for an address"


@pytest.mark.parametrize("page", ["see/attention", "see/embedding"])
def test_a_character_in_bytes_is_explained_where_its_tokens_are_shown(new_app, page):
    app = new_app(lang="zh")
    app.switch_page(f"pages/{page}.py").run()
    assert "₁" not in "".join(text.value for text in app.text)
    type_into(app, boxes.SOURCE, "I like 龘.")
    assert any("龘₁ 龘₂ 龘₃：词表里没有这个字符" in text.value for text in app.text)
