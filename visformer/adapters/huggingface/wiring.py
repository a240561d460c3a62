"""Put taps into a transformers model for the time of a pass, and give it back as it was.

Outside of our passes the model is the caller's: its own attention, at its own speed, its mode and its hooks. The places
are found anew for each pass, so that a module that was replaced, or that an adapter wraps, is read as it computes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from visformer.adapters.huggingface.families import StackPlaces, layout_of, places
from visformer.adapters.huggingface.own_attention import calls_interface, can_be_ours, has_patterns, stand_ins
from visformer.adapters.huggingface.taps import NAME, Callers, Hook, part_of
from visformer.adapters.recording import Passes, Weight
from visformer.errors import N_, TraceError
from visformer.trace.blocks import Norm


@dataclass
class Found:
    """Where the values of a model are that the table does not list, by the paths of its modules.

    Args:
        callers: module that attends to the path of each of its calls in tensor names.
        values: module and mode, as in the table of families or a factor such as x4.0, to the names at each call of it.
        weights: name to the path of a module and the weight.
        norms: "encoder" and "decoder" to where their blocks normalise, and whether these are parallel.
        ends: those whose output is normalised after the last block.
    """

    callers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    values: dict[tuple[str, str], list[list[str]]] = field(default_factory=dict)
    weights: dict[str, tuple[str, Weight]] = field(default_factory=dict)
    norms: dict[str, tuple[Norm, bool]] = field(default_factory=dict)
    ends: set[str] = field(default_factory=set)


class Wiring(Passes):
    """The taps of one model.

    Args:
        model: the outermost module, which returns the logits if there are any.
        base: the module that the table's paths are relative to.
        stacks: "encoder", "decoder" or both; none: the table does not list the family.
        config: the model's config.
        has_logits: whether the model returns logits.

    Attributes:
        stacks: as given.
        ours: whether a pass computes attention with our function, or else with the family's eager one.
        callers: the modules that call it.
        may_fuse: whether the model computes the same with torch's fused attention.
        found: where its values are, if ``stacks`` do not say.
    """

    def __init__(
        self, model: Any, base: nn.Module, stacks: Mapping[str, StackPlaces], config: Any, *, has_logits: bool
    ) -> None:
        super().__init__(model)
        self._model, self._base, self.stacks, self._config = model, base, stacks, config
        self._has_logits = has_logits
        self.found = Found()
        self.ours = False
        _, self.callers = self._places()
        self.ours = bool(stacks) and can_be_ours(config, self.callers)
        self.may_fuse = False

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
        for module, method, ours in stand_ins(self._config, self.callers) if self.ours else ():
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
        owner = self._base.get_submodule(part_of(names[0][0])) if mode == "scaled" else None
        scale = 1.0 if owner is None else float(owner.embed_scale)  # type: ignore[arg-type]
        scale = float(mode[1:]) if mode.startswith("x") else scale
        hook = Hook(names, self.callers, fixed=mode == "seen", scale=scale)
        if mode in ("in", "seen"):
            return module.register_forward_pre_hook(hook.before, with_kwargs=True)
        return module.register_forward_hook(hook.after)

    def _places(self) -> tuple[dict[tuple[nn.Module, str], list[list[str]]], Callers]:
        """Find the modules with a hook, and those that call the attention function."""
        wanted: dict[tuple[nn.Module, str], list[list[str]]] = {}
        callers: dict[nn.Module, tuple[str, ...]] = {}
        for name, stack in self.stacks.items():
            _collect(wanted, callers, self._base, name, stack, self._config)
        if not self.stacks and self.ours:
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


def _collect(
    wanted: dict[tuple[nn.Module, str], list[list[str]]],
    callers: dict[nn.Module, tuple[str, ...]],
    base: nn.Module,
    part: str,
    stack: StackPlaces,
    config: object,
) -> None:
    """Add the places of one stack, in the order of computation."""
    side = "src" if part == "encoder" else "tgt"
    blocks = blocks_of(base, stack, config)
    ends = {f"{side}.embed": stack.embed, f"{side}.segment": stack.segment, f"{side}.position": stack.position}
    for name, place in ends.items():
        if place is not None:
            _add(wanted, base, place, name)
    _add(wanted, blocks[0], ":in", f"{side}.input")
    inner = places(stack, layout_of(stack, config))
    attentions = {"self_attn": stack.self_attn, "cross_attn": stack.cross_attn}
    for layer, block in enumerate(blocks):
        turn = blocks[:layer].count(block)
        for name, place in inner.items():
            _add(wanted, block, place, f"{part}.{layer}.{name}", turn=turn)
        for kind, path in attentions.items():
            if path is not None:
                caller = block.get_submodule(path)
                callers[caller] = (*callers.get(caller, ()), f"{part}.{layer}.{kind}")
    last = blocks[-1] if stack.out is None else base
    _add(wanted, last, stack.out or "", f"{part}.out", turn=0 if stack.out else turn)


def _add(
    wanted: dict[tuple[nn.Module, str], list[list[str]]], root: nn.Module, place: str, name: str, *, turn: int = 0
) -> None:
    """Add a name of the value at a place; ``turn``: how many earlier layers use the same block."""
    paths, _, mode = place.partition(":")
    present = [path for path in paths.split("|") if _has(root, path)]
    if not present:
        return  # some variants of a family lack it
    module = root.get_submodule(present[0])
    rows = wanted.setdefault((module, mode), [[]])
    while len(rows) <= turn:
        rows.append([])
    rows[turn].append(name)


def _has(root: nn.Module, path: str) -> bool:
    try:
        root.get_submodule(path)
    except AttributeError:
        return False
    return True


def blocks_of(base: nn.Module, stack: StackPlaces, config: object) -> list[nn.Module]:
    """The block of each layer; ALBERT reuses its blocks."""
    children: Iterable[nn.Module] = base.get_submodule(stack.blocks).children()
    blocks = list(children)
    if not stack.repeated:
        return blocks
    depth = int(config.num_hidden_layers)  # type: ignore[attr-defined]
    return [blocks[layer * len(blocks) // depth] for layer in range(depth)]
