"""Find where a model of any family computes its values: from one pass over a short text, held against arithmetic.

While our attention function stands in, each call of it says which module attends, and hooks note what every module
reads and returns. A place gets a name only if the numbers show what it is: the stream plus the output of a sublayer is
what a later module reads; heads times W_O is what a module returns. What is not shown has no name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor, nn

from visformer.adapters.huggingface.run import watching_blocks
from visformer.adapters.huggingface.taps import given_of, noting, value_of
from visformer.adapters.huggingface.weights import Map, StoredWeight, columns_in, gamma_beta, is_linear, is_rotated
from visformer.adapters.huggingface.wiring import Found
from visformer.trace.blocks import Norm
from visformer.trace.names import D_MODEL, VOCAB, Axis

_HEADS = Axis("d_heads")
_ALIKE = 1e-3
_KINDS = {"self_attn": "self", "cross_attn": "cross"}


_NORMS: Mapping[tuple[bool, bool], Norm] = {
    (True, False): "pre", (True, True): "both", (False, True): "output", (False, False): "unknown",
}  # fmt: skip
"""Whether a sublayer's input is normalised, and its output, to what that is called."""


@dataclass(eq=False)
class _Value:
    """What a module read or returned in one call."""

    module: nn.Module
    mode: str  # "in" or ""
    turn: int  # which call of the module it was
    at: int  # its place in the order of computation
    tensor: Tensor
    print: float = 0.0  # a linear function of it: sums are found by theirs before they are compared
    blur: float = 0.0  # by how much the print of a sum may be off, for each summand


@dataclass(eq=False)
class _Call:
    """One call of our attention function."""

    module: nn.Module
    turn: int
    at: int
    query: Tensor
    key: Tensor
    value: Tensor
    heads: Tensor  # (batch, query, head, d_v)


@dataclass(eq=False)
class _Run:
    """One call of a block, or of the whole model around them."""

    index: int
    block: nn.Module | None
    among: nn.Module | None  # the list that holds the block
    values: list[_Value] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)


class Inspection:
    """What one part of a model, "encoder" or "decoder", computes in a pass.

    Args:
        model: the outermost module.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.paths = {module: name for name, module in model.named_modules()}
        self._among = {block: blocks for blocks in model.modules() if isinstance(blocks, nn.ModuleList)
                       for block in blocks}  # fmt: skip
        self.outside = _Run(-1, None, None)
        self.runs: list[_Run] = []
        self.turns: dict[nn.Module, int] = {}
        self._open: list[_Run] = [self.outside]
        self._clock = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what is computed inside the block."""
        hooks = []
        with watching_blocks(self.model) as watch:
            for module in self.model.modules():
                hooks.append(module.register_forward_pre_hook(self._before(watch.running), with_kwargs=True))
                hooks.append(module.register_forward_hook(self._after(watch.running), prepend=True))
            try:
                with noting(self._attends):
                    yield
            finally:
                for hook in hooks:
                    hook.remove()

    def _before(self, running: Sequence[tuple[int, int]]) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self.turns[module] = self.turns.get(module, -1) + 1
            if module in self._among and len(running) == 1:
                self._open.append(_Run(running[0][0], module, self._among[module]))
                self.runs.append(self._open[-1])
            self._note(module, "in", given_of(args, kwargs))

        return hook

    def _after(self, running: Sequence[tuple[int, int]]) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            self._note(module, "", value_of(output))
            if module is self._open[-1].block and len(running) == 1:
                self._open.pop()

        return hook

    def _note(self, module: nn.Module, mode: str, tensor: Any) -> None:
        if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.dim() in (2, 3, 4):
            value = _Value(module, mode, self.turns[module], self._tick(), tensor.detach().clone())
            self._open[-1].values.append(value)

    def _attends(self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, heads: Tensor) -> None:
        call = _Call(module, self.turns.get(module, 0), self._tick(), query, key, value, heads)
        self._open[-1].calls.append(call)

    @property
    def calls(self) -> bool:
        """Whether our function was called."""
        return any(run.calls for run in (self.outside, *self.runs))

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def found_in(parts: Iterable[tuple[Inspection, str, int, int]]) -> Found:
    """Find the values of a model.

    Args:
        parts: what each computed, its name, and the number of its tokens and of those of the encoder that it reads.

    Returns:
        What was found; nothing if an attention is none from tokens to tokens.
    """
    found = Found()
    with torch.inference_mode():
        whole = all(_Stack(found, *part).find() for part in parts)
    return found if whole else Found()


class _Stack:
    """The search in one stack."""

    def __init__(self, found: Found, seen: Inspection, part: str, n_tokens: int, n_memory: int) -> None:
        self._found, self._seen, self._part = found, seen, part
        self._side = "src" if part == "encoder" else "tgt"
        self._sizes = {"self_attn": (n_tokens, n_tokens), "cross_attn": (n_tokens, n_memory)}

    def find(self) -> bool:
        """Name what is found; whether each attention is one over the tokens."""
        layers = self._layers()
        if not layers:
            return False
        names: dict[nn.Module, dict[int, str]] = {}
        for _, layer, calls in layers:
            for kind, call in calls.items():
                names.setdefault(call.module, {})[call.turn] = f"{self._part}.{layer}.{kind}"
        for module, turns in names.items():
            path = self._seen.paths[module]
            if {*turns} != {*range(len(turns))} or path in self._found.callers:
                return False
            self._found.callers[path] = tuple(turns[turn] for turn in range(len(turns)))
        blocks = [_Block(self, run, f"{self._part}.{layer}", calls) for run, layer, calls in layers if run.block]
        if self._is_stream([block.run for block in blocks]):
            for block in blocks:
                block.find_ends()
            kinds = [block.find_stream() for block in blocks if block.calls]
            # The first may lack a norm, where the embeddings have one (ModernBERT).
            norm, *others = dict.fromkeys(kinds[1:] or kinds)
            if not others and norm is not None:
                self._found.norms[self._part] = norm
            self._find_ends([block.run for block in blocks])
        for block in blocks:
            block.find_weights()
        return True

    def _layers(self) -> list[tuple[_Run, int, dict[str, _Call]]]:
        """Runs of blocks with their layer and their attention by kind; none if one attends to other than tokens."""
        runs = [run for run in (self._seen.outside, *self._seen.runs) if run.calls]
        if not runs:
            return []
        kinds: list[tuple[_Run, str, _Call]] = []
        for run in runs:
            for call in run.calls:
                size = (call.query.shape[2], call.key.shape[2])
                kind = next((kind for kind, wanted in self._sizes.items() if size == wanted), None)
                if kind is None or len(call.query) != 1:
                    return []
                kinds.append((run, kind, call))
        by_index = [(run.index, kind) for run, kind, _ in kinds]
        lists = {run.among for run in runs}
        if len(lists) == 1 and -1 not in (index for index, _ in by_index) and len({*by_index}) == len(by_index):
            among = runs[0].among
            return [(run, run.index, {kind: call for one, kind, call in kinds if one is run})
                    for run in self._seen.runs if run.among is among]  # fmt: skip
        numbers: dict[str, int] = {}
        layers: dict[int, tuple[_Run, dict[str, _Call]]] = {}
        alone = len({run for run, kind, _ in kinds if kind == "self_attn"}) == sum(
            k == "self_attn" for _, k, _ in kinds
        )
        for run, kind, call in kinds:  # blocks that are used again: each pass through one is a layer
            layer = numbers[kind] = numbers.get(kind, -1) + 1
            own = run if alone else self._seen.outside
            layers.setdefault(layer, (own, {}))[1][kind] = call
        return [(run, layer, calls) for layer, (run, calls) in layers.items()]

    def _is_stream(self, runs: Sequence[_Run]) -> bool:
        """Whether each block continues with what the one before it returned."""
        ends = [(_of(run, run.block, "in"), _of(run, run.block, "")) for run in runs]
        if not ends or any(x is None or y is None or x.tensor.shape != y.tensor.shape or x.tensor.dim() != 3
                           for x, y in ends):  # fmt: skip
            return False
        return all(torch.equal(y.tensor, x.tensor) for (_, y), (x, _) in pairwise(ends))  # type: ignore[union-attr]

    def name(self, value: _Value, *names: str, mode: str | None = None) -> None:
        """Give names to what a module reads or returns in one of its calls."""
        key = (self._seen.paths[value.module], value.mode if mode is None else mode)
        rows = self._found.values.setdefault(key, [])
        while len(rows) <= self._seen.turns[value.module]:
            rows.append([])
        rows[value.turn] += names

    def norm(self, name: str, value: _Value) -> None:
        """Name the weights of a norm, if what it returned is what it read, shifted and scaled, times and plus them."""
        run = next(run for run in (self._seen.outside, *self._seen.runs) if value in run.values)
        given = _of(run, value.module, "in", turn=value.turn)
        if given is None or not _is_norm_of(given.tensor, value):
            return
        for one, weight in gamma_beta(name, value.module).items():
            self._found.weights[one] = self._seen.paths[value.module], weight

    def weigh(self, name: str, module: nn.Module, axes: tuple[Axis, ...], columns: Tensor | None = None) -> None:
        """Name W and b of a module."""
        path = self._seen.paths[module]
        self._found.weights[name] = path, Map(module, "weight", axes, columns)
        if getattr(module, "bias", None) is not None:
            self._found.weights[_bias_of(name)] = path, Map(module, "bias", axes[1:], columns)

    def weigh_bias(self, name: str, module: nn.Module, bias: str) -> None:
        """Name a parameter that is added to what a matrix made."""
        self._found.weights[_bias_of(name)] = self._seen.paths[module], StoredWeight(module, bias, (_HEADS,))

    def see_rotation(self, before: Tensor | None, after: Tensor) -> None:
        """Note whether queries or keys were rotated by their position, not only multiplied by a number."""
        self._found.rotates |= before is not None and not _is_along(after, before)

    def path(self, module: nn.Module) -> str:
        """Return the path of a module in the model."""
        return str(self._seen.paths[module])

    def _find_ends(self, runs: Sequence[_Run]) -> None:
        """Find the embeddings, what is added for the position, and the norm after the last block."""
        first, last = _of(runs[0], runs[0].block, "in"), _of(runs[-1], runs[-1].block, "")
        assert first is not None and last is not None
        self.name(first, f"{self._side}.input")
        self._find_embeddings(first)
        outside = self._seen.outside.values
        norm = next((value for value in outside if value.mode == "in" and value.at > last.at and torch.equal(
            value.tensor, last.tensor) and _is_norm(value.module)), None)  # fmt: skip
        out = None if norm is None else _of(self._seen.outside, norm.module, "", turn=norm.turn)
        self.name(last if out is None else out, f"{self._part}.out")
        if out is not None:
            self._found.ends.add(self._part)
            self.norm(f"{self._part}.norm", out)
        if self._part == "decoder":
            self._find_output((last if out is None else out).tensor)

    def _find_embeddings(self, first: _Value) -> None:
        """Find what the first block reads: the embeddings, and what is added for position and segment."""
        before = [value for value in self._seen.outside.values if value.at < first.at]
        made = [value for value in before if value.mode == ""]
        try:
            table = self._seen.model.get_input_embeddings()  # type: ignore[operator]
        except NotImplementedError:
            return
        embed = next((value for value in made if _same_weight(value.module, table)), None)
        if embed is None:
            return
        totals = [first.tensor, *(value.tensor for value in before if value.mode == "in" and _is_norm(value.module))]
        made = [value for value in made if value.tensor.shape[-2:] == embed.tensor.shape[-2:]]
        others = [value for value in made if value.at != embed.at and isinstance(value.module, nn.Embedding)]
        others += [value for value in made if value not in others and value is not embed]
        more = [(), *((one,) for one in others), *((a, b) for a in others for b in others if a.at < b.at)]
        bases = [*self._bases(embed, before)]
        for total, (base, mode), added in product(totals, bases, more):
            if _same(sum((value.tensor for value in added), base), total):
                self.name(embed, f"{self._side}.embed", mode=mode)
                for value in added:  # the probe has one segment: what it adds is the same for each token
                    is_segment = len(added) > 1 and bool((value.tensor == value.tensor[..., :1, :]).all())
                    self.name(value, f"{self._side}.{'segment' if is_segment else 'position'}")
                return

    def _bases(self, embed: _Value, before: Sequence[_Value]) -> Iterator[tuple[Tensor, str | None]]:
        """What the embeddings are when the position is added, scaled or normalised, and the mode that shows them."""
        for scale in (1.0, float(embed.tensor.shape[-1]) ** 0.5):
            mode, scaled = None if scale == 1.0 else f"x{scale}", embed.tensor * scale
            yield scaled, mode
            for value in before:
                if value.mode == "in" and _is_norm(value.module) and _equal(value.tensor, scaled):
                    normed = _of(self._seen.outside, value.module, "", turn=value.turn)
                    if normed is not None:
                        yield normed.tensor, mode

    def _find_output(self, end: Tensor) -> None:
        """Find the matrix that makes the logits."""
        head = self._seen.model.get_output_embeddings()  # type: ignore[operator]
        given, made = (_of(self._seen.outside, head, mode) for mode in ("in", ""))
        total = _of(self._seen.outside, self._seen.model, "")
        if given is None or made is None or total is None or not is_linear(head) or not _is_along(given.tensor, end):
            return
        bias = getattr(self._seen.model, "final_logits_bias", None)
        moved = made.tensor if bias is None else made.tensor + bias
        rows = total.tensor.gather(-1, moved.argsort(dim=-1)).float()  # a factor or a cap keeps the order
        if bool((rows.diff(dim=-1) >= -_ALIKE * rows.abs().amax(dim=-1, keepdim=True)).all()):
            self.weigh("output.w", head, (D_MODEL, VOCAB))
            if bias is not None:
                self._found.weights["output.b"] = "", StoredWeight(head, "final_logits_bias", (VOCAB,))


class _Block:
    """The search in one block."""

    def __init__(self, stack: _Stack, run: _Run, name: str, calls: Mapping[str, _Call]) -> None:
        self._stack, self.run, self._name, self.calls = stack, run, name, calls

    def find_weights(self) -> None:
        """Find the matrices of attention, and what W_O makes of the heads."""
        linear = [value for value in self.run.values if value.tensor.dim() == 3 and is_linear(value.module)]
        for kind, call in self.calls.items():
            path = f"{self._name}.{kind}"
            made = [
                value for value in linear if value.mode == "" and value.at < call.at and self._reads_stream(value, call)
            ]
            wanted = {"q": call.query, "k": call.key, "v": call.value}
            for letter in wanted:
                for value in made:
                    if self._weighs(f"{path}.w_{letter}", value, call, self._before_norms(wanted, letter, call, value)):
                        break
            if (out := self._projected(call)) is not None:
                self._stack.weigh(f"{path}.w_o", out.module, (_HEADS, D_MODEL))

    def _weighs(self, name: str, made: _Value, call: _Call, wanted: Mapping[str, Tensor]) -> bool:
        """Name the matrix that made queries, keys or values, if it did, and a bias that the attention itself has."""
        letter = name[-1]
        biases = [bias for bias, weight in call.module.named_parameters(recurse=False)
                  if weight.shape == (wanted[letter].shape[1] * wanted[letter].shape[3],)]  # fmt: skip
        for bias in (None, *biases):
            added = 0.0 if bias is None else call.module.get_parameter(bias)
            columns = columns_in(made.tensor, letter, wanted, added)
            if columns is not None:
                if letter != "v":
                    self._stack.see_rotation(
                        self._by_head(made.tensor[..., columns] + added, wanted[letter]), wanted[letter]
                    )
                own = None if len(columns) == made.tensor.shape[-1] else columns
                self._stack.weigh(name, made.module, (D_MODEL, _HEADS), own)
                if bias is not None:
                    self._stack.weigh_bias(name, call.module, bias)
                return True
        return False

    def _reads_stream(self, made: _Value, call: _Call) -> bool:
        """Whether a matrix inside an attention reads what the attention does, not a narrower vector made in it."""
        given, x = (
            _of(self.run, module, "in", turn=turn)
            for module, turn in ((made.module, made.turn), (self.run.block, None))
        )
        if given is None or x is None or given.tensor.shape[-1] != x.tensor.shape[-1]:
            return False
        within = self._stack.path(call.module)
        return not any(
            value.mode == "" and value.at < given.at and _equal(value.tensor, given.tensor)
            and value.module is not call.module and _is_in(self._stack.path(value.module), within)
            and not self._passes_on(value) for value in self.run.values
        )  # fmt: skip

    def _passes_on(self, made: _Value) -> bool:
        """Whether a module returned what it read (the dropout of an adapter)."""
        given = _of(self.run, made.module, "in", turn=made.turn)
        return given is not None and _equal(given.tensor, made.tensor)

    def _before_norms(
        self, wanted: Mapping[str, Tensor], letter: str, call: _Call, made: _Value
    ) -> Mapping[str, Tensor]:
        """What attention was called with, or, for queries and keys that are normalised first, what the norm read."""
        if letter == "v":
            return wanted
        for value in self.run.values:
            if value.mode == "in" and made.at < value.at < call.at and _is_norm(value.module):
                after = self._returned(value)
                if after is None or after.tensor.numel() != wanted[letter].numel():
                    continue
                read, normed = (self._by_head(each.tensor, wanted[letter]) for each in (value, after))
                if read is not None and normed is not None and is_rotated(normed[0].float(), wanted[letter][0].float()):
                    self._stack.see_rotation(normed, wanted[letter])
                    return {**wanted, letter: read}
        return wanted

    @staticmethod
    def _by_head(tensor: Tensor, like: Tensor) -> Tensor | None:
        """A tensor (1, token, head * d), (1, token, head, d) or (1, head, token, d) as the last of them."""
        _, heads, n, width = like.shape
        if tensor.dim() == 3 and tensor.shape[1] == n:
            return tensor.reshape(1, n, heads, width).transpose(1, 2)
        if tensor.shape == like.shape:
            return tensor
        return tensor.transpose(1, 2) if tensor.shape == (1, n, heads, width) else None

    def _projected(self, call: _Call) -> _Value | None:
        """What a module makes of all heads at once."""
        flat = call.heads.flatten(2)
        for value in self.run.values:
            if value.at > call.at and value.mode == "in" and is_linear(value.module) and _equal(value.tensor, flat):
                return self._returned(value)
        return None

    def _returned(self, given: _Value) -> _Value | None:
        return _of(self.run, given.module, "", turn=given.turn)

    def find_ends(self) -> None:
        """Name what enters the block and what leaves it."""
        for mode, name in (("in", "resid_pre"), ("", "resid_post")):
            value = _of(self.run, self.run.block, mode)
            assert value is not None
            self._stack.name(value, f"{self._name}.{name}")

    def find_stream(self) -> tuple[Norm, bool] | None:
        """Name the residual stream and what is added to it; return where the block normalises, if that was found."""
        run, stack, name = self.run, self._stack, self._name
        x, y = _of(run, run.block, "in"), _of(run, run.block, "")
        assert x is not None and y is not None
        drawn = torch.randn(x.tensor.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        for value in run.values:  # OPT has one axis for batch and tokens
            if value.tensor.shape == x.tensor.shape[1:]:
                value.tensor = value.tensor[None]
        values = [value for value in run.values if value.tensor.shape == x.tensor.shape]
        for value in values:
            value.print = float((value.tensor.double().cpu() * drawn).sum())
            value.blur = float(_rounding(value.tensor).sum()) * x.tensor.shape[-1] * 5  # standard deviations of drawn
        sublayers = [kind for kind in _KINDS if kind in self.calls]
        self._values, self._y = values, y
        for kind in sublayers:
            projected = self._projected(self.calls[kind])
            within = stack.path(self.calls[kind].module)
            own = [value for value in values if value.mode == "" and value.at > self.calls[kind].at and _is_in(
                stack.path(value.module), within)]  # fmt: skip
            out = projected if projected in values else None
            out = out or next((each for each in own if self._is_added(each)), None)
            if out is not None:
                stack.name(out, f"{name}.{kind}.out")
        starts = [self.calls[kind].at for kind in sublayers]
        steps = self._chain(x, x.at, [*starts, max(starts)])
        if steps is not None:
            return self._name_steps(x, sublayers, steps)
        return self._name_parallel(x) if sublayers == ["self_attn"] else None

    def _name_parallel(self, x: _Value) -> tuple[Norm, bool] | None:
        """Name what attention and a network that read the same stream add to it, if both do."""
        after = [value for value in self._values if value.mode == "" and value.module is not self.run.block]
        attention = [value for value in after if value.at > self.calls["self_attn"].at and _is_in(
            self._stack.path(value.module), self._stack.path(self.calls["self_attn"].module))]  # fmt: skip
        for out in attention:
            both = _Value(x.module, "", 0, out.at, x.tensor + out.tensor, x.print + out.print, x.blur + out.blur)
            for more in after:
                inside = _is_in(self._stack.path(more.module), self._stack.path(self.calls["self_attn"].module))
                if not inside and self._adds(both, more, self._y):
                    self._name_network(more, after=False)
                    norm = self._norm_of(x, out)
                    if norm is None:
                        return None
                    self._stack.name(norm, f"{self._name}.norm_self")
                    self._stack.norm(f"{self._name}.norm_self", norm)
                    other = self._norm_of(x, more, but=norm.module)
                    if other is not None:
                        self._stack.name(other, f"{self._name}.norm_ffn")
                        self._stack.norm(f"{self._name}.norm_ffn", other)
                    return "pre", True
        return None

    def _is_added(self, value: _Value) -> bool:
        """Whether what a module returned is added to what the block read."""
        x = _of(self.run, self.run.block, "in")
        assert x is not None
        return any(self._adds(x, value, total) for total in self._values if total.at > value.at)

    def _adds(self, stream: _Value, more: _Value, total: _Value) -> bool:
        if abs(stream.print + more.print - total.print) > stream.blur + more.blur:
            return False
        tolerance = _rounding(stream.tensor) + _rounding(more.tensor)
        rest = total.tensor - stream.tensor
        return bool(((rest - more.tensor).abs() <= tolerance).all()) and bool((rest.abs() > tolerance).any())

    def _chain(self, stream: _Value, at: int, starts: list[int]) -> list[tuple[_Value, _Value, _Value | None]] | None:
        """Follow the stream: what each sublayer adds to it, the sum, and the norm of the sum if it continues there."""
        if not starts:
            return [] if torch.equal(stream.tensor, self._y.tensor) else None
        end = starts[1] if len(starts) > 2 else self._y.at
        totals = [value for value in self._values if at < value.at <= end and (value.mode == "in" or value is self._y)]
        for total in totals:
            for more in self._values:
                if more.mode or not max(at, starts[0]) < more.at < total.at or not self._adds(stream, more, total):
                    continue
                norms = [self._returned(value) for value in self._values if value.mode == "in" and value.at >= total.at
                         and torch.equal(value.tensor, total.tensor) and _is_norm(value.module)]  # fmt: skip
                for norm in (None, *norms):
                    follows = total if norm is None else norm
                    rest = self._chain(follows, follows.at if norm else total.at, starts[1:])
                    if rest is not None:
                        return [(more, total, norm), *rest]
        return None

    def _name_steps(
        self, x: _Value, sublayers: Sequence[str], steps: Sequence[tuple[_Value, _Value, _Value | None]]
    ) -> tuple[Norm, bool] | None:
        """Name what the steps through a block are, and tell where it normalises."""
        name, stream = self._name, x
        kinds: set[Norm] = set()
        for kind, (more, total, norm) in zip([*sublayers, "ffn"], steps, strict=True):
            short = _KINDS.get(kind, kind)
            sum_name = f"{name}.{'attn' if short == 'self' else short}_sum"
            follows = () if kind == "ffn" else (f"{name}.resid_{short}",)
            before = self._norm_of(stream, more)
            after = _is_norm(more.module)
            if norm is not None:
                self._stack.name(total, sum_name)
                self._stack.name(norm, f"{name}.norm_{short}", *follows)
                self._stack.norm(f"{name}.norm_{short}", norm)
            else:
                mode = "seen" if total.mode == "in" else None
                self._stack.name(total, sum_name, *follows, mode=mode)
                if before is not None or after:
                    self._stack.name(before or more, f"{name}.norm_{short}")
                    self._stack.norm(f"{name}.norm_{short}", before or more)
            if kind == "ffn":
                self._name_network(more, after=after)
            kinds.add("post" if norm else _NORMS[before is not None, after])
            stream = norm or total
        return (kinds.pop(), False) if len(kinds) == 1 else None

    def _norm_of(self, stream: _Value, before: _Value, but: nn.Module | None = None) -> _Value | None:
        """The norm of the stream, if a module other than a norm reads it."""
        for value in self._values:
            if value.mode == "in" and value.at < before.at and _is_norm(value.module) and value.module is not but and (
                _equal(value.tensor, stream.tensor) and (out := self._returned(value)) is not None
            ):  # fmt: skip
                return out
        return None

    def _name_network(self, more: _Value, *, after: bool) -> None:
        """Name the output of the feed-forward network, and what its last matrix reads."""
        out: _Value | None = more
        if after:
            given = _of(self.run, more.module, "in", turn=more.turn)
            out = given and next((value for value in self._values if value.mode == "" and value.at < given.at
                                  and torch.equal(value.tensor, given.tensor)), None)  # fmt: skip
        if out is None:
            return
        self._stack.name(out, f"{self._name}.ffn.out")
        hidden = _of(self.run, out.module, "in", turn=out.turn)
        if is_linear(out.module) and hidden is not None:
            self._stack.name(hidden, f"{self._name}.ffn.hidden")


def _bias_of(name: str) -> str:
    """The name of b, of that of W: output.b of output.w, b_q of w_q."""
    path, _, weight = name.rpartition(".")
    return f"{path}.b{weight[1:]}"


def _is_norm_of(given: Tensor, made: _Value) -> bool:
    weights = gamma_beta("norm", made.module)
    if not weights:
        return False
    gamma, beta = (torch.tensor(weights[name].read(name).value) if name in weights else 0.0
                   for name in ("norm.gamma", "norm.beta"))  # fmt: skip
    assert isinstance(gamma, Tensor)
    if gamma.shape != given.shape[-1:]:
        return False
    rows = [
        each - each.mean(dim=-1, keepdim=True)
        for each in (given.cpu().float(), (made.tensor.cpu().float() - beta) / gamma)
    ]
    return bool((torch.cosine_similarity(rows[0], rows[1], dim=-1) > 1 - _ALIKE).all())


def _of(run: _Run, module: nn.Module | None, mode: str, turn: int | None = None) -> _Value | None:
    """What a module read or returned."""
    return next((value for value in run.values if value.module is module and value.mode == mode
                 and turn in (None, value.turn)), None)  # fmt: skip


def _is_along(a: Tensor, b: Tensor) -> bool:
    """Whether each vector is the other's, times the same number."""
    if a.shape != b.shape:
        return False
    factor = (a.float() * b.float()).sum() / (b.float() ** 2).sum()
    return torch.allclose(a.float(), b.float() * factor, rtol=0, atol=_ALIKE * float(a.abs().max()))


def _same_weight(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a.weight is b.weight


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a, b)


def _same(a: Tensor, b: Tensor) -> bool:
    atol = 8 * torch.finfo(b.dtype).eps * float(b.abs().max())
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=atol)


def _rounding(tensor: Tensor) -> Tensor:
    """What adding to it may lose, of each vector (batch, token, 1)."""
    return 4 * torch.finfo(tensor.dtype).eps * tensor.abs().amax(dim=-1, keepdim=True).float()


def _is_in(path: str, within: str) -> bool:
    return path == within or path.startswith(f"{within}.")


def _is_norm(module: nn.Module) -> bool:
    """Whether a module has no matrix: it scales what it reads."""
    return "norm" in type(module).__name__.lower() and all(weight.dim() < 2 for weight in module.parameters())
