"""The visitor's selection in the explorer: parsed from the browser and from links, and written to both.

Numbers count from 0 here and from 1 in a link, as on screen.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from visformer.errors import N_, LinkError
from visformer.pictures.registry.options import one_of, read_flag
from visformer.system import limits
from visformer.trace.stacks import SHORT_NAMES, STACKS, most_heads, nearest, ranges, short_name
from visformer.web.bundle import imports

if TYPE_CHECKING:
    from visformer.trace import Trace

Exported = Literal["heatmap", "arcs", "tokens"]
"""The ways in which a file shows one head."""

VIEWS: Mapping[str, Exported] = {"tokens": "tokens", "heatmap": "heatmap", "arcs": "arcs", "layer": "heatmap"}
"""The views of the explorer, and how a file shows the head in focus of each."""

START_VIEW = next(iter(VIEWS))
"""The view that the explorer begins with. A link that selects something but no view means the heatmap, as ever."""

LONG_VIEW = "heatmap"
"""The view that it begins with if the text is long: its map shows thumbnails until weights have arrived."""

if [*VIEWS] != (_drawn := [PurePosixPath(name).stem for name in imports("explorer/views/index.js")]):
    raise ImportError(f"explorer/views/index.js has the views {_drawn}, VIEWS {[*VIEWS]}: say how each is exported")

COMBINED = ("one", "mean", "max")
ROWS = ("input", "prediction", "both")
"""What names a row of a decoder: the token that is its input, the one that it predicts, or both."""

_PLACES = ("layer", "head", "query", "key")
_FLAGS = ("merging", "hiding", "renormalising")
_LISTS = ("heads", "cells")
_PAIR = "[0-9]{1,5}-[0-9]{1,5}"
_PAIRS = re.compile(rf"{_PAIR}(?:\.{_PAIR}){{0,{limits.MOST_HEADS - 1}}}")


@dataclass(frozen=True)
class Selection:
    """The selected head, how it is drawn, and the locked cell, or a single locked token.

    Args:
        stack: tensor name, such as "encoder.self_attn"; "": no head is chosen, and the one that comes first is meant.
        layer: layer of the head in focus.
        head: the head in focus.
        view: one of VIEWS.
        query: position of the locked query token, if any.
        key: position of the locked key token, if any.
        combine: one of COMBINED.
        order: "place", "similarity", the name of a score or, where it was measured, "effect".
        limit: "" or a threshold as in a link, "weight-0.05" or "mass-0.9".
        merging: whether sub-words are merged into words.
        hiding: whether special tokens are hidden.
        renormalising: whether rows are rescaled to sum to 1 after hiding.
        without: of a chat, the roles whose tokens are hidden, "system.template"; "": none.
        rows: one of ROWS.
        heads: the heads shown together, written as in a link but from 0, "2-5.0-3"; "" for the one in focus alone.
        cells: the cells locked before that of ``query`` and ``key``, as queries and keys, written like ``heads``.
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
    without: str = ""
    rows: str = ROWS[0]
    heads: str = ""
    cells: str = ""

    @classmethod
    def from_browser(cls, value: Any) -> "Selection | None":
        """Validate what the component sent; None for anything that is not a selection: browsers are not trusted."""
        if not isinstance(value, Mapping):
            return None
        if value.get("stack") not in SHORT_NAMES.values() or value.get("view") not in [*VIEWS]:
            return None
        places = {name: _place(value.get(name)) for name in _PLACES}
        if places["layer"] is None or places["head"] is None:
            return None
        flags = {name: value.get(name) is True for name in _FLAGS}
        texts = {name: text for name in _SENSE if isinstance(text := value.get(name), str)}
        words = {name: text for name, text in texts.items() if _SENSE[name].fullmatch(text)}
        return cls(stack=str(value["stack"]), view=str(value["view"]), **places, **flags, **words)  # type: ignore[arg-type]

    @classmethod
    def from_link(cls, link: Mapping[str, str]) -> "tuple[Selection, dict[str, LinkError]]":
        """Parse a link; return the selection and an error for each invalid field, which keeps its default."""
        values: dict[str, Any] = {}
        wrong: dict[str, LinkError] = {}
        for name in (field.name for field in fields(cls) if field.name in link):
            try:
                values[name] = _read(name, link[name])
            except LinkError as error:
                wrong[name] = error
        return cls(**values), wrong

    def within(self, trace: "Trace") -> "Selection":
        """Clip stack, layer and head to what the Trace has: an unknown stack becomes its first, a layer the nearest."""
        if not self.stack:
            return self._begun(trace)
        stacks = [stack for stack in STACKS if stack.in_trace(trace)]
        stack = next((stack for stack in stacks if stack.name == self.stack), stacks[0])
        layers = stack.layers(trace)
        layer = nearest(layers, self.layer)
        return replace(self, stack=stack.name, layer=layer, head=min(self.head, layers[layer].shape[0] - 1))

    def _begun(self, trace: "Trace") -> "Selection":
        """Choose the head that comes first."""
        from visformer.analysis.heads import first_head

        stack, layer, head = first_head(trace)
        begun = replace(self, stack=stack, layer=layer, head=head)
        return begun.seen_first(trace) if self.view == START_VIEW else begun

    def seen_first(self, trace: "Trace") -> "Selection":
        """Return the selection of whoever has not chosen this view: of a long text, the map."""
        from visformer.trace.overview import PatternOnDemand

        part, kind = self.stack.split(".")
        pattern = trace.tensors.get(f"{part}.{self.layer}.{kind}.pattern")
        return replace(self, view=LONG_VIEW) if isinstance(pattern, PatternOnDemand) else self

    def fitting(self, trace: "Trace") -> "tuple[Selection, dict[str, LinkError]]":
        """Reset fields that do not fit the Trace, with an error for each: a link may come from another model."""
        from visformer.analysis.heads import SCORES

        if not self.stack:
            return self._begun(trace).fitting(trace)
        fitted = replace(self.within(trace), layer=self.layer, head=self.head)
        layers = trace.layers(fitted.stack)
        n_heads, n_queries, n_keys = layers[nearest(layers, self.layer)].shape
        counts = {"head": n_heads, "query": n_queries, "key": n_keys}
        wrong = {name: LinkError(_ENDS[name], n=n) for name, n in counts.items() if (getattr(self, name) or 0) >= n}
        numbers = ranges(layer + 1 for layer in layers)
        if self.layer not in layers:
            wrong["layer"] = LinkError(_ENDS["layer"], layers=numbers)
        if fitted.stack != self.stack:
            wrong["stack"] = LinkError(N_("this model has no such attention."))
        if any(layer not in layers or head >= layers[layer].shape[0] for layer, head in _pairs(self.heads)):
            wrong["heads"] = LinkError(_ENDS["heads"], layers=numbers, n=most_heads(layers))
        if any(query >= n_queries or key >= n_keys for query, key in _pairs(self.cells)):
            wrong["cells"] = LinkError(_ENDS["cells"], n=n_queries, keys=n_keys)
        orders = ("place", "similarity", *(score.name for score in SCORES), "effect")
        if self.order not in orders:
            wrong["order"] = one_of(orders)
        wrong = {name: error for name, error in wrong.items() if name in self.link()}  # defaults are no error
        default = Selection(stack=fitted.stack)
        fitted = replace(fitted, **{name: getattr(default, name) for name in wrong})
        return replace(fitted, layer=nearest(layers, fitted.layer)), wrong

    def link(self) -> dict[str, str]:
        """Return the fields of a link; values at their default are left out."""
        defaults = asdict(Selection())
        texts = {"stack": self.stack and short_name(self.stack)}
        texts |= {name: getattr(self, name) for name in ("view", "combine", "order", "limit", "rows", "without")}
        texts |= {name: str(getattr(self, name) + 1) for name in _PLACES if getattr(self, name) is not None}
        texts |= {name: "1" for name in _FLAGS if getattr(self, name)}
        texts |= {name: _shifted(getattr(self, name), 1) for name in _LISTS}
        return {name: text for name, text in texts.items() if text and getattr(self, name) != defaults[name]}

    def start(self) -> dict[str, Any]:
        """Return the selection as JSON values for the browser."""
        return asdict(self)


BEGINNING = Selection(stack="", view=START_VIEW)
"""The selection of whoever has selected nothing: the head that comes first."""

_ENDS = {
    "layer": N_("the layers of this attention are {layers}."),
    "head": N_("the heads of a layer are 1 to {n}."),
    "query": N_("the query tokens here are 1 to {n}."),
    "key": N_("the key tokens here are 1 to {n}."),
    "heads": N_("the layers of this attention are {layers}, the heads of each 1 to {n}."),
    "cells": N_("the query tokens here are 1 to {n}, the key tokens 1 to {keys}."),
}
_SENSE = {
    "combine": re.compile("|".join(COMBINED)),
    "rows": re.compile("|".join(ROWS)),
    "order": re.compile(r"[a-z_]{1,20}"),
    "without": re.compile(r"[a-z0-9_-]{1,32}(?:\.[a-z0-9_-]{1,32}){0,7}"),
    "limit": re.compile(r"(?:weight|mass)-(?:0(?:\.[0-9]{1,4})?|1(?:\.0{1,4})?)"),
    "heads": _PAIRS,
    "cells": _PAIRS,
}
_HOW = {
    "limit": N_("a threshold is written weight-0.05 or mass-0.9, with a share from 0 to 1."),
    "without": N_("roles are written with dots between them, such as system.template."),
    "heads": N_("heads are written layer-head, such as 2-5.1-3, at most {most} of them, and count from 1."),
    "cells": N_("cells are written query-key, such as 3-4.1-2, and count from 1."),
}


def _read(name: str, text: str) -> Any:
    """Parse one field of a link."""
    choices = {"stack": tuple(SHORT_NAMES), "view": tuple(VIEWS), "combine": COMBINED, "rows": ROWS}.get(name)
    if choices is not None and text not in choices:
        raise one_of(choices)
    if name in _FLAGS:
        return read_flag(text)
    if name == "stack":
        return SHORT_NAMES[text]
    if name in _PLACES:
        place = _place(int(text) - 1) if text.isascii() and text.isdigit() and len(text) < 6 else None
        if place is None:
            raise LinkError(N_("expected a whole number of at least 1."))
        return place
    if name in _LISTS:
        text = _shifted(text, -1)
    if name != "view" and not (text and _SENSE[name].fullmatch(text)):
        raise LinkError(_HOW.get(name, N_("there is no such order.")), most=limits.MOST_HEADS)
    return text


def _pairs(text: str) -> list[list[int]]:
    return [[int(number) for number in pair.split("-")] for pair in text.split(".")] if text else []


def _shifted(text: str, by: int) -> str:
    """Add ``by`` to all numbers in pairs such as "2-5.0-3"; "" for anything else, and for numbers below 0."""
    if not _PAIRS.fullmatch(text):
        return ""
    pairs = [[number + by for number in pair] for pair in _pairs(text)]
    return ".".join(f"{first}-{second}" for first, second in pairs) if min(map(min, pairs)) >= 0 else ""


def _place(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**5 else None
