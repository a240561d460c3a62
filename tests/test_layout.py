"""The folders of the package. Which may import which is in pyproject.toml, for lint-imports."""

from pathlib import Path

import visformer

PACKAGE = Path(visformer.__file__).parent
SOURCES = {".py", ".js", ".css"}
FOLDERS = [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]


def test_a_folder_has_at_most_25_source_files():
    for folder in FOLDERS:
        files = [path.name for path in folder.iterdir() if path.suffix in SOURCES and path.name != "__init__.py"]
        assert len(files) <= 25, (folder.name, sorted(files))


def test_no_folder_mixes_python_with_javascript_or_css():
    for folder in FOLDERS:
        endings = {path.suffix for path in folder.iterdir() if path.suffix in SOURCES}
        assert endings <= {".py"} or ".py" not in endings, folder
