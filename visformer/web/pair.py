"""Pack two Traces into the message of two linked explorers: one for each, and which tokens and heads are partners."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from visformer.analysis.comparing import token_partners
from visformer.errors import N_, TraceError
from visformer.panel import ticks
from visformer.pictures.sides import Sides, matches
from visformer.pictures.style import RAMPS
from visformer.trace.stacks import STACKS, Stack, require_only_tokens
from visformer.web.chunks import Focus
from visformer.web.message import Numbers, write_message
from visformer.web.payload import pack, pack_rest

_TEXT = {
    "difference": N_("B − A"),
    "legend": N_("Colour scale of the difference, from −1 to 1."),
    "hover": N_("What is selected or pointed at in A, in B or in the difference is marked in all three."),
    "click": N_("Click a head to select it in both."),
    "cell": N_("{query} reads {key}: A {a}, B {b}, B − A {difference}"),
    "alone": N_("{token} has no partner: nothing to subtract."),
}


def common(sides: Sides) -> tuple[Stack, ...]:
    """Return the attentions that both have.

    Raises:
        TraceError: there is none, or one of them has keys before its tokens.
    """
    for trace in (sides.first, sides.second):
        require_only_tokens(trace, "compare")
    shared = tuple(stack for stack in STACKS if stack.in_trace(sides.first) and stack.in_trace(sides.second))
    if not shared:
        raise TraceError(N_("These two models have no attention of the same kind: choose another model."))
    return shared


def pack_pair(
    sides: Sides,
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    start: Mapping[str, Any] | None = None,
    file: str = "",
    focus: Focus | None = None,
    to: str = "",
) -> bytes:
    """Pack the first message of two linked explorers.

    Args:
        sides: A and B.
        gettext: translates the words.
        lang: the language of ``gettext``.
        start: the initial selection of A, which B follows.
        file: see :func:`visformer.web.payload.pack`.
        focus: see :func:`visformer.web.payload.pack`.
        to: see :func:`visformer.web.message.write_message`.

    Raises:
        BudgetError: there are too many weights to be shown, or to match heads.
        TraceError: they have no attention in common or, if their heads are matched, no token.
    """
    stacks, traces = common(sides), (sides.first, sides.second)
    numbers, parts = Numbers(), []
    for trace in traces:
        message = pack(trace, gettext=gettext, lang=lang, start=start, file=file, focus=focus)
        parts.append((numbers.add(np.frombuffer(message, np.uint8)), len(message)))
    unions = {
        side: token_partners(*traces, side).union
        for side in ("src", "tgt")
        if all(trace.tokens.get(side) for trace in traces)
    }
    layers = {stack.name: [*stack.layers(sides.first)] for stack in stacks}
    titled = gettext(N_("{side}: {text}"))
    header = {
        "parts": parts,
        "titles": [titled.format(side=side, text=text) for side, text in zip("AB", sides.titles, strict=True)],
        "stacks": [stack.name for stack in stacks],
        "unions": unions,
        "heads": {stack.name: matches(*traces, stack) for stack in stacks} if sides.matched else None,
        "maps": {
            name: {
                "title": gettext(panel.title),
                "note": panel.note,
                "limit": panel.end,
                "decimals": panel.decimals,
                "axes": {"rows": gettext(panel.rows.title), "columns": gettext(panel.columns.title)},
                "layers": layers[name],
                "heads": panel.values.shape[1],
                "at": numbers.add(panel.values.astype("<f4")),
            }
            for name, panel in sides.maps.items()
        },
        "ramp": RAMPS["signed"],
        "ticks": ticks("signed", 1.0),
        "text": {name: gettext(text) for name, text in _TEXT.items()},
    }
    return write_message("pair", header, numbers, to=to)


def pack_rests(
    sides: Sides,
    *,
    focus: Focus | None = None,
    wanted: Sequence[Sequence[str]] = ((), ()),
    to: str = "",
) -> tuple[bytes | None, bytes | None]:
    """Pack the exact weights that did not fit, of A and of B; see :func:`visformer.web.payload.pack_rest`."""
    first, second = (
        pack_rest(trace, focus=focus, wanted=names, to=to)
        for trace, names in zip((sides.first, sides.second), wanted, strict=True)
    )
    return first, second
