"""The lines that pages show."""

import pytest

from visformer.app.widgets.source import excerpt


def test_a_function_without_its_docstring():
    code = excerpt("formulas.py", "causal_mask")
    assert code.startswith("def causal_mask(n: int) -> Bools:\n    places")
    assert '"""' not in code


def test_a_method_is_not_indented():
    code = excerpt("model/layers.py", "FeedForward.forward")
    assert code.startswith("def forward(")
    assert "self.w_2(hidden)" in code


def test_an_unknown_name_is_named():
    with pytest.raises(KeyError, match="nothing_of_that_name"):
        excerpt("formulas.py", "nothing_of_that_name")
