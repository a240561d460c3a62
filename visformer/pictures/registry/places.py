"""Options shared by many pictures: which attention, layer, head and query."""

from collections.abc import Callable

from visformer.errors import N_
from visformer.pictures.registry.options import Choice, Place
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS, short_name

STEP_HELP = "From 1. By default the first; of what grows (growing, mask-steps) the last."


def _labels(setting: Setting) -> dict[str, str]:
    return {stack.name: stack.label for stack in STACKS if stack.name in setting.source.stacks}


def _count(axis: int) -> Callable[[Setting], int | None]:
    def count(setting: Setting) -> int | None:
        """None for a saved Trace without patterns, which some pictures do not need."""
        trace = setting.patterns
        if f"{setting.part}.0.{setting.kind}.pattern" not in trace:
            return None
        layers = trace.layers(setting.part, setting.kind)
        return int((len(layers), *layers[0].value.shape)[axis])

    return count


def _tokens(setting: Setting) -> tuple[str, ...]:
    return setting.patterns.tokens[setting.side]


def _n_tokens(setting: Setting) -> int:
    return len(_tokens(setting))


def decoder_first(setting: Setting) -> str:
    """The decoder's self-attention, the only causal one; if the model has none, its first attention."""
    stacks = setting.source.stacks
    return "decoder.self_attn" if "decoder.self_attn" in stacks else stacks[0]


STACK = Choice(
    name="stack", label=N_("Attention"), help="By default the model's first.", values=_labels,
    spell=short_name,
)  # fmt: skip
LAYER = Place(name="layer", label=N_("Layer"), help="From 1, as on screen.", count=_count(0), per=_count(0))
HEAD = Place(name="head", label=N_("Head"), help="From 1.", count=_count(1), per=_count(1))
QUERY = Place(
    name="query", label=N_("Query"), help="The query token, from 1.", count=_n_tokens, tokens=_tokens,
    per=_n_tokens,
)  # fmt: skip
