"""The page of the course notes: every topic, its live pages, the search, and the names of classes."""

import re

import pytest

import visformer
from tests.app.pages.seen import open_link
from tests.app.support import ignored, texts, unescaped
from visformer import model
from visformer.i18n import translations
from visformer.pictures.claims import CLAIMS
from visformer.pictures.course import TOPICS, search
from visformer.pictures.registry.picture import pages

LIVE = [(topic.name, live) for topic in TOPICS for live in topic.live]


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_a_topic_is_opened_by_its_name_and_has_an_idea_and_its_examples(new_app, topic):
    app = new_app(page="understand/lab")
    next(each for each in app.get("button_group") if each.key == "lab_topic").set_value(topic.name).run()
    assert not app.exception
    assert app.header[0].value == topic.title
    assert topic.idea in [unescaped(each.value) for each in app.markdown]
    assert app.session_state["lab_example"] == topic.examples[0].name
    assert topic.idea.count(". ") == 1, "two sentences"


@pytest.mark.parametrize(("name", "live"), LIVE, ids=[f"{name}-{i}" for i, (name, _) in enumerate(LIVE)])
def test_a_live_page_opens_in_the_state_that_its_link_names(name, live):
    link = "&".join(f"{key}={value}" for key, value in live.choices.items() if value)
    app = open_link(f"/{live.page}?v=2&{link}", locale="en-US")
    assert not app.exception
    assert ignored(app) == []


@pytest.mark.parametrize(
    ("words", "example"),
    [
        ("540.49", "softmax"),
        ("−0.1455", "sinusoid"),
        ("MultiHeadedAttention", "split"),
        ("self_attn = src_attn", "cross"),
        ("b2 ones", "norms"),
        ("batchnorm padding", "two-norms"),
        ("光同尘", "look-up"),
        ("GPT-2", "paths"),
        ("triangle", "triangles"),
        ("gradient", "gradients"),
        ("外积", "outer"),
        ("梯度", "gradients"),
        ("下三角", "triangles"),
        ("困惑度", "loss"),
        ("注意力机制", "query"),
        ("子层连接结构", "norms"),
        ("规范化层", "norms"),
        ("自回归", "time-steps"),
        ("(2,4,8,64)", "split"),
        ("[2, 8, 4, 4]", "split"),
        ("QK^T", "query"),
        ("2.40", "softmax"),
        ("上海", "vectors"),
        ("dropout", "dropout"),
        ("RNN", "paths"),
        ("门控", "paths"),
        ("反向传播", "look-up"),
        ("0.0006", "same-word"),
        ("seq_len", "sinusoid"),
        ("介词", "sinusoid"),
        ("单位矩阵", "vectors"),
        ("其他词", "query"),
        ("负无穷", "time-steps"),
        ("clones deepcopy", "split"),
        ("int64", "split"),
        ("梯度爆炸", "gradients"),
        ("MhSa", "layer"),
        ("序列到序列", "cross"),
        ("x_7", "query"),
        ("torch.randn", "sizes"),
    ],
)
def test_a_search_finds_an_item_of_the_notes_in_both_languages(words, example):
    assert example in [found.example.name for found in search(words, translations("zh").gettext)]


@pytest.mark.parametrize(
    ("words", "example"),
    [
        ("[[10, 40], [90, 160]]", "outer"),
        ("5, 11, 17", "one-head"),
        ("50, 64, 78", "mended"),
        ("[2, 8, 4, 4]", "split"),
        ("12层", "sizes"),
        ("180", "self-attention"),
    ],
)
def test_what_the_notes_print_together_is_found_first(words, example):
    assert search(words, translations("zh").gettext)[0].example.name == example


def test_what_a_search_finds_is_opened_and_what_it_does_not_find_is_said(new_app):
    app = new_app(page="understand/lab")
    app.text_input(key="lab_search").set_value("540.49").run()
    found = app.button(key="lab_found_softmax")
    assert unescaped(found.label).startswith("Attention by hand › Softmax of a 4 × 4 score matrix :gray[exp(21.2206)")
    found.click().run()
    assert app.session_state["lab_example"] == "softmax"
    assert app.text_input(key="lab_search").value == ""
    app.text_input(key="lab_search").set_value("xyzzy <b>").run()
    assert texts(app, "Nothing on this page has “xyzzy <b>”")


def test_every_claim_has_a_topic_and_a_page():
    assert {claim.topic for claim in CLAIMS} <= {topic.name for topic in TOPICS}
    assert {claim.page for claim in CLAIMS} - {""} <= {*pages()}


def test_the_names_of_classes_are_ours_and_stand_in_the_docstring_too():
    said = model.__doc__ or ""
    for names in (names for topic in TOPICS for names in topic.classes):
        for found in re.findall(r"vf\.([\w.]+)", names.ours):
            value = visformer
            for part in found.split("."):
                value = getattr(value, part)
    for name in (
        "MultiHeadedAttention",
        "PositionwiseFeedForward",
        "SublayerConnection",
        "Embeddings",
    ):
        assert name in said
        assert any(name in names.notes for topic in TOPICS for names in topic.classes)
