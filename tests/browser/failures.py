"""What a failing test leaves in build/failures: screenshots, the console, and the logs of servers."""

import re
import shutil
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import Error, Page

FOLDER = Path(__file__).parents[2] / "build" / "failures"
_PAGES: dict[Page, list[str]] = {}  # open ones, and what their consoles said
_LOGS: list[Path] = []


def watch(page):
    """Keep what the console of a page says until it is closed."""
    said = _PAGES[page] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("close", lambda _: _PAGES.pop(page, None))


def watch_log(path):
    """Keep this log if a test fails."""
    _LOGS.append(path)


def record(test):
    """Write what there is to see of the test of this name, in place of an earlier failure; return the folder."""
    folder = FOLDER / re.sub(r"[^\w.-]+", "-", test)[-150:]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, (page, said) in enumerate(_PAGES.items(), start=1):
        with suppress(Error):  # it has crashed, or is being closed
            page.screenshot(path=folder / f"page-{number}.png", timeout=5000)
        (folder / f"page-{number}-console.txt").write_text("\n".join([page.url, *said]), encoding="utf-8")
    for number, path in enumerate(_LOGS, start=1):
        if path.exists():
            shutil.copyfile(path, folder / f"server-{number}.txt")
    return folder
