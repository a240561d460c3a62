"""The architecture of the JavaScript and CSS: imports between layers, and the list of the explorer's views."""

from graphlib import TopologicalSorter
from pathlib import PurePosixPath

import pytest

from tests.web.support import made_up_trace
from visformer.web import bundle
from visformer.web.bundle import imports
from visformer.web.selection import VIEWS
from visformer.web.words import words

STATIC = bundle._FOLDER
FLOORS = {
    "streamlit": 3, "saved": 3, "explorer": 2, "panels": 2, "presentation": 2, "streamlit_private": 1, "shared": 0
}  # fmt: skip
FILES = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.*"))
SCRIPTS = [name for name in FILES if name.endswith(".js")]


def room(name):
    return PurePosixPath(name).parts[0]


def test_imports_point_down():
    wrong = [
        f"{name} imports {needed}"
        for name in SCRIPTS
        for needed in imports(name)
        if room(name) != room(needed) and FLOORS[room(name)] <= FLOORS[room(needed)]
    ]
    assert not wrong


def test_nothing_imports_in_a_circle():
    TopologicalSorter({name: imports(name) for name in SCRIPTS}).prepare()


def test_every_file_is_used():
    hosts = [name for name in SCRIPTS if room(name) == "saved" or "\nexport default " in bundle._read(name)]
    used = {needed for host in hosts for needed in bundle._in_order(host, [])}
    assert used == set(SCRIPTS)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_its_words_and_is_listed_by_its_file_s_name(view):
    text = words(made_up_trace(), str, "en")["text"]
    assert text[f"view_{view}"]
    assert text[f"view_{view}_about"]
    assert f"\nexport const {view} = {{" in bundle._read(f"explorer/views/{view}.js")
