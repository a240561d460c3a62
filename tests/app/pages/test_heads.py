"""The page on heads: it opens with a record, measures on a list, and opens heads in the explorer."""

import pytest
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.huggingface.hub import tokenizer
from tests.adapters.huggingface.test_heads import with_head
from tests.addresses import address_of
from tests.app.support import button, call, captions, choose, noted, open_page, picture_components, texts
from visformer.analysis import head_effects, told_from_zero
from visformer.analysis.answers import asked
from visformer.app.session.measured import recorded
from visformer.app.widgets import controls, waiting
from visformer.errors import DeadlineError
from visformer.system.progress import report, reporting_to
from visformer.web.panels import Click


def picture(app, kind):
    """Return the header of the message that feeds the picture."""
    messages = [one.proto.bytes for one in picture_components(app) if b"{" in one.proto.bytes]
    (header,) = [header for header, _ in map(read_message, messages) if header["kind"] == kind]
    return header


def explorer(app):
    return picture(app, "attention")


def own(app, text):
    choose(app, "heads_list", "own")
    app.text_area(key="sentence_list").set_value(text).run()
    return app


def test_it_opens_with_what_was_measured_of_a_bundled_model(new_app):
    app = open_page(new_app(), "research/heads")
    told = told_from_zero(recorded("en-zh")["zero"].frame())
    (told,) = captions(app, f"Measured on 50 sentences of the bundled list. {told} of 72 heads can be told from zero")
    assert "Rank correlation of the methods, over 72 heads: Zeroed – Mean: 0." in told
    choose(app, "heads_effect", "gradient")
    (told,) = captions(app, "Measured on 50")
    assert "Estimates by the gradient are always above 0." in told and "told from zero" not in told
    (table,) = app.dataframe
    assert len(table.value) == 72 and table.value["layer"].min() == 1


def test_it_measures_on_a_list_of_ones_own_and_the_explorer_has_the_order(new_app):
    app = new_app(model="mini-gpt")
    assert "effect" not in [score["name"] for score in explorer(app)["scores"]]
    app = own(open_page(app, "research/heads"), "I bought a book.\nShe likes the river, and the river likes her.")
    button(app, "Measure").click().run()
    assert not app.exception
    assert captions(app, "Measured on 2 sentences of your list.")
    table = app.dataframe[0].value
    open_page(app, "see/attention")
    header = explorer(app)
    assert header["scores"][-1]["name"] == "effect"
    effects = header["stacks"][0]["values"]["effect"]
    first = table.iloc[0]
    assert effects[first["layer"] - 1][first["head"] - 1] == pytest.approx(first["Zeroed"])


def test_a_difference_of_two_words_is_measured_in_the_last_row_of_each_sentence(new_app):
    lines, model = ["The girl", "My friends"], vf.load("mini-gpt")
    first, second, *_ = model.trace("Tom", record="logits").meta["likeliest"][-1]
    app = own(new_app(page="research/heads", model="mini-gpt", text="Tom"), "\n".join(lines))
    (box,) = [box for box in app.selectbox if box.key.startswith("heads_answer")]
    box.set_value(f"{first} − {second}").run()
    assert any("still on the whole target: press Measure" in one for one in captions(app))
    button(app, "Measure").click().run()
    assert not app.exception
    told = "Measured on 2 sentences of your list. Effects are on the logit of “{}” minus that of “{}”, in the last row"
    assert captions(app, told.format(first, second))
    wanted = head_effects(model, lines, answer=(first, second)).set_index(["layer", "head"])["effect"]
    table = app.dataframe[0].value
    for layer, head, effect in table[["layer", "head", "Zeroed"]].itertuples(index=False):
        assert effect == pytest.approx(wanted[layer - 1, head - 1], abs=1e-4)
    assert address_of(app)["heads_answer"] == f"{first} − {second}"
    choose(app, "heads_view", "pruned")
    button(app, "Measure").click().run()
    assert any("in the last row of each. Nothing is trained" in one for one in captions(app))
    open_page(app, "see/attention")
    assert "effect" not in [score["name"] for score in explorer(app)["scores"]], "which is of whole targets"


@pytest.mark.parametrize("made", [AutoModelForSequenceClassification, AutoModelForTokenClassification])
def test_the_heads_of_a_classifier_are_measured_on_a_label_of_whole_texts(new_app, monkeypatch, tmp_path, made):
    module = with_head("bert", made)
    module.save_pretrained(tmp_path / "opinions")
    tokenizer().save_pretrained(tmp_path / "opinions")
    monkeypatch.setenv("VISFORMER_MODELS", str(tmp_path / "opinions"))
    app = new_app(page="research/heads", model="opinions", text="I went", heads_list="own")
    if made is AutoModelForTokenClassification:
        assert app.info[0].value.startswith("This model labels single tokens")
        return
    own(app, "I went\nI saw the river")
    button(app, "Measure").click().run()
    (predicted,) = asked(vf.wrap(module, tokenizer()).trace("I went", record="logits"), None).names
    assert any(f"Effects are on the logit of “{predicted}”. " in one for one in captions(app))


def test_the_explorer_labels_known_heads(new_app):
    labels = explorer(new_app(model="mini-gpt"))["stacks"][0]["labels"]
    assert {"layer": 2, "head": 5, "label": "Induction head"}.items() <= labels[0].items()
    assert labels[0]["score"] > 0.9 and labels[0]["about"].startswith("weight on the token after the previous")
    chinese = explorer(new_app(model="mini-gpt", lang="zh"))["stacks"][0]["labels"]
    assert chinese[0]["label"] == "归纳头"


def test_errors_of_a_list_name_the_line(new_app):
    app = own(open_page(new_app(), "research/heads"), "I bought a book.\na\tb\tc")
    button(app, "Measure").click().run()
    assert texts(app, "Line 2 has 3 columns")
    own(app, "I bought a book.\n" + "word " * 300)
    button(app, "Measure").click().run()
    assert texts(app, "Line 2 is too long")
    assert captions(app, "Measured on 50 sentences"), "what is there stays"


@pytest.mark.parametrize(
    ("content", "said"), [("She left.\t她走了。".encode(), ""), (b"\xff\xfe", "The file is not UTF-8 text")]
)
def test_a_file_is_read_into_the_box(new_app, content, said):
    app = open_page(new_app(), "research/heads")
    choose(app, "heads_list", "own")
    app.get("file_uploader")[0].upload("mine.tsv", content, "text/plain").run()
    assert not app.exception
    assert bool(texts(app, said)) if said else app.text_area(key="sentence_list").value == "She left.\t她走了。"


def test_what_takes_too_long_says_what_may_help(new_app, monkeypatch):
    def too_long(*_, **__):
        raise DeadlineError("This took {seconds} s.", seconds=30)

    app = open_page(new_app(), "research/heads")
    monkeypatch.setattr(waiting.RemoteModel, "analyse", too_long)
    button(app, "Measure").click().run()
    assert texts(app, "This took 30 s. Measure fewer sentences at a time.")


def test_a_click_on_a_head_opens_it_in_the_explorer(new_app, monkeypatch):
    clicks = noted(monkeypatch, controls, "panels", "on_click")
    app = open_page(new_app(), "research/heads")
    assert {panel["click"] for panel in picture(app, "panels")["panels"]} == {"explores"}
    call(app, clicks[-1], Click("encoder.self_attn", 1, 6))
    assert explorer(app)["start"].items() >= {"stack": "encoder.self_attn", "layer": 1, "head": 6}.items()
    assert address_of(app) == {"view": "tokens", "layer": "2", "head": "7"}, "the encoder is the default"


def test_progress_is_told_to_whoever_listens():
    heard = []
    with reporting_to(lambda *told: heard.append(told)):
        report(1, 2)
    report(2, 2)
    assert heard == [(1, 2)]
