"""Models of transformers that read pictures: their box, the pages, and an uploaded picture that a link names."""

import io
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.adapters.huggingface.picture_models import clip, clip_processor, encoder, llava, processor_of
from tests.addresses import address_of
from tests.app.support import (
    PAGES,
    VIEWS,
    badges,
    button,
    call,
    captions,
    ignored,
    open_page,
    picture_components,
    shows_something,
)
from tests.app.support import texts as texts_of
from visformer.adapters import picture_files
from visformer.app.serving import uploaded_pictures
from visformer.app.serving.uploaded_pictures import text_of
from visformer.app.serving.workbench import workbench_of
from visformer.app.session import boxes
from visformer.app.widgets import picture_box, picture_file
from visformer.system import limits
from visformer.system.cache import CACHE

SESSION = "test session id"  # AppTest's
PICTURE = "see/picture"


def models():
    """Return each kind of model, and what it reads with; one that reads a text alone has a pair's file on pictures."""
    kinds = {"vit": (encoder("vit"), processor_of("vit")), "llava": llava(), "clip": (clip(), clip_processor())}
    return {**kinds, "gpt2": (tiny_module("gpt2"), tokenizer()), "text-llava": llava()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of a tiny model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    for kind, (module, processor) in models().items():
        module.save_pretrained(folder / kind)
        processor.save_pretrained(folder / kind)
    tiny_module("gpt2").save_pretrained(folder / "text-llava")
    return {kind: folder / kind for kind in models()}


@pytest.fixture
def start(monkeypatch, folders, new_app):
    """Start sessions with a model: ``start("vit", lang="zh")``."""
    monkeypatch.setenv("VISFORMER_MODELS", ",".join(map(str, folders.values())))
    return lambda kind, **link: new_app(model=str(folders[kind]), **link)


def picker(app):
    """Return the box of the model."""
    return next(box for box in app.selectbox if box.key == boxes.MODEL)


def attention_of(kind, picture, text=""):
    """Return the mean attention of all heads and layers, (query, key), by transformers alone."""
    module, processor = models()[kind]
    given = {"text": [f"<image>{text}"]} if kind == "llava" else {}
    with torch.no_grad():
        read = processor(images=[picture], return_tensors="pt", **given)
        return torch.stack(module(**read, output_attentions=True).attentions).mean(dim=(0, 1, 2)).numpy()


def trace_of(app):
    return app.session_state["run"].trace


def photograph(seed=0):
    """Return noise, and the content of a file with it."""
    noise = np.random.default_rng(seed).integers(256, size=(30, 30, 3), dtype=np.uint8)
    Image.fromarray(noise).save(file := io.BytesIO(), "PNG")
    return noise, file.getvalue()


def upload(app, content, name="photo.png", text=""):
    """Upload a file in the box of the model."""
    uploaded = Mock(getvalue=lambda: content)
    uploaded.name = name
    app.session_state["uploaded"] = uploaded
    kept = []

    def take(file):
        kept.append(file)
        picture_box._take(uploaded_pictures.keep(file, SESSION), text)

    call(app, picture_file.opened, picture_files.kept, take, "uploaded")
    return kept


@pytest.mark.parametrize(("kind", "text"), [("vit", ""), ("llava", ""), ("clip", text_of("2"))])
def test_the_first_page_shows_an_example_and_every_page_shows_the_model_or_says_why_not(start, kind, text):
    app = start(kind, text=text)
    assert not app.exception and not badges(app) and picture_components(app)
    side, patches = trace_of(app).patches
    assert trace_of(app).tokens[side][patches.start] == "r1c1"
    for page in PAGES:
        open_page(app, page)
        assert not app.exception and not badges(app), page
        assert shows_something(app) or app.info, page
        if page == PICTURE:
            assert picture_components(app) and not app.info and picker(app).label == "Model"


def test_a_vit_reads_the_pixels_of_an_uploaded_file(start):
    noise, content = photograph()
    app = start("vit")
    upload(app, content)
    assert address_of(app)["text"].startswith("[picture ") and not badges(app)
    module, processor = models()["vit"]
    with torch.no_grad():
        pixels = processor(images=Image.fromarray(noise), return_tensors="pt")["pixel_values"]
        wanted = module(pixels, output_attentions=True).attentions[1][0]
    np.testing.assert_allclose(trace_of(app)["encoder.1.self_attn.pattern"].value, wanted, atol=1e-5)
    assert not any(each.label in ("Second sentence", "Sentence") for each in app.text_input)


def test_llava_reads_an_uploaded_picture_with_the_text_beside_it(start):
    noise, content = photograph()
    app = start("llava", text=text_of("1", "It is"))
    (box,) = (each for each in app.text_input if each.label == "Text")
    assert box.value == "It is"
    upload(app, content, text="It is")
    module, processor = models()["llava"]
    with torch.no_grad():
        read = processor(text=["<image>It is"], images=[Image.fromarray(noise)], return_tensors="pt")
        wanted = module(**read, output_attentions=True).attentions[0][0]
    np.testing.assert_allclose(trace_of(app)["decoder.0.self_attn.pattern"].value, wanted, atol=1e-5)
    name = uploaded_pictures.named(address_of(app)["text"])[0]
    (box,) = (each for each in app.text_input if each.label == "Text")
    box.set_value("It was").run()
    assert address_of(app)["text"] == text_of(name, "It was")
    button(app, "Without a picture").click().run()
    assert "r1c1" not in trace_of(app).tokens["tgt"] and not badges(app)


def test_clip_reads_a_text_or_a_picture(start):
    app = start("clip")
    assert "r1c1" not in trace_of(app).tokens["src"]
    button(app, "Example 3").click().run()
    assert trace_of(app).tokens["src"][1] == "r1c1" and address_of(app)["text"] == text_of("3")
    button(app, "A text instead").click().run()
    assert address_of(app).get("text") is None


def test_a_reload_finds_the_picture_until_no_session_shows_it(start):
    _, content = photograph()
    first = start("vit")
    upload(first, content)
    text, seen = address_of(first)["text"], trace_of(first).image
    second = start("vit", text=text)
    assert not ignored(second) and (trace_of(second).image == seen).all()
    uploaded_pictures.show(uploaded_pictures.named(text)[0], "reloaded")
    uploaded_pictures.forget(SESSION)
    assert not ignored(start("vit", text=text))
    uploaded_pictures.forget(SESSION)
    uploaded_pictures.forget("reloaded")
    third = start("vit", text=text)
    (said,) = ignored(third)
    assert "is not on this server any more" in said and "upload its file again" in said
    assert not badges(third) and (trace_of(third).image != seen).any()


def test_a_session_keeps_few_pictures_and_those_that_it_showed_last():
    names = [uploaded_pictures.keep(bytes([i]), "one") for i in range(limits.PICTURES)]
    uploaded_pictures.show(names[0], "one")
    uploaded_pictures.keep(b"another", "one")
    assert CACHE.get(f"picture {names[1]}") is None
    assert all(CACHE.get(f"picture {name}") is not None for name in (names[0], *names[2:]))
    before = CACHE.nbytes
    uploaded_pictures.forget("one")
    assert before - CACHE.nbytes == limits.PICTURES - 1 + len(b"another")


@pytest.mark.parametrize(("lang", "said"), [("en", "it has none of these formats"), ("zh", "不是这些格式")])
def test_what_is_no_picture_is_refused_with_the_reason(start, lang, said):
    app = start("vit", lang=lang)
    assert not upload(app, b"no picture", "broken.png")
    assert [text for text in texts_of(app) if "broken.png" in text and said in text]
    assert "text" not in address_of(app)


def test_a_large_picture_is_kept_scaled():
    Image.new("RGB", (3 * limits.PICTURE_SIDE, limits.PICTURE_SIDE)).save(file := io.BytesIO(), "JPEG")
    kept = picture_files.Prompt("", picture_files.kept(file.getvalue(), "a.jpg")).image
    assert kept.shape == (round(limits.PICTURE_SIDE / 3), limits.PICTURE_SIDE, 3)


@pytest.mark.parametrize(
    ("kind", "text", "legible"), [("vit", text_of("2"), ""), ("llava", text_of("2", "It is"), "It is")]
)
def test_a_presentation_shows_no_name_of_a_picture(start, kind, text, legible):
    app, seen = start(kind, text=text), []
    call(app, lambda: seen.append(boxes.legible()))
    assert seen == [legible]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_of_pictures_says_what_a_word_of_llava_reads_of_it(start, lang):
    app = start("llava", page=PICTURE, text=text_of("1", "It is"), picture_word="2", lang=lang)
    given = Image.open(io.BytesIO(uploaded_pictures.file_of("1")))
    of_picture = attention_of("llava", given, "It is")[5, 1:5]  # the row of "It", which predicts "is"
    numbers = f"{of_picture.sum():.2f}", f"r{of_picture.argmax() // 2 + 1}c{of_picture.argmax() % 2 + 1}"
    said = {
        "en": "To predict “is”, the model gives {} of its weight to the picture",
        "zh": "预测“is”时，模型把 {} 的权重",
    }
    (sentence,) = texts_of(app, said[lang].format(numbers[0]))
    assert numbers[1] in sentence and not ignored(app) and not app.info


def test_the_page_of_pictures_says_what_the_class_token_of_a_vit_and_a_patch_read(start):
    given = Image.open(io.BytesIO(uploaded_pictures.file_of("3")))
    weights = attention_of("vit", given)[:, 1:]
    for token, name in ((0, "[CLS]"), (4, "r2c2")):
        app = start("vit", page=PICTURE, text=text_of("3"), **({"picture_patch": str(token + 1)} if token else {}))
        assert texts_of(app, f"“{name}” gives {weights[token].sum():.2f} of its weight to the picture")


@pytest.mark.parametrize(
    ("kind", "views"),
    [("vit", "heads patches block"), ("llava", "words heads patches block"), ("clip", "heads patches")],
)
def test_the_page_of_pictures_has_the_views_that_a_model_has(start, kind, views):
    key, every = VIEWS[PICTURE]
    for view in views.split():
        app = start(kind, page=PICTURE, text=text_of("2", "It is"), **{key: view})
        (switch,) = (each for each in app.button_group if each.key == key)
        assert switch.value == view and len(switch.proto.options) == len(views.split())
        assert picture_components(app) and not ignored(app) and not badges(app) and not app.info
    for view in set(every) - set(views.split()):
        assert ignored(start(kind, page=PICTURE, text=text_of("2", "It is"), **{key: view}))


def test_a_model_that_reads_a_text_now_is_offered_a_picture(start):
    for kind, text in (("clip", "It is"), ("llava", text_of("none", "It is"))):
        app = start(kind, page=PICTURE, text=text)
        assert "reads a text now" in app.info[0].value and not badges(app)
        app.button(key="first_picture").click().run()
        assert picture_components(app) and not app.info and address_of(app)["text"] == text_of("1", "It is")


def test_of_a_model_known_to_read_no_pictures_the_page_says_so_before_it_is_loaded(start, folders):
    app = start("gpt2", page=PICTURE)
    assert captions(app, "gpt2 reads no pictures. This page shows mini-caption")
    assert not workbench_of(str(folders["gpt2"])).is_loaded
    assert picker(app).label == "Other pages' model" and texts_of(app, "Caption: a red circle")


def test_a_model_that_turns_out_to_read_no_pictures_once_it_is_loaded_leaves_the_page_to_ours(start):
    app = start("text-llava", page=PICTURE)
    assert captions(app, "text-llava reads no pictures. This page shows mini-caption")
    assert texts_of(app, "Caption: a red circle") and not badges(app) and picture_components(app)


def test_the_sentence_box_of_a_model_of_texts_has_the_text_without_its_picture(start, folders):
    app = start("llava", text=text_of("2", "It is"))
    for chosen, text in (("gpt2", "It is"), ("vit", text_of("2", "It is")), ("gpt2", "It is")):
        picker(app).set_value(str(folders[chosen])).run()
        assert address_of(app)["text"] == text and not badges(app)
    (box,) = (each for each in app.text_input if each.label == "Sentence")
    assert box.value == "It is"
    box.set_value(text_of("3", "is typed")).run()
    picker(app).set_value("mini-gpt").run()
    assert address_of(app)["text"] == text_of("3", "is typed"), "a sentence of its own, not a picture's"


def test_the_sentence_box_has_the_example_where_there_was_a_picture_alone(start, folders):
    app = start("vit", text=text_of("2"))
    picker(app).set_value(str(folders["gpt2"])).run()
    assert "text" not in address_of(app) and not badges(app)


def test_the_words_beside_a_picture_that_is_gone_stay(start):
    app = start("llava", text=text_of("0123456789abcdef", "It is"))
    assert "upload its file again" in ignored(app)[0]
    (box,) = (each for each in app.text_input if each.label == "Text")
    assert box.value == "It is" and not badges(app)


def test_a_chat_beside_a_picture_is_written_with_the_models_template(monkeypatch, tmp_path, new_app):
    module, processor = llava()
    processor.tokenizer.chat_template = processor.chat_template = (
        "{% for message in messages %}{{ message.role }} : {% for part in message.content %}"
        "{{ '<image>' if part.type == 'image' else part.text }}{% endfor %} . {% endfor %}"
    )
    module.save_pretrained(tmp_path / "chatty")
    processor.save_pretrained(tmp_path / "chatty")
    monkeypatch.setenv("VISFORMER_MODELS", str(tmp_path / "chatty"))
    app = new_app(model=str(tmp_path / "chatty"), page=PICTURE, text=text_of("1", "user: It is the river"))
    trace, given = trace_of(app), Image.open(io.BytesIO(uploaded_pictures.file_of("1")))
    parts = [{"type": "image", "image": given}, {"type": "text", "text": "It is the river"}]
    read = processor.apply_chat_template([{"role": "user", "content": parts}], tokenize=True, return_dict=True)
    assert trace.meta["ids"]["tgt"] == [*map(int, np.ravel(read["input_ids"]))]
    assert "user" in trace.roles["tgt"] and picture_components(app) and not badges(app)
