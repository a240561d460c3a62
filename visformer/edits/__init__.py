"""Edits of a running model: frozen, hashable and JSON-serialisable, so that they can be cache keys and parts of links.

``where`` is the path of an attention, such as "decoder.0.cross_attn", or a glob that matches several. Layers, heads and
token positions count from 0. In a notebook, a plain function ``(name, tensor) -> tensor`` is an edit, too: it is called
with each tensor, (batch, ...), may change it in place, and returns it, also where it changes nothing. A dict of names,
or globs, to functions ``tensor -> tensor`` has each called with the tensors that it names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from visformer.edits.attention import Block, Open, SetHeads, SetPattern, Shuffle, Silence, Uniform, Zero
from visformer.edits.base import _Edit
from visformer.edits.patch import Patch
from visformer.errors import N_, EditError
from visformer.system.arguments import check_public

__all__ = [
    "Block",
    "EachRow",
    "Edit",
    "Open",
    "Patch",
    "SetHeads",
    "SetPattern",
    "Shuffle",
    "Silence",
    "Uniform",
    "Zero",
    "from_json",
]


@dataclass(frozen=True)
class EachRow:
    """A function as an edit that changes each position alike and alone, such as one that adds a vector to all.

    A plain function is called with all positions at each step of decoding; this one only with those that are new, as
    the model keeps what it has computed of the others.

    Args:
        function: ``(name, tensor) -> tensor``.
    """

    function: Callable[[str, Tensor], Tensor]

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Call the function."""
        return self.function(name, tensor)


Edit = _Edit | Callable[[str, Tensor], Tensor] | Mapping[str, Callable[[Tensor], Tensor]]
_KINDS: dict[str, type[_Edit]] = {
    kind.__name__: kind for kind in (Silence, SetHeads, Block, Open, Zero, SetPattern, Uniform, Shuffle, Patch)
}


def from_json(data: dict[str, Any]) -> _Edit:
    """Read an edit from the output of its ``to_json``.

    Args:
        data: a parsed JSON object.

    Returns:
        An edit equal to the original.

    Raises:
        EditError: ``data`` is not an edit.
    """
    try:
        fields = dict(data)
        return _KINDS[fields.pop("edit")](**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise EditError(N_("{data} is not an edit: {reason}"), data=data, reason=error) from error


check_public(__name__)
