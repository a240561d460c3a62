"""Options shared by many pictures: which attention, layer, head and query."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from visformer.errors import N_
from visformer.pictures.registry.options import Choice, Place
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS, ranges, shape_of, short_name

if TYPE_CHECKING:  # numpy
    from visformer.trace import TracedTensor

STEP_HELP = "From 1. By default the first; of what grows (growing, mask-steps) the last."


def _labels(setting: Setting) -> dict[str, str]:
    return {stack.name: stack.label for stack in STACKS if stack.name in setting.source.stacks}


def _patterns(setting: Setting) -> "Mapping[int, TracedTensor]":
    """The patterns by layer; none for a saved Trace without patterns, which some pictures do not need."""
    (stack,) = (stack for stack in STACKS if stack.name == setting["stack"])
    return stack.layers(setting.patterns) if stack.in_trace(setting.patterns) else {}


def _heads(setting: Setting) -> range | None:
    patterns = _patterns(setting)
    return range(shape_of(patterns)[1]) if patterns else None


def layer_of(numbers: Callable[[Setting], Sequence[int]]) -> Place:
    """The option of a layer; ``numbers``: of the layers, none if they are unknown."""
    return Place(
        name="layer", label=N_("Layer"), help="From 1, as on screen.", among=lambda setting: numbers(setting) or None,
        default=lambda setting: (*numbers(setting), 0)[0], per=lambda setting: per_layers(numbers(setting)),
    )  # fmt: skip


def per_layers(numbers: Iterable[int]) -> str:
    """What the widget of a layer depends on."""
    return ranges(number + 1 for number in numbers)


def _tokens(setting: Setting) -> tuple[str, ...]:
    return setting.patterns.tokens[setting.side]


def _token_places(setting: Setting) -> range:
    return range(len(_tokens(setting)))


def decoder_first(setting: Setting) -> str:
    """The decoder's self-attention, the only causal one; if the model has none, its first attention."""
    stacks = setting.source.stacks
    return "decoder.self_attn" if "decoder.self_attn" in stacks else stacks[0]


STACK = Choice(
    name="stack", label=N_("Attention"), help="By default the model's first.", values=_labels,
    spell=short_name,
)  # fmt: skip
LAYER = layer_of(lambda setting: tuple(_patterns(setting)))
HEAD = Place(
    name="head", label=N_("Head"), help="From 1.", among=_heads, per=lambda setting: len(_heads(setting) or ())
)
QUERY = Place(
    name="query", label=N_("Query"), help="The query token, from 1.", among=_token_places, tokens=_tokens,
    per=lambda setting: len(_tokens(setting)),
)  # fmt: skip
SELECTED = tuple(replace(option, link=None) for option in (STACK, LAYER, HEAD, QUERY))
"""The same as the explorer's: links have them under the explorer's names."""
