"""The table of families."""

from visformer.adapters.huggingface.families import FAMILIES
from visformer.model.positions import DESCRIBED


def test_every_family_declares_its_positional_encoding():
    assert {family.position for family in FAMILIES.values()} <= set(DESCRIBED)
    for family in FAMILIES.values():
        is_added = family.position in ("learned", "sinusoidal")
        assert all((stack.position is not None) == is_added for stack in family.stacks.values())
