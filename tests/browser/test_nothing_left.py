"""A visit leaves nothing on the server: no file, and none of the visitor's text in its log."""

import os

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitors, serving
from tests.browser.support import submit, turn_to, type_sentence, wait_until_done
from visformer.app.session.url_state import State

pytestmark = pytest.mark.browser

NOTES = """
import os, sys
notes = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND)
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate",
           "tempfile.mkstemp", "tempfile.mkdtemp", "sqlite3.connect")

def note(event, given):
    if event == "open":
        path, mode, flags = given
        writes = set(mode or "") & set("wax+") or (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if isinstance(path, int) or not writes or str(path) == os.devnull:
            return
    elif event not in CHANGES:
        return
    os.write(notes, f"{event} {given}\\n".encode())

sys.addaudithook(note)
"""
"""A sitecustomize module that records every file that Python opens for writing."""

MARKER = "Zyxqwv"


@pytest.fixture
def watched(model_name, tmp_path):
    for name in ("home", "tmp", "site", "log"):
        (tmp_path / name).mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(NOTES)
    (tmp_path / "notes.txt").touch()
    environment = {
        "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NOTES": str(tmp_path / "notes.txt"),
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    with serving(model_name, tmp_path / "log", **environment) as address:
        yield tmp_path, address


def test_a_visit_leaves_neither_a_file_nor_a_word(watched, chromium):
    folder, address = watched
    opened = Visitors(address, chromium)
    page = opened.open(query=f"?text=I+know+{MARKER}&target={MARKER}&layer={MARKER}&{MARKER}=1")
    type_sentence(page, f"She knows {MARKER}.")
    (folder / "notes.txt").write_text("")  # torch itself has made an empty folder for its compiler
    submit(page, f"{MARKER} is here.", box="Target")
    page.get_by_text(f"Target as typed: {MARKER} is here.").wait_for()
    submit(page, MARKER * 300)  # refused
    page.get_by_text("This cannot be shown").wait_for()
    submit(page, f"We met {MARKER}.")
    page.get_by_test_id("stText").get_by_text("Translation:").wait_for()
    keep(page)
    hand_in(page)
    for name in ("Tokens", "Masks", "Inside a head", "Through the block", "Decoding", "The lab"):
        turn_to(page, name)
        page.wait_for_timeout(300)
    opened.close()
    assert (folder / "notes.txt").read_text() == ""
    left = [path for name in ("home", "tmp") for path in (folder / name).rglob("*")]
    assert [path for path in left if not path.name.startswith("torchinductor_")] == []
    log = (folder / "log" / "log.txt").read_text()
    assert "You can now view" in log
    assert MARKER.lower() not in log.lower()


def keep(page):
    """Download a file of every kind."""
    page.get_by_role("button", name="Export").click()
    for ending in ("HTML", "SVG", "CSV", "JSON", "safetensors"):
        with page.expect_download() as waiting:
            page.get_by_test_id("stDownloadButton").get_by_role("button", name=ending, exact=True).click()
        waiting.value.path()
    page.keyboard.press("Escape")
    wait_until_done(page)


def hand_in(page):
    """Upload a state, and files that are not states."""
    dropzone = page.get_by_test_id("stFileUploaderDropzoneInput")
    for content in (b"\xff" * 60_000, f'{{"{MARKER}'.encode(), State(text=f"They met {MARKER}.").file().encode()):
        file = {"name": f"{MARKER}.json", "mimeType": "application/json", "buffer": content}
        page.get_by_role("button", name="As a file").click()
        dropzone.set_input_files(file)
        expect(dropzone).to_have_count(0)  # it closes once the file is read
        wait_until_done(page)
    page.get_by_label("Sentence", exact=True).and_(page.locator(f"[value='They met {MARKER}.']")).wait_for()
