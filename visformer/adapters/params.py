"""The weights that a trace used, under the paper's names and in its convention: y = x W + b, so W is (in, out)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from visformer.model.kinds import Model
from visformer.model.transformer import Transformer
from visformer.trace import TracedTensor
from visformer.trace.names import Axis

D_MODEL, _D_FF, VOCAB = Axis("d_model"), Axis("d_ff"), Axis("vocab")


@dataclass(frozen=True)
class Weight:
    """Where a weight is stored."""

    module: Any  # the module that holds it
    part: str  # the name of its parameter, such as "weight" or "bias"
    axes: tuple[Axis, ...]  # as in a Trace: nn.Linear stores the transpose
    columns: Tensor | None = None  # indices of the module's outputs; None: all
    plus: float = 0.0  # added to what is stored: a norm may store its factor minus 1

    @property
    def nbytes(self) -> int:
        """Bytes of what :meth:`read` returns."""
        full = self._full()
        return 4 * int(full.numel() if self.columns is None else full.numel() // full.shape[-1] * len(self.columns))

    def _full(self) -> Any:
        """All columns, (in, out) or (out,)."""
        weight = getattr(self.module, self.part)
        if self.part.endswith("logits_bias"):
            return weight[0]  # BART's is (1, vocab)
        return weight.T if isinstance(self.module, nn.Linear) and self.part == "weight" else weight

    def read(self, name: str, ids: Mapping[str, Sequence[int]] | None = None) -> TracedTensor:
        """Return it as float32; for embeddings only the rows of ``ids``, before the factor sqrt(d_model)."""
        value = self._full()
        if self.columns is not None:
            value = value[..., self.columns.to(value.device)]
        if ids is not None and self.axes[0].side is not None:
            value = value[list(ids[self.axes[0].side])]  # (token, d_model)
        value = value.detach().float()
        value = value + self.plus if self.plus else value
        array: np.ndarray = value.cpu().numpy().copy()  # a trace outlives changes to the model
        return TracedTensor(name, array, self.axes)


def weights_of(model: Model) -> dict[str, Weight]:
    """Return every weight by name: ``decoder.0.cross_attn.w_q``, ``encoder.1.norm_ffn.gamma``, ``src.embedding``.

    Embeddings only where a Trace has them times sqrt(d_model); GPT's are not scaled.
    """
    weights: dict[str, Weight] = {}
    stacks: dict[str, Any] = {"decoder": model.decoder}
    if isinstance(model, Transformer):
        stacks = {"encoder": model.encoder, **stacks}
        for side, table in (("src", model.src_embedding), ("tgt", model.tgt_embedding)):
            weights[f"{side}.embedding"] = Weight(table.token, "weight", (Axis("token", side), D_MODEL))
    weights["output.w"] = Weight(model.output, "weight", (D_MODEL, VOCAB))
    for name, stack in stacks.items():
        for layer, block in enumerate(stack.layers):
            parts = {"self_attn": "norm_self", "cross_attn": "norm_cross", "ffn": "norm_ffn"}
            for part, norm in parts.items():
                if hasattr(block, part):
                    weights.update(_linear_maps(f"{name}.{layer}.{part}", getattr(block, part)))
                    weights |= _gamma_beta(f"{name}.{layer}.{norm}", getattr(block, norm))
        if model.config.has_final_norm:
            weights |= _gamma_beta(f"{name}.norm", stack.norm)
    return weights


def _linear_maps(path: str, sublayer: nn.Module) -> Iterator[tuple[str, Weight]]:
    for w, linear in sublayer.named_children():
        inner = (_D_FF if w == "w_2" else D_MODEL, _D_FF if w == "w_1" else D_MODEL)
        yield f"{path}.{w}", Weight(linear, "weight", inner)
        yield f"{path}.b{w[1:]}", Weight(linear, "bias", inner[1:])


def _gamma_beta(path: str, norm: nn.Module) -> dict[str, Weight]:
    parts = {"gamma": "weight", "beta": "bias"}
    return {f"{path}.{name}": Weight(norm, part, (D_MODEL,)) for name, part in parts.items()}
