"""The tables in the docs that scripts generate are up to date and complete."""

import pytest

from scripts import export_tables, model_table, settings_tables
from scripts.docs import DOCS
from visformer.adapters.huggingface.families import FAMILIES
from visformer.export.formats import FORMATS
from visformer.pictures.registry.picture import pictures
from visformer.system.limits import LIMITS
from visformer.system.settings import SETTINGS

TABLES = {
    "models": (model_table, FAMILIES),
    "picker": (settings_tables, [setting.name for setting in SETTINGS]),
    "security": (settings_tables, [limit.name for limit in LIMITS]),
    "export": (export_tables, [*pictures(), *(each.ending for each in FORMATS)]),
}


@pytest.mark.parametrize("page", [f"{name}{end}.md" for name in TABLES for end in ("", ".zh-CN")])
def test_the_tables_of_a_page_are_those_of_the_code(page):
    script, entries = TABLES[page.partition(".")[0]]
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == script.written(page), f"run: python -m {script.__name__}"
    assert not [entry for entry in entries if f"`{entry}`" not in text]
