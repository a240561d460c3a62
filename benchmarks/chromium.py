"""The Chromium that benchmarks and browser tests drive, and its flags."""

import shutil

from visformer.cli.doctor import CHROMIUM

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def path() -> str:
    """Return the path of the browser."""
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        raise SystemExit(f"No browser found, none of {', '.join(CHROMIUM)}: install Chromium.")
    return chromium
