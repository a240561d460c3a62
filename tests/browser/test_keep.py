"""Saved pictures: a page opened from disk, a notebook cell, and the PNG button."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import visformer as vf
from tests.browser.support import point_of_cell, shown, wait_for_panels
from tests.web.support import made_up_trace
from visformer.pictures.theme import BACKGROUND
from visformer.web.selection import VIEWS

pytestmark = pytest.mark.browser

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "<!--", "我去东北大学", "\u202eabc"]
# What VS Code's notebooks allow a cell to do: an iframe with srcdoc lives under its parent's policy.
STRICT = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; child-src data:"
)


def wait(frame):
    frame.locator(".vf-root[data-painted]").wait_for()


def png_of(page, frame):
    """Return the PNG that the button downloads, and its name."""
    with page.expect_download() as waiting:
        frame.get_by_role("button", name="PNG").click()
    return Image.open(io.BytesIO(Path(waiting.value.path()).read_bytes())), waiting.value.suggested_filename


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_page_opens_from_disk(visit, tmp_path, scheme):
    trace = made_up_trace(n_src=32, n_tgt=32, n_heads=8, tokens=HOSTILE + [f"a{i}" for i in range(26)])
    vf.export.save(trace, tmp_path / "x.html", stack="decoder.cross_attn", layer=1, head=6)
    assert (tmp_path / "x.html").stat().st_size < 1_000_000
    page = visit((tmp_path / "x.html").as_uri(), scheme=scheme)
    wait(page)
    assert page.title().startswith("</script><script>alert(1)</script> <img")
    assert page.locator(".vf-token").all_inner_texts()[:4] == HOSTILE[:4]
    page.locator(".vf-large").hover(position=point_of_cell(page, 3, 2))
    state = shown(page)
    assert (state["stack"], state["layer"], state["head"], state["exact"]) == ("decoder.cross_attn", "1", "6", "true")
    weight = trace["decoder.1.cross_attn.pattern"].value[6, 3, 2]
    assert float(state["weight"]) == pytest.approx(float(weight), rel=5e-4)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb({}, {}, {})".format(*(int(BACKGROUND[scheme][i : i + 2], 16) for i in (1, 3, 5)))


def test_keys_work_before_anything_is_clicked(visit, tmp_path):
    """The page has the focus without a focus ring, and without scrolling."""
    vf.export.save(made_up_trace(), tmp_path / "x.html")
    page = visit((tmp_path / "x.html").as_uri(), height=400)
    wait(page)
    page.keyboard.press("ArrowRight")
    assert shown(page)["head"] == "1"
    page.keyboard.press("s")
    assert shown(page)["stack"] == "decoder.self_attn"
    assert page.evaluate("scrollY") == 0
    assert page.locator(".vf-root").evaluate("root => getComputedStyle(root).outlineStyle") == "none"


def test_a_cell_leaves_the_keys_to_its_notebook(visit, tmp_path):
    cell = made_up_trace()._repr_html_()
    (tmp_path / "n.html").write_text(f'<meta charset="utf-8"><input autofocus>{cell}', encoding="utf-8")
    page = visit((tmp_path / "n.html").as_uri())
    wait(page.frame_locator("iframe"))
    page.keyboard.press("l")
    assert page.locator("input").input_value() == "l"


def test_a_page_whose_heads_came_in_two_messages_has_them_all(visit, tmp_path):
    trace = made_up_trace(n_src=110, n_tgt=110, n_layers=3, n_heads=8)
    vf.export.save(trace, tmp_path / "x.html")
    page = visit((tmp_path / "x.html").as_uri())
    wait(page)
    page.get_by_role("button", name="Cross", exact=True).click()
    page.keyboard.press("l")
    assert shown(page)["exact"] == "true"


def test_every_view_as_a_picture(visit, tmp_path):
    trace = made_up_trace(tokens=["I", "went", "我", "去"])
    vf.export.save(trace, tmp_path / "x.html")
    page = visit((tmp_path / "x.html").as_uri())
    wait(page)
    for view in VIEWS:
        page.locator(f"button[data-name='{view}']").click()
        before = page.locator(".vf-stage").screenshot()
        picture, name = png_of(page, page)
        assert name == f"encoder-L1-H1{'' if view == 'heatmap' else f'-{view}'}.png"
        pixels = np.asarray(picture.convert("RGB"))
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20, "not blank"
        assert tuple(pixels[0, 0]) == (255, 255, 255)
        assert page.locator(".vf-stage").screenshot() == before, "the page is as it was"
        if view == "layer":
            assert picture.width >= 2 * page.locator(".vf-layer").bounding_box()["width"], "twice the screen's size"


@pytest.mark.parametrize(
    ("html", "body", "dark"),
    [
        ("", "data-jp-theme-light=true", False),  # JupyterLab, Notebook 7
        ("", "data-vscode-theme-kind=vscode-dark", True),
        ("theme=dark", "", True),  # Colab
    ],
)
def test_a_cell_follows_its_notebook(visit, tmp_path, html, body, dark):
    """The system's preference is the opposite."""
    trace = made_up_trace(tokens=HOSTILE)
    policy = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{STRICT}">'
    notebook = f"<!doctype html><html {html}><head>{policy}</head><body {body}>{trace._repr_html_()}</body></html>"
    (tmp_path / "n.html").write_text(notebook, encoding="utf-8")
    page = visit((tmp_path / "n.html").as_uri(), scheme="light" if dark else "dark")
    frame = page.frame_locator("iframe")
    frame.locator(".vf-root[data-painted]").wait_for()
    colour = frame.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
    assert colour == ("rgb(17, 22, 29)" if dark else "rgb(255, 255, 255)")
    assert frame.locator(".vf-large").bounding_box()["height"] > 200
    assert png_of(page, frame)[0].width > 300


def test_the_app_gives_what_it_shows(open_app, tmp_path):
    page = open_app(query="?stack=cross&layer=3&head=6")
    page.get_by_role("button", name="Export").click()
    found, names = {}, {}
    for label in ("HTML", "SVG", "CSV", "JSON", "safetensors"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label, exact=True).click()
        found[label] = Path(waiting.value.path()).read_bytes()
        names[label] = waiting.value.suggested_filename
        assert names[label].startswith("en-zh-")
    (tmp_path / "t.safetensors").write_bytes(found["safetensors"])
    trace = vf.Trace.load(tmp_path / "t.safetensors")
    assert found["CSV"] == vf.export.to_csv(trace).encode()
    assert json.loads(found["JSON"]) == json.loads(vf.export.to_json(trace))
    assert found["SVG"].decode() == vf.export.attention_svg(trace, stack="decoder.cross_attn", layer=2, head=5)
    assert "我去东北大学。".encode() in found["HTML"]
    page.keyboard.press("Escape")
    picture, name = png_of(page, page)
    assert name == names["SVG"].replace(".svg", ".png") == "en-zh-cross-L3-H6.png"
    assert picture.width > 600


def test_panels_as_a_picture_and_as_numbers(open_app):
    page = open_app()
    page.get_by_role("link", name="Masks", exact=True).click()
    wait_for_panels(page)
    picture, name = png_of(page, page)
    assert name == "en-zh-masks-batch.png"
    boxes = [canvas.bounding_box() for canvas in page.locator("canvas.vf-matrix").all()]
    width = max(box["x"] + box["width"] for box in boxes) - min(box["x"] for box in boxes)
    assert 2 * width <= picture.width < 2 * width + 200
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG", exact=True).click()
    assert waiting.value.suggested_filename == "en-zh-masks-batch.svg"
    svg = Path(waiting.value.path()).read_text(encoding="utf-8")
    for title in page.locator(".vf-name").all_inner_texts():
        assert f">{title}</text>" in svg
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert "causal mask" in Path(waiting.value.path()).read_text(encoding="utf-8-sig")
