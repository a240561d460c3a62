"""The rooms of the house: few enough to look around in. Who may import whom is in pyproject.toml, for lint-imports."""

from pathlib import Path

import visformer

PACKAGE = Path(visformer.__file__).parent
SOURCES = {".py", ".js", ".css"}


def folders():
    return [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]


def test_twenty_entries_at_the_top():
    entries = [path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 20, sorted(entries)


def test_fifteen_source_files_in_a_folder():
    for folder in folders():
        files = [path.name for path in folder.iterdir() if path.suffix in SOURCES and path.name != "__init__.py"]
        assert len(files) <= 15, (folder.name, sorted(files))


def test_scripts_and_styles_apart_from_python():
    for folder in folders():
        endings = {path.suffix for path in folder.iterdir() if path.suffix in SOURCES}
        assert endings <= {".py"} or ".py" not in endings, folder
