"""The formulas beside the pictures."""

import ast
from pathlib import Path

import pytest

from visformer.source import excerpt
from visformer.ui.lesson import coloured

PAGES = sorted((Path(__file__).parent.parent.parent / "pages").glob("*/*.py"))


def constant(page, name):
    """What the page assigns to ``name``; None where it does not."""
    for node in ast.parse(page.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    return None


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_symbol_gets_its_colour(page, theme):
    tex = constant(page, "FORMULA")
    if page.stem == "attention":
        assert tex is None
        return
    drawn = coloured(tex, theme)
    assert r"\sym" not in drawn
    assert drawn.count(r"\textcolor") == tex.count(r"\sym")
    assert drawn.count("{") == drawn.count("}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_lines_that_a_page_shows_exist(page):
    for file, name in constant(page, "CODE") or ():
        assert "return" in excerpt(file, name)
