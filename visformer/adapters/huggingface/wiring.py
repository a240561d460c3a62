"""Put taps into a transformers model for the time of a pass, and give it back as it was.

Outside of our passes the model is the caller's: its own attention, at its own speed, its mode and its hooks. The places
are found anew for each pass, so that a module that was replaced, or that an adapter wraps, is read as it computes.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from visformer.adapters.huggingface.own_attention import calls_interface, has_patterns, stand_ins
from visformer.adapters.huggingface.taps import NAME, Callers, Hook
from visformer.adapters.recording import Passes, Weight
from visformer.errors import N_, TraceError
from visformer.trace.blocks import Norm


@dataclass
class Found:
    """Where the values of a model are, by the paths of its modules.

    Args:
        callers: module that attends to the path of each of its calls in tensor names.
        values: module and mode to the names at each call of it. The mode is empty for what a module returns, "in" for
            what it reads, "seen" if the model continues with a copy of its own, or a factor such as "x4.0" that the
            model multiplies what is returned by.
        weights: name to the path of a module and the weight.
        norms: "encoder" and "decoder" to where their blocks normalise, and whether these are parallel.
        ends: those whose output is normalised after the last block.
        rotates: whether queries and keys are rotated by their position.
    """

    callers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    values: dict[tuple[str, str], list[list[str]]] = field(default_factory=dict)
    weights: dict[str, tuple[str, Weight]] = field(default_factory=dict)
    norms: dict[str, tuple[Norm, bool]] = field(default_factory=dict)
    ends: set[str] = field(default_factory=set)
    rotates: bool = False


class Wiring(Passes):
    """The taps of one model.

    Args:
        model: the outermost module, which returns the logits if there are any.
        config: the model's config.
        has_logits: whether the model returns logits.

    Attributes:
        ours: whether a pass computes attention with our function, or else with the family's eager one.
        callers: the modules that call it.
        may_fuse: whether the model computes the same with torch's fused attention.
        found: where its values are.
    """

    def __init__(self, model: Any, config: Any, *, has_logits: bool) -> None:
        super().__init__(model)
        self._model, self._config, self._has_logits = model, config, has_logits
        self.found = Found()
        self.callers: Callers = {}
        self.ours = self.may_fuse = False

    def _begin(self, undo: ExitStack, modules: Sequence[nn.Module]) -> None:
        if any(getattr(module, "_compiled_call_impl", None) is not None for module in modules):
            raise TraceError(
                N_("{model} was compiled, and a compiled model does not show its values: wrap one that is not."),
                model=type(self._model).__name__,
            )
        super()._begin(undo, modules)
        self._attend(undo, modules)
        wanted, self.callers = self._places()
        for (module, mode), names in wanted.items():
            undo.callback(self._hooked(module, mode, names).remove)
        for module, method, ours in stand_ins(self._config, modules) if self.ours else ():
            setattr(module, method, ours)
            undo.callback(vars(module).pop, method)

    def found_weights(self) -> dict[str, Weight]:
        """Every weight that was found, in the modules as they are."""
        return {
            name: replace(weight, module=self._model.get_submodule(path))
            for name, (path, weight) in self.found.weights.items()
        }

    @property
    def fixed(self) -> frozenset[str]:
        """Names that can be read but not changed."""
        wanted, callers = self._places()
        seen = {name for (_, mode), names in wanted.items() if mode == "seen" for row in names for name in row}
        sinks = {path for module, paths in callers.items() if getattr(module, "sinks", None) is not None
                 for path in paths}  # fmt: skip
        return frozenset(seen | {f"{path}.sink" for path in sinks})

    def _attend(self, undo: ExitStack, modules: Sequence[nn.Module]) -> None:
        """Choose the attention function; each part of a model may have a config, and an attention, of its own."""
        name = "eager" if has_patterns(self._config) else "sdpa"
        if self.ours and calls_interface(self._config):
            name = NAME
        parts = (module.config for module in modules if hasattr(module, "config"))
        # An outer config sets its inner ones, too: it has to be set back before them. set_attn_implementation leaves
        # some families as they are.
        for config in {id(one): one for part in (*parts, self._config) for one in _inner_first(part)}.values():
            undo.callback(setattr, config, "_attn_implementation", config._attn_implementation)
            config._attn_implementation = name

    def _hooked(self, module: nn.Module, mode: str, names: list[list[str]]) -> RemovableHandle:
        scale = float(mode[1:]) if mode.startswith("x") else 1.0
        hook = Hook(names, self.callers, fixed=mode == "seen", scale=scale)
        if mode in ("in", "seen"):
            return module.register_forward_pre_hook(hook.before, with_kwargs=True)
        return module.register_forward_hook(hook.after)

    def _places(self) -> tuple[dict[tuple[nn.Module, str], list[list[str]]], Callers]:
        """Find the modules with a hook, and those that call the attention function."""
        wanted: dict[tuple[nn.Module, str], list[list[str]]] = {}
        callers: dict[nn.Module, tuple[str, ...]] = {}
        if self.ours:
            wanted = {(self._model.get_submodule(path), mode): [[*row] for row in rows]
                      for (path, mode), rows in self.found.values.items()}  # fmt: skip
            callers = {self._model.get_submodule(path): paths for path, paths in self.found.callers.items()}
        if self._has_logits:
            wanted[self._model, ""] = [["logits"]]
        return wanted, callers


def _inner_first(config: Any) -> Iterator[Any]:
    for name in config.sub_configs:
        if (inner := getattr(config, name, None)) is not None:
            yield from _inner_first(inner)
    yield config
