"""Which Chromium the benchmarks and the tests of the browser drive, and how it is started."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def path() -> str:
    """Where the browser lies."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise SystemExit(f"What needs a browser needs one of {', '.join(NAMES)}: install Chromium.")
    return found
