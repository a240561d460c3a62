"""The widgets of options."""

from types import SimpleNamespace

from visformer.app.session.markdown import plain
from visformer.app.widgets import url_widgets
from visformer.pictures.registry.options import STACK, Choice
from visformer.pictures.registry.setting import Setting, Source


def test_a_label_of_other_options_selects_the_default():
    """A browser may still send the label of an attention that the second model lacks."""
    for sent in (None, "交叉"):
        setting = Setting(Source(stacks=("encoder.self_attn", "decoder.self_attn")))
        place = SimpleNamespace(segmented_control=lambda sent=sent, **_: sent)
        assert url_widgets.draw(STACK, setting, "head", place=place) == setting["stack"] == "encoder.self_attn"


def test_the_labels_of_a_switch_are_text_as_those_of_a_box_are():
    text = "*own* [text](//e)"
    for widget, shown in (("segmented_control", plain(text)), ("radio", plain(text)), ("selectbox", text)):
        option = Choice(name="a", label="A", values={"x": text}, widget=widget)
        _, arguments, _ = url_widgets._widget(option, Setting(Source()))
        assert arguments["format_func"]("x") == shown
