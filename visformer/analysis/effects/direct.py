"""Direct attribution: a logit of a pre-norm model as a sum over the parts that write into the residual stream.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Residual stream"; Wang et al. 2023,
"Interpretability in the Wild", section 3 (direct effects, with the last norm's scale held fixed).
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.effects.lens import FinalNorm, unembedding
from visformer.analysis.needs import tolerance
from visformer.errors import N_, TraceError, VisformerError

if TYPE_CHECKING:
    import pandas as pd

    from visformer.trace import Trace

DIRECT_NEEDS = (
    "tgt.input",
    "decoder.*.heads",
    "decoder.*.ffn.out",
    "decoder.*.resid_post",
    "decoder.out",
    "logits",
    "decoder.*.w_o",
    "decoder.norm.*",
    "output.*",
)
"""What a Trace has to record for :func:`direct_attribution`; and "decoder.*.b_o" where ``model.available`` has it."""


def direct_attribution(trace: "Trace", row: int, token: int | None = None) -> "pd.DataFrame":
    """Split the logit of a token at a row into what each part of the decoder writes there.

    The scale of the last norm is held fixed at what it is. The number is the part's direct path alone: what later
    layers make of its output counts as theirs.

    Args:
        trace: of a pre-norm model; records ``DIRECT_NEEDS``, and "decoder.*.b_o" if its W_O has biases.
        row: from 0.
        token: an id of the vocabulary; None: what the row predicts.

    Returns:
        One row a part: part ("embedding", "head", "ffn", "bias" of W_O, "norm" for the last norm's summand, "output"
        for the bias of the logits, "residue"), stack, layer and head (from 0, -1 without one), logit (its summand).
        They sum to the model's logit; the residue is what rounding leaves of it, in float32 below 1e-3.

    Raises:
        VisformerError: the model is not pre-norm, or there is no such row or token.
        MissingTensor: the Trace does not hold what is needed.
        TraceError: the parts do not sum to the residual stream: the model adds something else to it.
    """
    import pandas as pd

    _require_pre_norm(trace)
    logits = trace["logits"].value
    token = trace.meta["ids"]["next"][row] if token is None and 0 <= row < len(logits) else token
    for name, index, size in (("row", row, len(logits)), ("token", token, logits.shape[1])):
        if index is None or not 0 <= index < size:
            raise VisformerError(N_("{name}={index} is not in 0 to {last}."), name=name, index=index, last=size - 1)
    parts = _parts(trace, row)
    last = trace[f"decoder.{_layers(trace)[-1]}.resid_post"].value[row].astype(np.float64)
    rest = last - np.sum([vector for _, vector in parts], axis=0)
    if abs(rest).max() > tolerance(trace, 1e-3, roundings=len(parts)) * abs(last).max():
        raise TraceError(N_("The parts do not sum to the residual stream: this model adds something else to it."))
    norm = FinalNorm.of(trace)
    w, b = unembedding(trace)
    column = w[:, token]
    scale = np.ones(1) if norm.gamma is None else norm.gamma / norm.deviation(last)
    rows = [(*label, float((norm.centre(vector) * scale) @ column)) for label, vector in parts]
    rows.append(("norm", "decoder", -1, -1, float((np.zeros(len(column)) + norm.beta) @ column)))
    rows.append(("output", "decoder", -1, -1, float(b if isinstance(b, float) else b[token])))
    residue = float(logits[row, token]) - sum(each[-1] for each in rows)
    rows.append(("residue", "decoder", -1, -1, residue))
    return pd.DataFrame(rows, columns=["part", "stack", "layer", "head", "logit"])


def _parts(trace: "Trace", row: int) -> list[tuple[tuple[str, str, int, int], NDArray[np.float64]]]:
    """Everything that is added to the residual stream at a row, in order, each (d_model,)."""
    parts = [(("embedding", "decoder", -1, -1), trace["tgt.input"].value[row].astype(np.float64))]
    for layer in _layers(trace):
        for kind in ("self_attn", "cross_attn"):
            path = f"decoder.{layer}.{kind}"
            if f"{path}.heads" not in trace:
                continue
            heads = trace[f"{path}.heads"].value[:, row].astype(np.float64)  # (head, d_v)
            w_o = trace.params[f"{path}.w_o"].value.astype(np.float64).reshape(*heads.shape, -1)  # (head, d_v, d_model)
            parts += [
                (("head", f"decoder.{kind}", layer, i), each @ w)
                for i, (each, w) in enumerate(zip(heads, w_o, strict=True))
            ]
            if f"{path}.b_o" in trace.params:
                parts.append(
                    (("bias", f"decoder.{kind}", layer, -1), trace.params[f"{path}.b_o"].value.astype(np.float64))
                )
        parts.append((("ffn", "decoder", layer, -1), trace[f"decoder.{layer}.ffn.out"].value[row].astype(np.float64)))
    return parts


def _layers(trace: "Trace") -> range:
    return range(trace.blocks.decoder.n_layers) if trace.blocks and trace.blocks.decoder else range(0)


def _require_pre_norm(trace: "Trace") -> None:
    decoder = trace.blocks.decoder if trace.blocks else None
    if decoder is None:
        raise VisformerError(N_("The Trace tells nothing of a decoder, so no logit can be split."))
    if decoder.norm != "pre":
        raise VisformerError(
            N_(
                "This model does not add its parts to one residual stream (its norms: {norm}): a norm after each sum "
                "rescales "
                "all that came before, so no path adds linearly, and a logit is not a sum over heads."
            ),
            norm=decoder.norm,
        )
