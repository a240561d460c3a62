"""The formulas beside the pictures."""

import ast
from pathlib import Path

import pytest

from visformer.app.widgets.formula_box import coloured, excerpt
from visformer.pictures.examples.worked import compute
from visformer.pictures.lab import SYMBOL, examples
from visformer.pictures.theme import SYMBOLS

PAGES = sorted((Path(__file__).parents[3] / "pages").glob("*/*.py"))


def constant(page, name):
    """Return the literal that the page assigns to ``name``, or None."""
    for node in ast.parse(page.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.literal_eval(node.value)
    return None


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_symbol_has_its_colour(page, theme):
    tex = constant(page, "FORMULA")
    if page.stem in ("attention", "lab"):  # the lab has its formulas with its examples
        assert tex is None
        return
    for formula in (tex, *(constant(page, "FORMULAS") or {}).values()):
        assert_coloured(formula, theme)


def assert_coloured(tex, theme):
    drawn = coloured(tex, theme)
    assert r"\sym" not in drawn
    assert drawn.count(r"\textcolor") == tex.count(r"\sym") > 0
    assert drawn.count("{") == drawn.count("}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_source_code_that_a_page_shows_exists(page):
    for file, name in constant(page, "CODE") or ():
        assert "return" in excerpt(file, name)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("example", examples().values(), ids=examples())
def test_every_example_has_a_formula_a_section_and_source_code(example, theme):
    assert_coloured(example.formula, theme)
    assert example.section.startswith("3.")
    assert example.code
    for file, name in example.code:
        assert "return" in excerpt(file, name)


def test_the_lab_colours_what_its_formulas_colour():
    """A result whose symbol is in its example's formula has the symbol's colour."""
    results = {
        name for example in examples().values() if not example.instead for name in compute(example, example.inputs)
    }
    assert set(SYMBOL) <= results | {name for example in examples().values() for name in example.inputs}
    assert set(SYMBOL.values()) <= set(SYMBOLS)


def test_an_excerpt_has_no_docstring():
    code = excerpt("formulas.py", "causal_mask")
    assert code.startswith("def causal_mask(n: int) -> Bools:\n    places")
    assert '"""' not in code


def test_an_excerpt_of_a_method_is_not_indented():
    code = excerpt("model/layers.py", "FeedForward.forward")
    assert code.startswith("def forward(")
    assert "self.w_2(hidden)" in code


def test_an_unknown_name_is_in_the_error():
    with pytest.raises(KeyError, match="nothing_of_that_name"):
        excerpt("formulas.py", "nothing_of_that_name")
