"""Which of a model's layers its attention weights belong to: a hybrid model has attention in some of them only.

transformers returns the weights as a list without gaps, and each family's config says in its own way which layers have
attention. So the model is watched once, on a short text: each tensor is noted with the block that computed it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from visformer.errors import N_, VisformerError


@dataclass(frozen=True)
class Numbering:
    """The layers that the weights returned by a pass belong to.

    Args:
        places: layer, from 0, to the index of its weights among those returned.
        depth: number of layers, those without attention included.
    """

    places: Mapping[int, int]
    depth: int


@dataclass
class Watch:
    """The block that computed each tensor of a pass that may be a pattern."""

    running: list[tuple[int, int]] = field(default_factory=list)  # (index, length of its list), the outermost first
    seen: dict[int, tuple[Tensor, int, int]] = field(default_factory=dict)  # by id, unique while the tensor is kept

    def enter(self, place: tuple[int, int]) -> None:
        """A block begins."""
        self.running.append(place)

    def leave(self) -> None:
        """The block that began last ends."""
        self.running.pop()

    def note(self, module: nn.Module, args: Any, output: Any) -> None:
        """A forward hook of any module."""
        for tensor in output if self.running and isinstance(output, tuple) else ():
            if isinstance(tensor, Tensor) and tensor.dim() == 4:
                self.seen.setdefault(id(tensor), (tensor, *self.running[0]))

    def numbering(self, weights: Sequence[Tensor | None], size: tuple[int, int]) -> Numbering:
        """Number the weights that the pass returned; ``size``: its (query, key).

        Other sizes are left out: the state of linear attention, which some models return among the weights.

        Raises:
            VisformerError: nothing of this size was returned.
        """
        places = {id(each): i for i, each in enumerate(weights) if each is not None and each.shape[-2:] == size}
        if not places:
            raise VisformerError(
                N_(
                    "The model returns no attention weights of shape (head, query, key), so there is nothing to show: "
                    "its layers have none, or attend in windows, in blocks or to a shortened text."
                )
            )
        blocks = [self.seen.get(each, (None, -1, 0))[1:] for each in places]
        layers = [layer for layer, _ in blocks]
        if -1 in layers or len({*layers}) < len(layers):  # ALBERT reuses its blocks: each pass through one is a layer
            return Numbering(dict(enumerate(places.values())), len(places))
        return Numbering(dict(sorted(zip(layers, places.values(), strict=True))), blocks[0][1])


@contextmanager
def watching_blocks(model: nn.Module) -> Iterator[Watch]:
    """Watch the blocks of a model, which are what its lists of modules hold."""
    watch = Watch()
    hooks = [module.register_forward_hook(watch.note) for module in model.modules()]
    for blocks in [module for module in model.modules() if isinstance(module, nn.ModuleList)]:
        for index, block in enumerate(blocks):
            place = (index, len(blocks))
            hooks.append(block.register_forward_pre_hook(lambda *_, place=place: watch.enter(place)))
            hooks.append(block.register_forward_hook(lambda *_: watch.leave()))
    try:
        yield watch
    finally:
        for hook in hooks:
            hook.remove()
