"""The architecture of the JavaScript and CSS: imports between layers, bundles, and the list of the explorer's views."""

import re
from graphlib import TopologicalSorter
from pathlib import PurePosixPath

from tests.web.support import made_up_trace
from visformer.web import bundle
from visformer.web.bundle import imports, script, stylesheet
from visformer.web.selection import VIEWS
from visformer.web.words import words

STATIC = bundle._FOLDER
LAYERS = {
    "streamlit": 4, "saved": 4, "map": 3, "explorer": 2, "learning": 2, "panels": 2, "presentation": 2,
    "streamlit_private": 1, "shared": 0, "engine": 0,
}  # fmt: skip
"""A folder imports only from itself and from folders with a smaller number."""
SCRIPTS = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))


def folder(name):
    return PurePosixPath(name).parts[0]


def test_imports_point_to_lower_layers():
    wrong = [
        f"{name} imports {imported}"
        for name in SCRIPTS
        for imported in imports(name)
        if folder(name) != folder(imported) and LAYERS[folder(name)] <= LAYERS[folder(imported)]
    ]
    assert not wrong


def test_there_are_no_import_cycles():
    TopologicalSorter({name: imports(name) for name in SCRIPTS}).prepare()


def test_every_script_is_part_of_a_bundle():
    python = "".join(path.read_text(encoding="utf-8") for path in STATIC.parents[1].rglob("*.py"))
    entries = re.findall(r'"([a-z_]+/[a-z_]+\.js)"', python)
    assert {name for entry in entries for name in bundle._in_order(entry, [])} == set(SCRIPTS)


def test_a_bundle_is_one_module_that_imports_nothing_and_never_makes_html_of_text():
    view = "export default streamlitView(mountAttention)"
    code = script(view, streamlitView="streamlit/view.js", mountAttention="explorer/explorer.js")
    assert not re.search(r"^import ", code, re.MULTILINE)
    assert code.count("export ") == 1
    assert "/**" not in code
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", code)
    assert not re.search(r"https?://|@import|url\(", code + stylesheet()), "another server"


def test_a_view_has_a_label_a_description_and_a_file_of_its_name():
    text = words(made_up_trace(), str, "en")["text"]
    for view in VIEWS:
        assert text[f"view_{view}"] and text[f"view_{view}_about"], view
        assert f"\nexport const {view} = {{" in bundle._read(f"explorer/views/{view}.js"), view
