"""docs/models.md says what visformer/adapters/huggingface/families.py says."""

import pytest

from scripts.model_table import DOCS, WORDS, table, written
from visformer.adapters.huggingface.families import FAMILIES
from visformer.model.positions import DESCRIBED


@pytest.mark.parametrize("page", WORDS)
def test_the_table_of_families_is_the_one_in_the_code(page):
    assert (DOCS / page).read_text(encoding="utf-8") == written(page), "run: python scripts/model_table.py"
    for name in FAMILIES:
        assert f"`{name}`" in table(page)


def test_every_family_says_how_it_knows_the_order_of_tokens():
    assert {family.position for family in FAMILIES.values()} <= set(DESCRIBED)
    for family in FAMILIES.values():
        adds = family.position in ("learned", "sinusoidal")
        assert all((stack.position is not None) == adds for stack in family.stacks.values())
