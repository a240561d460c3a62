"""Which Chromium the benchmarks and the tests of the browser drive, and how it is started."""

import shutil

from visformer.cli.checks import CHROMIUM

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
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        raise SystemExit(f"What needs a browser needs one of {', '.join(CHROMIUM)}: install Chromium.")
    return found
