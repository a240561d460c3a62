"""What the residual stream says in logits: after each layer (the logit lens), and of each part that writes into it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.answers import Answer, asked
from visformer.analysis.needs import Floats, tolerance
from visformer.errors import N_, TraceError, VisformerError

if TYPE_CHECKING:
    import pandas as pd

    from visformer.trace import Trace


LENS_NEEDS = ("decoder.*.resid_post", "decoder.out", "logits", "output.*")
"""What a Trace has to record for :func:`logit_lens`; and ("decoder.norm.*",) where ``model.available`` has it."""

_FIT = 1e-3
"""Largest difference, relative to the largest logit, between the last layer's scores and the model's logits."""


@dataclass(frozen=True)
class Lens:
    """Intermediate scores, not probabilities of anything the model says.

    Args:
        logits: (layer, row, vocab) float64: scores of the residual stream that leaves each layer; the last layer's are
            the model's own logits.
        answer: (layer, row) float64: the score of what was asked for; None: nothing was.
    """

    logits: Floats
    answer: Floats | None = None

    @property
    def probabilities(self) -> Floats:
        """(layer, row, vocab): softmax of the scores; only the last layer's are the model's."""
        shifted = np.exp(self.logits - self.logits.max(axis=-1, keepdims=True))
        total: Floats = shifted / shifted.sum(axis=-1, keepdims=True)
        return total


def logit_lens(trace: "Trace", *, answer: Answer | None = None) -> Lens:
    """Apply the last norm and the unembedding to the residual stream after each layer of the decoder.

    The scores say what could be read there by the last layer's rules, not what the model has decided by then: a
    layer may keep what it knows in directions that only later layers turn into logits.

    Args:
        trace: records ``LENS_NEEDS``, and "decoder.norm.*" if the model has a last norm.
        answer: an :data:`visformer.analysis.Answer`, by id or as displayed in the last row.

    Returns:
        The scores of each layer and row, and those of the answer.

    Raises:
        VisformerError: the logits are of labels.
        MissingTensor: the Trace does not hold what is needed.
        TraceError: the last layer's scores are not the model's logits: it does something else in between.
    """
    _require_tokens(trace)
    streams = [trace[f"decoder.{layer}.resid_post"].value for layer in _depth(trace)]
    norm = FinalNorm.of(trace)
    w, b = unembedding(trace)
    logits = np.stack([norm(x.astype(np.float64)) @ w + b for x in streams])
    given = trace["logits"].value
    worst = float(abs(logits[-1] - given).max())
    if worst > tolerance(trace, _FIT) * float(abs(given).max()):
        raise TraceError(
            N_(
                "The last norm and the unembedding give logits that differ by {worst:.3g} from the model's own: it "
                "does something else in between, such as a cap."
            ),
            worst=worst,
        )
    return Lens(logits, None if answer is None else asked(trace, answer).each(logits))


@dataclass(frozen=True)
class FinalNorm:
    """The norm after the last layer: LayerNorm, RMSNorm, or none.

    Args:
        gamma: (d_model,) factor; None: there is no norm.
        beta: (d_model,) summand, 0 without one.
        centred: whether the mean is subtracted: LayerNorm.
        eps: added to the variance.
    """

    gamma: Floats | None
    beta: Floats | float
    centred: bool
    eps: float

    def __call__(self, x: Floats) -> Floats:
        """Normalise (..., d_model)."""
        if self.gamma is None:
            return x
        return self.centre(x) / self.deviation(x) * self.gamma + self.beta

    def centre(self, x: Floats) -> Floats:
        """Subtract the mean over dimensions, if the norm does; linear."""
        centred: Floats = x - x.mean(axis=-1, keepdims=True) if self.centred else x
        return centred

    def deviation(self, x: Floats) -> Floats:
        """What ``x`` is divided by, (..., 1)."""
        deviation: Floats = np.sqrt((self.centre(x) ** 2).mean(axis=-1, keepdims=True) + self.eps)
        return deviation

    @classmethod
    def of(cls, trace: "Trace") -> "FinalNorm":
        """Find the norm between the last layer's stream and ``decoder.out``: a Trace holds its weights, not its kind.

        Raises:
            MissingTensor: the Trace does not hold both.
            TraceError: it is neither LayerNorm nor RMSNorm.
        """
        x, out = (
            trace[name].value.astype(np.float64) for name in (f"decoder.{_depth(trace)[-1]}.resid_post", "decoder.out")
        )
        if np.allclose(x, out, rtol=1e-5, atol=1e-5 * abs(out).max()):
            return cls(None, 0.0, False, 0.0)
        gamma = trace.params["decoder.norm.gamma"].value.astype(np.float64)
        beta = (
            trace.params["decoder.norm.beta"].value.astype(np.float64) if "decoder.norm.beta" in trace.params else 0.0
        )
        known = [cls(gamma, beta, centred, eps) for centred in (True, False) for eps in (1e-5, 1e-6, 1e-12, 1e-8)]
        errors = [float(abs(norm(x) - out).max()) for norm in known]
        best = int(np.argmin(errors))
        if errors[best] > tolerance(trace, _FIT, roundings=2) * float(abs(out).max()):
            raise TraceError(
                N_(
                    "The norm after the last layer is neither LayerNorm nor RMSNorm: it cannot be applied to other "
                    "layers."
                )
            )
        return known[best]


def unembedding(trace: "Trace") -> tuple[Floats, Floats | float]:
    """Return the matrix (d_model, vocab) from ``decoder.out`` to the logits, and its bias (vocab,), 0 without one.

    Raises:
        MissingTensor: the Trace does not hold the matrix.
    """
    bias = trace.params["output.b"].value.astype(np.float64) if "output.b" in trace.params else 0.0
    return trace.params["output.w"].value.astype(np.float64), bias


def _depth(trace: "Trace") -> range:
    """The layers of the decoder."""
    if trace.blocks is not None and trace.blocks.decoder is not None:
        return range(trace.blocks.decoder.n_layers)
    names = [name for name in trace.tensors if name.startswith("decoder.") and name.endswith(".resid_post")]
    return range(max(len(names), 1))


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


def direct_attribution(trace: "Trace", row: int, *, answer: Answer | None = None) -> "pd.DataFrame":
    """Split a logit at a row, or the difference of two, into what each part of the decoder writes there.

    The scale of the last norm is held fixed at what it is. The number is the part's direct path alone: what later
    layers make of its output counts as theirs. Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits";
    of a difference Wang et al. 2023, "Interpretability in the Wild", section 3.1.

    Args:
        trace: of a pre-norm model; records ``DIRECT_NEEDS``, and "decoder.*.b_o" if its W_O has biases.
        row: from 0.
        answer: an :data:`visformer.analysis.Answer`, by id or as displayed; None: the token that the row predicts.

    Returns:
        One row a part: part ("embedding", "head", "ffn", "bias" of W_O, "norm" for the last norm's summand, "output"
        for the bias of the logits, "residue"), stack, layer and head (from 0, -1 without one), logit (its summand).
        They sum to the model's logit, or the difference; the residue is what rounding leaves of it, in float32 below
        1e-3.

    Raises:
        VisformerError: the model is not pre-norm, its logits are of labels, or there is no such row or token.
        MissingTensor: the Trace does not hold what is needed.
        TraceError: the parts do not sum to the residual stream: the model adds something else to it.
    """
    import pandas as pd

    _require_tokens(trace)
    _require_pre_norm(trace)
    of = asked(trace, answer, row)
    row = of.row or 0
    parts = _parts(trace, row)
    last = trace[f"decoder.{_layers(trace)[-1]}.resid_post"].value[row].astype(np.float64)
    rest = last - np.sum([vector for _, vector in parts], axis=0)
    if abs(rest).max() > tolerance(trace, 1e-3, roundings=len(parts)) * abs(last).max():
        raise TraceError(N_("The parts do not sum to the residual stream: this model adds something else to it."))
    norm = FinalNorm.of(trace)
    w, b = unembedding(trace)
    column = of.each(w)
    scale = np.ones(1) if norm.gamma is None else norm.gamma / norm.deviation(last)
    rows = [(*label, float((norm.centre(vector) * scale) @ column)) for label, vector in parts]
    rows.append(("norm", "decoder", -1, -1, float((np.zeros(len(column)) + norm.beta) @ column)))
    rows.append(("output", "decoder", -1, -1, float(of.each(b) if isinstance(b, np.ndarray) else 0.0)))
    residue = float(of(trace["logits"].value)) - sum(each[-1] for each in rows)
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


def _require_tokens(trace: "Trace") -> None:
    if trace.meta.get("labels"):
        raise VisformerError(
            N_("The lens and the parts of a logit are of models that predict next tokens; this one predicts labels.")
        )


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
