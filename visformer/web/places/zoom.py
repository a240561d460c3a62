"""The place that one has zoomed in on in the whole model, as browsers and links write it.

Numbers count from 0 here and from 1 in the text, as on screen.
"""

import re
from dataclasses import dataclass, replace
from itertools import takewhile

from visformer.errors import N_, LinkError
from visformer.pictures import map as model_map
from visformer.trace import Trace
from visformer.trace.stacks import ranges

_TEXT = re.compile(
    r"(encoder|decoder)\.([1-9][0-9]{0,3})"
    r"(?:\.(self_attn|cross_attn|ffn)(?:\.([1-9][0-9]{0,3})(?:\.([1-9][0-9]{0,4})\.([1-9][0-9]{0,4}))?)?)?"
)


@dataclass(frozen=True)
class Zoom:
    """A layer; a sublayer; a head; or one cell.

    Args:
        stack: "encoder" or "decoder".
        layer: its number in the model.
        kind: "self_attn", "cross_attn" or "ffn"; None: the whole layer.
        head: None: the whole sublayer.
        query: of a cell; None: the whole head.
        key: of a cell.
    """

    stack: str
    layer: int
    kind: str | None = None
    head: int | None = None
    query: int | None = None
    key: int | None = None

    @classmethod
    def read(cls, text: str) -> "Zoom":
        """Parse a text such as "decoder.2.cross_attn.3".

        Raises:
            LinkError: it is no place.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise LinkError(N_("a place is written such as decoder.2.cross_attn.3, with numbers from 1."))
        layer, *places = (None if number is None else int(number) - 1 for number in match.group(2, 4, 5, 6))
        assert layer is not None
        return cls(match[1], layer, match[3], *places)

    def __str__(self) -> str:
        numbers = [None if place is None else place + 1 for place in (self.head, self.query, self.key)]
        parts = (self.stack, self.layer + 1, self.kind, *numbers)
        return ".".join(str(part) for part in takewhile(lambda part: part is not None, parts))

    @property
    def path(self) -> str:
        """The sublayer in the names of tensors, such as "decoder.1.cross_attn"."""
        return f"{self.stack}.{self.layer}.{self.kind}"

    def require_in(self, trace: Trace) -> "Zoom":
        """Return this place if the Trace has it.

        Raises:
            LinkError: it has not; the message says what there is.
        """
        layers = {layer.number: layer for layer in model_map.layers(trace, self.stack)}
        if not layers:
            raise LinkError(N_("this model has no such stack."))
        if self.layer not in layers:
            raise LinkError(N_("the layers of this stack are {layers}."), layers=ranges(i + 1 for i in layers))
        shown = {one.kind: one for one in layers[self.layer].sublayers}
        if self.kind is not None and self.kind not in shown:
            raise LinkError(N_("this layer has no such sublayer."))
        if self.head is not None:
            self._require_head(trace)
        return self

    def _require_head(self, trace: Trace) -> None:
        name = next((f"{self.path}.{what}" for what in ("pattern", "map") if f"{self.path}.{what}" in trace), None)
        if name is None:
            raise LinkError(N_("this sublayer has no heads."))
        ends = {
            "head": N_("the heads of a layer are 1 to {n}."),
            "query": N_("the query tokens here are 1 to {n}."),
            "key": N_("the key tokens here are 1 to {n}."),
        }
        for (place, message), n in zip(ends.items(), trace[name].shape, strict=True):
            if (getattr(self, place) or 0) >= n:
                raise LinkError(message, n=n)

    def within(self, trace: Trace) -> "Zoom | None":
        """Return this place or, where another text or model has no such one, the closest around it; None: none."""
        for place in (self, replace(self, query=None, key=None), Zoom(self.stack, self.layer, self.kind),
                      Zoom(self.stack, self.layer)):  # fmt: skip
            try:
                return place.require_in(trace)
            except LinkError:
                continue
        return None
