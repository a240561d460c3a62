"""The first page: translations and pictures, bad input, examples, language, and the selection in the address."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import visformer as vf
from benchmarks.messages import read_message
from tests.addresses import address_of, fields_of
from tests.app.support import (
    address,
    badges,
    button,
    captions,
    choose,
    enter,
    in_a_session,
    open_page,
    path_of,
    picture_components,
    presented,
    texts,
    was_sent_ahead,
)
from tests.support import end_at_once, tiny_translator
from tests.web.support import digits, heads_of, shapes_of
from visformer import i18n
from visformer.app.serving import workbench
from visformer.app.serving.admission import ADMISSION
from visformer.app.session import boxes, selection, url_state
from visformer.app.session.address import update as update_address
from visformer.app.session.url_state import EXPLORER
from visformer.app.widgets import controls
from visformer.pictures.examples import EXAMPLES, NAMING, OFFERED, TESTED
from visformer.pictures.registry.picture import pages
from visformer.web.selection import Selection

EMPTY = "There is no sentence yet: type one, or choose an example."


def messages(app):
    """Return header and numbers of each message to the view, the picture first."""
    view, *feeds = picture_components(app)
    sent = [read_message(feed.proto.bytes) for feed in feeds]
    assert {header["to"] for header, _ in sent} == {view.proto.bytes.decode()}
    return sent


def payload(app):
    """Return header and numbers of the picture."""
    return messages(app)[0]


def test_the_first_picture_needs_no_torch(model_name):
    """Nor other slow imports. In its own process, before the model is loaded in the background."""
    code = f"""
import sys
from visformer.app.serving import models, server, workbench
from benchmarks.messages import read_message
workbench.MODEL, workbench.HEAD_START = {model_name!r}, 600
from streamlit.testing.v1 import AppTest
app = AppTest.from_file(server.SCRIPT, default_timeout=60).run()
assert app.get("bidi_component") and not app.exception
slow = ("torch", "transformers", "tokenizers", "plotly.io.json", "pandas", "babel")
print([name for name in slow if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr


def test_a_sentence_is_translated_and_traced(new_app, model_name):
    app = enter(new_app(), "How are you?")
    assert not app.exception
    trace = workbench.workbench().trace("How are you?", None)
    header, numbers = payload(app)
    assert header["tokens"]["src"] == list(trace.tokens["src"])
    heads = heads_of(header, numbers, shapes_of(header))
    assert len(heads) == 3 * trace.stack("encoder.self_attn")[:, :, 0, 0].size
    for (stack, layer, head), weights in heads.items():
        part, kind = stack.split(".")
        assert digits(weights) == digits(trace[f"{part}.{layer}.{kind}.pattern"].value[head])
    assert trace.meta["target"] in app.text[0].value


@pytest.fixture
def patient(monkeypatch):
    """A loaded model, and a page that waits for its picture however busy the machine is."""
    workbench.workbench().load().result()
    monkeypatch.setattr(controls, "PATIENCE", 60)


@pytest.mark.usefixtures("patient")
def test_the_picture_of_a_new_sentence_is_sent_before_the_page(new_app):
    app = new_app(lang="zh")
    assert not was_sent_ahead(app), "it was cached"
    before = dict(ADMISSION.counts.outcomes)
    enter(app, "This one goes ahead.")
    assert was_sent_ahead(app)
    ((header, _),) = messages(app)  # not sent again with the page
    assert "goes" in header["tokens"]["src"]
    assert header["stacks"][0]["label"] == i18n.translations("zh").gettext("Encoder")
    after = ADMISSION.counts.outcomes
    assert (after["computed"] - before["computed"], after["cached"] - before["cached"]) == (1, 0)
    app.run()
    assert not was_sent_ahead(app)
    assert payload(app)[0]["tokens"] == header["tokens"]


def test_a_picture_that_takes_longer_than_the_patience_is_sent_with_the_page(new_app, monkeypatch):
    monkeypatch.setattr(controls, "PATIENCE", 0)
    workbench.workbench().load().result()
    app = enter(new_app(), "This one comes in its place.")
    assert not was_sent_ahead(app)
    assert "place" in payload(app)[0]["tokens"]["src"]


@pytest.mark.usefixtures("patient")
def test_no_picture_is_sent_ahead_of_another_page(new_app):
    app = enter(new_app(page="see/embedding"), "This one stays behind.")
    assert not app.exception
    assert not was_sent_ahead(app)


@pytest.mark.usefixtures("patient")
def test_a_picture_sent_ahead_has_the_selection_that_comes_with_the_sentence(new_app):
    """As in a step of a lesson."""
    app = new_app()
    selected = Selection(stack="decoder.cross_attn", layer=1, head=2)
    app.session_state[boxes.SOURCE] = "This one has a selection."
    app.session_state["start"] = selected
    app.run()
    assert was_sent_ahead(app)
    start = payload(app)[0]["start"]
    assert start == {**selected.start(), "opened": start["opened"]}


def test_a_typed_target_is_forced_until_another_sentence_is_entered(new_app):
    app = enter(new_app(), "我去东北。", box=boxes.TARGET)
    assert not app.exception
    assert app.text[0].value == "Target as typed: 我去东北。"
    assert payload(app)[0]["tokens"]["tgt"][0] == "<zh>"
    enter(app, "How are you?")
    assert app.text_input(key=boxes.TARGET).value == ""
    assert app.text[0].value.startswith("Translation: ")
    enter(app, "我去东北。", box=boxes.TARGET)
    app.selectbox(key=boxes.EXAMPLE).select(EXAMPLES[1]).run()
    assert app.text_input(key=boxes.TARGET).value == ""


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "The model is unsure of this translation (confidence {:.0%})."),
        ("zh", "模型对这句译文没有把握（置信度 {:.0%}）。"),
    ],
)
def test_a_translation_that_the_model_is_unsure_of_says_so(new_app, monkeypatch, language, said):
    model = workbench.workbench().load().result()
    monkeypatch.setattr(model, "unsure_below", 1.0)
    source = f"How sure is it in {language}?"
    said = said.format(model.translate(source).confidence)
    app = enter(new_app(lang=language), source)
    assert captions(app, said) == [said]
    assert presented(app)["sentence"].endswith(said)
    (caption,) = [one for one in app.caption if one.value == said]
    assert caption.help
    pills = app.pills(key=boxes.TESTED)
    assert pills.options == [*TESTED]
    pills.set_value(TESTED[1]).run()
    assert app.text_input(key=boxes.SOURCE).value == TESTED[1]
    enter(app, source)
    enter(app, "我去东北。", box=boxes.TARGET)
    assert not captions(app, said[:5]), "it is not the model's own"


def test_what_is_offered_to_who_sees_a_doubt_is_translated_as_a_person_would_and_without_one():
    translated = {
        "How are you?": {"你好吗？", "你怎么样？"},
        "Attention is all you need.": {"你只需要注意力。", "注意力就是你所需要的一切。"},
        "I have arrived at Beijing from Xiamen.": {"我从厦门来到了北京。", "我已经从厦门到了北京。"},
        "欢迎来到北京": {"Welcome to Beijing"},
        "我明天去上海。": {"I will go to Shanghai tomorrow.", "I'm going to Shanghai tomorrow."},
    }
    model = vf.load("en-zh")
    assert {*translated} == {*TESTED}
    for sentence, accepted in translated.items():
        trace = model.trace(sentence)
        assert trace.meta["target"] in accepted and not trace.is_unsure, sentence


def test_a_translation_that_the_model_is_sure_of_says_nothing_and_nor_does_one_without_a_threshold(
    new_app, monkeypatch
):
    for below, source in ((0.0, "How sure is it of this one?"), (None, "How sure is it of that one?")):
        monkeypatch.setattr(workbench.workbench().load().result(), "unsure_below", below)
        assert not captions(enter(new_app(), source), "The model is unsure")


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ("Translation: ", "Decoded with these settings: ", "(empty: the model ends the sentence at once)")),
        ("zh", ("译文：", "当前设置下的解码结果：", "（空：模型直接结束了句子）")),
    ],
)
def test_an_empty_translation_is_said_to_be_empty(new_app, monkeypatch, language, said):
    end_at_once(monkeypatch)
    app = enter(new_app(lang=language), f"Nothing of it in {language}?")
    translation, decoded, empty = said
    assert texts(app, translation + empty)
    assert translation + empty in presented(app)["sentence"]
    choose(open_page(app, "understand/decoding"), "decoding_view", "beams")
    assert texts(app, decoded + empty)


def test_the_side_bar_says_that_the_model_is_small_and_its_attention_real(new_app):
    (said,) = [one.value for one in new_app().sidebar.caption if "small" in one.value]
    assert "its attention is real all the same" in said


def test_control_characters_of_a_target_are_visible(new_app):
    app = new_app(target="我\x07去")
    assert app.text[0].value.startswith("Target as typed: 我U+0007去")


def test_no_box_is_blank(new_app):
    """The browser draws a box before it has taken its value from the session."""
    for sentence in (EXAMPLES[0], ""):
        app = enter(new_app(), sentence)
        for key in (boxes.SOURCE, boxes.TARGET):
            assert app.text_input(key=key).placeholder, (key, sentence)


@pytest.mark.parametrize("target", ["", "   "])
def test_without_a_target_the_models_own_translation_is_shown(new_app, target):
    app = enter(new_app(), target, box=boxes.TARGET)
    assert app.text[0].value.startswith("Translation: ")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "", EMPTY),
        ("\t\n ", "", EMPTY),
        ("word " * 2000, "", "2,002 tokens, and this model takes at most 512"),
        ("I like cats.", "我" * 5000, "5,001 tokens, and this model takes at most 512"),
    ],
)
def test_an_error_is_one_sentence_without_a_picture(new_app, source, target, message):
    app = enter(new_app(), source)
    if target:
        enter(app, target, box=boxes.TARGET)
    assert not app.exception
    (text,) = texts(app)
    assert message in text
    assert badges(app) == ([] if message == EMPTY else ["This cannot be shown"])
    assert [header["kind"] for header, _ in messages(app)] == ["nothing"]


@pytest.mark.parametrize(
    ("link", "opened"),
    [
        ({}, [page for page in pages().values() if not page.model]),
        ({"lesson": "attention-in-three-minutes"}, [pages()[EXPLORER]]),
        ({"model": "mini-gpt"}, [pages()["decoding"]]),
    ],
)
def test_an_empty_box_is_no_error_and_offers_an_example(new_app, link, opened):
    """With the second box empty or not; a page without a sentence of its own is opened, too."""
    app = enter(new_app(**link), "")
    for page in opened:
        open_page(app, path_of(page))
        for target in ("", "我去东北。") if page.has_sentence and not page.model else ():
            enter(app, target, box=boxes.TARGET)
            assert not app.exception
            assert EMPTY in texts(app), page.name
            assert "This cannot be shown" not in badges(app), page.name
            assert button(app, EXAMPLES[0])
    button(open_page(app, path_of(opened[0])), EXAMPLES[0]).click().run()
    assert not app.exception
    assert EMPTY not in texts(app)
    assert (app.text_input(key=boxes.SOURCE).value, app.text_input(key=boxes.TARGET).value) == (EXAMPLES[0], "")


def question(app):
    """Return what the page suggests to try; "" if nothing."""
    (caption,) = captions(app, "Each word reads")
    return caption.partition(" Try: ")[2]


@pytest.mark.parametrize(("layer", "head"), [("1", "8"), ("3", "4")])
def test_what_the_row_of_the_language_token_reads_is_said_where_it_is_seen(new_app, layer, head):
    app = new_app(stack="cross", layer=layer, head=head)
    (caption,) = captions(app, "Each word reads")
    trace = app.session_state["run"].trace
    row = trace[f"decoder.{int(layer) - 1}.cross_attn.pattern"].value[int(head) - 1, 0]
    most = int(row.argmax())
    assert f"it reads {trace.tokens['src'][most]} most ({row[most]:.2f})" in caption
    assert ("nothing in particular" in caption) == (trace.tokens["src"][most] == "</s>")
    for elsewhere in ({"view": "tokens"}, {"view": "layer"}, {"hiding": "1"}, {"stack": "decoder"}):
        link = {"stack": "cross", "layer": layer, "head": head, **elsewhere}
        (caption,) = captions(new_app(**link), "Each word reads")
        assert "The first row" not in caption


@pytest.mark.parametrize(("sentence", "name"), [*zip(NAMING, ("Northeastern", "东北", "北京"), strict=True)])
def test_a_head_that_finds_the_name_is_asked_for_where_there_is_one(new_app, sentence, name):
    app = enter(new_app(), sentence)
    assert question(app) == "which head finds the name?"
    trace = app.session_state["run"].trace
    keys = [key for key, token in enumerate(trace.tokens["src"]) if token == name]
    weights = np.stack([pattern.value for pattern in trace.layers("decoder.cross_attn").values()])
    assert weights[..., keys].max() > 0.95  # (layer, head, query, key)
    enter(app, "I like cats.", box=boxes.TARGET)
    assert "name" not in question(app), "another target need not name it"


@pytest.mark.parametrize(
    ("link", "offset", "asked"),
    [
        ({"text": "We saw a film.", "stack": "encoder"}, -1, "which head reads the previous token?"),
        ({"text": "My sister likes music.", "stack": "decoder"}, 0, "in which head do tokens mostly read themselves?"),
        ({"text": "We saw a film.", "model": "mini-gpt"}, -1, "which head reads the previous token?"),
    ],
)
def test_a_question_is_asked_only_where_a_head_answers_it(new_app, link, offset, asked):
    app = new_app(**link)
    assert question(app) == asked
    layers = app.session_state["run"].trace.layers(f"{link.get('stack', 'decoder')}.self_attn").values()
    heads = [np.trace(head, offset) / (len(head) + offset) for layer in layers for head in layer.value]
    assert max(heads) > 0.5


@pytest.mark.parametrize("stack", ["encoder", "cross"])
def test_nothing_is_asked_where_no_head_answers(new_app, stack):
    app = new_app(model="untrained", stack=stack)
    assert question(app) == ""


def test_megabytes_of_text_are_not_kept(new_app):
    app = enter(new_app(), "word " * 2_000_000)
    assert len(app.session_state[boxes.SOURCE]) == 100_000
    assert "at most 512" in app.text[0].value


def test_every_example_is_entered_and_drawn(new_app):
    app = new_app()
    for example in reversed(OFFERED):  # ending with the default
        app.selectbox(key=boxes.EXAMPLE).select(example).run()
        assert not app.exception
        assert app.text_input(key=boxes.SOURCE).value == example
        assert app.selectbox(key=boxes.EXAMPLE).value is None
        assert payload(app)[0]["tokens"]["src"][-1] == "</s>"


def test_the_language_of_a_link_has_precedence_over_that_of_the_browser(new_app):
    app = new_app(lang="en", locale="zh-CN")
    assert app.text_input(key=boxes.SOURCE).label == "Sentence"
    assert payload(app)[0]["stacks"][0]["label"] == "Encoder"


def test_a_switched_language_is_in_the_address(new_app):
    app = new_app()
    app.get("segmented_control")[0].set_value("zh")
    app.run()
    assert app.text_input(key=boxes.SOURCE).label == "句子"
    assert address_of(app) == {"lang": "zh"}


def test_the_explorer_starts_with_the_head_of_the_weights(new_app):
    first = url_state.start("en-zh")
    for link, expected in (({}, first), ({"view": "arcs"}, replace(first, view="arcs"))):
        start = payload(new_app(**link))[0]["start"]
        assert start == {**expected.start(), "opened": start["opened"]}


def test_a_selection_is_cut_to_what_another_model_has():
    with in_a_session({"selection": Selection("decoder.cross_attn", 2, 5)}):
        assert selection.selection(tiny_translator(n_decoder_layers=2).trace("I like.")) == Selection(
            "decoder.cross_attn", 1, 1
        )


def test_the_selection_reaches_the_address_and_the_head(new_app):
    """The component's own callback, since AppTest has no browser that could call it."""
    trace = workbench.workbench().trace("How are you?", None)
    values = {"start": Selection(), boxes.LANGUAGE: "zh", "language_is_chosen": True}
    with in_a_session(values) as session, address() as link:
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
        assert {name: value for name, value in session.items() if name.startswith("head_")} == {
            "head_stack": "decoder.self_attn",
            "head_layer_1–3": 3,
            "head_head_8": 6,
            f"head_query_{len(trace.tokens['tgt'])}": 1,
        }
        assert selection.selection(trace) == Selection("decoder.self_attn", 2, 5, "tokens", 1, 2)
        assert selection.take(Selection().start(), trace)
        update_address()
        assert fields_of(link) == {"lang": "zh", "stack": "encoder"}
        assert not selection.take({"stack": "<script>"}, trace)
        assert selection.selection(trace) == Selection(), "a browser may send anything"


def test_a_typed_sentence_is_in_the_address(new_app):
    app = new_app()
    assert "text" not in address_of(app), "the first example needs no link"
    enter(app, "How are you?")
    assert address_of(app)["text"] == "How are you?"
    enter(app, "好" * 900)
    assert "text" not in address_of(app), "9 characters each: too long for an address"


@pytest.mark.parametrize("page", ["see/attention", "see/embedding"])
def test_a_character_in_bytes_is_explained_where_its_tokens_are_shown(new_app, page):
    app = open_page(new_app(lang="zh"), page)
    assert "₁" not in "".join(texts(app))
    enter(app, "I like 龘.")
    assert any("龘₁ 龘₂ 龘₃：词表里没有这个字符" in text for text in texts(app))
