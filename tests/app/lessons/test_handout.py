"""Hand-outs, a lesson as one HTML file: every step has a picture, nothing is loaded, and no text becomes markup."""

import base64
import re
from html import unescape

import pytest

from benchmarks.messages import read_message
from tests.app.lessons.test_lesson_file import GOOD, model, told
from tests.web.test_page import HOSTILE, Elements
from visformer.app.lessons import handout, lesson_file
from visformer.app.lessons.handout import page
from visformer.app.session import url_state
from visformer.errors import BudgetError
from visformer.system import limits

STATES = [
    ("masks", 'masks_view: scores, masks_stack: cross, masks_layer: "2", masks_head: "8"'),
    ("masks", 'masks_view: batch, masks_hidden: "1"'),
    ("positions", 'positions_view: rotation, positions_n: "40", positions_from: "39"'),
    ("head", 'stack: cross, layer: "2", head: "3", query: "4", head_view: joined'),
    ("masks", "masks_view: edit, masks_edit_stack: encoder, masks_switched: b1.4.3.2_b2.0.1.0"),
    ("head", "stack: cross, head_view: silence, head_scales: 1.3.0_3.8.175"),
    ("block", "block_view: added, block_stack: decoder, block_part_decoder: cross"),
    ("decoding", 'decoding_temperature: "0.5", decoding_draws: "1", decoding_seed: "9"'),
    ("lab", "lab_example: softmax"),
    ("embedding", "embedding_side: neither"),
]
PICTURE = re.compile('<div class="vf-host"|<table>|<img ')


def html_of(content, language="en"):
    lesson, faults = lesson_file.read(content if isinstance(content, bytes) else content.encode())
    assert faults == ()
    return page(lesson, language, model_of=model)


def with_one_step(page_name, fields):
    """Return a lesson whose only step links to this page; ``fields``: the state, as YAML."""
    return GOOD.partition("steps:")[0] + f"steps:\n  - {{title: A, say: B, link: {{page: {page_name}, {fields}}}}}\n"


@pytest.mark.parametrize(
    ("name", "language"), [(url_state.SHIPPED, "en"), (url_state.SHIPPED, "zh"), (url_state.SHORT, "en")]
)
def test_the_handout_of_a_shipped_lesson_is_small_and_self_contained_and_has_all_steps(name, language):
    lesson, text = lesson_file.load(name), html_of(lesson_file.content(name), language)
    sections = text.partition("<main>")[2].partition("</main>")[0].split("<section ")[1:]
    for step, section in zip(lesson.steps, sections, strict=True):
        plain = unescape(section)
        for name in ("say", "try", "answer"):
            assert told(step, name, language) in plain
        assert step.text("note", language) not in plain, "notes are for the presenter"
        assert PICTURE.search(section)
    assert len(text.encode()) < 1_500_000
    loaded = [value for name, value in Elements(text).attributes if name in ("src", "href", "srcset")]
    assert loaded
    assert not [value for value in loaded if not value.startswith(("data:", "#"))]
    assert "default-src 'none'" in text


def test_hints_and_the_answer_are_folded_in_a_handout():
    told = "hints: [Look <up>., Look down.]\n    answer: It was the mask.\n    code: {file: masks.py, line: tril()}"
    section = html_of(GOOD.replace("note: Wait.", told)).partition('<section id="2"')[2]
    found = re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", section)
    assert [name for name, _ in found] == ["Hint 1", "Hint 2", "Answer"]
    assert found[0][1] == "<p>Look &lt;up&gt;.</p>"
    assert found[2][1].startswith("<p>It was the mask.</p><pre>return torch.ones(n, n")


def test_any_state_is_drawn_or_refers_to_the_app():
    for page_name, fields in STATES:
        text = html_of(with_one_step(page_name, fields))
        assert ('class="live"' in text) != bool(PICTURE.search(text)), fields


def test_the_whole_model_is_in_a_handout_with_the_head_of_the_step():
    text = html_of(with_one_step("map", 'stack: cross, layer: "2", head: "4"'))
    header, _ = read_message(base64.b64decode(Elements(text).scripts["step1-0"]))
    assert header["kind"] == "map" and 'class="live"' not in text
    assert header["focus"] == {"stack": "decoder.cross_attn", "layer": 1, "head": 3}


def test_no_text_becomes_markup():
    for hostile in HOSTILE:
        quoted = "'" + hostile.replace("'", "''") + "'"
        elements = Elements(html_of(GOOD.replace("Look at this.", quoted).replace("One", quoted)))
        data = [t for t in elements.attributes if t == ("type", "text/plain")]
        assert elements.tags.count("script") == 1 + len(data), hostile
        assert not [1 for name, value in elements.attributes if name == "onerror"], hostile


def test_a_lesson_with_too_much_to_draw_is_refused_before_everything_is_drawn(monkeypatch):
    monkeypatch.setattr(limits, "HANDOUT_BYTES", 100_000)
    drawn = []
    slide = handout._slide
    monkeypatch.setattr(handout, "_slide", lambda *args: drawn.append(1) or slide(*args))
    with pytest.raises(BudgetError, match=r"steps 1 to \d+ take .* at most 100 kB: shorten sentences"):
        handout.file(lesson_file.content(url_state.SHIPPED), "en")
    assert len(drawn) < 12


def test_numbers_out_of_range_are_drawn_as_the_default():
    for page_name, usual, absurd in (
        ("positions", "", 'positions_n: "16000", positions_d: "16000"'),
        ("decoding", "decoding_view: beams", 'decoding_view: beams, decoding_beams: "3000"'),
    ):
        one, other = (handout.file(with_one_step(page_name, fields).encode(), "en") for fields in (usual, absurd))
        assert one == other, page_name
