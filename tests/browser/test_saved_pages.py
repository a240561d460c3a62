"""Saved pictures: a page opened from disk, a notebook cell, and the PNG button."""

import io
import json
from html import unescape
from pathlib import Path

import pytest
from PIL import Image

import visformer as vf
from tests.browser.support import point_of_cell, state_of, wait_for_panels
from tests.web.support import made_up_trace, with_gaps
from visformer.analysis.heads import first_head
from visformer.pictures.style import BACKGROUND
from visformer.web.selection import VIEWS

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "<!--", "我去东北大学", "\u202eabc"]
NOTEBOOK_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; child-src data:"
)
"""What VS Code's notebooks allow a cell to do: an iframe with srcdoc is under its parent's policy."""


def wait_until_painted(frame):
    frame.locator(".vf-root[data-painted]").wait_for()


@pytest.fixture
def saved_page(visit, tmp_path):
    """Save a Trace as a page, and open it from disk."""

    def open_saved(trace, *, place=None, **settings):
        vf.export.save(trace, tmp_path / "x.html", **(place or {}))
        page = visit((tmp_path / "x.html").as_uri(), **settings)
        wait_until_painted(page)
        return page

    return open_saved


def download(page, button):
    """Click a button; return the content and the name of the file that it downloads."""
    with page.expect_download() as file:
        button.click()
    return Path(file.value.path()).read_bytes(), file.value.suggested_filename


def png_of(page, frame):
    """Return the PNG that the button downloads, and its name."""
    content, name = download(page, frame.get_by_role("button", name="PNG"))
    return Image.open(io.BytesIO(content)), name


def test_layers_of_a_hybrid_model_have_its_numbers_in_every_view(saved_page):
    trace = with_gaps(made_up_trace(n_layers=3))  # the layers 1, 3 and 5
    page = saved_page(trace, place={"stack": "encoder.self_attn", "layer": 3, "head": 1})

    def place_and_weight():
        page.mouse.move(0, 0)
        page.locator(".vf-large").hover(position=point_of_cell(page, 2, 1))
        state = state_of(page)
        return int(state["layer"]), int(state["head"]), float(state["weight"])

    def expected(layer, head):
        return layer, head, pytest.approx(trace[f"encoder.{layer}.self_attn.pattern"][head, 2, 1], rel=1e-3)

    assert place_and_weight() == expected(3, 1)
    for key, place in (("ArrowDown", (5, 1)), ("ArrowDown", (5, 1)), ("ArrowRight", (5, 2)), ("ArrowUp", (3, 2))):
        page.keyboard.press(key)
        assert place_and_weight() == expected(*place)
    page.keyboard.press("ArrowUp")
    assert page.locator(".vf-readout > .vf-place").inner_text() == "Layer 2 · Head 3"
    page.keyboard.press("m")
    assert page.locator(".vf-readout > .vf-place").inner_text() == "Layer 2 · average of its heads"


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.full), "dark"])
def test_a_saved_page_shows_the_head_in_the_system_s_theme(saved_page, scheme):
    trace = made_up_trace(n_src=32, n_tgt=32, n_heads=8, tokens=HOSTILE + [f"a{i}" for i in range(26)])
    page = saved_page(trace, place={"stack": "decoder.cross_attn", "layer": 1, "head": 6}, scheme=scheme)
    assert page.title().startswith("</script><script>alert(1)</script> <img")
    assert page.locator(".vf-token").all_inner_texts()[:4] == HOSTILE[:4]
    page.locator(".vf-large").hover(position=point_of_cell(page, 3, 2))
    state = state_of(page)
    assert (state["stack"], state["layer"], state["head"], state["exact"]) == ("decoder.cross_attn", "1", "6", "true")
    weight = trace["decoder.1.cross_attn.pattern"].value[6, 3, 2]
    assert float(state["weight"]) == pytest.approx(float(weight), rel=5e-4)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb({}, {}, {})".format(*(int(BACKGROUND[scheme][i : i + 2], 16) for i in (1, 3, 5)))


def test_keys_work_before_anything_is_clicked(saved_page):
    """The page has the focus without a focus ring, and without scrolling."""
    page = saved_page(made_up_trace(), height=400)
    first = int(state_of(page)["head"])
    page.keyboard.press("ArrowLeft")
    assert int(state_of(page)["head"]) == first - 1
    page.keyboard.press("s")
    assert state_of(page)["stack"] == "decoder.self_attn"
    assert page.evaluate("scrollY") == 0
    assert page.locator(".vf-root").evaluate("root => getComputedStyle(root).outlineStyle") == "none"


def test_a_cell_does_not_take_the_focus_from_its_notebook(visit, tmp_path):
    cell = made_up_trace()._repr_html_()
    (tmp_path / "n.html").write_text(f'<meta charset="utf-8"><input autofocus>{cell}', encoding="utf-8")
    page = visit((tmp_path / "n.html").as_uri())
    wait_until_painted(page.frame_locator("iframe"))
    page.keyboard.press("l")
    assert page.locator("input").input_value() == "l"


def test_a_page_with_two_messages_shows_the_heads_of_the_second_exactly(saved_page):
    page = saved_page(made_up_trace(n_src=110, n_tgt=110, n_layers=3, n_heads=8))
    page.get_by_role("button", name="Cross", exact=True).click()
    page.keyboard.press("l")
    assert state_of(page)["exact"] == "true"


def test_every_view_can_be_downloaded_as_a_png(saved_page):
    trace = made_up_trace(tokens=["I", "went", "我", "去"])
    page, (_, layer, head) = saved_page(trace), first_head(trace)
    for view in VIEWS:
        page.locator(f"button[data-name='{view}']").click()
        before = page.locator(".vf-stage").screenshot()
        picture, name = png_of(page, page)
        assert name == f"encoder-L{layer + 1}-H{head + 1}{'' if view == 'heatmap' else f'-{view}'}.png"
        picture = picture.convert("RGB")
        assert len(picture.getcolors(picture.width * picture.height)) > 20, "not blank"
        assert picture.getpixel((0, 0)) == (255, 255, 255)
        assert page.locator(".vf-stage").screenshot() == before, "the page does not change"
        if view == "layer":
            assert picture.width >= 2 * page.locator(".vf-layer").bounding_box()["width"], "twice the screen's size"


@pytest.mark.parametrize(
    ("html", "body", "dark"),
    [
        ("", "data-vscode-theme-kind=vscode-dark", True),
        pytest.param("", "data-jp-theme-light=true", False, marks=pytest.mark.full),  # JupyterLab, Notebook 7
        pytest.param("theme=dark", "", True, marks=pytest.mark.full),  # Colab
    ],
)
def test_a_cell_has_the_theme_of_its_notebook(visit, tmp_path, html, body, dark):
    """Even if the system's is the opposite."""
    trace = made_up_trace(tokens=HOSTILE)
    policy = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{NOTEBOOK_POLICY}">'
    notebook = f"<!doctype html><html {html}><head>{policy}</head><body {body}>{trace._repr_html_()}</body></html>"
    (tmp_path / "n.html").write_text(notebook, encoding="utf-8")
    page = visit((tmp_path / "n.html").as_uri(), scheme="light" if dark else "dark")
    frame = page.frame_locator("iframe")
    wait_until_painted(frame)
    colour = frame.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
    assert colour == ("rgb(17, 22, 29)" if dark else "rgb(255, 255, 255)")
    assert frame.locator(".vf-thumbs").bounding_box()["height"] > 100
    assert png_of(page, frame)[0].width > 300


def test_the_app_exports_the_trace_and_head_that_it_shows(open_app, tmp_path):
    page = open_app(query="attention?stack=cross&layer=3&head=6")
    page.get_by_role("button", name="Save").click()
    files, names = {}, {}
    for label in ("SVG", "HTML", "CSV", "JSON", "safetensors"):
        files[label], names[label] = download(page, page.get_by_role("button", name=label, exact=True))
        assert names[label].startswith("en-zh-")
    (tmp_path / "t.safetensors").write_bytes(files["safetensors"])
    trace = vf.Trace.load(tmp_path / "t.safetensors")
    assert files["CSV"] == vf.export.to_csv(trace).encode()
    assert json.loads(files["JSON"]) == json.loads(vf.export.to_json(trace))
    assert files["SVG"].decode() == vf.export.attention_svg(trace, stack="decoder.cross_attn", layer=2, head=5)
    assert "我去东北大学。" in unescape(files["HTML"].decode())
    page.keyboard.press("Escape")
    picture, name = png_of(page, page)
    assert name == names["SVG"].replace(".svg", ".png") == "en-zh-cross-L3-H6.png"
    assert picture.width > 600


@pytest.mark.full
def test_panels_are_downloaded_as_png_svg_and_csv(open_app):
    page = open_app()
    page.get_by_role("link", name="Masks", exact=True).click()
    wait_for_panels(page)
    page.get_by_role("button", name="Save").click()
    png, name = download(page, page.get_by_role("button", name="PNG", exact=True))
    assert name == "en-zh-masks-batch.png"
    assert Image.open(io.BytesIO(png)).width > 600
    svg, name = download(page, page.get_by_role("button", name="SVG", exact=True))
    assert name == "en-zh-masks-batch.svg"
    for title in page.locator(".vf-name").all_inner_texts():
        assert f">{title}</text>" in svg.decode()
    csv, _name = download(page, page.get_by_role("button", name="CSV", exact=True))
    assert "causal mask" in csv.decode("utf-8-sig")
