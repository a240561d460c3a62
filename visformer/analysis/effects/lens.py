"""The logit lens: what the last norm and the unembedding make of the residual stream after each layer.

nostalgebraist 2020, "interpreting GPT: the logit lens"; Belrose et al. 2023, "Eliciting Latent Predictions from
Transformers with the Tuned Lens", section 2, on where it misleads.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.needs import tolerance
from visformer.errors import N_, TraceError

if TYPE_CHECKING:
    from visformer.trace import Trace

LENS_NEEDS = ("decoder.*.resid_post", "decoder.out", "logits", "output.*")
"""What a Trace has to record for :func:`logit_lens`; and ("decoder.norm.*",) where ``model.available`` has it."""

_FIT = 1e-3
"""Largest difference, relative to the largest logit, between the last layer's scores and the model's logits."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lens:
    """Intermediate scores, not probabilities of anything the model says.

    Args:
        logits: (layer, row, vocab) float64: scores of the residual stream that leaves each layer; the last layer's are
            the model's own logits.
    """

    logits: Floats

    @property
    def probabilities(self) -> Floats:
        """(layer, row, vocab): softmax of the scores; only the last layer's are the model's."""
        shifted = np.exp(self.logits - self.logits.max(axis=-1, keepdims=True))
        total: Floats = shifted / shifted.sum(axis=-1, keepdims=True)
        return total


def logit_lens(trace: "Trace") -> Lens:
    """Apply the last norm and the unembedding to the residual stream after each layer of the decoder.

    The scores say what could be read there by the last layer's rules, not what the model has decided by then: a
    layer may keep what it knows in directions that only later layers turn into logits.

    Args:
        trace: records ``LENS_NEEDS``, and "decoder.norm.*" if the model has a last norm.

    Returns:
        The scores of each layer and row.

    Raises:
        MissingTensor: the Trace does not hold what is needed.
        TraceError: the last layer's scores are not the model's logits: it does something else in between.
    """
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
    return Lens(logits)


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
