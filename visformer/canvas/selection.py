"""What a visitor has chosen in the explorer: from the browser to the page, into a link and back.

Numbers count from 0 here and from 1 in a link, as on screen.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from visformer.trace import Trace

VIEWS = ("heatmap", "arcs", "tokens", "layer")
_STACKS = {"encoder": "encoder.self_attn", "decoder": "decoder.self_attn", "cross": "decoder.cross_attn"}
_PLACES = ("layer", "head", "query", "key")


@dataclass(frozen=True)
class Selection:
    """A head of a stack, how it is drawn, and the cell (or one token of it) that is locked."""

    stack: str = "encoder.self_attn"
    layer: int = 0
    head: int = 0
    view: str = "heatmap"
    query: int | None = None
    key: int | None = None

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
        return cls(stack=str(value["stack"]), view=str(value["view"]), **places)  # type: ignore[arg-type]

    @classmethod
    def from_link(cls, link: Mapping[str, str]) -> "Selection":
        """What the address asks for; what it leaves out, or what makes no sense, is as it is without a link."""
        numbers = {name: _place(_number(link.get(name))) for name in _PLACES}
        found: dict[str, Any] = {name: number for name, number in numbers.items() if number is not None}
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
        stack = next(short for short, name in _STACKS.items() if name == self.stack)
        said = {"stack": stack, "view": self.view}
        said |= {name: str(getattr(self, name) + 1) for name in _PLACES if getattr(self, name) is not None}
        return {name: value for name, value in said.items() if getattr(self, name) != first[name]}

    def start(self) -> dict[str, Any]:
        """For the browser."""
        return asdict(self)


def _number(text: str | None) -> int | None:
    return int(text) - 1 if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _place(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**5 else None
