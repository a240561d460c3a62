"""A visit writes no file on the server, and none of the visitor's text to its log."""

import os

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitors, serving
from tests.browser.support import go_to, submit, type_sentence, wait_until_done
from visformer.app.session.url_state import State

SITECUSTOMIZE = """
import os, sys
audit_log = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND)
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate",
           "tempfile.mkstemp", "tempfile.mkdtemp", "sqlite3.connect")

def record(event, args):
    if event == "open":
        path, mode, flags = args
        writes = set(mode or "") & set("wax+") or (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if isinstance(path, int) or not writes or str(path) == os.devnull:
            return
    elif event not in CHANGES:
        return
    os.write(audit_log, f"{event} {args}\\n".encode())

sys.addaudithook(record)
"""
"""Records every file that Python opens for writing, and every other change to the file system."""

MARKER = "Zyxqwv"


@pytest.fixture
def audited_server(model_name, tmp_path):
    """The address of a server that records its changes to the file system in audit.txt of the test's folder."""
    for name in ("home", "tmp", "site", "log"):
        (tmp_path / name).mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE)
    (tmp_path / "audit.txt").touch()
    environment = {
        "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "AUDIT_LOG": str(tmp_path / "audit.txt"),
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    with serving(model_name, tmp_path / "log", **environment) as address:
        yield address


@pytest.mark.full
def test_a_visit_writes_no_file_and_its_text_is_not_logged(audited_server, chromium, tmp_path):
    visitors = Visitors(audited_server, chromium)
    page = visitors.open(query=f"attention?text=I+know+{MARKER}&target={MARKER}&layer={MARKER}&{MARKER}=1")
    type_sentence(page, f"She knows {MARKER}.")
    submit(page, f"{MARKER} is here.", box="Target")
    page.get_by_text(f"Target as typed: {MARKER} is here.").wait_for()
    submit(page, MARKER * 300)  # refused
    page.get_by_text("This cannot be shown").wait_for()
    submit(page, f"We met {MARKER}.")
    page.get_by_test_id("stText").get_by_text("Translation:").wait_for()
    download(page)
    upload(page)
    for name in ("Embedding + position", "Masks", "Inside a head", "Through the block", "Decoding", "Course notes"):
        go_to(page, name)
        page.wait_for_timeout(300)
    go_to(page, "Learning")
    page.get_by_role("button", name="Start the training").click()
    page.get_by_text("Look into the model:").first.wait_for(timeout=600_000)  # once the training is over
    visitors.close()
    written = (tmp_path / "audit.txt").read_text().splitlines()
    assert [
        line for line in written if "'/proc/self/oom_score_adj'" not in line
    ] == []  # no file: a process yields memory
    assert [path.name for name in ("home", "tmp") for path in (tmp_path / name).rglob("*")] == []
    log = (tmp_path / "log" / "log.txt").read_text()
    assert "You can now view" in log
    assert MARKER.lower() not in log.lower()


def download(page):
    """Download a file of every format."""
    page.get_by_role("button", name="Save").click()
    for ending in ("SVG", "HTML", "CSV", "JSON", "safetensors"):
        with page.expect_download() as file:
            page.get_by_test_id("stDownloadButton").get_by_role("button", name=ending, exact=True).click()
        file.value.path()
    page.keyboard.press("Escape")
    wait_until_done(page)


def upload(page):
    """Upload two files that are not states, then a state."""
    dropzone = page.get_by_test_id("stFileUploaderDropzoneInput")
    for content in (b"\xff" * 60_000, f'{{"{MARKER}'.encode(), State(text=f"They met {MARKER}.").file().encode()):
        file = {"name": f"{MARKER}.json", "mimeType": "application/json", "buffer": content}
        page.get_by_role("button", name="Save").click()
        dropzone.set_input_files(file)
        expect(dropzone).to_have_count(0)  # the popover closes once the file is read
        wait_until_done(page)
    page.get_by_label("Sentence", exact=True).and_(page.locator(f"[value='They met {MARKER}.']")).wait_for()
