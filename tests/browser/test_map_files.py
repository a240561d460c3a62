"""What the whole model is saved as, in Chromium: SVG as the canvas shows it, and a video of its play."""

import base64
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app.lessons.test_handout import html_of, with_one_step
from tests.browser.bare import BarePage
from tests.browser.map_page import mount as mount_at
from tests.browser.test_saved_pages import download
from tests.kinds import trace_of
from visformer import export
from visformer.trace.stacks import STACKS
from visformer.web.chunks import Focus

SCRIPT = (Path(__file__).parent / "map_files.js").read_text(encoding="utf-8")
PLACES = {
    "at rest": "map.go(Infinity)",
    "playing": "map.go(map.stages[Math.floor(map.stages.length * 0.6)].start + 0.3)",
    "a sublayer": "map.zoomTo({ stack: map.layout.columns[0].stack, layer: 0, kind: 'self_attn' })",
    "a head": "map.zoomTo({ stack: map.layout.columns.at(-1).stack, layer: 0, kind: 'self_attn', head: 1 })",
}


SHAPES = ("corners", "ellipses", "curves", "dashes", "boxes", "turned", "clipped", "images", "words")


def test_what_is_painted_on_a_canvas_is_painted_as_svg(bare):
    for shape in SHAPES:
        found = bare.run("shared/svg.js", f"return ({SCRIPT}).shapes(m, args)", shape)
        assert found["drawn"] > 1000, shape
        assert found["far"] < 0.03 * found["drawn"], (shape, found)


def run(page, name, args=None):
    """Run a function of map_files.js."""
    return page.evaluate(f"(args) => ({SCRIPT}).{name}(args)", args)


def mount(bare, trace, **options):
    """Mount a Trace, or that of a kind of model; the lines are those of the second head."""
    trace = trace_of(trace) if isinstance(trace, str) else trace
    stack = next(stack.name for stack in STACKS if stack.in_trace(trace))
    return mount_at(bare, trace, focus=Focus(stack, 0, 1), **options)


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


@pytest.fixture
def still(bare):
    """No motion, so that a place is shown in the next frame."""
    bare.page.emulate_media(reduced_motion="reduce")
    yield bare
    bare.page.emulate_media(reduced_motion="no-preference")


def inside(parts, width, height):
    """Return (text, x, y) or (x, y, width, height) of the parts that begin inside the picture."""
    at = [part[1:] if isinstance(part[0], str) else part for part in parts]
    return [part for part, (x, y, *_) in zip(parts, at, strict=True) if -0.5 < x < width and -0.5 < y < height]


def is_drawn(text, drawn, scale):
    """Whether a text is where one was drawn: in SVG letters stand on y, some pixels from the middle of a line."""
    words, x, y = text
    return any(one == words and math.hypot(x - left, y - top) < 7 * scale for one, left, top in drawn)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "kind", ["en-zh", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("bert", "mini-gpt"))]
)
def test_the_svg_has_the_texts_and_rectangles_of_the_canvas(still, kind, place):
    page = mount(still, kind)
    page.evaluate(f"() => {{ {PLACES[place]} }}")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    drawn, written = run(page, "drawn"), run(page, "written")
    size, scale = (written["width"], written["height"]), page.evaluate("map.seen.scale")
    texts, own = (inside(each["texts"], *size) for each in (drawn, written))
    assert sorted(text for text, *_ in own) == sorted(text for text, *_ in texts)
    assert not [text for text in own if not is_drawn(text, texts, scale)]
    rects, own = (inside(each["rects"], *size) for each in (drawn, written))
    assert len(own) > 2
    assert len(own) == len(rects)
    assert not [rect for rect in own if not any(rect == pytest.approx(one, abs=0.1) for one in rects)]


@pytest.mark.parametrize(
    "place", [place if place == "playing" else pytest.param(place, marks=pytest.mark.full) for place in PLACES]
)
def test_the_svg_looks_like_the_canvas(still, place):
    page = mount(still, "en-zh")
    page.evaluate(f"() => {{ {PLACES[place]} }}")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    difference = run(page, "difference")
    assert difference["blank"] < 0.95
    assert difference["far"] < 0.008  # edges between pixels
    assert difference["mean"] < 2.5


def test_the_svg_names_the_model_and_the_sentence_and_takes_any_token(bare):
    trace = trace_of("en-zh")
    hostile = [["</svg><b>\x00"] * 5] * len(trace.tokens["next"])
    page = mount(bare, replace(trace, meta={**trace.meta, "likeliest": hostile}), file="en-zh")
    content, name = download(page, button(page, "SVG"))
    text = content.decode()
    assert name == "en-zh-map.svg"
    assert trace.about in text
    assert "&lt;/svg&gt;" in text
    assert not re.search(r"<(script|b|style)\b|style=|\x00", text)
    told = page.evaluate(
        "text => new DOMParser().parseFromString(text, 'image/svg+xml').querySelectorAll('parsererror').length", text
    )
    assert told == 0


def check_video(bare, content):
    assert content.startswith(bytes.fromhex("1a45dfa3"))
    assert b"webm" in content[:64]
    video = run(bare.page, "frames", base64.b64encode(content).decode())
    assert video["width"] >= 1280
    assert video["height"] >= 720
    assert 1.5 < video["seconds"] < 60
    assert min(video["inks"]) > 0.003, video
    begin, middle, end = video["inks"]
    assert begin <= 1.01 * middle and middle <= 1.01 * end and begin < end, "it fills as it plays"


@pytest.mark.full
@pytest.mark.parametrize("motion", [pytest.param("reduce", marks=pytest.mark.full), "no-preference"])
def test_the_play_is_recorded_as_a_video(bare, motion):
    bare.page.emulate_media(reduced_motion=motion)
    page = mount(bare, "bert", file="bert")
    page.get_by_role("combobox", name="Speed").select_option("4")
    with page.expect_download() as file:
        button(page, "Video").click()
        expect(page.get_by_role("button", name=re.compile(r"Cancel \([1-9]\d? %\)"))).to_be_visible()
    assert file.value.suggested_filename == "bert-map.webm"
    with open(file.value.path(), "rb") as saved:
        check_video(bare, saved.read())
    expect(button(page, "Video")).to_be_visible()
    expect(button(page, "Play")).to_be_visible()
    bare.page.emulate_media(reduced_motion="no-preference")


def test_a_video_that_is_cancelled_is_not_saved(chromium):
    """Also in the second and a half after the play, for which its last picture stays."""
    bare = BarePage(chromium)
    bare.page.clock.install(time=0)
    page = mount(bare, "bert")
    button(page, "Video").click()
    page.get_by_role("button", name=re.compile("^Cancel")).wait_for()
    page.clock.pause_at(3600)
    page.evaluate("() => { window.ended = 0; map.files.film.end = async () => { ended++; return new Blob() } }")
    page.get_by_role("slider", name="Where the play is").fill("1e9")
    page.get_by_role("button", name=re.compile("^Cancel")).click()
    page.clock.run_for(3000)
    expect(button(page, "Video")).to_be_visible()
    assert page.evaluate("ended") == 0
    bare.close()


def test_a_browser_that_cannot_record_says_so(bare):
    page = mount(bare, "bert")
    page.evaluate("() => { window.own = window.MediaRecorder; delete window.MediaRecorder }")
    button(page, "Video").click()
    expect(page.get_by_text("This browser cannot record WebM.")).to_be_visible()
    expect(button(page, "Play")).to_be_visible()
    page.evaluate("() => { window.MediaRecorder = window.own }")


def test_a_handout_shows_the_whole_model_and_plays_it(visit, tmp_path):
    (tmp_path / "lesson.html").write_text(html_of(with_one_step("map", "stack: encoder")), encoding="utf-8")
    page = visit((tmp_path / "lesson.html").as_uri())
    button(page, "One step on").click()
    expect(page.get_by_role("status")).to_have_text(re.compile("The text is cut into"))


@pytest.fixture
def saved_page(visit, tmp_path):
    (tmp_path / "map.html").write_text(export.model_page(trace_of("bert"), file="bert"), encoding="utf-8")
    return visit((tmp_path / "map.html").as_uri())


def test_the_saved_page_saves_an_svg_offline(saved_page):
    content, name = download(saved_page, button(saved_page, "SVG"))
    assert name == "bert-map.svg"
    assert content.startswith(b"<svg")


@pytest.mark.full
def test_the_saved_page_saves_a_video_offline(bare, saved_page):
    saved_page.get_by_role("combobox", name="Speed").select_option("4")
    content, name = download(saved_page, button(saved_page, "Video"))
    assert name == "bert-map.webm"
    check_video(bare, content)
