"""Text of others, where Streamlit reads Markdown."""

import re

import pytest

from tests.app.support import unescaped
from visformer.app.session.markdown import plain


@pytest.mark.parametrize(
    "text",
    ["a*b_[c](d)", "![](//e.example/x.png)", "$x^2$", ":red[b] :smile: :material/home:", "<b>&amp;</b>", "# 1. `d`"],
)
def test_a_text_is_escaped_and_read_as_it_is(text):
    assert unescaped(plain(text)) == text
    assert not re.search(r"(?<!\\)[*_\[\]()$<>#`!&.]", plain(text)), "every mark is escaped"
    assert not re.search(r":\w", plain(text)), "no icon or colour"


def test_no_address_becomes_a_link_by_itself():
    assert "https://" not in plain("https://e.example") and "\u2060" in plain("https://e.example")
    for text in ("www.e.example", "WWW.e.example", "a@e.example"):
        assert "\u2060" in plain(text)
    assert plain("awww so") == "awww so"


@pytest.mark.parametrize("sign", ["->", "<-", "--", ">=", "<=", "~="])
def test_no_sign_is_replaced_by_another(sign):
    assert "\u2060" in plain(sign) and unescaped(plain(sign)) == sign


def test_a_text_has_one_line():
    assert plain("a\n\n    b\t") == "a b"
