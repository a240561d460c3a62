"""A device that no machine lacks: tensors on it are ordinary ones, but never meet those of the CPU, as with a GPU."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

AWAY = torch.device("cuda", 0)
_INDEXING = (Tensor.__getitem__, Tensor.__setitem__)  # indices may come from the CPU


class Away(TorchFunctionMode):
    """Inside it, the weights of a module are on another device; what mixes devices raises as torch does."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._there: Any = WeakIdKeyDictionary()
        self._place([*module.parameters(), *module.buffers()])

    def _place(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if isinstance(tensor, Tensor):
                self._there[tensor] = True

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if func == Tensor.device.__get__:  # type: ignore[attr-defined]
            return AWAY if first in self._there else torch.device("cpu")
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        away = any(tensor in self._there for tensor in tensors)
        if name in ("to", "cpu") and isinstance(first, Tensor):
            return self._moved(first, name, args[1:], kwargs)
        if away and name == "numpy":
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if func not in _INDEXING and away:
            strangers = [t for t in tensors if t not in self._there and t.dim() > 0]
            assert not strangers, f"Expected all tensors to be on the same device: {name} got one of the CPU"
        if func in _INDEXING and first not in self._there:
            assert not away, f"indices of a tensor on the CPU should be there, too: {name}"
        created = kwargs.get("device")
        if created is not None:
            kwargs["device"] = "cpu"
        result = func(*args, **kwargs)
        if away or (created is not None and torch.device(created).type == AWAY.type):
            self._place(tree_leaves(result))
        return result

    def _moved(self, tensor: Tensor, name: str, args: Any, kwargs: dict[str, Any]) -> Tensor:
        given = [*args, *kwargs.values()]
        devices = [torch.device(g) for g in given if isinstance(g, str | torch.device)]
        others = [g for g in given if isinstance(g, Tensor)]
        there = tensor in self._there
        if name == "cpu":
            goes = False
        elif devices:
            goes = devices[0].type == AWAY.type
        else:
            goes = others[0] in self._there if others else there
        dtypes = [g for g in given if isinstance(g, torch.dtype)] + [g.dtype for g in others]
        moved = tensor.detach().clone() if goes != there else tensor
        moved = moved.to(dtypes[0]) if dtypes else moved
        if goes:
            self._place([moved])
        return moved
