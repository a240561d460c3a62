"""docs/picker.md and docs/security.md list every setting and every limit as the code has them."""

import pytest

from scripts.settings_tables import DOCS, PAGES, table, written


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_are_those_of_the_code(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == written(page), "run: python -m scripts.settings_tables"
    assert table(page) in text
