"""Pages compute where they are drawn, and few are drawn at a time; no page does anything for that."""

import ast
import inspect
import threading
from pathlib import Path

import pytest

import visformer as vf
from tests.app.support import PAGES, VIEWS
from visformer.app.serving import capacity
from visformer.app.serving.middleware.moved import EXPLORER
from visformer.pictures.registry.picture import pages

ROOT = Path(vf.__file__).parent
_FILES = ("formulas.py", "panel.py", "analysis", "pictures/charts", "pictures/examples", "web/pa", "export/tables.py")
COMPUTING = tuple(str(ROOT / each) for each in _FILES)
"""Files whose functions take time that grows with what they are given."""

FREE = {
    "visformer/app/shell/model_download.py": "a bar and a button",
    "visformer/app/presentation/guess_views.py": "a line that counts answers",
    "visformer/app/pages/learning.py": "its function is decorated, how often it runs is known later",
}
"""Files with a fragment that computes nothing, or takes its place in another way."""


@pytest.fixture
def computing(monkeypatch):
    """The functions of those files that any new thread calls: inside a place to draw, and outside."""
    seen = {True: set(), False: set()}

    def watch(frame, event, _value):
        if event == "call" and frame.f_code.co_filename.startswith(COMPUTING):
            name = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}"
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function, not a module or class that is imported
                seen[capacity.is_drawing()].add(name)

    threading.setprofile(watch)
    yield seen
    threading.setprofile(None)


def test_every_page_and_picture_is_covered():
    assert {page.split("/")[1] for page in PAGES} == {Path(page.path).stem for page in pages().values()} - {EXPLORER}


@pytest.mark.parametrize(
    ("page", "link"),
    [("", {}), ("understand/lab", {})]
    + [(page, {key: view}) for page, (key, views) in VIEWS.items() for view in views],
    ids=str,
)
def test_whatever_a_page_computes_is_computed_in_its_place(new_app, computing, page, link):
    app = new_app(page=page, **link)
    assert not app.exception
    waits = link == {"learning_view": "live"}  # for the start
    assert computing[True] or page == "see/tokens" or waits, "it draws"
    assert not computing[False]


def test_a_fragment_runs_without_the_page_around_it_and_takes_a_place_of_its_own():
    found = set()
    for path in (*(ROOT / "app").rglob("*.py"), *(ROOT.parent / "pages").rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            written = [ast.unparse(each) for each in getattr(function, "decorator_list", ())]
            if "st.fragment" in written:
                assert "controls.errors_shown()" in written, (path, function.name)
                found.add(path.name)
            elif isinstance(function, ast.Call) and ast.unparse(function.func) == "st.fragment":
                assert path.relative_to(ROOT.parent).as_posix() in FREE, path
    assert found == {"attention.py", "guess_views.py", "map.py"}
