"""What comes with visformer beside the package: app.py, pages and supplement."""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
"""The repository, if the package is used from a clone; else the folder that it was installed into."""


def shipped(folder: str) -> Path | None:
    """Find a folder beside the package: in the repository, or where a wheel puts it."""
    places = (HERE, HERE / "share" / "visformer", *_installed())
    return next((place / folder for place in places if (place / folder).is_dir()), None)


def app_folder() -> Path | None:
    """Find the folder of app.py and its pages."""
    pages = shipped("pages/see")
    return pages and pages.parents[1]


def _installed() -> Iterator[Path]:
    """Yield where the installer put app.py, as recorded in the package's metadata."""
    try:
        files = metadata.files("visformer") or ()
    except metadata.PackageNotFoundError:
        return
    scripts = (file for file in files if file.parts[-2:] == ("visformer", "app.py"))
    yield from (Path(str(file.locate())).resolve().parent for file in scripts)
