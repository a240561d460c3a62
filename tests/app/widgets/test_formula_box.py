"""The formulas beside the pictures, and the source code below them."""

import ast
import gc
import re
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from visformer.analysis import METHODS
from visformer.app.widgets.formula_box import coloured, excerpt, place_of
from visformer.pictures.lab import SYMBOL, examples
from visformer.pictures.style import SYMBOLS
from visformer.pictures.worked import compute

PAGES = sorted((Path(__file__).parents[3] / "pages").glob("*/*.py"))


def constants(page):
    """Return the formulas of a page, and the source code that it shows."""
    values = {"FORMULA": "", "FORMULAS": {}, "CODE": ()}
    for node in ast.parse(page.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) in values:
            values[node.targets[0].id] = ast.literal_eval(node.value)
    return [values["FORMULA"], *values["FORMULAS"].values()], values["CODE"]


SHOWN = {
    page.stem: constants(page) for page in PAGES if page.stem not in ("attention", "lab", "learning", "map")
}  # no formula
SHOWN |= {method.name: ([method.formula], [place_of(method.compute)]) for method in METHODS.values()}
SHOWN |= {example.name: ([example.formula], example.code) for example in examples().values()}


def test_every_symbol_has_its_colour_and_every_formula_its_source_code():
    for name, (formulas, code) in SHOWN.items():
        for tex, theme in product(formulas, ("light", "dark")):
            drawn = coloured(tex, theme)
            assert r"\sym" not in drawn, (name, theme)
            assert drawn.count(r"\textcolor") == tex.count(r"\sym"), (name, theme)
            assert drawn.count("{") == drawn.count("}"), (name, theme)
        assert code, name
        for file, function in code:
            assert "return" in excerpt(file, function), (name, function)


def test_every_worked_example_names_a_section_of_the_paper():
    assert all(re.fullmatch(r"3\.[1-5](\.[1-3])?|4|5\.4", example.section) for example in examples().values())


def test_the_symbols_of_the_lab_belong_to_results_or_inputs_and_have_colours():
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


def test_pages_drawn_at_the_same_time_have_their_excerpts():
    """Garbage collection may hand over to another thread in the middle of parsing, here nearly each time."""
    thresholds = gc.get_threshold()

    def hand_over(phase, about):
        time.sleep(0)

    gc.callbacks.append(hand_over)
    gc.set_threshold(300, 2, 2)
    try:
        with ThreadPoolExecutor(4) as threads:
            codes = [*threads.map(lambda _: excerpt.__wrapped__("formulas.py", "causal_mask"), range(40))]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(hand_over)
    assert len(set(codes)) == 1
