"""The widgets of options."""

from types import SimpleNamespace

import pytest

from visformer.app.widgets import url_widgets
from visformer.pictures.registry.places import STACK
from visformer.pictures.registry.setting import Setting, Source


@pytest.mark.parametrize("sent", [None, "交叉"])
def test_a_label_of_other_options_selects_the_default(sent):
    """A browser may still send the label of an attention that the second model lacks."""
    setting = Setting(Source(stacks=("encoder.self_attn", "decoder.self_attn")))
    place = SimpleNamespace(segmented_control=lambda **_: sent)
    assert url_widgets.draw(STACK, setting, "head", place=place) == "encoder.self_attn"
    assert setting["stack"] == "encoder.self_attn"
