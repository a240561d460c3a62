"""Parts of pages that are drawn anew without the page around them compute in places of their own, too."""

import ast
from pathlib import Path

import visformer as vf

ROOT = Path(vf.__file__).parent
FREE = {
    "visformer/app/shell/side_bar.py": "a bar and a button",
    "visformer/app/presentation/guessing.py": "a line that counts answers",
    "pages/understand/learning.py": "its function is decorated, how often it runs is known later",
}
"""Files with a fragment that computes nothing, or takes its place in another way."""


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
    assert found == {"attention.py", "guessing.py", "map.py"}
