"""The widgets of options."""

from types import SimpleNamespace

from visformer.app.widgets import url_widgets
from visformer.pictures.registry.places import STACK
from visformer.pictures.registry.setting import Setting, Source


def test_a_label_of_other_options_selects_the_default():
    """A browser may still send the label of an attention that the second model lacks."""
    for sent in (None, "交叉"):
        setting = Setting(Source(stacks=("encoder.self_attn", "decoder.self_attn")))
        place = SimpleNamespace(segmented_control=lambda sent=sent, **_: sent)
        assert url_widgets.draw(STACK, setting, "head", place=place) == setting["stack"] == "encoder.self_attn"
