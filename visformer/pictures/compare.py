"""Two of anything side by side: sentences, edits, models, moments of a training."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from visformer.adapters.checkpoints import GPT
from visformer.analysis.comparing import head_differences
from visformer.errors import N_, TraceError, VisformerError
from visformer.model.untrained import UNTRAINED
from visformer.panel import Panel
from visformer.pictures.attention import moments_of
from visformer.pictures.registry.options import SELECTED, Choice, PlaceOption, Text
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.pictures.sides import (
    Sides,
    forced,
    head_in_both,
    heads,
    matches,
    one_word_changed,
    read_by_both,
    similarities,
)
from visformer.trace import Trace
from visformer.trace.stacks import STACKS, shape_of, stack_named

NOTHING = "nothing"
_PLACES = {
    "encoder": ("encoder.self_attn", N_("encoder vector")),
    "decoder": ("decoder.self_attn", N_("decoder vector")),
    "encoder-head": ("encoder.self_attn", N_("encoder head")),
    "decoder-head": ("decoder.self_attn", N_("decoder head")),
    "cross-head": ("decoder.cross_attn", N_("cross-attention head")),
}
"""What can be carried over, to the attention whose layers and heads it is found by."""


def carried_kinds(setting: Setting) -> Mapping[str, str]:
    """Return what can be carried over in this model, to its label."""
    having = {stack.name for stack in STACKS if stack.name in setting.source.stacks}
    return {NOTHING: N_("nothing")} | {name: label for name, (stack, label) in _PLACES.items() if stack in having}


def _layers(setting: Setting) -> Any:
    return setting.patterns.layers(_stack(setting))


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
    name="patch", label=N_("Carried over"), values=carried_kinds, widget="selectbox",
    help="One value of another sentence's pass that B gets: nothing, or where it is.",
)
FROM = Text(
    name="patch_from", label=N_("From the sentence"), help="The sentence whose value B gets, of as many tokens.",
    default=lambda setting: one_word_changed(setting.patterns.source),
    per=lambda setting: setting.patterns.source,
)
AT_LAYER = PlaceOption(
    name="patch_layer", label=N_("Layer"), help="The layer of the value that is carried over, from 1.",
    among=lambda setting: [*_layers(setting)], per=lambda setting: (setting["patch"], *_layers(setting)),
)
AT = PlaceOption(
    name="patch_at", label=N_("Which"), help="The token, or the head, of the value that is carried over, from 1.",
    among=lambda setting: range(len(_labels(setting))), tokens=_labels,
    per=lambda setting: (setting["patch"], len(_labels(setting))),
)
# fmt: on
CARRIED = (PATCH, FROM, AT_LAYER, AT)

_SAID = N_("In B, layer {layer} has this of “{text}”: {what}, {at}.")


def carried_edits(setting: Setting) -> tuple[Any, ...]:
    """Return the edit that carries the value over; none if nothing is.

    Raises:
        VisformerError: the other sentence has another number of tokens.
    """
    from visformer.analysis.effects.patching import require_same_number
    from visformer.edits import Patch

    patch, text, layer, at = (setting[option.name] for option in CARRIED)
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


def describe_carried(setting: Setting) -> str:
    """Say what is carried over, in the visitor's language; "" if nothing is."""
    if setting["patch"] == NOTHING:
        return ""
    _, at = setting.gettext, setting["patch_at"]
    _stack_name, what = _PLACES[setting["patch"]]
    place = {"layer": setting["patch_layer"] + 1, "at": f"{at + 1} · {_labels(setting)[at]}"}
    return _(_SAID).format(what=_(what), text=setting["patch_from"], **place)


_LEAST = 0.05
"""The least end of the scale of distances: rounding errors are no difference."""
_DISTANCE = N_("Mean total variation distance of aligned rows: 0 if equal, 1 if they read nothing in common.")
_SILENCED = N_("No edit yet: here is an example. The heads left out read as before, those that follow do not.")
_STEPS = N_("A: step {a} of the training, B: step {b}; both read the same text.")


def overview(setting: Setting, sides: Sides) -> Panel:
    """Draw a number of each head: how far apart it is in two passes of one model, or how similar to its match."""
    if sides.matched:
        return similarities(setting, sides)
    values = head_differences(sides.first, sides.second, setting["stack"])
    return heads(
        sides.first.layers(setting["stack"]),
        values,
        title=N_("distance of A and B"),
        limit=max(float(values.max()), _LEAST),
        note=" ".join(filter(None, (setting.gettext(_DISTANCE), sides.note))),
    )


def panels(setting: Setting, sides: Sides) -> list[Panel]:
    """Draw a number of each head in two passes, and the selected head in both, or beside its match."""
    stack, head, path = stack_named(setting["stack"]), setting["head"], setting.path
    layers = [*stack.layers(sides.first)]
    every = overview(setting, sides)
    outlined = np.zeros(every.values.shape, dtype=np.bool_)
    outlined[layers.index(setting["layer"]), head] = True
    other_path, other = path, head
    if sides.matched:
        at = layers.index(setting["layer"]) * every.values.shape[1] + head
        layer, other = matches(sides.first, sides.second, stack)[0][at]
        other_path = f"{stack.part}.{layer}.{stack.kind}"
    paths, numbers = (path, other_path), (head, other)
    both = head_in_both(sides.first, sides.second, paths, numbers, gettext=setting.gettext)
    return [replace(every, outlined=outlined), *both]


def mapped(setting: Setting, sides: Sides) -> Sides:
    """Add a number of each head of all attentions that both sides have."""
    stacks = [stack.name for stack in STACKS if stack.in_trace(sides.first) and stack.in_trace(sides.second)]
    each = {name: Setting(setting.source, values={**setting, "stack": name}) for name in stacks}
    return replace(sides, maps={name: overview(one, sides) for name, one in each.items()})


def _source(setting: Setting) -> str:
    return setting.patterns.source


def _read(trace: Trace) -> str:
    """The texts that a pass read."""
    return " → ".join(str(text) for name in ("source", "target") if (text := trace.meta.get(name)))


def _texts(setting: Setting) -> Sides:
    second = setting.source.read(setting["other_text"])
    return Sides(setting.patterns, second, (_read(setting.patterns), _read(second)))


def _edited(setting: Setting) -> Sides:
    from visformer.edits import Silence

    edits, said = (*setting.source.edits, *carried_edits(setting)), describe_carried(setting)
    title = setting.gettext(N_("with the edits"))
    if not edits:  # of the first attention, which all others of its part come after
        layers = setting.patterns.layers(f"{setting.part}.self_attn")
        first = next(iter(layers))
        where = f"{setting.part}.{first}.self_attn"
        if reason := setting.patterns.lacks(f"{where}.heads"):
            raise TraceError(N_("What this model computes can be viewed but not changed: {reason}."), reason=reason)
        edits, said = (Silence(where, head=tuple(range(shape_of(layers)[1]))),), setting.gettext(_SILENCED)
        title = setting.gettext(N_("without the self-attention of layer {layer}")).format(layer=first + 1)
    second = setting.source.read(_source(setting), forced(setting.patterns), edits=edits)
    return Sides(setting.patterns, second, (setting.gettext(N_("the model as it is")), title), note=said)


def _models(setting: Setting) -> Sides:
    first, second = read_by_both(setting)
    return Sides(first, second, (str(first.meta.get("model")), setting["other_model"]), matched=True)


def _moments(setting: Setting) -> Sides:
    steps = [f"{int(moment['step']):,}" for moment in moments_of(setting)]
    a, b = setting["moment"], setting["other_moment"]
    text, target = _source(setting), forced(setting.patterns)
    first, second = (setting.source.read(text, target, moment=moment) for moment in (a, b))
    note = setting.gettext(_STEPS).format(a=steps[a], b=steps[b])
    titled = setting.gettext(N_("step {step} of the training"))
    titles = (titled.format(step=steps[a]), titled.format(step=steps[b]))
    return Sides(first, second, titles, note=note)


def _n_moments(setting: Setting) -> int:
    return max(1, len(setting.source.moments()))


def _changes_with(text: Callable[[Setting], str]) -> Callable[[Setting], int]:
    return lambda setting: zlib.crc32(text(setting).encode())


def _others(setting: Setting) -> tuple[str, ...]:
    """The other models, first one of the same kind: of a translator that with random weights, else another seed."""
    own = str(setting.patterns.meta.get("model"))
    others = [name for name in (*setting.source.models, UNTRAINED) if name != own]
    translates = "decoder.cross_attn" in setting.source.stacks
    return tuple(sorted(others, key=lambda name: name != UNTRAINED if translates else not name.startswith(GPT)))


def _drawn(sides: Callable[[Setting], Sides]) -> Callable[[Setting], list[Panel]]:
    return lambda setting: panels(setting, sides(setting))


# fmt: off
OTHER_TEXT = Text(
    name="other_text", label=N_("Sentence B"), help="The second sentence; by default one word is changed.",
    default=lambda setting: one_word_changed(_source(setting)), per=_changes_with(_source),
)
OTHER_MODEL = Text(
    name="other_model", label=N_("Model B"), help="The name of another model.", among=_others,
    labels={UNTRAINED: N_("Untrained model")}, default=lambda setting: (*_others(setting), GPT)[0],
)
MOMENT, OTHER_MOMENT = (
    PlaceOption(
        name=name, label=label, help="A moment of the training, as vf.moments numbers it, from 0.", first=0,
        among=lambda setting: range(_n_moments(setting)), default=default, per=_n_moments,
    )
    for name, label, default in (
        ("moment", N_("Moment A"), lambda setting: _n_moments(setting) - 1),
        ("other_moment", N_("Moment B"), lambda setting: _n_moments(setting) // 2),
    )
)
SENTENCES = Picture(
    name="compare", view="sentences", title=N_("Sentences"), needs=("*.pattern",), options=(OTHER_TEXT, *SELECTED[:3]),
    look_for=N_("A is the sentence above, B another one. Which heads read elsewhere because of one word?"),
    draw=_drawn(_texts),
)
EDITED = Picture(
    name="compare-edited", view="edited", title=N_("Before and after an edit"), needs=("*.pattern",),
    options=(*CARRIED, *SELECTED[:3]),
    look_for=N_("A is the model as it is, B the model with your edits, on the same text. How far does an edit reach?"),
    draw=_drawn(_edited), in_handouts=False,
)
MODELS = Picture(
    name="compare-models", view="models", title=N_("Models"), needs=("*.pattern",), in_handouts=False,
    look_for=N_("Each head of A beside the head of B that reads most alike: across trainings, numbers mean nothing."),
    options=(OTHER_MODEL, *SELECTED[:3]), draw=_drawn(_models),
)
MOMENTS = Picture(
    name="compare-moments", view="moments", title=N_("Moments of training"), needs=("*.pattern",), in_handouts=False,
    look_for=N_("The same model at two moments of its training, on the same text. When did a head become what it is?"),
    options=(MOMENT, OTHER_MOMENT, *SELECTED[:3]), draw=_drawn(_moments),
)
SIDES = {SENTENCES.view: _texts, EDITED.view: _edited, MODELS.view: _models, MOMENTS.view: _moments}
"""What the two linked explorers of a view show."""
PAGE = Page(
    name="compare", section="research", order=120, title=N_("Compare"),
    about=N_("Two sentences, models or moments side by side; or before and after an edit."),
    where="attention",
    views=(SENTENCES, EDITED, MODELS, MOMENTS),
)
# fmt: on
