"""What a visitor has chosen in the explorer: from the browser to the page, into a link and back.

Numbers count from 0 here and from 1 in a link, as on screen.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from visformer.trace import Trace

VIEWS = ("heatmap", "arcs", "tokens", "layer")
COMBINED = ("one", "mean", "max")
MOST_HEADS = 12
_STACKS = {"encoder": "encoder.self_attn", "decoder": "decoder.self_attn", "cross": "decoder.cross_attn"}
_PLACES = ("layer", "head", "query", "key")
_FLAGS = ("merging", "hiding", "renormalising")
_ORDER = re.compile(r"[a-z_]{1,20}")
_LIMIT = re.compile(r"(?:weight|mass)-[01](?:\.\d{1,4})?")
_HEADS = re.compile(r"\d{1,3}-\d{1,3}(?:\.\d{1,3}-\d{1,3}){0,11}")


@dataclass(frozen=True)
class Selection:
    """A head of a stack, how it is drawn, and the cell (or one token of it) that is locked.

    Args:
        stack: tensor name, such as "encoder.self_attn".
        layer: of the head in focus.
        head: in focus.
        view: one of VIEWS.
        query: place of the token that reads, where one is locked.
        key: place of the token that is read, where one is locked.
        combine: one of COMBINED.
        order: "place", "similarity" or the name of a score.
        limit: "" or a threshold as in a link, "weight-0.05" or "mass-0.9".
        merging: whole words.
        hiding: special tokens are left out.
        renormalising: rows to 1 again.
        heads: shown together with the one in focus, as in a link but from 0: "2-5.0-3"; "" where there is only one.
    """

    stack: str = "encoder.self_attn"
    layer: int = 0
    head: int = 0
    view: str = "heatmap"
    query: int | None = None
    key: int | None = None
    combine: str = "one"
    order: str = "place"
    limit: str = ""
    merging: bool = False
    hiding: bool = False
    renormalising: bool = False
    heads: str = ""

    @classmethod
    def from_browser(cls, value: Any) -> "Selection | None":
        """What the component sent; None for anything that is not a selection: a browser may send what it likes."""
        if not isinstance(value, Mapping) or value.get("stack") not in _STACKS.values():
            return None
        if value.get("view") not in VIEWS:
            return None
        places = {name: _place(value.get(name)) for name in _PLACES}
        if places["layer"] is None or places["head"] is None:
            return None
        flags = {name: value.get(name) is True for name in _FLAGS}
        words = _words({name: value.get(name) for name in ("combine", "order", "limit", "heads")})
        return cls(stack=str(value["stack"]), view=str(value["view"]), **places, **flags, **words)  # type: ignore[arg-type]

    @classmethod
    def from_link(cls, link: Mapping[str, str]) -> "Selection":
        """What the address asks for; what it leaves out, or what makes no sense, is as it is without a link."""
        numbers = {name: _place(_number(link.get(name))) for name in _PLACES}
        found: dict[str, Any] = {name: number for name, number in numbers.items() if number is not None}
        found |= _words({**link, "heads": _shifted(link.get("heads"), -1)})
        found |= {name: True for name in _FLAGS if link.get(name) == "1"}
        if link.get("stack") in _STACKS:
            found["stack"] = _STACKS[link["stack"]]
        if link.get("view") in VIEWS:
            found["view"] = link["view"]
        return cls(**found)

    def within(self, trace: "Trace") -> "Selection":
        """The same of a stack, layer and head that the Trace has: the nearest, or its first stack."""
        from visformer.canvas.words import STACKS  # not needed for the first picture's script, and brings numpy

        stacks = [stack for stack in STACKS if stack.in_trace(trace)]
        stack = next((stack for stack in stacks if stack.name == self.stack), stacks[0])
        layers = trace.layers(stack.part, stack.kind)
        n_heads = layers[0].value.shape[0]
        return replace(self, stack=stack.name, layer=min(self.layer, len(layers) - 1), head=min(self.head, n_heads - 1))

    def link(self) -> dict[str, str]:
        """For the address; what is as at first is left out."""
        first = asdict(Selection())
        said = {"stack": next(short for short, name in _STACKS.items() if name == self.stack)}
        said |= {name: getattr(self, name) for name in ("view", "combine", "order", "limit")}
        said |= {name: str(getattr(self, name) + 1) for name in _PLACES if getattr(self, name) is not None}
        said |= {name: "1" for name in _FLAGS if getattr(self, name)}
        said["heads"] = _shifted(self.heads, 1)
        return {name: value for name, value in said.items() if getattr(self, name) != first[name]}

    def start(self) -> dict[str, Any]:
        """For the browser."""
        return asdict(self)


def _words(given: Mapping[str, Any]) -> dict[str, str]:
    """Those of the words that make sense."""
    sense = {"combine": re.compile("|".join(COMBINED)), "order": _ORDER, "limit": _LIMIT, "heads": _HEADS}
    texts = {name: given.get(name) for name in sense}
    return {name: text for name, text in texts.items() if isinstance(text, str) and sense[name].fullmatch(text)}


def _shifted(heads: str | None, by: int) -> str:
    """Heads "2-5.0-3" with other numbers; "" for anything else, and for numbers below 0."""
    if heads is None or not _HEADS.fullmatch(heads):
        return ""
    pairs = [[int(number) + by for number in pair.split("-")] for pair in heads.split(".")]
    return ".".join(f"{layer}-{head}" for layer, head in pairs) if min(map(min, pairs)) >= 0 else ""


def _number(text: str | None) -> int | None:
    return int(text) - 1 if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _place(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**5 else None
