"""Bundling of the JavaScript files."""

import re

from visformer.web.bundle import script, stylesheet


def test_a_bundle_is_one_module_without_imports():
    code = script("streamlit/views/attention.js")
    assert not re.search(r"^import ", code, re.MULTILINE)
    assert code.count("export ") == 1
    assert "/**" not in code


def test_text_never_becomes_html():
    code = script("streamlit/views/attention.js")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", code)


def test_scripts_and_styles_refer_to_no_other_server():
    assert not re.search(r"https?://|@import|url\(", script("streamlit/views/attention.js") + stylesheet())
