"""A value of another sentence's pass, carried into this one's as an edit: activation patching of one place."""

from collections.abc import Mapping
from typing import Any

from visformer.errors import N_, VisformerError
from visformer.pictures.comparing.sides import forced, one_word_changed
from visformer.pictures.registry.options import Choice, Place, Text
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS, shape_of

NOTHING = "nothing"
_PLACES = {
    "encoder": ("encoder.self_attn", N_("encoder vector")),
    "decoder": ("decoder.self_attn", N_("decoder vector")),
    "encoder-head": ("encoder.self_attn", N_("encoder head")),
    "decoder-head": ("decoder.self_attn", N_("decoder head")),
    "cross-head": ("decoder.cross_attn", N_("cross-attention head")),
}
"""What can be carried over, to the attention whose layers and heads it is found by."""


def kinds(setting: Setting) -> Mapping[str, str]:
    """Return what can be carried over in this model, to its label."""
    having = {stack.name for stack in STACKS if stack.name in setting.source.stacks}
    return {NOTHING: N_("nothing")} | {name: label for name, (stack, label) in _PLACES.items() if stack in having}


def _layers(setting: Setting) -> Any:
    part, kind = _stack(setting).split(".")
    return setting.patterns.layers(part, kind)  # type: ignore[arg-type]


def _stack(setting: Setting) -> str:
    return _PLACES[setting["patch"]][0] if setting["patch"] in _PLACES else setting.source.stacks[0]


def _labels(setting: Setting) -> tuple[str, ...]:
    """The tokens, or the heads, of which one is carried over."""
    if setting["patch"].endswith("head"):
        return tuple(str(head + 1) for head in range(shape_of(_layers(setting))[1]))
    tokens = setting.patterns.tokens
    return tuple(tokens["src" if "src" in tokens and setting["patch"] == "encoder" else "tgt"])


# fmt: off
PATCH = Choice(
    name="patch", label=N_("Carried over"), values=kinds, widget="selectbox",
    help="One value of another sentence's pass that B gets: nothing, or where it is.",
)
FROM = Text(
    name="patch_from", label=N_("From the sentence"), help="The sentence whose value B gets, of as many tokens.",
    default=lambda setting: one_word_changed(str(setting.patterns.meta["source"])),
    per=lambda setting: str(setting.patterns.meta["source"]),
)
AT_LAYER = Place(
    name="patch_layer", label=N_("Layer"), help="The layer of the value that is carried over, from 1.",
    among=lambda setting: [*_layers(setting)], per=lambda setting: (setting["patch"], *_layers(setting)),
)
AT = Place(
    name="patch_at", label=N_("Which"), help="The token, or the head, of the value that is carried over, from 1.",
    among=lambda setting: range(len(_labels(setting))), tokens=_labels,
    per=lambda setting: (setting["patch"], len(_labels(setting))),
)
# fmt: on
OPTIONS = (PATCH, FROM, AT_LAYER, AT)

_SAID = N_("In B, layer {layer} has this of “{text}”: {what}, {at}.")


def edits(setting: Setting) -> tuple[Any, ...]:
    """Return the edit that carries the value over; none if nothing is.

    Raises:
        VisformerError: the other sentence has another number of tokens.
    """
    from visformer.analysis.effects.patching import require_same_number
    from visformer.edits import Patch

    patch, text, layer, at = (setting[option.name] for option in OPTIONS)
    if patch == NOTHING:
        return ()
    part, kind = _stack(setting).split(".")
    by_head = patch.endswith("head")
    name = f"{part}.{layer}." + (f"{kind}.heads" if by_head else "resid_pre")
    if reason := setting.patterns.lacks(name):
        raise VisformerError(N_("What this model computes can be viewed but not changed: {reason}."), reason=reason)
    side = "src" if "src" in setting.patterns.tokens else "tgt"
    other = setting.source.read(text, forced(setting.patterns), record=(name,))
    require_same_number(len(other.tokens[side]), len(setting.patterns.tokens[side]))
    return (Patch.of(other, name, **{"head" if by_head else "token": at}),)


def told(setting: Setting) -> str:
    """Say what is carried over, in the visitor's language; "" if nothing is."""
    if setting["patch"] == NOTHING:
        return ""
    _, at = setting.gettext, setting["patch_at"]
    _stack_name, what = _PLACES[setting["patch"]]
    place = {"layer": setting["patch_layer"] + 1, "at": f"{at + 1} · {_labels(setting)[at]}"}
    return _(_SAID).format(what=_(what), text=setting["patch_from"], **place)
